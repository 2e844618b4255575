"""Kafka's default partitioner for a whole column at once: murmur2 of each record's key.

Records without a key go to one partition until its batch is full, then to the next.
"""

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kraft_wire.columnar.arrays import PADDING_BYTES, Int64s

__all__ = ["key_hashes"]

_SEED: Final = 0x9747B28C
_MULTIPLIER: Final = np.uint32(0x5BD1E995)
_BLOCK_BYTES: Final = 4

_Uint32s = NDArray[np.uint32]


def key_hashes(keys: pa.Array) -> Int64s:
    """Return the hash of each key of a binary array, from 0 on; those of nulls are undefined."""
    if not len(keys):
        return np.zeros(0, np.int64)
    offsets = np.frombuffer(keys.buffers()[1], np.int32, len(keys) + 1, keys.offset * 4)
    content = keys.buffers()[2]
    data = (content.to_pybytes() if content is not None else b"") + bytes(PADDING_BYTES)
    raw = np.frombuffer(data, np.uint8)
    starts = offsets[:-1].astype(np.int64)
    sizes = np.diff(offsets).astype(np.int64)
    blocks = sizes // _BLOCK_BYTES
    hashes = np.uint32(_SEED) ^ sizes.astype(np.uint32)
    for step in range(int(blocks.max(initial=0))):
        rows = np.flatnonzero(blocks > step)
        block = _words(raw, starts[rows] + step * _BLOCK_BYTES) * _MULTIPLIER
        block = (block ^ block >> np.uint32(24)) * _MULTIPLIER
        hashes[rows] = hashes[rows] * _MULTIPLIER ^ block
    hashes = _finished(hashes, raw, starts + blocks * _BLOCK_BYTES, sizes % _BLOCK_BYTES)
    return (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64)


def _finished(hashes: _Uint32s, raw: NDArray[np.uint8], tails: Int64s, left: Int64s) -> _Uint32s:
    """Mix in the bytes behind the last whole block, and stir."""
    word = _words(raw, tails)
    kept = np.left_shift(np.int64(1), left * 8) - 1
    with_tail = (hashes ^ word & kept.astype(np.uint32)) * _MULTIPLIER
    hashes = np.where(left > 0, with_tail, hashes)
    hashes = (hashes ^ hashes >> np.uint32(13)) * _MULTIPLIER
    stirred: _Uint32s = hashes ^ hashes >> np.uint32(15)
    return stirred


def _words(raw: NDArray[np.uint8], places: Int64s) -> _Uint32s:
    """Return the little-endian words that begin at places of a padded buffer."""
    found: _Uint32s = raw[places[:, np.newaxis] + np.arange(_BLOCK_BYTES)].view("<u4")[:, 0]
    return found.astype(np.uint32)
