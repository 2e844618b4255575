"""Acquisition locks: for how long an acquired batch or record belongs to its member (KIP-932).

One `Locks` serves all share partitions of a broker, so that the broker has one next deadline.
"""

from collections.abc import Callable

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.deadlines import Deadlines

__all__ = ["Lock", "LockEnded", "Locks"]

LockEnded = Callable[["Lock", ClockReading], None]
"""The share partition's function that takes the records from their owner."""


class Lock:
    """The lock of neighbouring records in one batch."""

    __slots__ = (
        "deadline_ms",
        "ended",
        "first_offset",
        "has_ended",
        "is_set",
        "last_offset",
        "locks",
    )

    def __init__(
        self,
        locks: "Locks",
        ended: LockEnded,
        first_offset: int,
        last_offset: int,
        deadline_ms: int,
    ) -> None:
        self.locks = locks
        self.ended = ended
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.deadline_ms = deadline_ms
        self.is_set = True
        """False once the lock is cancelled or has ended."""
        self.has_ended = False
        """Whether its time passed while it was set."""

    def cancel(self) -> None:
        """Take the lock off; it does not end any more."""
        if self.is_set:
            self.is_set = False
            self.locks.count -= 1


class Locks:
    """The locks of a broker, the nearest deadline first."""

    __slots__ = ("_deadlines", "count")

    def __init__(self) -> None:
        self._deadlines: Deadlines[Lock] = Deadlines(_is_set)
        self.count = 0
        """Locks that are set."""

    @property
    def listed_count(self) -> int:
        """Locks that take memory; cancelled ones are removed when they are most of them."""
        return len(self._deadlines)

    def set(self, ended: LockEnded, first_offset: int, last_offset: int, deadline_ms: int) -> Lock:
        """Return a new lock, both offsets included; `ended` is called at its end."""
        lock = Lock(self, ended, first_offset, last_offset, deadline_ms)
        self.count += 1
        self._deadlines.add(deadline_ms, lock, self.count)
        return lock

    def end_due(self, at: ClockReading) -> None:
        """End the locks whose time has passed, in the order of their deadlines."""
        for lock in self._deadlines.due(at.now_ms):
            lock.cancel()
            lock.has_ended = True
            lock.ended(lock, at)

    def deadline_ms(self) -> int | None:
        """Return when the next lock ends, None if none is set."""
        return self._deadlines.next_ms()


def _is_set(lock: Lock) -> bool:
    return lock.is_set
