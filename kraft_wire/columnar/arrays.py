"""The array types of this package, and the padding of its buffers."""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["PADDING_BYTES", "Bools", "Bytes", "Int64s", "Words", "as_bytes", "words_of"]

Bytes: TypeAlias = NDArray[np.uint8]
Int64s: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]
Bools: TypeAlias = NDArray[np.bool_]

PADDING_BYTES: Final = 64
"""Bytes that may be read after a buffer's content: a whole header, or one 64-bit load."""

_WORD_BYTES: Final = 8


def as_bytes(data: bytes) -> Bytes:
    """Return a view of `data` as an array."""
    return np.frombuffer(data, np.uint8)


def words_of(data: bytes) -> Words:
    """Return the 64-bit little-endian word that begins at each byte, without a copy.

    The array has one element a byte, the last seven left out; its elements overlap.
    """
    assert len(data) >= _WORD_BYTES, len(data)
    count = len(data) - _WORD_BYTES + 1
    return np.ndarray((count,), dtype=np.dtype("<u8"), buffer=data, strides=(1,))
