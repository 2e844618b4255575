"""Snapshots of the metadata log: `<offset>-<epoch>.checkpoint` files (KIP-630, KIP-853).

The id is the end offset (exclusive) with the epoch of the record before it; the newest is the
largest by epoch, then offset. A snapshot is written under a `.part` name and frozen: fsync,
read-only, rename, fsync of the directory; so it exists whole or not at all. It begins with a header
record and ends with a footer; a file without them, or with a bad batch, is refused.

The records between header and footer belong to the controller; `snapshots_store` has the snapshots
of one log, `snapshots_cleaning` removes old ones.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress

from kraft_wire.model import FileSlice, LeaderEpoch, Offset, OffsetAndEpoch, StorageError
from kraft_wire.storage.files import Buffer, File, FileSystem
from kraft_wire.storage.scan import BadBatch, batches, frames
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = [
    "CorruptMetadataSnapshot",
    "SnapshotReader",
    "SnapshotWriter",
    "list_snapshots",
    "remove_leftovers",
    "retire_snapshots",
    "snapshot_name",
]

_SUFFIX = ".checkpoint"
_PART_SUFFIX = ".checkpoint.part"
_DELETED_SUFFIX = ".checkpoint.deleted"
_HEADER_TYPE, _FOOTER_TYPE = 3, 4
_CONTROL_KEY = struct.Struct(">hh")


class CorruptMetadataSnapshot(StorageError):
    """A snapshot file is not whole and valid; names the position."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        assert position >= 0, position
        super().__init__("verify", path, f"position {position}: {reason}")
        self.position = position


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    """Return Kafka's file name of a complete snapshot."""
    assert snapshot_id.offset >= 0, snapshot_id
    assert snapshot_id.epoch >= 0, snapshot_id
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{_SUFFIX}"


def list_snapshots(fs: FileSystem, directory: str) -> list[OffsetAndEpoch]:
    """Return the complete snapshots, oldest first."""
    found: list[OffsetAndEpoch] = []
    for name in fs.names(directory):
        if name.endswith(_SUFFIX):
            offset, dash, epoch = name.removesuffix(_SUFFIX).partition("-")
            digits = offset + epoch
            is_named = dash and (len(offset), len(epoch)) == (20, 10) and digits.isascii()
            if is_named and digits.isdigit():
                found.append(OffsetAndEpoch(Offset(int(offset)), LeaderEpoch(int(epoch))))
    found.sort(key=lambda known: (known.epoch, known.offset))
    assert len(set(found)) == len(found), found
    return found


class SnapshotWriter:
    """A snapshot that is being written or fetched; it is not visible before `freeze`.

    `attempt` keeps the files of two attempts at one snapshot apart.
    """

    def __init__(
        self, fs: FileSystem, directory: str, snapshot_id: OffsetAndEpoch, attempt: int
    ) -> None:
        assert attempt >= 0, attempt
        stem = snapshot_name(snapshot_id).removesuffix(_SUFFIX)
        self.snapshot_id = snapshot_id
        self.size_bytes = 0
        self._fs = fs
        self._directory = directory
        self.path = f"{directory}/{stem}-{attempt}{_PART_SUFFIX}"
        self._file: File | None = fs.open(self.path, create=True)
        self._file.truncate(0)
        self._walk = _Walk(self.path, snapshot_id)

    def append(self, data: Buffer) -> None:
        """Add bytes at the end; they may be any chunk of the file."""
        assert self._file is not None, "frozen or abandoned"
        self._file.pwrite(data, self.size_bytes)
        self.size_bytes += len(data)

    @property
    def read_bytes(self) -> int:
        """Bytes that `arrived` has read."""
        return self._walk.position

    def arrived(self) -> Iterator[RecordBatch]:
        """Read the batches that are whole by now, each once, as `SnapshotReader.batches` does.

        A batch counts as read when the next is requested. `check_end` handles invalid bytes.
        """
        assert self._file is not None, "frozen or abandoned"
        end = self._walk.position
        with suppress(BadBatch):
            for frame in frames(self._file, end, self.size_bytes):
                end += frame.size_bytes
        return self._walk.batches(self._file, end)

    def check_end(self) -> None:
        """Raise CorruptMetadataSnapshot unless what `arrived` yielded is a whole snapshot."""
        assert self._file is not None, "frozen or abandoned"
        unread = list(self._walk.batches(self._file, self.size_bytes))
        assert not unread, unread
        self._walk.check_end()

    def freeze(self) -> None:
        """Make it the snapshot of its id, durably. An existing snapshot is kept."""
        assert self._file is not None, "frozen or abandoned"
        final = f"{self._directory}/{snapshot_name(self.snapshot_id)}"
        if self._fs.exists(final):
            self.abandon()
            return
        self._file.fsync()
        self._file.close()
        self._file = None
        self._fs.make_read_only(self.path)
        self._fs.rename(self.path, final)
        self._fs.sync_directory(self._directory)

    def abandon(self) -> None:
        """Remove the written file; harmless after `freeze`."""
        if self._file is not None:
            self._file.close()
            self._file = None
            self._fs.unlink(self.path)
        assert self._file is None


class SnapshotReader:
    """An open, complete snapshot."""

    def __init__(self, fs: FileSystem, directory: str, snapshot_id: OffsetAndEpoch) -> None:
        self.snapshot_id = snapshot_id
        self.path = f"{directory}/{snapshot_name(snapshot_id)}"
        self._file = fs.open_for_reading(self.path)
        self.size_bytes = self._file.size_bytes()
        assert self.size_bytes >= 0, self.path

    def slice(self, position: int, max_bytes: int) -> FileSlice:
        """Return bytes from `position` on for a FetchSnapshot answer."""
        assert max_bytes >= 0, max_bytes
        assert 0 <= position <= self.size_bytes, (position, self.size_bytes)
        return FileSlice(self._file, position, min(max_bytes, self.size_bytes - position))

    def batches(self) -> Iterator[RecordBatch]:
        """Yield every batch, verified; CorruptMetadataSnapshot at the first error."""
        assert self.size_bytes >= 0, self.path
        walk = _Walk(self.path, self.snapshot_id)
        yield from walk.batches(self._file, self.size_bytes)
        walk.check_end()

    def close(self) -> None:
        """Close the file."""
        assert self._file is not None
        self._file.close()


class _Walk:
    """Reads a snapshot's batches up to a position, in chunks of bounded memory.

    CorruptMetadataSnapshot, in this order: bad batch, offsets with a gap, another epoch than the
    id's, no header first, no footer last.
    """

    def __init__(self, path: str, snapshot_id: OffsetAndEpoch) -> None:
        assert snapshot_id.offset >= 0, snapshot_id
        self.position = 0
        self._path = path
        self._snapshot_id = snapshot_id
        self._next_offset = 0
        self._last_at = 0
        self._is_closed = False

    def batches(self, file: File, end_position: int) -> Iterator[RecordBatch]:
        """Continue up to a position; a batch counts as read when the next one is requested."""
        assert self.position <= end_position, (self.position, end_position)
        at = self._last_at
        try:
            for at, batch in batches(file, self.position, end_position):
                reason = _what_is_wrong(batch, at, self._next_offset, self._snapshot_id)
                if reason is not None:
                    raise CorruptMetadataSnapshot(self._path, at, reason)
                is_closed = _FOOTER_TYPE in _control_types(batch)
                yield batch
                self.position, self._last_at = at + batch.size_bytes, at
                self._next_offset, self._is_closed = batch.next_offset, is_closed
        except BadBatch as bad:
            raise CorruptMetadataSnapshot(self._path, bad.position, bad.reason) from bad
        except CorruptRecordBatch as bad:
            raise CorruptMetadataSnapshot(self._path, at, bad.reason) from bad

    def check_end(self) -> None:
        """Raise CorruptMetadataSnapshot unless the last batch has the footer."""
        if not self._is_closed:
            raise CorruptMetadataSnapshot(self._path, self._last_at, "no footer at the end")
        assert self._next_offset > 0, self._path


def _what_is_wrong(
    batch: RecordBatch, position: int, expected: int, snapshot_id: OffsetAndEpoch
) -> str | None:
    assert expected >= 0, expected
    if batch.base_offset != expected:
        return f"base offset {batch.base_offset} where {expected} is next"
    if batch.partition_leader_epoch != snapshot_id.epoch:
        return f"leader epoch {batch.partition_leader_epoch} is not the snapshot's"
    if position == 0 and next(iter(_control_types(batch)), None) != _HEADER_TYPE:
        return "no header at the beginning"
    return None


def _control_types(batch: RecordBatch) -> list[int | None]:
    """Return the types of the records of a control batch, None for no type; none of others."""
    if not batch.is_control:
        return []
    keys = [record.key for record in batch.iter_records()]
    types = [
        _CONTROL_KEY.unpack(key)[1] if key is not None and len(key) == _CONTROL_KEY.size else None
        for key in keys
    ]
    assert len(types) == len(keys), batch
    return types


def retire_snapshots(fs: FileSystem, directory: str, below: OffsetAndEpoch) -> list[str]:
    """Rename the snapshots older than `below` to `.deleted`; return their paths for unlinking.

    Nothing is synced: an old snapshot that reappears is removed at the next start.
    """
    assert below in list_snapshots(fs, directory), below
    retired: list[str] = []
    for snapshot_id in list_snapshots(fs, directory):
        if snapshot_id != below and snapshot_id.epoch <= below.epoch:
            if snapshot_id.offset >= below.offset:
                continue
            path = f"{directory}/{snapshot_name(snapshot_id)}"
            doomed = path.removesuffix(_SUFFIX) + _DELETED_SUFFIX
            fs.rename(path, doomed)
            retired.append(doomed)
    return retired


def remove_leftovers(fs: FileSystem, directory: str, log_start_offset: Offset) -> None:
    """Clean up at start: unfinished and retired files, and snapshots below the log's start.

    StorageError, before anything is removed, if the log starts above 0 and no snapshot reaches
    its start: the records below are then lost (S14).
    """
    snapshots = list_snapshots(fs, directory)
    if log_start_offset > 0 and all(known.offset < log_start_offset for known in snapshots):
        reason = f"the log starts at {log_start_offset}, but no snapshot reaches that offset"
        raise StorageError("open", directory, reason)
    assert log_start_offset >= 0, log_start_offset
    for name in fs.names(directory):
        if name.endswith((_PART_SUFFIX, _DELETED_SUFFIX)):
            fs.unlink(f"{directory}/{name}")
    for snapshot_id in snapshots:
        if snapshot_id.offset < log_start_offset:
            fs.unlink(f"{directory}/{snapshot_name(snapshot_id)}")
