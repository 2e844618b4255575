"""Who pays for a request: a user and a client id."""

from typing import Any, Protocol

from kraft_wire.frozen import slotted
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message

__all__ = ["Charge"]


class Quotas(Protocol):
    """The quotas that a request pays; `outputs` are the node's, which import this module."""

    def answered(
        self, charge: "Charge", answer: Message, outputs: list[Any], now_ms: int
    ) -> Message:
        """Measure an answered request; return the answer with its throttle time."""
        ...

    def silent(self, charge: "Charge", outputs: list[Any], now_ms: int) -> None:
        """Measure a request that is answered by silence."""
        ...

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
    quotas: Quotas
    produced_bytes: int | None = None
    """Size of a Produce request."""
    is_fetch: bool = False
    """Whether it is a consumer's fetch, which is measured with its answer."""
    is_exempt: bool = False
    """Whether it is a call between nodes."""

    def spend(self, seconds: float, now_ms: int) -> None:
        """Count the time that the node's thread spent on this request."""
        self.quotas.took(self, seconds, now_ms)
