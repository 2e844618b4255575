"""Which subscriber of a topic gets the next partition, and which one gives the next one up.

Subscribers are sorted by how many partitions they have, and by their number. Two ranges grow from
both ends of that list: of the least loaded, who take partitions in turn, and of the most loaded,
who give them up. The sizes are those of the caller, who changes them with each partition.
"""

from collections.abc import Sequence

__all__ = ["MemberBalance"]


class MemberBalance:
    """The subscribers of one topic."""

    __slots__ = (
        "_least_end",
        "_least_size",
        "_most_end",
        "_most_size",
        "_most_start",
        "_next_giver",
        "_next_taker",
        "_sizes",
        "_sorted",
    )

    def __init__(self, subscribers: Sequence[int], sizes: Sequence[int]) -> None:
        """Take the numbers of the subscribers, and the sizes of all members by number."""
        assert subscribers, "a topic that is assigned has subscribers"
        self._sizes = sizes
        self._sorted = sorted(subscribers, key=lambda member: (sizes[member], member))
        self._least_end = 0
        self._least_size = sizes[self._sorted[0]] - 1
        self._next_taker = 0
        self._most_start = self._most_end = len(self._sorted)
        self._most_size = sizes[self._sorted[-1]] + 1
        self._next_giver = len(self._sorted) - 1

    def is_even(self) -> bool:
        """Whether both ranges have met: no partition needs to move."""
        return self._most_size - self._least_size <= 1

    def next_taker(self) -> int:
        """Return the least loaded member."""
        if self._next_taker >= self._least_end:
            self._least_size += 1
            while self._least_end < len(self._sorted) and (
                self._size_at(self._least_end) == self._least_size
            ):
                self._least_end += 1
            self._next_taker = 0
        self._next_taker += 1
        return self._sorted[self._next_taker - 1]

    def next_giver(self) -> int | None:
        """Return the most loaded member, None without one that has partitions to give."""
        if self._next_giver < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_size = self._size_at(self._most_start - 1)
            else:
                self._most_size -= 1
            while self._most_start > 0 and self._size_at(self._most_start - 1) == self._most_size:
                self._most_start -= 1
            self._next_giver = self._most_end - 1
        if self._next_giver < 0:
            return None
        self._next_giver -= 1
        return self._sorted[self._next_giver + 1]

    def exclude_giver(self) -> None:
        """Take the last giver out of its range: it has no partition of the topic."""
        last = self._most_end - 1
        at = self._next_giver + 1
        self._sorted[at], self._sorted[last] = self._sorted[last], self._sorted[at]
        self._most_end = last

    def _size_at(self, position: int) -> int:
        return self._sizes[self._sorted[position]]
