"""Hashes of Java: partitions, orders of records and texts of 4.3.1 depend on them."""

from collections.abc import Iterator
from struct import Struct, iter_unpack
from typing import Final

__all__ = ["slot_of", "text_hash", "uuid_hash"]

_TWO_INT64: Final = Struct(">QQ")
_INT32_MASK: Final = (1 << 32) - 1


def text_hash(text: str) -> int:
    """Return what Java's `String.hashCode` returns: over UTF-16 units, as a signed int32."""
    value = 0
    for unit in text.encode() if text.isascii() else _utf16_units(text):
        value = (value * 31 + unit) & _INT32_MASK
    return value - (1 << 32) if value >> 31 else value


def _utf16_units(text: str) -> Iterator[int]:
    encoded = text.encode("utf-16-be", "surrogatepass")
    return (unit for (unit,) in iter_unpack(">H", encoded))


def uuid_hash(uuid: bytes) -> int:
    """Return what `Uuid.hashCode` returns, as an unsigned int32."""
    high, low = _TWO_INT64.unpack(uuid)
    both: int = high ^ low
    return (both >> 32) ^ (both & _INT32_MASK)


def slot_of(hashed: int, capacity: int) -> int:
    """Return the slot in which a `HashMap` of so many slots, a power of two, puts a hash."""
    assert capacity & (capacity - 1) == 0, capacity
    unsigned = hashed & _INT32_MASK
    return (unsigned ^ unsigned >> 16) & (capacity - 1)
