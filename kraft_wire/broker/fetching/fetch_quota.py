"""The quota on fetches of consumers, as a fetch sees it (KIP-13); the node has the meters."""

from typing import Protocol

from kraft_wire.broker.context import RequestContext

__all__ = ["FetchQuota"]


class FetchQuota(Protocol):
    """The quota on the bytes that consumers fetch, and on the time of their requests."""

    def fetch_bytes_max(self, context: RequestContext, bytes_max: int) -> int:
        """Return how much a consumer may fetch at once, at most `bytes_max`."""
        ...

    def fetched(self, context: RequestContext, size_bytes: int, now_ms: int) -> int:
        """Measure an answer; return its throttle time: above 0, the answer must be empty."""
        ...
