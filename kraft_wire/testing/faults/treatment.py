"""The effect of the rules on one request and its response; a host carries it out."""

from dataclasses import dataclass, field
from enum import Enum, auto

from kraft_wire.testing.faults.rule import Rule
from kraft_wire.wire.header import RequestHeader
from kraft_wire.wire.message import Message

__all__ = ["Fate", "Outcome", "Treatment"]


class Fate(Enum):
    """The target of a request or a response."""

    PASS = auto()
    ANSWER = auto()
    """A request is not handled: `Treatment.answer` is its response."""
    DISCONNECT = auto()
    BLACKHOLE = auto()
    """It is dropped, and the connection stays open and silent."""


@dataclass(slots=True)
class Treatment:
    """The treatment of one request, and of its response; frames are without their length."""

    header: RequestHeader
    frame: bytes | bytearray | memoryview
    """The request to be handled, with the changes of rules."""
    fate: Fate = Fate.PASS
    delay_ms: int = 0
    """Time before any of the rest happens."""
    answer: bytes = b""
    merged: Message | None = None
    """Refusals of partitions that were taken out of the request, to be added to its response."""
    response_rules: list[Rule] = field(default_factory=list)
    """They fire on the response."""
    session_rules: list[Rule] = field(default_factory=list)
    """They fire on the response if it names a partition that they select."""
    fired: list[str] = field(default_factory=list)
    """Effects that this exchange has met, for traces."""


@dataclass(slots=True)
class Outcome:
    """The treatment of one response."""

    frame: bytes
    fate: Fate = Fate.PASS
    delay_ms: int = 0
    size_bytes_max: int | None = None
    """The number of bytes that arrive before the connection closes; None for all."""
