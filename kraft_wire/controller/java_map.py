"""The order in which Java's `HashMap` lists texts, as records of 4.3.1 and its first error are.

`kraft_wire/broker/groups/java_collections.py` has such maps for groups, with more kinds of keys.
"""

from collections.abc import Iterable
from typing import Final

__all__ = ["java_map_order"]

_CAPACITY: Final = 16


def java_map_order(keys: Iterable[str]) -> list[str]:
    """Return different keys in the order of a map that began with 16 slots."""
    listed, capacity = list(keys), _CAPACITY
    assert len(set(listed)) == len(listed), listed
    while len(listed) * 4 > capacity * 3:
        capacity *= 2
    ordered = sorted(listed, key=lambda key: _slot(key, capacity))
    assert len(ordered) == len(listed)
    return ordered


def _slot(key: str, capacity: int) -> int:
    units = key.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + int.from_bytes(units[at : at + 2])) & 0xFFFF_FFFF
    assert capacity & (capacity - 1) == 0, capacity
    return (hashed ^ hashed >> 16) & (capacity - 1)
