"""What a handler gets besides a request, and the answers that are not a response.

A handler returns its response, `PARKED` (the answer comes later through `Broker.complete`),
`NO_REPLY` (Produce with acks=0 is answered by silence), or `CLOSE` (the same, when it failed: the
closed connection is all that a client can see of it).
"""

from dataclasses import replace
from enum import Enum
from typing import Final, Literal, NamedTuple, TypeAlias

from kraft_wire.frozen import slotted
from kraft_wire.model import Principal

__all__ = [
    "CLOSE",
    "NO_REPLY",
    "PARKED",
    "Parked",
    "ReplyTo",
    "RequestContext",
    "Silence",
    "Withheld",
]


class ReplyTo(NamedTuple):
    """The place where one answer belongs: a connection, and the request's number on it."""

    connection_id: int
    request_number: int


@slotted
class RequestContext:
    """The circumstances of one request; everything about time and peer that a handler may use."""

    connection_id: int
    request_number: int
    """Of the connection; together they are where the answer belongs."""
    api_version: int
    """The version that the request was decoded in and the response will be encoded in."""
    now_ms: int
    """Monotonic: for deadlines."""
    wall_ms: int
    """Wall clock: only ever stamps records and answers that carry a timestamp."""
    client_id: str | None
    client_host: str
    """The peer's address without its port, as DescribeGroups shows it (with a leading slash)."""
    listener: str
    """The name of the listener that received the request, or the envelope around it."""
    principal: Principal
    """The requester; of a forwarded request, the requester at the broker."""
    is_direct: bool = False
    """Whether a client sent a change of settings to a controller: no broker has checked it."""

    @property
    def reply_to(self) -> ReplyTo:
        """Where the answer belongs, for a handler that answers later."""
        return ReplyTo(self.connection_id, self.request_number)

    def at(self, now_ms: int, wall_ms: int) -> "RequestContext":
        """Return the same request at a later time, from the same requester and address."""
        assert now_ms >= self.now_ms, (now_ms, self.now_ms)
        return replace(self, now_ms=now_ms, wall_ms=wall_ms)


class Withheld(Enum):
    """Why a handler returns no response now."""

    PARKED = "parked"
    NO_REPLY = "no reply"
    CLOSE = "close"


PARKED: Final = Withheld.PARKED
NO_REPLY: Final = Withheld.NO_REPLY
CLOSE: Final = Withheld.CLOSE

Parked: TypeAlias = Literal[Withheld.PARKED]
Silence: TypeAlias = Literal[Withheld.NO_REPLY, Withheld.CLOSE]
