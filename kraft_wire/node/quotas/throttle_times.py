"""Average throttle times by user and client id: Kafka's metric `throttle-time` (KIP-13).

As Apache Kafka's `Avg` over its usual samples, two of 30 seconds.
"""

from typing import Any, Final

from kraft_wire.node.quotas.levels import Scope
from kraft_wire.node.quotas.meters import Kept, Meters
from kraft_wire.node.quotas.windows import Rate, Windows

__all__ = ["AverageTime", "ThrottleTimes"]

_WINDOWS: Final = Windows(2, 30_000)


class AverageTime:
    """The average of the times that were recorded lately."""

    __slots__ = ("_number", "_total")

    def __init__(self) -> None:
        self._total, self._number = Rate(_WINDOWS), Rate(_WINDOWS)

    def record(self, time_ms: int, now_ms: int) -> None:
        """Add a time."""
        self._total.record(time_ms, now_ms)
        self._number.record(1, now_ms)

    def measure(self, now_ms: int) -> float | None:
        """Return the average in ms, None if all times are too old."""
        total, number = self._total.total(now_ms), self._number.total(now_ms)
        return total / number if number else None


class ThrottleTimes:
    """The averages of one kind of quota."""

    __slots__ = ("_kept", "_meters")

    def __init__(self, meters: Meters[Any]) -> None:
        """Clients that share one of the `meters` share an average."""
        self._kept: Kept[Scope, AverageTime] = Kept(AverageTime)
        self._meters = meters

    def record(self, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """Note that a client is throttled for a time above 0."""
        scope = self._meters.levels.scope(user, client_id)
        self._kept.at(scope, now_ms).record(throttle_ms, now_ms)

    def averages(self, number_max: int, now_ms: int) -> dict[Scope, float]:
        """Return the averages of the clients that were throttled last."""
        found = ((scope, each.measure(now_ms)) for scope, each in self._kept.newest(number_max))
        return {scope: average for scope, average in found if average is not None}
