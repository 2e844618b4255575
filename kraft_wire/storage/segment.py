"""One segment of a log: the `.log` file, with its indexes (`segment_indexes`) beside it.

A segment has positions and timestamps; leader epochs, producers and retention belong to the log. An
append is one positioned write and a few additions per batch, no work per record.

Left out: messages of format 0 and 1 are skipped by their length, never indexed.
"""

from collections.abc import Iterator, Sequence

from kraft_wire.model import Offset
from kraft_wire.storage.files import Buffer, File, FileSystem, StorageError
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.log_file import CorruptLog, batches_of, frame_of, frames_of
from kraft_wire.storage.scan import Frame
from kraft_wire.storage.segment_indexes import SegmentIndexes
from kraft_wire.wire.records.record_batch import LOG_OVERHEAD_BYTES, RecordBatch

__all__ = ["INDEX_SUFFIXES", "LOG_SUFFIX", "CorruptLog", "Segment", "file_name", "offset_in"]

LOG_SUFFIX = ".log"
_NAME_DIGITS = 20
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
_INT32_MAX = (1 << 31) - 1
_RECENT_BATCHES_MAX = 32
_LOCATED_MAX = 8


def file_name(base_offset: int, suffix: str) -> str:
    """Return Kafka's name for a file of the segment: 20 digits and the suffix."""
    assert base_offset >= 0, base_offset
    return f"{base_offset:0{_NAME_DIGITS}d}{suffix}"


def offset_in(name: str, suffix: str) -> Offset | None:
    """Return the offset in a name that `file_name` made, None for any other name."""
    stem = name.removesuffix(suffix)
    is_named = stem != name and len(stem) == _NAME_DIGITS and stem.isascii() and stem.isdigit()
    return Offset(int(stem)) if is_named else None


class Segment:
    """A run of batches from `base_offset` on. Create one with `create` or `open_existing`."""

    __slots__ = (
        "_file",
        "_fs",
        "_located",
        "_recent",
        "base_offset",
        "created_ms",
        "is_unflushed",
        "path",
        "size_bytes",
        "unread_indexes",
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
        self._file: File | None = None
        self.unread_indexes = SegmentIndexes(fs, stem, suffix, base_offset)
        """The indexes, perhaps not read yet; `indexes` reads them first."""
        self._recent: dict[int, tuple[int, int, int, int, int]] = {}  # frames by base offset
        self._located: dict[int, Frame] = {}
        """Recent results by offset: several readers often ask for the same offset."""

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
        """Create the files of an empty segment; the caller then syncs the directory.

        DiskFull leaves no file: at the next start an empty segment would hide later appends to the
        previous one, and a `.cleaned` one would hide later swaps.
        """
        segment = cls(fs, directory, base_offset, created_ms, suffix)
        segment.unread_indexes.interval_bytes = config.index_interval_bytes
        try:
            segment._file = fs.open(segment.path, create=True)
            segment._file.truncate(0)
            if config.preallocate:
                segment._file.truncate(config.segment_bytes)
            segment.indexes.save()
        except StorageError:
            segment.remove()
            raise
        assert segment.size_bytes == 0, segment.path
        return segment

    @classmethod
    def open_existing(
        cls, fs: FileSystem, directory: str, base_offset: Offset, config: LogConfig, opened_ms: int
    ) -> "Segment":
        """Open without reading anything but the size; indexes are loaded when first needed."""
        segment = cls(fs, directory, base_offset, opened_ms)
        segment.size_bytes = segment.file.size_bytes()
        segment.unread_indexes.interval_bytes = config.index_interval_bytes
        segment.unread_indexes.is_loaded = False
        assert segment.size_bytes >= 0, segment.path
        return segment

    @property
    def file(self) -> File:
        """The open `.log` file."""
        if self._file is None:
            self._file = self._fs.open(self.path)
        assert self._file is not None, self.path
        return self._file

    @property
    def indexes(self) -> SegmentIndexes:
        """The indexes, read at the first access; CorruptLog if that shows a damaged log."""
        indexes = self.unread_indexes
        if not indexes.is_loaded:
            indexes.load(self)
        assert indexes.is_loaded, self.path
        return indexes

    # -- writing ---------------------------------------------------------------------------------

    def append(self, data: Buffer, appended: Sequence[RecordBatch]) -> None:
        """Write `data`, which is exactly the batches `appended`, at the end.

        If the write fails, the file is truncated, so that no partial batch stays. If that fails
        too, its error is raised: a whole batch left behind by it could follow a shorter next one,
        and would be damage.
        """
        position = self.size_bytes
        size_bytes = len(data)
        assert size_bytes > 0, self.path
        assert appended, self.path
        file = self._file or self.file
        try:
            file.pwrite(data, position)
        except StorageError:
            file.truncate(position)
            raise
        self.is_unflushed = True
        self.size_bytes = position + size_bytes
        indexes, recent = self.unread_indexes, self._recent
        if len(recent) >= _RECENT_BATCHES_MAX:
            recent.clear()
        for batch in appended:
            base_offset, size = batch.base_offset, batch.batch_length + LOG_OVERHEAD_BYTES
            assert base_offset >= self.base_offset, (base_offset, self.base_offset)
            last_offset = base_offset + batch.last_offset_delta
            indexes.note(position, size, last_offset, batch.max_timestamp)
            epoch = batch.partition_leader_epoch
            recent[base_offset] = (position, size, base_offset, last_offset, epoch)
            position += size
        assert position == self.size_bytes, (position, self.size_bytes)

    def has_room_for(self, size_bytes: int, last_offset: int, config: LogConfig) -> bool:
        """Return whether a batch of that size and end fits here (size, index, offset)."""
        assert size_bytes > 0, size_bytes
        return (
            (self.size_bytes == 0 or self.size_bytes + size_bytes <= config.segment_bytes)
            and self.unread_indexes.has_room(config.segment_index_bytes)
            and last_offset - self.base_offset <= _INT32_MAX
        )

    def cut(self, position: int, offset: Offset) -> None:
        """Truncate the file to `position`, the start of the batch at `offset`.

        The index files stay too long until the next save, which may need space on the disk.
        """
        assert position <= self.size_bytes, (position, self.size_bytes)
        assert position >= 0, position
        indexes = self.indexes
        self.file.truncate(position)
        self.size_bytes = position
        self.is_unflushed = True
        self._recent.clear()
        self._located.clear()
        indexes.cut(self, offset)

    def seal(self) -> None:
        """Finish a segment that gets no more appends: last time entry, exact file sizes."""
        indexes = self.indexes
        self._trim()
        indexes.seal()
        self._recent.clear()
        assert indexes.is_loaded, self.path

    def _trim(self) -> None:
        """Free preallocated blocks."""
        assert self.size_bytes >= 0, self.size_bytes
        if self.file.size_bytes() != self.size_bytes:
            self.file.truncate(self.size_bytes)

    def close(self) -> None:
        """Leave the files as Kafka leaves them after a clean stop."""
        assert self.size_bytes >= 0, self.path
        if self.unread_indexes.is_loaded:
            self.seal()
        if self._file is not None:
            self._file.close()
            self._file = None

    def remove(self) -> None:
        """Unlink the files; replies that hold the open file can still read it."""
        assert self.path, "removed once"
        self._file = None
        self._fs.unlink(self.path)
        for path in self.unread_indexes.paths:
            assert path != self.path, path
            self._fs.unlink(path)

    # -- reading ---------------------------------------------------------------------------------

    def locate(self, offset: Offset) -> Frame | None:
        """Return the first batch that ends at or after `offset`, or None beyond the last one."""
        located = self._located
        found = located.get(offset)
        if found is not None:
            return found
        assert offset >= 0, offset
        recent = self._recent.get(offset)
        if recent is not None:
            found = Frame._make(recent)
        else:
            found = frame_of(self, self.indexes.start_position(self, offset), offset)
        if found is not None:
            if len(located) >= _LOCATED_MAX:
                located.clear()
            located[offset] = found
        return found

    def last_frame(self) -> Frame | None:
        """Return the last batch, or None in an empty segment."""
        last: Frame | None = None
        start = self.indexes.start_position(self, Offset(self.base_offset + _INT32_MAX))
        for frame in frames_of(self, start):
            last = frame
        assert (last is None) == (self.size_bytes == 0), self.path
        return last

    def end_below(self, offset: Offset) -> Offset:
        """Return the position of a truncation at `offset`: where batches below it end."""
        assert offset > self.base_offset, (offset, self.path)
        end = self.base_offset
        for frame in frames_of(self, self.indexes.start_position(self, Offset(offset - 1))):
            if frame.last_offset >= offset:
                break
            end = Offset(frame.last_offset + 1)
        return end

    def batches_from(self, position: int) -> Iterator[tuple[int, RecordBatch]]:
        """Iterate over (position, batch), each with its CRC verified; CorruptLog at a bad one."""
        assert 0 <= position <= self.size_bytes, (position, self.size_bytes)
        return batches_of(self, position)
