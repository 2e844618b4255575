"""One segment of a log: the `.log` file with its three indexes.

A segment knows positions and timestamps, not leadership, producers or retention; those are the
log's. Appending is one positioned write and a few additions per batch, no work per record. What an
index says is checked against the batch it points at, and an index that lies is rebuilt from the
log, so that a flipped bit in a file without checksum costs time and nothing else.

Left out: messages of format 0 and 1 are stepped over by their length when reading, never indexed.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.storage.files import Buffer, File, FileSystem, MissingFile, StorageError
from kraft_wire.storage.indexes import (
    AbortedTransaction,
    CorruptIndex,
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
)
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.scan import BadBatch, Frame, batches, find_frame, frames
from kraft_wire.wire.record_batch import RecordBatch

__all__ = ["INDEX_SUFFIXES", "LOG_SUFFIX", "CorruptLog", "Segment", "file_name"]

LOG_SUFFIX = ".log"
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
NO_TIMESTAMP = -1
_INT32_MAX = (1 << 31) - 1
_RECENT_BATCHES_MAX = 32
_OFFSET_ENTRY_BYTES = 8
_TIME_ENTRY_BYTES = 12


class CorruptLog(StorageError):
    """A log file holds bytes that are no valid batch at a place where one must be."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__("verify", path, f"position {position}: {reason}")
        self.position = position


def file_name(base_offset: int, suffix: str) -> str:
    """Return Kafka's name for a file of the segment: 20 digits and the suffix."""
    assert base_offset >= 0, base_offset
    return f"{base_offset:020d}{suffix}"


class Segment:
    """A run of batches from `base_offset` on. Create one with `create` or `open_existing`."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_file",
        "_fs",
        "_index_interval_bytes",
        "_indexes_loaded",
        "_offset_of_max_timestamp",
        "_offsets",
        "_recent",
        "_times",
        "_transactions",
        "base_offset",
        "created_ms",
        "first_timestamp",
        "is_unflushed",
        "max_timestamp",
        "path",
        "size_bytes",
    )

    def __init__(
        self, fs: FileSystem, directory: str, base_offset: Offset, created_ms: int, suffix: str = ""
    ) -> None:
        assert base_offset >= 0, base_offset
        stem = f"{directory}/{file_name(base_offset, '')}"
        self._fs = fs
        self.path = f"{stem}{LOG_SUFFIX}{suffix}"
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.size_bytes = 0
        self.is_unflushed = False
        self.first_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self._file: File | None = None
        self._offset_of_max_timestamp = base_offset
        self._bytes_since_index_entry = 0
        self._index_interval_bytes = LogConfig().index_interval_bytes
        self._indexes_loaded = True
        self._offsets = OffsetIndex(f"{stem}.index{suffix}", base_offset)
        self._times = TimeIndex(f"{stem}.timeindex{suffix}", base_offset)
        self._transactions = TransactionIndex(f"{stem}.txnindex{suffix}")
        self._recent: dict[Offset, Frame] = {}

    @classmethod
    def create(
        cls,
        fs: FileSystem,
        directory: str,
        base_offset: Offset,
        config: LogConfig,
        created_ms: int,
        suffix: str = "",
    ) -> "Segment":
        """Make the files of an empty segment; the caller syncs the directory before it counts."""
        segment = cls(fs, directory, base_offset, created_ms, suffix)
        segment._file = fs.open(segment.path, create=True)
        segment._file.truncate(0)
        if config.preallocate:
            segment._file.truncate(config.segment_bytes)
        segment.configure(config)
        segment.save_indexes()
        assert segment.size_bytes == 0, segment.path
        return segment

    @classmethod
    def open_existing(
        cls, fs: FileSystem, directory: str, base_offset: Offset, config: LogConfig, opened_ms: int
    ) -> "Segment":
        """Open without reading anything but the size; indexes are loaded when first needed."""
        segment = cls(fs, directory, base_offset, opened_ms)
        segment.size_bytes = segment.file.size_bytes()
        segment.configure(config)
        segment._indexes_loaded = False
        assert segment.size_bytes >= 0, segment.path
        return segment

    def configure(self, config: LogConfig) -> None:
        """Take over changed settings."""
        assert config.index_interval_bytes >= 0, config
        self._index_interval_bytes = config.index_interval_bytes

    @property
    def file(self) -> File:
        """The open `.log` file."""
        if self._file is None:
            self._file = self._fs.open(self.path)
        assert self._file is not None, self.path
        return self._file

    # -- writing ---------------------------------------------------------------------------------

    def append(self, data: Buffer, appended: Sequence[RecordBatch]) -> None:
        """Write `data`, which is exactly the batches `appended`, at the end.

        When the write fails the file is cut back, so that nothing stays half-written.
        """
        assert len(data) > 0, self.path
        position = self.size_bytes
        assert appended, self.path
        try:
            self.file.pwrite(data, position)
        except StorageError:
            # Bytes that cannot be cut off are a torn tail, which recovery removes.
            with suppress(StorageError):
                self.file.truncate(position)
            raise
        self.is_unflushed = True
        self.size_bytes = position + len(data)
        for batch in appended:
            self.note(batch, position)
            position += batch.size_bytes
        assert position == self.size_bytes, (position, self.size_bytes)

    def note(self, batch: RecordBatch, position: int) -> None:
        """Take a batch that stands at `position` into the indexes and the time bounds."""
        last_offset = Offset(batch.base_offset + batch.last_offset_delta)
        size = batch.size_bytes
        self.note_place(position, size, last_offset, batch.max_timestamp)
        recent = self._recent
        if len(recent) >= _RECENT_BATCHES_MAX:
            recent.clear()
        base_offset = Offset(batch.base_offset)
        epoch = LeaderEpoch(batch.partition_leader_epoch)
        recent[base_offset] = Frame(position, size, base_offset, last_offset, epoch)
        assert base_offset >= self.base_offset, (base_offset, self.base_offset)

    def note_place(self, position: int, size_bytes: int, last_offset: int, timestamp: int) -> None:
        """Take a batch into the indexes and the time bounds, known by what these need of it."""
        assert last_offset >= self.base_offset, (last_offset, self.base_offset)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self._offset_of_max_timestamp = Offset(last_offset)
        if position == 0:
            self.first_timestamp = timestamp
        if self._bytes_since_index_entry > self._index_interval_bytes:
            self._offsets.append(Offset(last_offset), position)
            self._times.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
            self._bytes_since_index_entry = 0
        self._bytes_since_index_entry += size_bytes

    def note_aborted(self, aborted: AbortedTransaction) -> None:
        """Add an aborted transaction whose marker was just appended here."""
        assert aborted.last_offset >= self.base_offset, aborted
        self.load_indexes()
        self._transactions.append(aborted)

    def has_room_for(self, size_bytes: int, last_offset: Offset, config: LogConfig) -> bool:
        """Tell whether a batch of that size and end still belongs here (size, index, offset)."""
        assert size_bytes > 0, size_bytes
        entries_max = config.segment_index_bytes // _OFFSET_ENTRY_BYTES
        time_entries_max = config.segment_index_bytes // _TIME_ENTRY_BYTES - 1
        return (
            (self.size_bytes == 0 or self.size_bytes + size_bytes <= config.segment_bytes)
            and len(self._offsets) < entries_max
            and len(self._times) < time_entries_max
            and last_offset - self.base_offset <= _INT32_MAX
        )

    def truncate_to(self, offset: Offset) -> None:
        """Cut off the batch that holds `offset` and all after it, durably."""
        assert offset >= self.base_offset, (offset, self.path)
        self.load_indexes()
        frame = self.locate(offset)
        if frame is None:
            return
        self.cut(frame.position, frame.base_offset)
        self.file.fsync()
        assert self.size_bytes == frame.position, (self.size_bytes, frame)

    def cut(self, position: int, offset: Offset) -> None:
        """Shorten the file to `position`, where the batch at `offset` stood."""
        assert position <= self.size_bytes, (position, self.size_bytes)
        assert position >= 0, position
        self.file.truncate(position)
        self.size_bytes = position
        self.is_unflushed = True
        self._recent.clear()
        self._offsets.truncate_to(offset)
        self._times.truncate_to(offset)
        self._transactions.truncate_to(offset)
        self.save_indexes()
        self._load_tail()

    def seal(self) -> None:
        """Finish a segment that gets no more appends: last time entry, exact file sizes."""
        self.load_indexes()
        self._times.maybe_append(self.max_timestamp, self._offset_of_max_timestamp)
        self._trim()
        self.save_indexes()
        self._recent.clear()
        assert not self._offsets.has_unsaved, self.path

    def _trim(self) -> None:
        """Give back what was preallocated."""
        assert self.size_bytes >= 0, self.size_bytes
        if self.file.size_bytes() != self.size_bytes:
            self.file.truncate(self.size_bytes)

    def close(self) -> None:
        """Leave the files as Kafka leaves them after a clean stop."""
        assert self.size_bytes >= 0, self.path
        if self._indexes_loaded:
            self.seal()
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Unlink the files; replies that hold the open file can still read it."""
        assert self.path, "removed once"
        self._file = None
        self._fs.unlink(self.path)
        for index in (self._offsets, self._times, self._transactions):
            assert index.path != self.path, index.path
            self._fs.unlink(index.path)

    # -- reading ---------------------------------------------------------------------------------

    def locate(self, offset: Offset) -> Frame | None:
        """Return the first batch that ends at or after `offset`, or None beyond the last one."""
        frame = self._recent.get(offset)
        if frame is not None:
            return frame
        assert offset >= 0, offset
        try:
            return find_frame(self.file, self._start_position(offset), self.size_bytes, offset)
        except BadBatch as bad:
            raise CorruptLog(self.path, bad.position, bad.reason) from bad

    def last_frame(self) -> Frame | None:
        """Return the last batch, or None in an empty segment."""
        last: Frame | None = None
        start = self._start_position(Offset(self.base_offset + _INT32_MAX))
        try:
            for frame in frames(self.file, start, self.size_bytes):
                last = frame
        except BadBatch as bad:
            raise CorruptLog(self.path, bad.position, bad.reason) from bad
        assert (last is None) == (self.size_bytes == 0), self.path
        return last

    def batches_from(self, position: int) -> Iterator[tuple[int, RecordBatch]]:
        """Yield (position, batch), each with its CRC verified; CorruptLog at the first bad one."""
        assert 0 <= position <= self.size_bytes, (position, self.size_bytes)
        try:
            yield from batches(self.file, position, self.size_bytes)
        except BadBatch as bad:
            raise CorruptLog(self.path, bad.position, bad.reason) from bad

    def position_before_timestamp(self, timestamp: int) -> int:
        """Return a position at or before the first batch with a timestamp of at least that."""
        self.load_indexes()
        entry = self._times.entry_before(timestamp)
        if entry is not None and not self._is_time_right(*entry):
            self.rebuild_indexes()
            entry = self._times.entry_before(timestamp)
        if entry is None:
            return 0
        frame = self.locate(entry[1])
        assert frame is not None, (self.path, entry)
        return frame.position

    def aborted_transactions(self, first: Offset, end: Offset) -> list[AbortedTransaction]:
        """Return aborted transactions that touch [first, end)."""
        self.load_indexes()
        entries = self._transactions.entries
        assert first <= end, (first, end)
        return [e for e in entries if e.last_offset >= first and e.first_offset < end]

    def largest_timestamp(self) -> int:
        """Return the largest timestamp in the segment, -1 when it has none."""
        self.load_indexes()
        assert self.max_timestamp >= NO_TIMESTAMP, self.max_timestamp
        return self.max_timestamp

    def _start_position(self, offset: Offset) -> int:
        """Return where a walk towards `offset` may begin, proven by the batch that is there."""
        self.load_indexes()
        entry = self._offsets.entry_before(offset)
        if entry is None:
            return 0
        if not self._is_right(*entry):
            self.rebuild_indexes()
            entry = self._offsets.entry_before(offset)
            assert entry is None or self._is_right(*entry), (self.path, entry)
        return entry[1] if entry is not None else 0

    def _is_right(self, last_offset: Offset, position: int) -> bool:
        """Tell whether the batch at `position` ends at `last_offset`."""
        assert position >= 0, position
        if position >= self.size_bytes:
            return False
        try:
            frame = next(frames(self.file, position, self.size_bytes))
        except BadBatch:
            return False
        return frame.last_offset == last_offset

    # -- indexes ---------------------------------------------------------------------------------

    def load_indexes(self) -> None:
        """Read the index files if that was not done yet; rebuild them when they cannot be right."""
        if self._indexes_loaded:
            return
        self._indexes_loaded = True
        try:
            self._offsets.load(self._fs, self.size_bytes)
            self._times.load(self._fs)
            self._transactions.load(self._fs)
            last_time = self._times.last_entry()
            is_right = last_time is None or self._is_time_right(*last_time)
        except (CorruptIndex, MissingFile):
            is_right = False
        if is_right:
            self._load_tail()
        else:
            self.rebuild_indexes()
        assert self._indexes_loaded

    def _is_time_right(self, timestamp: int, offset: Offset) -> bool:
        """Tell whether a time entry names a batch that has this time and ends there."""
        assert self._indexes_loaded, self.path
        frame = self.locate(offset)
        if frame is None or frame.last_offset != offset:
            return False
        _, batch = next(self.batches_from(frame.position))
        return batch.max_timestamp == timestamp

    def _load_tail(self) -> None:
        """Find the time bounds and the distance to the last index entry after a load or a cut."""
        last_time = self._times.last_entry()
        self.max_timestamp, self._offset_of_max_timestamp = last_time or (
            NO_TIMESTAMP,
            self.base_offset,
        )
        self._bytes_since_index_entry = 0
        self.first_timestamp = NO_TIMESTAMP
        if self.size_bytes == 0:
            return
        start = self._start_position(Offset(self.base_offset + _INT32_MAX))
        for _, batch in self.batches_from(start):
            self._bytes_since_index_entry += batch.size_bytes
            if batch.max_timestamp > self.max_timestamp:
                self.max_timestamp = batch.max_timestamp
                self._offset_of_max_timestamp = Offset(batch.last_offset)
        _, first = next(self.batches_from(0))
        self.first_timestamp = first.max_timestamp
        assert self.max_timestamp >= NO_TIMESTAMP, self.path

    def clear_indexes(self) -> None:
        """Forget all entries but aborted transactions; who calls this notes every batch again."""
        self._indexes_loaded = True
        self._offsets.truncate_to(self.base_offset)
        self._times.truncate_to(self.base_offset)
        self._recent.clear()
        self.max_timestamp = self.first_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset
        self._bytes_since_index_entry = 0
        assert len(self._offsets) == len(self._times) == 0, self.path

    def clear_transactions(self) -> None:
        """Forget aborted transactions, which recovery finds again from the markers."""
        self._transactions.entries.clear()
        assert not self._transactions.entries, self.path

    def rebuild_indexes(self) -> None:
        """Derive the offset and time index from the log; CorruptLog when that is damaged."""
        assert self.size_bytes >= 0, self.path
        self.clear_indexes()
        for position, batch in self.batches_from(0):
            self.note(batch, position)
        self._recent.clear()
        try:
            self._transactions.load(self._fs)
        except CorruptIndex as error:
            # Markers alone do not tell where their transactions began: only recovery can rebuild.
            raise CorruptLog(error.path, 0, error.reason) from error
        self.save_indexes()
        assert self._indexes_loaded

    def save_indexes(self, *, sync: bool = False) -> None:
        """Bring the index files up to the entries in memory."""
        assert self._indexes_loaded, self.path
        self._offsets.save(self._fs, sync=sync)
        self._times.save(self._fs, sync=sync)
        self._transactions.save(self._fs, sync=sync)
