"""The keys of a large map in their order, sorted a slice at a time.

Sorting a million names at once takes seconds, in which a node does nothing else and may lose its
leadership. Here keys are first dealt out, some at a time, to stretches of the order whose bounds a
sample gives; a stretch is sorted when it is reached. The outcome is that of `sorted`.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

__all__ = ["SlicedOrder"]

K = TypeVar("K")

_SLICE_KEYS: Final = 10_000
"""How many are dealt out in a step, and stand in a stretch of the order on average."""
_SAMPLED: Final = 100
"""One key of so many is in the sample."""


class SlicedOrder(Generic[K]):
    """The keys of one map, by a rank of theirs; iterate once, after as many steps as one likes."""

    def __init__(self, keys: Collection[K], rank: Callable[[K], "SupportsRichComparison"]) -> None:
        self._rank = rank
        self._left = iter(keys)
        sample: list[SupportsRichComparison] = []
        if len(keys) > _SLICE_KEYS:
            sample = sorted(rank(key) for key in islice(keys, 0, None, _SAMPLED))
        step = _SLICE_KEYS // _SAMPLED
        self._bounds = sample[step::step]
        self._stretches: list[list[K]] = [[] for _ in range(len(self._bounds) + 1)]
        assert len(self._stretches) <= len(keys) // _SLICE_KEYS + 1, len(keys)

    def step(self) -> bool:
        """Deal out the next keys; False when there were none left."""
        rank, bounds, stretches = self._rank, self._bounds, self._stretches
        dealt = 0
        for key in islice(self._left, _SLICE_KEYS):
            stretches[bisect_left(bounds, rank(key))].append(key)
            dealt += 1
        assert dealt <= _SLICE_KEYS, dealt
        return dealt > 0

    def __iter__(self) -> Iterator[K]:
        """Yield the keys in their order."""
        while self.step():
            pass
        assert self._stretches, "the order is there once"
        stretches, self._stretches = self._stretches, []
        for stretch in stretches:
            stretch.sort(key=self._rank)
            yield from stretch
