"""The quota on changes of topics: partitions created and deleted, by user and client id (KIP-599).

It is Apache Kafka's `ControllerMutationQuotaManager`. A request of a recent version is strict: its
changes are refused while tokens are overdrawn. One of an older version is done anyway, and told the
time.
"""

from functools import partial

from kraft_wire.node.quotas.levels import Levels, Scope
from kraft_wire.node.quotas.meters import Meters
from kraft_wire.node.quotas.throttle_times import ThrottleTimes
from kraft_wire.node.quotas.token_bucket import TokenBucket
from kraft_wire.node.quotas.windows import THROTTLE_MS_MAX, Windows, rounded

__all__ = ["MutationBudget", "MutationQuota"]


class MutationBudget:
    """The quota of one request; `throttle_ms` is what its answer names."""

    __slots__ = ("_bound", "_bucket", "_is_strict", "_now_ms", "throttle_ms")

    def __init__(self, bucket: TokenBucket, bound: float, is_strict: bool, now_ms: int) -> None:
        self._bucket = bucket
        self._bound = bound
        self._is_strict = is_strict
        self._now_ms = now_ms
        self.throttle_ms = 0

    def admits(self, changes: int) -> bool:
        """Take the tokens of some changes; return False if they are refused."""
        if self._is_strict and self._is_overdrawn():
            return False
        self._bucket.take(changes, self._bound, self._now_ms)
        if not self._is_strict:
            self._is_overdrawn()
        return True

    def _is_overdrawn(self) -> bool:
        """Return whether tokens are missing, and note the time until they are back."""
        tokens = self._bucket.measure(self._bound, self._now_ms)
        if tokens < 0:
            self.throttle_ms = min(rounded(-tokens / self._bound * 1_000), THROTTLE_MS_MAX)
        return tokens < 0


class MutationQuota:
    """The buckets; without a quota of this kind nothing is counted."""

    __slots__ = ("_meters", "throttle_times")

    def __init__(self, windows: Windows) -> None:
        self._meters: Meters[TokenBucket] = Meters(partial(TokenBucket, windows))
        self.throttle_times = ThrottleTimes(self._meters)

    def tokens(self, number_max: int, now_ms: int) -> dict[Scope, float]:
        """Return the tokens of the buckets that were used last."""
        found: dict[Scope, float] = {}
        for scope, bucket in self._meters.newest(number_max):
            bound = self._meters.levels.limit(scope)
            if bound is not None:
                found[scope] = bucket.measure(bound, now_ms)
        return found

    def follow(self, levels: Levels) -> None:
        """Use other bounds from now on; the tokens stay."""
        self._meters.levels = levels

    def budget(
        self, user: str, client_id: str, *, is_strict: bool, now_ms: int
    ) -> MutationBudget | None:
        """Return the quota of a request; None without a bound."""
        if not self._meters.levels.is_enabled:
            return None
        bucket, bound = self._meters.of(user, client_id, now_ms)
        return None if bound is None else MutationBudget(bucket, bound, is_strict, now_ms)
