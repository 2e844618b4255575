"""DeleteShareGroupState, API key 86: the state of share partitions ends (KIP-932)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.share_states import (
    ERROR,
    MADE_UP,
    SharePartition,
    begun,
    coordinated,
    delete,
    read,
    result,
    share_partition,
    state_batches,
    write,
    written_state,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.read_share_group_state import ReadShareGroupStateResponse

_API: Final = "DeleteShareGroupState"
_SOURCE: Final = "KIP-932, DeleteShareGroupState API"
_CHECKS: Final = "org.apache.kafka.coordinator.share.ShareCoordinatorShard, deleteState"


def _answered(
    broker: Subject, version: int, request: DeleteShareGroupStateRequest, code: ErrorCode
) -> DeleteShareGroupStateResponse:
    answer = broker.ask(request, version, DeleteShareGroupStateResponse)
    expect.error(answer, ERROR, code)
    return answer


@case(_API, _SOURCE)
def deleted_state(broker: Subject, version: int) -> None:
    """A deleted state cannot be read; a new one may have a lower epoch, without batches.

    Begin a state, write a batch, delete it, read it, begin it with epoch 0, read it.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        written_state(broker, write(of, (10, 12, 0, 1)))
        answer = _answered(broker, version, delete(of), ErrorCode.NONE)
        expect.equal(answer, "results[0].topic_id", of.topic_id)
        expect.equal(answer, result("partition"), 0)
        found = broker.prepare(read(of), ReadShareGroupStateResponse)
        expect.error(found, ERROR, ErrorCode.INVALID_REQUEST)
        begun(broker, of, epoch=0)
        seen = state_batches(broker, of)
        expect.true(not seen, "no batches", seen)


@case(_API, _SOURCE)
def state_that_has_not_begun(broker: Subject, version: int) -> None:
    """The deletion of a state that has not begun succeeds.

    Delete the state of a new group.
    """
    with share_partition(broker) as of:
        _answered(broker, version, delete(of), ErrorCode.NONE)


@case(_API, _CHECKS)
def unknown_topic(broker: Subject, version: int) -> None:
    """A topic id that no topic has is refused with UNKNOWN_TOPIC_OR_PARTITION.

    Delete the state of a partition of an unknown topic id.
    """
    found = coordinated(broker, MADE_UP)
    _answered(broker, version, delete(found), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case(_API, _CHECKS)
def negative_partition(broker: Subject, version: int) -> None:
    """A negative partition is refused with INVALID_REQUEST.

    Delete the state of partition -1 of a topic.
    """
    with share_partition(broker, partition=-1) as of:
        _answered(broker, version, delete(of), ErrorCode.INVALID_REQUEST)


@case(_API, _SOURCE)
def nothing_to_delete(broker: Subject, version: int) -> None:
    """A request without topics, or without a group, has a response without results.

    Send both, then one with a topic.
    """
    with share_partition(broker) as of:
        without_topics = DeleteShareGroupStateRequest(group_id=of.group_id, topics=[])
        for request in (without_topics, delete(SharePartition("", of.topic_id))):
            answer = broker.ask(request, version, DeleteShareGroupStateResponse)
            expect.equal(answer, "results", [])
        _answered(broker, version, delete(of), ErrorCode.NONE)
