"""Measurements over the last 30 to 60 seconds: two halves, of which the older is dropped whole.

Kafka's metrics have two samples of 30 s as well. Time is an argument.
"""

from collections import deque
from dataclasses import field

from kraft_wire.frozen import slotted
from kraft_wire.model import Offset

__all__ = ["RaftMetrics", "SlidingWindow"]

_HALF_MS = 30_000
_APPENDS_MAX = 1_024


class SlidingWindow:
    """Values of the current half and of the previous one."""

    def __init__(self) -> None:
        self._began_ms = 0
        self._count, self._sum, self._max = 0, 0.0, 0.0
        self._former: tuple[int, float, float] = (0, 0.0, 0.0)

    def note(self, value: float, now_ms: int, times: int = 1) -> None:
        """Count a value, or the same value several times."""
        assert value >= 0, value
        self._turn(now_ms)
        self._count += times
        self._sum += value * times
        self._max = max(self._max, value)

    def average(self, now_ms: int) -> float:
        """Return the mean of the recent values, 0 without any."""
        self._turn(now_ms)
        count = self._count + self._former[0]
        assert count >= 0, count
        return (self._sum + self._former[1]) / count if count else 0.0

    def largest(self, now_ms: int) -> float:
        """Return the largest recent value, 0 without any."""
        self._turn(now_ms)
        found = max(self._max, self._former[2])
        assert found >= 0, found
        return found

    def per_second(self, now_ms: int) -> float:
        """Return the sum of the recent values divided by their time."""
        self._turn(now_ms)
        spent_ms = _HALF_MS + (now_ms - self._began_ms)
        assert spent_ms >= _HALF_MS, spent_ms
        return (self._sum + self._former[1]) * 1_000 / spent_ms

    def _turn(self, now_ms: int) -> None:
        """Begin a new half when the current one is over."""
        passed = (now_ms - self._began_ms) // _HALF_MS
        assert passed >= 0, (now_ms, self._began_ms)
        if passed == 0:
            return
        is_fresh = passed == 1
        self._former = (self._count, self._sum, self._max) if is_fresh else (0, 0.0, 0.0)
        self._count, self._sum, self._max = 0, 0.0, 0.0
        self._began_ms += passed * _HALF_MS


@slotted
class RaftMetrics:
    """The measurements of a replica."""

    election_ms: SlidingWindow = field(default_factory=SlidingWindow)
    """From asking for votes until a leader is known."""
    commit_ms: SlidingWindow = field(default_factory=SlidingWindow)
    """From an append of this leader until the high watermark passes it, for each record."""
    fetched_records: SlidingWindow = field(default_factory=SlidingWindow)
    appended_records: SlidingWindow = field(default_factory=SlidingWindow)
    election_began_ms: int | None = None
    """When this replica began to ask for votes; None once a leader is known."""
    appends: deque[tuple[Offset, int, int]] = field(default_factory=deque)
    """End offset, records and time of this leader's uncommitted appends."""

    def began_election(self, now_ms: int) -> None:
        """Note the start of an election; only the first one counts until a leader is known."""
        assert now_ms >= 0, now_ms
        if self.election_began_ms is None:
            self.election_began_ms = now_ms

    def found_leader(self, now_ms: int) -> None:
        """Note that a leader is known."""
        began_ms, self.election_began_ms = self.election_began_ms, None
        if began_ms is not None:
            self.election_ms.note(now_ms - began_ms, now_ms)
        assert self.election_began_ms is None

    def appended(self, end_offset: Offset, count: int, now_ms: int) -> None:
        """Note an append of this leader; of very many uncommitted ones only the first are timed."""
        assert count > 0, count
        self.appended_records.note(count, now_ms)
        if len(self.appends) < _APPENDS_MAX:
            self.appends.append((end_offset, count, now_ms))

    def committed(self, high_watermark: Offset, now_ms: int) -> None:
        """Note that everything below an offset is committed."""
        assert high_watermark >= 0, high_watermark
        while self.appends and self.appends[0][0] <= high_watermark:
            _, count, appended_ms = self.appends.popleft()
            self.commit_ms.note(now_ms - appended_ms, now_ms, count)
