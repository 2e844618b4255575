"""Why a topology cannot be used: the request is refused, or its topics do not fit it yet."""

from enum import IntEnum

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.frozen import frozen
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "GroupStatus",
    "TopicsFailure",
    "TopicsUnfit",
    "TopologyRefused",
    "invalid_topology",
    "server_error",
]


class GroupStatus(IntEnum):
    """Status codes in answers to heartbeats of streams groups."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@frozen
class TopicsFailure:
    """What members are told about topics that do not fit the topology."""

    status: GroupStatus
    message: str


class TopicsUnfit(Exception):
    """The topics that exist do not fit the topology; a later image may be better."""

    def __init__(self, status: GroupStatus, message: str) -> None:
        super().__init__(message)
        self.failure = TopicsFailure(status, message)


class TopologyRefused(Exception):
    """The topology can never be used: the request that brings it fails with this error."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def invalid_topology(message: str) -> TopologyRefused:
    """Return the exception for a topology that contradicts itself."""
    return TopologyRefused(Refusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message))


def server_error() -> TopologyRefused:
    """Return the exception for a topology over which Kafka's coordinator stumbles.

    It logs what happened and answers UNKNOWN_SERVER_ERROR without a message.
    """
    return TopologyRefused(Refusal(ErrorCode.UNKNOWN_SERVER_ERROR))
