"""Finds places where a batch may begin, in arbitrary bytes.

All positions are tested at once for the fixed properties of a header of format 0, 1 or 2. A
position that passes is a candidate: the checksum decides, and the caller computes it.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from kraft_wire.columnar.arrays import PADDING_BYTES, Bools, Bytes, Int64s, as_bytes
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.legacy_batch import LEGACY_LENGTH_MIN
from kraft_wire.wire.records.record_batch import CODEC_MASK, HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC

__all__ = ["batch_candidates"]

_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_LEGACY_ATTRIBUTES_AT: Final = 17
_LEGACY_ATTRIBUTES_MAX: Final = 0x0F
_LEGACY_KEY_AT: Final = (18, 26)  # by magic
_ATTRIBUTES_AT: Final = 21
_LAST_OFFSET_DELTA_AT: Final = 23
_POSITIVE_MAX: Final = 0x7F


def batch_candidates(
    chunk: bytes | memoryview, begins: int, left: int
) -> Iterator[tuple[int, int]]:
    """Yield (position, size) of possible batches that begin in the first `begins` bytes.

    `left` is the number of bytes of the file from the chunk's beginning: no batch is longer. The
    chunk should continue for `PADDING_BYTES` after `begins`, if the file does.
    """
    data = as_bytes(bytes(chunk) + bytes(PADDING_BYTES))
    starts = np.flatnonzero(data[_MAGIC_AT : _MAGIC_AT + begins] <= MAGIC)
    sizes = _int32s(data, starts + _LENGTH_AT) + LOG_OVERHEAD_BYTES
    possible = (sizes >= LEGACY_LENGTH_MIN + LOG_OVERHEAD_BYTES) & (starts + sizes <= left)
    starts, sizes = starts[possible], sizes[possible]
    is_modern = data[starts + _MAGIC_AT] == MAGIC
    fits = np.where(is_modern, _is_modern(data, starts, sizes), _is_legacy(data, starts, sizes))
    yield from zip(starts[fits].tolist(), sizes[fits].tolist(), strict=True)


def _is_modern(data: Bytes, starts: Int64s, sizes: Int64s) -> Bools:
    attributes = data[starts + _ATTRIBUTES_AT + 1]
    fits: Bools = (sizes >= HEADER_BYTES) & (data[starts] <= _POSITIVE_MAX)
    fits &= (data[starts + _ATTRIBUTES_AT] == 0) & (attributes <= _POSITIVE_MAX)
    fits &= (attributes & CODEC_MASK) <= Compression.ZSTD
    fits &= data[starts + _LAST_OFFSET_DELTA_AT] <= _POSITIVE_MAX
    return fits


def _is_legacy(data: Bytes, starts: Int64s, sizes: Int64s) -> Bools:
    magic = data[starts + _MAGIC_AT]
    key_at = starts + np.where(magic == 0, *_LEGACY_KEY_AT)
    key_bytes = _int32s(data, key_at)
    fits: Bools = (data[starts] <= _POSITIVE_MAX) & (key_bytes >= -1) & (key_bytes < sizes)
    fits &= data[starts + _LEGACY_ATTRIBUTES_AT] <= _LEGACY_ATTRIBUTES_MAX
    return fits


def _int32s(data: Bytes, positions: Int64s) -> Int64s:
    """Return the big-endian int32 at each position."""
    quads = data[positions[:, np.newaxis] + np.arange(4)]
    values: Int64s = quads.view(">i4")[:, 0].astype(np.int64)
    return values
