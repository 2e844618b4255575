"""Deadlines of waiting items, the nearest first.

An item that no longer waits stays listed until its deadline, or until most items of the list no
longer wait: removing each at once would cost a search, keeping all would keep requests that were
answered long ago.
"""

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

__all__ = ["Deadlines"]

_Item = TypeVar("_Item")
_STALE_MAX: Final = 64


class Deadlines(Generic[_Item]):
    """Items by deadline; equal ones in the order in which they came."""

    __slots__ = ("_count", "_entries", "_waits")

    def __init__(self, waits: Callable[[_Item], bool]) -> None:
        """`waits` returns whether an item still waits."""
        self._entries: list[tuple[int, int, _Item]] = []
        self._count = 0
        self._waits = waits

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, deadline_ms: int, item: _Item, waiting: int) -> None:
        """List an item that waits from now on, one of `waiting`."""
        self._count += 1
        heappush(self._entries, (deadline_ms, self._count, item))
        if len(self._entries) > 2 * waiting + _STALE_MAX:
            self._entries = [entry for entry in self._entries if self._waits(entry[2])]
            heapify(self._entries)

    def due(self, now_ms: int) -> Iterator[_Item]:
        """Remove and yield the waiting items whose deadline has passed."""
        while self._entries and self._entries[0][0] <= now_ms:
            item = heappop(self._entries)[2]
            if self._waits(item):
                yield item

    def take_all(self) -> list[_Item]:
        """Remove all waiting items, in the order of their arrival."""
        entries, self._entries = sorted(self._entries, key=lambda entry: entry[1]), []
        return [item for _, _, item in entries if self._waits(item)]

    def next_ms(self) -> int | None:
        """Return the earliest deadline, None if nothing waits."""
        while self._entries:
            if self._waits(self._entries[0][2]):
                return self._entries[0][0]
            heappop(self._entries)
        return None
