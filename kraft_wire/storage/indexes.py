"""The three index files of a segment, in Kafka's formats.

`.index`: 8-byte entries (relative offset of a batch's last record, position of the batch).
`.timeindex`: 12-byte entries (timestamp, relative offset of the batch's last record), both growing.
`.txnindex`: 34-byte entries, one per aborted transaction (KIP-98).

Entries are in arrays; `save` writes them to the file. All three are derived from the log, have no
checksum, and are rebuilt when a sanity check fails: an entry must be verified against its batch.
Kafka maps these files at full size while a segment is active and trims them later; here they always
have their trimmed size, as Kafka's after a clean stop.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from kraft_wire.model import Offset
from kraft_wire.storage.files import FileSystem

__all__ = ["AbortedTransaction", "CorruptIndex", "OffsetIndex", "TimeIndex", "TransactionIndex"]

_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY = struct.Struct(">qi")
_TRANSACTION_ENTRY = struct.Struct(">hqqqq")
_TRANSACTION_ENTRY_VERSION = 0
_INT32_MAX = (1 << 31) - 1
_turn_big_endian: Callable[["array[int]"], object] = (
    array.byteswap if sys.byteorder == "little" else len
)


class CorruptIndex(Exception):
    """An index file is invalid; rebuild it from the log."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def _is_growing(values: "array[int]") -> bool:
    """Return whether each value is larger than the previous one."""
    assert values.typecode in "Iq", values.typecode
    return all(map(int.__lt__, values, values[1:]))


def _save(fs: FileSystem, path: str, content: bytes, from_bytes: int, sync: bool) -> None:
    """Write `content` after `from_bytes`, truncate the file to its size, and optionally fsync."""
    assert 0 <= from_bytes <= len(content), (from_bytes, len(content))
    file = fs.open(path, create=True)
    try:
        if len(content) > from_bytes:
            file.pwrite(content[from_bytes:], from_bytes)
        if file.size_bytes() != len(content):
            file.truncate(len(content))
        if sync:
            file.fsync()
    finally:
        file.close()


class OffsetIndex:
    """Sparse map from offset to file position."""

    __slots__ = ("_offsets", "_saved", "base_offset", "path", "positions")

    def __init__(self, path: str, base_offset: Offset) -> None:
        assert base_offset >= 0, base_offset
        self.path = path
        self.base_offset = base_offset
        self._offsets: array[int] = array("I")
        self.positions: array[int] = array("I")
        """Positions of the entries' batches, for readers."""
        self._saved = 0

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, last_offset: Offset, position: int) -> None:
        """Add an entry: the batch that ends at `last_offset` starts at `position`."""
        relative = last_offset - self.base_offset
        assert 0 <= relative <= _INT32_MAX, (self.base_offset, last_offset)
        assert not self._offsets or relative > self._offsets[-1], (relative, self._offsets[-1])
        self._offsets.append(relative)
        self.positions.append(position)

    def entry_before(self, offset: Offset) -> tuple[Offset, int] | None:
        """Return the last entry (batch's last offset, its position) at or before `offset`."""
        assert len(self._offsets) == len(self.positions), self.path
        relative = offset - self.base_offset
        found = bisect_right(self._offsets, relative) - 1 if relative >= 0 else -1
        if found < 0:
            return None
        return Offset(self.base_offset + self._offsets[found]), self.positions[found]

    def entry_from(self, position: int) -> tuple[Offset, int] | None:
        """Return the first entry (batch's last offset, its position) at or after `position`."""
        assert len(self._offsets) == len(self.positions), self.path
        found = bisect_left(self.positions, position)
        if found == len(self):
            return None
        return Offset(self.base_offset + self._offsets[found]), self.positions[found]

    def truncate_to(self, offset: Offset) -> None:
        """Drop entries of batches that end at or after `offset`."""
        keep = bisect_left(self._offsets, max(0, offset - self.base_offset))
        del self._offsets[keep:], self.positions[keep:]
        self._saved = min(self._saved, keep)
        assert len(self._offsets) == len(self.positions)

    def load(self, fs: FileSystem, log_size_bytes: int) -> None:
        """Read the file; CorruptIndex if it cannot belong to a log of this size.

        Zeros at the end, which a killed Kafka leaves, are dropped.
        """
        assert log_size_bytes >= 0, log_size_bytes
        data = fs.read(self.path)
        if len(data) % _OFFSET_ENTRY_BYTES:
            raise CorruptIndex(self.path, f"{len(data)} bytes are not whole entries")
        entries = array("I", data)
        _turn_big_endian(entries)
        offsets, positions = entries[0::2], entries[1::2]
        while offsets and offsets[-1] == 0 and positions[-1] == 0:
            offsets.pop()
            positions.pop()
        if data and not offsets:
            raise CorruptIndex(self.path, "nothing but zeros")
        if offsets and (offsets[-1] > _INT32_MAX or positions[-1] >= log_size_bytes):
            raise CorruptIndex(self.path, "an entry lies beyond the log")
        if not (_is_growing(offsets) and _is_growing(positions)):
            raise CorruptIndex(self.path, "entries do not grow")
        self._offsets, self.positions = offsets, positions
        self._saved = len(offsets) if len(data) == 8 * len(offsets) else 0

    def save(self, fs: FileSystem, *, sync: bool = False) -> None:
        """Write what the file does not hold yet and give it its exact size."""
        assert self._saved <= len(self._offsets), self.path
        entries = array("I", bytes(_OFFSET_ENTRY_BYTES * len(self._offsets)))
        entries[0::2], entries[1::2] = self._offsets, self.positions
        _turn_big_endian(entries)
        _save(fs, self.path, entries.tobytes(), 8 * self._saved, sync)
        self._saved = len(self._offsets)

    @property
    def has_unsaved(self) -> bool:
        """Whether entries were added or cut since the last save."""
        return self._saved != len(self._offsets)


class TimeIndex:
    """Sparse map from timestamp to offset; both grow strictly from entry to entry."""

    __slots__ = ("_offsets", "_saved", "base_offset", "path", "timestamps")

    def __init__(self, path: str, base_offset: Offset) -> None:
        assert base_offset >= 0, base_offset
        self.path = path
        self.base_offset = base_offset
        self.timestamps: array[int] = array("q")
        """The times of the entries, for readers."""
        self._offsets: array[int] = array("I")
        self._saved = 0

    def __len__(self) -> int:
        return len(self.timestamps)

    def maybe_append(self, timestamp: int, offset: Offset) -> bool:
        """Add an entry if the timestamp is larger than all before; return whether it was added."""
        if timestamp < 0 or (self.timestamps and timestamp <= self.timestamps[-1]):
            return False
        relative = offset - self.base_offset
        assert 0 <= relative <= _INT32_MAX, (self.base_offset, offset)
        assert not self._offsets or relative > self._offsets[-1], (offset, self._offsets[-1])
        self.timestamps.append(timestamp)
        self._offsets.append(relative)
        return True

    def last_entry(self) -> tuple[int, Offset] | None:
        """Return the largest (timestamp, offset), or None."""
        assert len(self._offsets) == len(self.timestamps), self.path
        if not self.timestamps:
            return None
        return self.timestamps[-1], Offset(self.base_offset + self._offsets[-1])

    def entry_before(self, timestamp: int) -> tuple[int, Offset] | None:
        """Return the last entry older than `timestamp`.

        No record up to an entry's offset is newer than its timestamp. So a search for the first
        record that is at least that new may begin at the entry's batch.
        """
        assert len(self._offsets) == len(self.timestamps), self.path
        found = bisect_left(self.timestamps, timestamp) - 1
        if found < 0:
            return None
        return self.timestamps[found], Offset(self.base_offset + self._offsets[found])

    def truncate_to(self, offset: Offset) -> None:
        """Drop entries at or after `offset`."""
        keep = bisect_left(self._offsets, max(0, offset - self.base_offset))
        del self.timestamps[keep:], self._offsets[keep:]
        self._saved = min(self._saved, keep)
        assert len(self._offsets) == len(self.timestamps)

    def load(self, fs: FileSystem) -> None:
        """Read the file; CorruptIndex if its entries do not grow."""
        assert not self.timestamps, "loaded once, before anything is appended"
        data = fs.read(self.path)
        if len(data) % _TIME_ENTRY.size:
            raise CorruptIndex(self.path, f"{len(data)} bytes are not whole entries")
        pairs = list(_TIME_ENTRY.iter_unpack(data))
        while pairs and pairs[-1] == (0, 0):
            pairs.pop()
        if pairs and (pairs[0][0] < 0 or pairs[0][1] < 0):
            raise CorruptIndex(self.path, "a negative entry")
        timestamps = array("q", [timestamp for timestamp, _ in pairs])
        if not _is_growing(timestamps):
            raise CorruptIndex(self.path, "timestamps do not grow")
        if any(later[1] <= earlier[1] for earlier, later in pairwise(pairs)):
            raise CorruptIndex(self.path, "offsets do not grow")
        self.timestamps = timestamps
        self._offsets = array("I", [relative for _, relative in pairs])
        self._saved = len(pairs) if len(data) == _TIME_ENTRY.size * len(pairs) else 0

    def save(self, fs: FileSystem, *, sync: bool = False) -> None:
        """Write what the file does not hold yet and give it its exact size."""
        content = b"".join(map(_TIME_ENTRY.pack, self.timestamps, self._offsets))
        _save(fs, self.path, content, _TIME_ENTRY.size * self._saved, sync)
        self._saved = len(self.timestamps)
        assert not self.has_unsaved

    @property
    def has_unsaved(self) -> bool:
        """Whether entries were added or cut since the last save."""
        return self._saved != len(self.timestamps)


class AbortedTransaction(NamedTuple):
    """An aborted transaction, whose records a read_committed consumer drops."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset  # of the abort marker
    last_stable_offset: Offset  # when the marker was written


class TransactionIndex:
    """Aborted transactions whose marker is in the segment; the file exists with the first one."""

    __slots__ = ("_saved", "entries", "path")

    def __init__(self, path: str) -> None:
        assert path.endswith(".txnindex") or ".txnindex." in path, path
        self.path = path
        self.entries: list[AbortedTransaction] = []
        self._saved = 0

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an entry; markers must come in log order."""
        assert 0 <= aborted.first_offset <= aborted.last_offset, aborted
        assert not self.entries or aborted.last_offset > self.entries[-1].last_offset, aborted
        self.entries.append(aborted)

    def truncate_to(self, offset: Offset) -> None:
        """Drop transactions whose marker is at or after `offset`."""
        assert offset >= 0, offset
        while self.entries and self.entries[-1].last_offset >= offset:
            self.entries.pop()
        self._saved = min(self._saved, len(self.entries))

    def clear(self) -> None:
        """Drop all entries."""
        self.entries.clear()
        self._saved = 0

    def load(self, fs: FileSystem) -> None:
        """Read the file if it exists; CorruptIndex if its entries do not increase."""
        assert self.path, "a path is needed"
        self.clear()
        if not fs.exists(self.path):
            return
        data = fs.read(self.path)
        if len(data) % _TRANSACTION_ENTRY.size:
            raise CorruptIndex(self.path, f"{len(data)} bytes are not whole entries")
        for version, producer_id, first, last, stable in _TRANSACTION_ENTRY.iter_unpack(data):
            if version != _TRANSACTION_ENTRY_VERSION or not 0 <= first <= last:
                raise CorruptIndex(self.path, f"an impossible entry (version {version})")
            if self.entries and last <= self.entries[-1].last_offset:
                raise CorruptIndex(self.path, "entries do not grow")
            self.entries.append(
                AbortedTransaction(producer_id, Offset(first), Offset(last), Offset(stable))
            )
        self._saved = len(self.entries)

    def save(self, fs: FileSystem, *, sync: bool = False) -> None:
        """Write new entries; without entries an existing file is emptied, and none is created.

        Saved entries are not written again: a crash could tear them, and there is no other copy.
        """
        if not self.entries and not fs.exists(self.path):
            return
        pack = _TRANSACTION_ENTRY.pack
        content = b"".join(pack(_TRANSACTION_ENTRY_VERSION, *entry) for entry in self.entries)
        assert len(content) == _TRANSACTION_ENTRY.size * len(self.entries)
        _save(fs, self.path, content, _TRANSACTION_ENTRY.size * self._saved, sync)
        self._saved = len(self.entries)
