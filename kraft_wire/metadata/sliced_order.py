"""The keys of a large map in their order, sorted a slice at a time.

To sort a million names at once takes seconds, in which a node does nothing else and may lose its
leadership. Here one slice of the keys is sorted at a time and distributed over ranges of the order,
whose bounds come from a sample. A range is sorted when it is reached, which is quick, because it
consists of sorted runs. The result is that of `sorted`.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

__all__ = ["SlicedOrder"]

K = TypeVar("K")

_SLICE_KEYS: Final = 10_000
"""Keys of one step, and of a range of the order on average."""
_SAMPLED: Final = 100
"""One of this many keys is in the sample."""


class SlicedOrder(Generic[K]):
    """The keys of one map; iterate once, after any number of steps.

    Keys are compared directly, which is several times faster than by ranks. Keys that cannot be
    compared are compared by `rank`, whose order must agree with that of the keys.
    """

    def __init__(
        self, keys: Collection[K], rank: Callable[[K], "SupportsRichComparison"] | None = None
    ) -> None:
        self._rank = rank
        self._left = iter(keys)
        sample: list[K] = []
        if len(keys) > _SLICE_KEYS:
            sample = self._sorted(islice(keys, 0, None, _SAMPLED))
        step = _SLICE_KEYS // _SAMPLED
        self._bounds = sample[step::step]
        self._stretches: list[list[K]] = [[] for _ in range(len(self._bounds) + 1)]
        assert len(self._stretches) <= len(keys) // _SLICE_KEYS + 1, len(keys)

    def step(self) -> bool:
        """Distribute the next keys; False if none were left."""
        keys = self._sorted(islice(self._left, _SLICE_KEYS))
        assert len(keys) <= _SLICE_KEYS, len(keys)
        if not keys:
            return False
        cuts = [0, *self._cuts(keys), len(keys)]
        assert len(cuts) == len(self._stretches) + 1, cuts
        assert cuts == sorted(cuts), "bounds and keys are in one order"
        for stretch, (begin, end) in zip(self._stretches, pairwise(cuts), strict=True):
            stretch += keys[begin:end]
        return True

    def __iter__(self) -> Iterator[K]:
        """Yield the keys in their order."""
        while self.step():
            pass
        assert self._stretches, "the order is computed once"
        stretches, self._stretches = self._stretches, []
        for stretch in stretches:
            yield from self._sorted(stretch)
        assert next(self._left, None) is None, "keys are distributed before they are read"

    def _sorted(self, keys: Iterable[K]) -> list[K]:
        """Sort; keys of equal rank keep their order."""
        came = list(keys)
        try:
            comparable = cast("list[SupportsRichComparison]", came)
            return cast("list[K]", sorted(comparable))
        except TypeError:
            if self._rank is None:
                raise
            assert len(came) > 1, came
            return sorted(came, key=self._rank)

    def _cuts(self, keys: list[K]) -> list[int]:
        """Return where each of the bounds would be among sorted keys."""
        comparable = cast("list[SupportsRichComparison]", keys)
        try:
            return [
                bisect_left(comparable, cast("SupportsRichComparison", bound))
                for bound in self._bounds
            ]
        except TypeError:
            rank = self._rank
            if rank is None:
                raise
            return [bisect_left(keys, rank(bound), key=rank) for bound in self._bounds]
