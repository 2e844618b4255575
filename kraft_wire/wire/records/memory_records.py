"""A sequence of batches of any format, as in a log segment or a records field.

`scan_batches` makes Apache's checks in Apache's order: a truncated last batch is not an error,
because fetches and torn writes leave one; it counts as trailing bytes.

The produce and append paths, which know format 2 only, use `record_batch.parse_batches`.
"""

import struct
from collections.abc import Iterator
from typing import Final

from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.legacy_batch import LEGACY_LENGTH_MIN, LegacyBatch
from kraft_wire.wire.records.record_batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    RecordBatch,
)

__all__ = ["AnyBatch", "iter_batches", "scan_batches", "whole_batch_bytes"]

AnyBatch = RecordBatch | LegacyBatch

_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_INT32_MAX: Final = 0x7FFFFFFF


def scan_batches(data: bytes | bytearray | memoryview) -> tuple[list[AnyBatch], int]:
    """Return (the whole batches, the bytes after them); CorruptRecordBatch names the position."""
    batches = list(iter_batches(data))
    return batches, len(data) - sum(batch.size_bytes for batch in batches)


def iter_batches(data: bytes | bytearray | memoryview) -> Iterator[AnyBatch]:
    """Yield the whole batches one by one; errors as `scan_batches`."""
    view = memoryview(data)
    position = 0
    while (size_bytes := whole_batch_bytes(view, position)) is not None:
        yield _batch(view, position, size_bytes)
        position += size_bytes


def whole_batch_bytes(view: memoryview, position: int) -> int | None:
    """Return the size of the batch at `position`, None if it is not whole.

    Errors, first match wins: length below the smallest message's, magic other than 0 to 2, length
    that overflows with the 12 bytes before it.
    """
    left = len(view) - position
    if left < LOG_OVERHEAD_BYTES:
        return None
    length: int = _LENGTH.unpack_from(view, position + _LENGTH_AT)[0]
    if length < LEGACY_LENGTH_MIN:
        raise CorruptRecordBatch(f"batch declares a length of {length}", position)
    if left <= _MAGIC_AT:
        return None
    magic = view[position + _MAGIC_AT]
    if magic > MAGIC:
        raise CorruptRecordBatch(f"magic is {magic}", position)
    size_bytes = length + LOG_OVERHEAD_BYTES
    if size_bytes > _INT32_MAX:
        raise CorruptRecordBatch(f"batch declares a length of {length}", position)
    return size_bytes if size_bytes <= left else None


def _batch(view: memoryview, position: int, size_bytes: int) -> AnyBatch:
    batch_view = view[position : position + size_bytes]
    if batch_view[_MAGIC_AT] < MAGIC:
        return LegacyBatch(batch_view)
    if size_bytes < HEADER_BYTES:
        raise CorruptRecordBatch(
            f"batch of {size_bytes} bytes is smaller than its header", position
        )
    return RecordBatch(batch_view)
