"""The order in which Java's `HashMap` lists texts, as records of 4.3.1 and its first error are.

`kraft_wire/broker/groups/java_collections.py` has such maps for groups, with more kinds of keys.
"""

from collections.abc import Iterable
from typing import Final

from kraft_wire.java_hash import slot_of, text_hash

__all__ = ["java_map_order"]

_CAPACITY: Final = 16


def java_map_order(keys: Iterable[str]) -> list[str]:
    """Return different keys in the order of a map that began with 16 slots."""
    listed, capacity = list(keys), _CAPACITY
    if len(listed) < 2:
        return listed
    assert len(set(listed)) == len(listed), listed
    while len(listed) * 4 > capacity * 3:
        capacity *= 2
    ordered = sorted(listed, key=lambda key: slot_of(text_hash(key), capacity))
    assert len(ordered) == len(listed)
    return ordered
