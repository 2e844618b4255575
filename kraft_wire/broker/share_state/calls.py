"""One call about one share partition, as requests and the persister make it."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeAlias

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
    ShareStateWrite,
)
from kraft_wire.model import LeaderEpoch
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["CallKind", "StateCall", "StateCallback", "refusal"]

StateCallback: TypeAlias = Callable[[PersisterResult, ClockReading], None]
"""Called once with the result; it may come before the call returns."""


class CallKind(Enum):
    """What is asked of the coordinator, in words of its error messages."""

    INITIALIZE = "initialize"
    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    SUMMARY = "read summary"


class StateCall(NamedTuple):
    """A call and its argument."""

    kind: CallKind
    key: SharePartitionKey
    argument: InitialShareState | ShareStateWrite | LeaderEpoch | None
    """What `SharePersister` takes for each share partition."""


def refusal(error: ErrorCode) -> PersisterResult:
    """Return an error with Kafka's message."""
    return PersisterResult(error, error.message)
