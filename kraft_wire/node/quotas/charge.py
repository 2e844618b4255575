"""Who pays for a request: a user and a client id."""

from typing import Protocol

from kraft_wire.frozen import slotted
from kraft_wire.wire.header import RequestHeader

__all__ = ["Charge"]


class TimeQuota(Protocol):
    """The quota on the time of requests."""

    def took(self, charge: "Charge", seconds: float, now_ms: int) -> None:
        """Count the time that the node's thread spent on a request."""
        ...


@slotted(eq=False)
class Charge:
    """One request, as quotas see it."""

    user: str
    client_id: str
    connection_id: int
    header: RequestHeader
    time_quota: TimeQuota
    produced_bytes: int | None = None
    """Size of a Produce request."""
    is_fetch: bool = False
    """Whether it is a consumer's fetch, which is measured with its answer."""
    is_exempt: bool = False
    """Whether it is a call between nodes."""

    def spend(self, seconds: float, now_ms: int) -> None:
        """Count the time that the node's thread spent on this request."""
        self.time_quota.took(self, seconds, now_ms)
