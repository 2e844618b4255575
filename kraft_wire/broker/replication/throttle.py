"""The throttle of replication, as leaders and followers see it (KIP-73); the node has the meters.

Replicas that are out of sync wait while it is exceeded, so that a reassignment leaves room for
clients. Replicas in sync never wait, but their bytes count.
"""

from typing import Protocol

__all__ = ["ReplicationThrottle"]


class ReplicationThrottle(Protocol):
    """The rate of a broker's throttled replicas, as leader or as follower."""

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Return whether a partition is one of the throttled ones."""
        ...

    def is_exceeded(self, now_ms: int) -> bool:
        """Return whether the rate is above its bound."""
        ...

    def bytes_per_second(self, now_ms: int) -> float:
        """Return the rate now, for metrics."""
        ...

    def record(self, size_bytes: int, now_ms: int) -> None:
        """Count bytes of throttled replicas."""
        ...
