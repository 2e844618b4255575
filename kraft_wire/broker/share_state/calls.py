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

__all__ = ["ERROR_WORDS", "CallKind", "StateCall", "StateCallback", "refusal"]

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


ERROR_WORDS = {
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request."
    ),
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: (
        "The coordinator is loading and hence can't process requests."
    ),
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.FENCED_LEADER_EPOCH: (
        "The leader epoch in the request is older than the epoch on the broker."
    ),
    ErrorCode.FENCED_STATE_EPOCH: (
        "The share coordinator rejected the request because the share-group state epoch did not"
        " match."
    ),
}
"""Kafka's message of each error."""


def refusal(error: ErrorCode) -> PersisterResult:
    """Return an error with Kafka's message."""
    return PersisterResult(error, ERROR_WORDS[error])
