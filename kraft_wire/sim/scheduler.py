"""Virtual time: one queue of events, and a clock per node that drifts.

True time is counted in microseconds and is known to the simulator only. A node sees milliseconds of
its own clock, which runs at its own rate from its own start.
Equal times are served in the order of scheduling, so that a run depends on its seed alone.

Not here: the events themselves (`world`), and the rates and jumps of a seed (`faults`).
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any, Final

__all__ = ["EPOCH_MS", "Clock", "Scheduler", "SeededRandomSource", "stream"]


def stream(*names: object) -> Random:
    """Return the generator of one purpose: draws of one purpose never shift another's draws.

    The names decide what a seed means: they stay the same even if the code is renamed.
    """
    return Random("/".join(map(str, names)))


class SeededRandomSource:
    """The chance port of one incarnation of a node, with its own random stream.

    With the bias "low" or "high", small draws are always the least or the greatest. If all nodes
    draw alike, chance does not help an election. Ids are drawn as usual.
    """

    __slots__ = ("_random", "leaning")

    def __init__(self, *names: object) -> None:
        self._random = stream(*names)
        self.leaning = ""

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        drawn = self._random.randrange(bound)
        if self.leaning and bound <= _TIMER_MAX:
            return 0 if self.leaning == "low" else bound - 1
        return drawn


_TIMER_MAX = 100_000


class Clock:
    """A node's clocks: a monotonic one at a rate per mille, and a wall that may jump."""

    __slots__ = ("_since_ms", "_since_us", "rate_permille", "wall_skew_ms")
    USUAL_PERMILLE: Final = 1_000

    def __init__(self, rate_permille: int = USUAL_PERMILLE, wall_skew_ms: int = 0) -> None:
        assert rate_permille > 0, rate_permille
        self.rate_permille = rate_permille
        self.wall_skew_ms = wall_skew_ms
        self._since_us = 0
        self._since_ms = 0

    def restart(self, now_us: int, at_ms: int) -> None:
        """Let the monotonic clock begin again, as at the start of a machine."""
        self._since_us, self._since_ms = now_us, at_ms

    def change_rate(self, now_us: int, rate_permille: int) -> None:
        """Continue from here at another rate."""
        self._since_ms, self._since_us = self.now_ms(now_us), now_us
        self.rate_permille = rate_permille

    def now_ms(self, now_us: int) -> int:
        """Return the node's time."""
        return self._since_ms + (now_us - self._since_us) * self.rate_permille // 1_000_000

    def wall_ms(self, now_us: int) -> int:
        """Return the time of day that the node has."""
        return EPOCH_MS + self.wall_skew_ms + now_us // 1_000

    def true_us(self, at_ms: int) -> int:
        """Return the first moment at which the node reads `at_ms` or more."""
        return self._since_us + -(-(at_ms - self._since_ms) * 1_000_000 // self.rate_permille)


EPOCH_MS = 1_790_000_000_000


class Scheduler:
    """The queue of events. `now_us` never falls."""

    __slots__ = ("_number", "_queue", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self._number = 0
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def at(self, at_us: int, do: Callable[..., None], *arguments: object) -> None:
        """Schedule a call at a time; at once if the time has passed."""
        self._number += 1
        if at_us < self.now_us:
            at_us = self.now_us
        heappush(self._queue, (at_us, self._number, do, arguments))

    def after(self, delay_us: int, do: Callable[..., None], *arguments: object) -> None:
        """Have something done later."""
        assert delay_us >= 0, delay_us
        self._number += 1
        heappush(self._queue, (self.now_us + delay_us, self._number, do, arguments))

    def next_us(self) -> int | None:
        """Return the time of the next event, None without one."""
        return self._queue[0][0] if self._queue else None

    def step(self) -> bool:
        """Run the next event; False without one."""
        if not self._queue:
            return False
        self.now_us, _, do, arguments = heappop(self._queue)
        do(*arguments)
        return True
