"""One kind of quota on a rate: bytes or time, by user and client id (KIP-13, KIP-124).

It is Apache Kafka's `ClientQuotaManager`: a value is recorded first, then the rate is compared.
"""

from functools import partial

from kraft_wire.node.quotas.levels import Levels, Scope
from kraft_wire.node.quotas.meters import Meters
from kraft_wire.node.quotas.throttle_times import ThrottleTimes
from kraft_wire.node.quotas.windows import THROTTLE_MS_MAX, Rate, Windows, throttle_ms

__all__ = ["RateQuota"]


class RateQuota:
    """The meters of one kind; without a quota of this kind nothing is measured."""

    __slots__ = ("_burst_seconds", "_meters", "_throttle_ms_max", "throttle_times")

    def __init__(self, windows: Windows, throttle_ms_max: int = THROTTLE_MS_MAX) -> None:
        self._meters: Meters[Rate] = Meters(partial(Rate, windows))
        self._burst_seconds = windows.burst_seconds
        self._throttle_ms_max = throttle_ms_max
        self.throttle_times = ThrottleTimes(self._meters)

    @property
    def is_enabled(self) -> bool:
        """Whether there is a quota of this kind."""
        return self._meters.levels.is_enabled

    def rates(self, number_max: int, now_ms: int) -> dict[Scope, float]:
        """Return the rates of the meters that were used last."""
        return {scope: each.measure(now_ms) for scope, each in self._meters.newest(number_max)}

    def follow(self, levels: Levels) -> None:
        """Use other bounds from now on; what was measured stays."""
        self._meters.levels = levels

    def charge(self, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Record a value, and return the throttle time after it."""
        if not self.is_enabled:
            return 0
        meter, bound = self._meters.of(user, client_id, now_ms)
        meter.record(value, now_ms)
        if bound is None:
            return 0
        rate = meter.measure(now_ms)
        return min(throttle_ms(rate, bound, meter.elapsed_ms(now_ms)), self._throttle_ms_max)

    def note(self, user: str, client_id: str, value: float, now_ms: int) -> None:
        """Record a value without a verdict: one that counts for the next, or that is taken back."""
        if self.is_enabled:
            meter, _ = self._meters.of(user, client_id, now_ms)
            meter.record(value, now_ms)

    def most(self, user: str, client_id: str, now_ms: int) -> float | None:
        """Return the largest value that is not certain to be throttled; None without a bound."""
        if not self.is_enabled:
            return None
        _, bound = self._meters.of(user, client_id, now_ms)
        return None if bound is None else bound * self._burst_seconds
