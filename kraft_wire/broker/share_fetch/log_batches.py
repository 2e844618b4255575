"""The whole batches of a read, known by their headers: a share fetch decides by offsets.

Records stay where they are: an answer takes a part of the read as a `FileSlice`, which leaves by
sendfile. Besides headers only transaction markers are read.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kraft_wire.model import FileSlice
from kraft_wire.wire.records.control_records import ControlRecordType, parse_control_key
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    RecordBatch,
)

__all__ = ["LogBatch", "read_batches", "size_of", "sliced"]

_WINDOW_BYTES: Final = 4_096
_NO_PRODUCER: Final = -1
_MAGIC_AT: Final = 16


class LogBatch(NamedTuple):
    """The part of a batch's header that a share partition looks at."""

    base_offset: int
    last_offset: int
    size_bytes: int
    producer_id: int = _NO_PRODUCER
    is_transactional: bool = False
    is_abort_marker: bool = False


class _Window:
    """Bytes of a read, a few kilobytes at a time."""

    __slots__ = ("_bytes", "_from", "_records", "size_bytes")

    def __init__(self, records: FileSlice | bytes) -> None:
        self._records = records
        self.size_bytes = size_of(records)
        self._bytes = b"" if isinstance(records, FileSlice) else records
        self._from = 0

    def read(self, position: int, size_bytes: int) -> memoryview:
        """Return bytes of the read; all of them are there."""
        at = position - self._from
        if not 0 <= at <= len(self._bytes) - size_bytes:
            records = self._records
            assert isinstance(records, FileSlice), "bytes are there as a whole"
            wanted = min(max(size_bytes, _WINDOW_BYTES), self.size_bytes - position)
            self._bytes = records.file.pread(wanted, records.position + position)
            self._from, at = position, 0
        return memoryview(self._bytes)[at : at + size_bytes]


def size_of(records: FileSlice | bytes | bytearray | memoryview) -> int:
    """Return the size of a read."""
    return records.size_bytes if isinstance(records, FileSlice) else len(records)


def read_batches(
    records: FileSlice | bytes,
    fetch_offset: int,
    end_offset: int,
    max_records: int,
    *,
    finds_markers: bool,
) -> list[LogBatch]:
    """Return the whole batches of a read; the last may be cut, and is left out then.

    A member acquires at most `max_records` behind `end_offset`, so the search ends one batch behind
    these. Formats 0 and 1 do not say where a compressed batch begins; it counts from the end of the
    one before.
    """
    window, position, next_offset = _Window(records), 0, fetch_offset
    batches: list[LogBatch] = []
    while (header := _header(window, position)) is not None:
        size_bytes = LOG_OVERHEAD_BYTES + header.batch_length
        if position + size_bytes > window.size_bytes:
            break
        is_enough = bool(batches) and batches[-1].last_offset >= (
            max(end_offset + 1, batches[0].base_offset) + max_records
        )
        if header.magic < MAGIC:
            first = min(next_offset, header.base_offset)
            batches.append(LogBatch(first, header.base_offset, size_bytes))
        else:
            is_marker = finds_markers and bool(header.attributes & CONTROL_BIT)
            batches.append(
                LogBatch(
                    header.base_offset,
                    header.last_offset,
                    size_bytes,
                    header.producer_id,
                    bool(header.attributes & TRANSACTIONAL_BIT),
                    is_marker and _is_abort(window.read(position, size_bytes)),
                )
            )
        if is_enough:
            break
        position += size_bytes
        next_offset = batches[-1].last_offset + 1
    return batches


def _header(window: _Window, position: int) -> RecordBatch | None:
    """Return the header at a position, None if it is cut; a message of an old format is shorter."""
    head = window.read(position, min(HEADER_BYTES, window.size_bytes - position))
    if len(head) < HEADER_BYTES:
        if len(head) <= _MAGIC_AT or head[_MAGIC_AT] >= MAGIC:
            return None
        head = memoryview(bytes(head).ljust(HEADER_BYTES, b"\0"))
    return RecordBatch(head)


def _is_abort(batch: memoryview) -> bool:
    """Whether a control batch is an abort marker; one that cannot be read is none."""
    try:
        record = next(RecordBatch(batch).iter_records(), None)
        return record is not None and parse_control_key(record.key) is ControlRecordType.ABORT
    except CorruptRecordBatch:
        return False


def sliced(
    records: FileSlice | bytes,
    batches: Sequence[LogBatch],
    first_offset: int,
    last_offset: int,
) -> FileSlice | bytes:
    """Return the batches from that of the first acquired offset to that of the last.

    A read with one whole batch is returned as it is, also with the beginning of a second one.
    """
    if len(batches) == 1:
        return records
    start, size, holder = 0, 0, batches[0]
    for batch in batches[1:]:
        if batch.base_offset <= first_offset:
            start += holder.size_bytes
            holder = batch
        elif batch.base_offset > last_offset:
            break
        else:
            size += batch.size_bytes
    size += holder.size_bytes
    if isinstance(records, FileSlice):
        return FileSlice(records.file, records.position + start, size)
    return records[start : start + size]
