"""A bucket of tokens that refills at a rate: the quota on changes of topics (KIP-599).

It begins full, with the tokens of `controller.quota.window.num` windows. Tokens may be overdrawn
once: then the client waits until the bucket is at 0 again.
"""

from kraft_wire.node.quotas.windows import Windows

__all__ = ["TokenBucket"]


class TokenBucket:
    """The tokens of one meter; its rate may change between calls."""

    __slots__ = ("_tokens", "_updated_ms", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._updated_ms: int | None = None
        """Time of the last refill; None: the bucket is full."""

    def measure(self, rate: float, now_ms: int) -> float:
        """Return the tokens that are left; below 0 they are overdrawn."""
        self._refill(rate, now_ms)
        return self._tokens

    def take(self, tokens: float, rate: float, now_ms: int) -> None:
        """Take tokens, even if there are fewer."""
        self._refill(rate, now_ms)
        self._tokens = min(self._capacity(rate), self._tokens - tokens)

    def _refill(self, rate: float, now_ms: int) -> None:
        capacity = self._capacity(rate)
        if self._updated_ms is None:
            self._tokens = capacity
        else:
            passed_s = (now_ms - self._updated_ms) / 1_000
            self._tokens = min(capacity, self._tokens + rate * passed_s)
        self._updated_ms = now_ms

    def _capacity(self, rate: float) -> float:
        number, size_ms = self._windows
        return number * (size_ms / 1_000) * rate
