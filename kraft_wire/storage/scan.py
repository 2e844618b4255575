"""Walks over the batches of a segment file, by headers only or with their content.

`frames` reads the 27 bytes of each batch that a search needs. `batches` reads whole batches and
checks their lengths, magic and CRC; recovery, compaction and look-ups by time use it. At invalid
bytes a walk raises `BadBatch` with the position: the caller decides by `find_batch_after` whether
that is a torn tail or damage. Magic 0 and 1 are skipped, never interpreted.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.storage.files import File
from kraft_wire.wire.records.record_batch import CorruptRecordBatch, RecordBatch, parse_batches

__all__ = [
    "HEADER_BYTES",
    "BadBatch",
    "Frame",
    "batches",
    "checked_batch_at",
    "find_batch_after",
    "find_frame",
    "frame_here",
    "frames",
]

HEADER_BYTES = 61
_FRAME = struct.Struct(">qiiBIhi")
_STEP = struct.Struct(">qi4xB6xi")  # base offset, length, magic, last offset delta
_LOG_OVERHEAD_BYTES = 12
_LEGACY_BYTES_MIN = 14
_MAGIC = 2
_CHUNK_BYTES = 1 << 16
_FIND_CHUNK_BYTES = 1 << 13
_LENGTH_MIN = HEADER_BYTES - _LOG_OVERHEAD_BYTES
_CONTENT_CHUNK_BYTES = 1 << 20
_ATTRIBUTES_MAX = 0x7F


class BadBatch(Exception):
    """There is no whole batch at `position`; `is_damage` if no torn write can cause that."""

    def __init__(self, position: int, reason: str, *, is_damage: bool = False) -> None:
        assert reason, position
        super().__init__(f"position {position}: {reason}")
        self.position = position
        self.reason = reason
        self.is_damage = is_damage


class Frame(NamedTuple):
    """Position, size and offsets of a batch."""

    position: int
    size_bytes: int
    base_offset: Offset
    last_offset: Offset
    leader_epoch: LeaderEpoch


def frame_at(data: bytes | memoryview, at: int, position: int, end_position: int) -> Frame:
    """Read one frame from `data[at:]`, which is at `position` in a log of `end_position` bytes.

    BadBatch if the length or the magic byte is invalid.
    """
    assert at + _FRAME.size <= len(data), (at, len(data))
    base, length, epoch, magic, _, _, delta = _FRAME.unpack_from(data, at)
    size = length + _LOG_OVERHEAD_BYTES
    if magic < _MAGIC:
        epoch, delta = -1, 0
    if length < (_LENGTH_MIN if magic >= _MAGIC else _LEGACY_BYTES_MIN):
        raise BadBatch(position, f"length {length} is shorter than a header")
    if position + size > end_position:
        raise BadBatch(position, f"length {length} reaches beyond the end {end_position}")
    if magic > _MAGIC or delta < 0 or base < 0:
        raise BadBatch(position, f"magic {magic}, base offset {base}, last offset delta {delta}")
    return Frame(position, size, Offset(base), Offset(base + delta), LeaderEpoch(epoch))


def frame_here(file: File, position: int, end_position: int) -> Frame:
    """Return the frame of the batch at `position`, without reading the rest; BadBatch."""
    assert 0 <= position <= end_position, (position, end_position)
    data = file.pread(_FRAME.size, position)
    if len(data) < _FRAME.size:
        raise BadBatch(position, "the file ends within a header")
    return frame_at(data, 0, position, end_position)


def frames(file: File, position: int, end_position: int) -> Iterator[Frame]:
    """Yield the frame of each batch in [position, end_position); BadBatch for invalid bytes."""
    assert 0 <= position <= end_position, (position, end_position)
    data, start = b"", position
    while position < end_position:
        if end_position - position < _FRAME.size:
            raise BadBatch(position, f"{end_position - position} bytes are not a header")
        if position + _FRAME.size > start + len(data):
            data, start = file.pread(min(_CHUNK_BYTES, end_position - position), position), position
            if len(data) < _FRAME.size:
                raise BadBatch(position, "the file ends early")
        frame = frame_at(data, position - start, position, end_position)
        yield frame
        position += frame.size_bytes


def find_frame(file: File, position: int, end_position: int, offset: Offset) -> Frame | None:
    """Return the first batch from `position` on that ends at or after `offset`, or None.

    The loop of every fetch: it reads length and last offset, and the rest only of the result.
    """
    assert 0 <= position <= end_position, (position, end_position)
    data, start = b"", position
    while position < end_position:
        at = position - start
        if at + _FRAME.size > len(data):
            data, start, at = file.pread(_FIND_CHUNK_BYTES, position), position, 0
            if len(data) < _FRAME.size:
                raise BadBatch(position, "the file ends within a header")
        base, length, magic, delta = _STEP.unpack_from(data, at)
        if magic != _MAGIC or length < _LENGTH_MIN or delta < 0:
            delta = frame_at(data, at, position, end_position).last_offset - base
        if base + delta >= offset:
            return frame_at(data, at, position, end_position)
        position += length + _LOG_OVERHEAD_BYTES
    if position != end_position:
        raise BadBatch(position, f"the last batch reaches beyond the end {end_position}")
    return None


def batches(file: File, position: int, end_position: int) -> Iterator[tuple[int, RecordBatch]]:
    """Yield (position, batch) with a valid CRC; BadBatch at the first invalid one."""
    assert 0 <= position <= end_position, (position, end_position)
    view, start = memoryview(b""), position
    while position < end_position:
        batch = _whole_batch(view, position - start)
        if batch is None:
            batch = checked_batch_at(file, position, end_position)
            size = max(batch.size_bytes, min(_CONTENT_CHUNK_BYTES, end_position - position))
            view, start = memoryview(file.pread(size, position)), position
        yield position, batch
        position += batch.size_bytes
        assert position <= end_position, (position, end_position)


def checked_batch_at(file: File, position: int, end_position: int) -> RecordBatch:
    """Return the batch at `position`; BadBatch has the reason if it is invalid."""
    assert 0 <= position < end_position, (position, end_position)
    head = memoryview(file.pread(min(_FIND_CHUNK_BYTES, end_position - position), position))
    if len(head) < HEADER_BYTES:
        raise BadBatch(position, f"{len(head)} bytes are not a header")
    needed = frame_at(head, 0, position, end_position).size_bytes
    if needed > len(head):
        head = memoryview(file.pread(needed, position))
    return _checked_batch(head[:needed], position)


def _whole_batch(view: memoryview, at: int) -> RecordBatch | None:
    """Return the batch at `at` if it is whole and valid; None requests the slow check."""
    assert at >= 0, at
    left = len(view) - at
    if left < HEADER_BYTES:
        return None
    batch = RecordBatch(view[at:])
    size = batch.batch_length + _LOG_OVERHEAD_BYTES
    if not HEADER_BYTES <= size <= left or batch.magic != _MAGIC:
        return None
    batch.view = view[at : at + size]
    if batch.last_offset_delta < 0 or batch.base_offset < 0 or not batch.crc_is_valid():
        return None
    return batch


def find_batch_after(file: File, position: int, end_position: int, base_offset_min: int) -> int:
    """Return the position of the first valid batch at or after `position`, or -1.

    Only whole batches, with a valid CRC and a base offset of at least `base_offset_min`: one
    proves that a bad batch before it is damage and not the torn tail of the log.
    """
    assert base_offset_min >= 0, base_offset_min
    assert position >= 0, position
    while position + HEADER_BYTES <= end_position:
        window = file.pread(min(_CONTENT_CHUNK_BYTES, end_position - position), position)
        at = window.find(_MAGIC, 16)
        while at >= 0 and at - 16 + HEADER_BYTES <= len(window):
            found = position + at - 16
            if _is_batch(file, window, at - 16, found, end_position, base_offset_min):
                return found
            at = window.find(_MAGIC, at + 1)
        if position + len(window) >= end_position or len(window) < HEADER_BYTES:
            return -1
        position += len(window) - HEADER_BYTES + 1
    return -1


def _is_batch(
    file: File, window: bytes, at: int, position: int, end_position: int, base_offset_min: int
) -> bool:
    """Return whether a whole, valid batch is there; cheap tests first."""
    base, length, _, magic, _, attributes, delta = _FRAME.unpack_from(window, at)
    assert magic == _MAGIC, magic
    size = length + _LOG_OVERHEAD_BYTES
    if size < HEADER_BYTES or position + size > end_position:
        return False
    if not 0 <= attributes <= _ATTRIBUTES_MAX or delta < 0 or base < base_offset_min:
        return False
    try:
        _checked_batch(memoryview(file.pread(size, position)), position)
    except BadBatch:
        return False
    return True


def _checked_batch(view: memoryview, position: int) -> RecordBatch:
    """Parse exactly one batch and check its CRC; formats 0 and 1 are refused."""
    assert len(view) > 0, position
    try:
        (batch,) = parse_batches(view)
    except CorruptRecordBatch as error:
        raise BadBatch(position, str(error)) from error
    assert batch.size_bytes == len(view), (batch, len(view))
    if not batch.crc_is_valid():
        raise BadBatch(position, "the CRC does not match")
    return batch
