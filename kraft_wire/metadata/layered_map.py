"""A large map under a small map of changes, so that the next image of a large one is cheap.

An image shares every map that a batch did not change, and copies the others. A copy of a million
entries takes tenths of a second, and every committed batch needs one. So a large map is shared
under a small map of changes, and only the small one is copied. Both are merged once the copies have
cost as much as a merge: the cost of a batch is about the square root of the map's size.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Final, TypeVar, cast

__all__ = ["LARGE_ENTRIES", "LayeredMap", "own_copy"]

K = TypeVar("K")
V = TypeVar("V")

LARGE_ENTRIES: Final = 4096
"""Below this size a plain copy is cheaper than a second look-up at every read."""

_GONE: Final = object()
"""Marks a removed key in the changes."""


class LayeredMap(MutableMapping[K, V]):
    """A dict that is never changed, and a dict of changes over it.

    Reads like one dict: a changed key keeps its place, a new one is last. Only the draft that made
    it may change it, and only before it is in an image.
    """

    __slots__ = ("_base", "_changes", "_copied", "_count")

    def __init__(self, base: dict[K, V]) -> None:
        assert not isinstance(base, LayeredMap), "two layers, or every read becomes slower"
        self._base = base
        self._changes: dict[K, object] = {}
        self._count = len(base)
        self._copied = 0
        """Entries that were copied from fork to fork since the last merge."""

    def fork(self) -> "LayeredMap[K, V]":
        """Return an equal map that may be changed; this one must not be changed any more."""
        copied = self._copied + len(self._changes)
        if copied > len(self._base):
            return LayeredMap(self._merged())
        fork = LayeredMap(self._base)
        fork._copied = copied
        fork._changes = dict(self._changes)
        fork._count = self._count
        assert len(fork) == len(self)
        return fork

    def _merged(self) -> dict[K, V]:
        """Return everything as one dict; its own copy is ten times faster than a loop over all."""
        merged = self._base.copy()
        for key, value in self._changes.items():
            if value is _GONE:
                del merged[key]
            else:
                merged[key] = cast("V", value)
        assert len(merged) == self._count, (len(merged), self._count)
        return merged

    def __getitem__(self, key: K) -> V:
        found = self._changes.get(key, self)
        if found is self:
            return self._base[key]
        if found is _GONE:
            raise KeyError(key)
        return cast("V", found)

    def __setitem__(self, key: K, value: V) -> None:
        self._count += key not in self
        self._changes[key] = value
        assert self[key] is value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._count -= 1
        assert self._count >= 0, self._count
        if key in self._base:
            self._changes[key] = _GONE
        else:
            del self._changes[key]
        assert key not in self

    def __contains__(self, key: object) -> bool:
        found = self._changes.get(cast("K", key), self)
        return key in self._base if found is self else found is not _GONE

    def __iter__(self) -> Iterator[K]:
        changes = self._changes
        for key in self._base:
            if changes.get(key) is not _GONE:
                yield key
        for key in changes:
            if key not in self._base:
                yield key

    def __len__(self) -> int:
        assert self._count >= 0, self._count
        return self._count


def own_copy(base: Mapping[K, V]) -> MutableMapping[K, V]:
    """Return an equal map that may be changed; the given one must not be changed any more."""
    copy: MutableMapping[K, V]
    if isinstance(base, LayeredMap):
        copy = base.fork()
    elif isinstance(base, dict) and len(base) >= LARGE_ENTRIES:
        copy = LayeredMap(base)
    else:
        copy = dict(base)
    assert len(copy) == len(base)
    assert copy is not base, "an image's map is not changed"
    return copy
