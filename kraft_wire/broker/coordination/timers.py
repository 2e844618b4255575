"""Timers by key: set, moved, cancelled, and taken out when they are due.

A member's deadline moves with every heartbeat. Moving one later only writes the table; the heap
entry stays and is pushed again when it comes up early. So the heap grows with the number of keys,
not with the number of heartbeats.

The runtime is asked for its deadline after every call of the node. `ShardTimers` knows it without
asking each shard: a deadline comes nearer in `Timers._push` only, which reports it.
"""

from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["ShardTimers", "TimerKey", "Timers"]


class TimerKey(Protocol):
    """The name of a timer; hashable, and compared by its value."""

    @property
    def owner_id(self) -> str:
        """The group or transactional id that the timer belongs to."""
        ...


_Key = TypeVar("_Key", bound=TimerKey)


class Timers(Generic[_Key]):
    """The timers of one shard, in milliseconds of the monotonic clock."""

    __slots__ = ("_deadlines", "_heap", "_of_owner", "_sequence", "all_timers")

    def __init__(self) -> None:
        self.all_timers: ShardTimers | None = None
        """Where a nearer deadline is reported, while the shard is served."""
        self._deadlines: dict[_Key, int] = {}
        self._of_owner: dict[str, dict[_Key, None]] = {}
        # The sequence number keeps timers of equal deadline in the order in which they were set.
        self._heap: list[tuple[int, int, _Key]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._deadlines)

    def __contains__(self, timer: _Key) -> bool:
        return timer in self._deadlines

    def schedule(self, timer: _Key, deadline_ms: int) -> None:
        """Set the timer's deadline, in place of any that it had."""
        before_ms = self._deadlines.get(timer)
        self._deadlines[timer] = deadline_ms
        if before_ms is None:
            self._of_owner.setdefault(timer.owner_id, {})[timer] = None
        if before_ms is None or deadline_ms < before_ms:
            self._push(timer, deadline_ms)
            self._shrink()

    def cancel(self, timer: _Key) -> None:
        """Drop the timer; its heap entry is dropped when it comes up."""
        self._forget(timer)
        self._shrink()

    def cancel_all_of(self, owner_id: str) -> None:
        """Drop every timer of an owner that is removed."""
        for timer in list(self._of_owner.get(owner_id, ())):
            self.cancel(timer)

    def pop_due(self, now_ms: int) -> _Key | None:
        """Remove and return the earliest timer whose deadline has passed, None without one."""
        while self._heap and self._heap[0][0] <= now_ms:
            _, _, timer = heappop(self._heap)
            deadline_ms = self._deadlines.get(timer)
            if deadline_ms is None:
                continue
            if deadline_ms <= now_ms:
                self._forget(timer)
                return timer
            self._push(timer, deadline_ms)
        return None

    def deadline_ms(self) -> int | None:
        """Return when to look again: never later than the earliest deadline, None for never."""
        return self._heap[0][0] if self._deadlines else None

    def _forget(self, timer: _Key) -> None:
        if self._deadlines.pop(timer, None) is not None:
            timers = self._of_owner[timer.owner_id]
            del timers[timer]
            if not timers:
                del self._of_owner[timer.owner_id]

    def _push(self, timer: _Key, deadline_ms: int) -> None:
        self._sequence += 1
        heappush(self._heap, (deadline_ms, self._sequence, timer))
        if self.all_timers is not None:
            self.all_timers.note(self, self._heap[0][0])

    def _shrink(self) -> None:
        if len(self._heap) <= 64 + 4 * len(self._deadlines):
            return
        self._heap = []
        for timer, deadline_ms in self._deadlines.items():
            self._push(timer, deadline_ms)


class ShardTimers:
    """The earliest deadline among the timers of all shards that are served."""

    __slots__ = ("_deadline_ms", "_first", "_members")

    def __init__(self) -> None:
        self._members: dict[Timers[Any], None] = {}
        self._first: Timers[Any] | None = None
        """The owner of the earliest deadline; None while no timer is set."""
        self._deadline_ms: int | None = None
        """Never later than the deadline of any member."""

    def add(self, timers: Timers[Any]) -> None:
        """Count the timers of a shard that is served from now on."""
        self._members[timers] = None
        timers.all_timers = self
        deadline_ms = timers.deadline_ms()
        if deadline_ms is not None:
            self.note(timers, deadline_ms)

    def remove(self, timers: Timers[Any]) -> None:
        """Remove the timers of a shard that is not served any more."""
        del self._members[timers]
        timers.all_timers = None
        if timers is self._first:
            self._compare_all()

    def note(self, timers: Timers[Any], deadline_ms: int) -> None:
        """Take the deadline of a member, which has come nearer."""
        if self._deadline_ms is None or deadline_ms < self._deadline_ms:
            self._first, self._deadline_ms = timers, deadline_ms

    def deadline_ms(self) -> int | None:
        """Return the earliest deadline of all members, None for never."""
        if self._first is not None and self._first.deadline_ms() != self._deadline_ms:
            self._compare_all()  # it was moved away, or is over
        return self._deadline_ms

    def _compare_all(self) -> None:
        self._first = self._deadline_ms = None
        for timers in self._members:
            deadline_ms = timers.deadline_ms()
            if deadline_ms is not None:
                self.note(timers, deadline_ms)
