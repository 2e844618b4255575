"""The three indexes of a segment as one: noted while appending, proven or rebuilt when read.

What an index says is checked against the batch it points at, and an index that lies is rebuilt from
the log, so that a flipped bit in a file without checksum costs time and nothing else. The log is an
argument of what needs it: an object that held its segment would keep the segment's file open.
"""

from bisect import bisect_left

from kraft_wire.model import Offset
from kraft_wire.storage.files import FileSystem, MissingFile
from kraft_wire.storage.indexes import (
    AbortedTransaction,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
)
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.log_file import CorruptLog, LogFile, batches_of, frame_of
from kraft_wire.storage.scan import BadBatch, frame_here

__all__ = ["SegmentIndexes", "ends_at"]

_NO_TIMESTAMP = -1
_INT32_MAX = (1 << 31) - 1
_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY_BYTES = 12


class SegmentIndexes:
    """Where offsets, times and aborted transactions of one segment are."""

    __slots__ = (
        "_bytes_since_entry",
        "_fs",
        "_offset_of_max_timestamp",
        "_times",
        "_transactions",
        "base_offset",
        "first_timestamp",
        "interval_bytes",
        "is_loaded",
        "max_timestamp",
        "offsets",
    )

    def __init__(self, fs: FileSystem, stem: str, suffix: str, base_offset: Offset) -> None:
        assert base_offset >= 0, base_offset
        self._fs = fs
        self.base_offset = base_offset
        self.is_loaded = True
        self.interval_bytes = LogConfig().index_interval_bytes
        self.first_timestamp = _NO_TIMESTAMP
        """Of the first batch, -1 when it has none."""
        self.max_timestamp = _NO_TIMESTAMP
        self._offset_of_max_timestamp = base_offset
        self._bytes_since_entry = 0
        self.offsets = OffsetIndex(f"{stem}.index{suffix}", base_offset)
        """Readers must verify an entry by `ends_at`."""
        self._times = TimeIndex(f"{stem}.timeindex{suffix}", base_offset)
        self._transactions = TransactionIndex(f"{stem}.txnindex{suffix}")

    # -- writing ---------------------------------------------------------------------------------

    def note(self, position: int, size_bytes: int, last_offset: int, timestamp: int) -> None:
        """Take in the next batch, known by what indexes need of it."""
        assert last_offset >= self.base_offset, (last_offset, self.base_offset)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self._offset_of_max_timestamp = Offset(last_offset)
        if position == 0:
            self.first_timestamp = timestamp
        if self._bytes_since_entry > self.interval_bytes:
            self.offsets.append(Offset(last_offset), position)
            self._times.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
            self._bytes_since_entry = 0
        self._bytes_since_entry += size_bytes

    def note_aborted(self, aborted: AbortedTransaction) -> None:
        """Add an aborted transaction whose marker was just appended."""
        assert aborted.last_offset >= self.base_offset, aborted
        self._transactions.append(aborted)

    def has_room(self, index_bytes_max: int) -> bool:
        """Return whether one more entry fits into files of that size."""
        assert index_bytes_max > 0, index_bytes_max
        # Not len(self.offsets): a call of its method would double the cost of each append.
        return (
            len(self.offsets.positions) < index_bytes_max // _OFFSET_ENTRY_BYTES
            and len(self._times.timestamps) < index_bytes_max // _TIME_ENTRY_BYTES - 1
        )

    def cut(self, log: LogFile, offset: Offset) -> None:
        """Drop entries at `offset` and above; the log is truncated already."""
        assert offset >= self.base_offset, (offset, self.base_offset)
        self.offsets.truncate_to(offset)
        self._times.truncate_to(offset)
        self._transactions.truncate_to(offset)
        self._load_tail(log)

    def seal(self) -> None:
        """Finish a segment that gets no more appends: last time entry, exact file sizes."""
        self._times.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
        self.save()
        assert not self.offsets.has_unsaved, self.offsets.path

    def save(self, *, sync: bool = False) -> None:
        """Write new entries to the files."""
        assert self.is_loaded, self.offsets.path
        self.offsets.save(self._fs, sync=sync)
        self._times.save(self._fs, sync=sync)
        self._transactions.save(self._fs, sync=sync)

    @property
    def paths(self) -> tuple[str, ...]:
        """The three files, of which the last may not exist."""
        assert self.offsets.path != self._times.path, self.offsets.path
        return self.offsets.path, self._times.path, self._transactions.path

    # -- reading ---------------------------------------------------------------------------------

    def start_position(self, log: LogFile, offset: Offset) -> int:
        """Return the start of a walk towards `offset`, verified by the batch there."""
        assert self.is_loaded, log.path
        entry = self.offsets.entry_before(offset)
        if entry is None:
            return 0
        if not ends_at(log, *entry):
            self.rebuild(log)
            entry = self.offsets.entry_before(offset)
            assert entry is None or ends_at(log, *entry), (log.path, entry)
        return entry[1] if entry is not None else 0

    def position_before_timestamp(self, log: LogFile, timestamp: int) -> int:
        """Return a position at or before the first batch with a timestamp of at least that."""
        assert self.is_loaded, log.path
        entry = self._times.entry_before(timestamp)
        if entry is not None and not self._is_time_right(log, *entry):
            self.rebuild(log)
            entry = self._times.entry_before(timestamp)
        if entry is None:
            return 0
        frame = frame_of(log, self.start_position(log, entry[1]), entry[1])
        assert frame is not None, (log.path, entry)
        return frame.position

    def aborted_transactions(
        self, first: Offset, end: Offset
    ) -> tuple[list[AbortedTransaction], bool]:
        """Return aborted transactions in [first, end), and whether no later entry can have one.

        Markers come in log order, and the last stable offset at a marker bounds all later entries.
        """
        assert first <= end, (first, end)
        entries, found = self._transactions.entries, []
        for at in range(bisect_left(entries, first, key=_last_offset), len(entries)):
            entry = entries[at]
            if entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found, True
        return found, False

    # -- loading ---------------------------------------------------------------------------------

    def load(self, log: LogFile) -> None:
        """Read the files; rebuild them if they are invalid."""
        assert not self.is_loaded, log.path
        self.is_loaded = True
        try:
            self.offsets.load(self._fs, log.size_bytes)
            self._times.load(self._fs)
            self._transactions.load(self._fs)
            last_time = self._times.last_entry()
            is_right = last_time is None or self._is_time_right(log, *last_time)
        except (CorruptIndex, MissingFile):
            is_right = False
        if is_right:
            self._load_tail(log)
        else:
            self.rebuild(log)

    def _is_time_right(self, log: LogFile, timestamp: int, offset: Offset) -> bool:
        """Return whether a time entry names a batch that has this time and ends there."""
        frame = frame_of(log, self.start_position(log, offset), offset)
        if frame is None or frame.last_offset != offset:
            return False
        assert frame.position < log.size_bytes, (frame, log.path)
        _, batch = next(batches_of(log, frame.position))
        return batch.max_timestamp == timestamp

    def _load_tail(self, log: LogFile) -> None:
        """Compute time bounds and the distance to the last entry, after a load or a truncation."""
        last_time = self._times.last_entry()
        self.max_timestamp, self._offset_of_max_timestamp = last_time or (
            _NO_TIMESTAMP,
            self.base_offset,
        )
        self._bytes_since_entry = 0
        self.first_timestamp = _NO_TIMESTAMP
        if log.size_bytes == 0:
            return
        start = self.start_position(log, Offset(self.base_offset + _INT32_MAX))
        for _, batch in batches_of(log, start):
            self._bytes_since_entry += batch.size_bytes
            if batch.max_timestamp > self.max_timestamp:
                self.max_timestamp = batch.max_timestamp
                self._offset_of_max_timestamp = Offset(batch.last_offset)
        _, first = next(batches_of(log, 0))
        self.first_timestamp = first.max_timestamp
        assert self.max_timestamp >= _NO_TIMESTAMP, log.path

    def clear(self, *, keeps_transactions: bool = False) -> None:
        """Drop all entries; the caller must note every batch again."""
        self.is_loaded = True
        self.offsets.truncate_to(self.base_offset)
        self._times.truncate_to(self.base_offset)
        if not keeps_transactions:
            self._transactions.clear()
        self.max_timestamp = self.first_timestamp = _NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self._bytes_since_entry = 0
        assert len(self.offsets) == len(self._times) == 0, self.offsets.path

    def rebuild(self, log: LogFile) -> None:
        """Derive offsets and times from the log; CorruptLog if it is damaged."""
        assert log.size_bytes >= 0, log.path
        self.clear(keeps_transactions=True)
        least = self.base_offset
        for position, batch in batches_of(log, 0):
            # The CRC does not cover a batch's base offset.
            if not least <= batch.base_offset <= batch.last_offset <= self.base_offset + _INT32_MAX:
                reason = f"base offset is {batch.base_offset}, at least {least} is expected"
                raise CorruptLog(log.path, position, reason)
            least = Offset(batch.next_offset)
            self.note(position, batch.size_bytes, batch.last_offset, batch.max_timestamp)
        try:
            self._transactions.load(self._fs)
        except CorruptIndex as error:
            # Markers do not have the starts of their transactions: only recovery can rebuild.
            raise CorruptLog(error.path, 0, error.reason) from error
        self.save()
        assert self.is_loaded


def _last_offset(entry: AbortedTransaction) -> Offset:
    return entry.last_offset


def ends_at(log: LogFile, last_offset: Offset, position: int) -> bool:
    """Return whether the batch at `position` ends at `last_offset`."""
    assert position >= 0, position
    if position >= log.size_bytes:
        return False
    try:
        frame = frame_here(log.file, position, log.size_bytes)
    except BadBatch:
        return False
    return frame.last_offset == last_offset
