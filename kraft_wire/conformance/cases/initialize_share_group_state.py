"""InitializeShareGroupState, API key 83: the state of share partitions begins (KIP-932)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.share_states import (
    ERROR,
    FIRST_STATE_EPOCH,
    MADE_UP,
    START_OFFSET,
    SharePartition,
    begun,
    coordinated,
    initialize,
    read,
    result,
    share_partition,
    state_batches,
    write,
    written_state,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kraft_wire.wire.generated.read_share_group_state import ReadShareGroupStateResponse

_API: Final = "InitializeShareGroupState"
_SOURCE: Final = "KIP-932, InitializeShareGroupState API"
_CHECKS: Final = "org.apache.kafka.coordinator.share.ShareCoordinatorShard, initializeState"


def _answered(
    broker: Subject, version: int, request: InitializeShareGroupStateRequest, code: ErrorCode
) -> InitializeShareGroupStateResponse:
    answer = broker.ask(request, version, InitializeShareGroupStateResponse)
    expect.error(answer, ERROR, code)
    return answer


@case(_API, _SOURCE)
def new_state(broker: Subject, version: int) -> None:
    """A new state has the epoch and the start offset of the request, and no batches.

    Begin the state of a partition, read it.
    """
    with share_partition(broker) as of:
        answer = _answered(broker, version, initialize(of), ErrorCode.NONE)
        expect.equal(answer, "results[0].topic_id", of.topic_id)
        expect.equal(answer, result("partition"), 0)
        found = broker.prepare(read(of), ReadShareGroupStateResponse)
        expect.error(found, ERROR, ErrorCode.NONE)
        expect.equal(found, result("state_epoch"), FIRST_STATE_EPOCH)
        expect.equal(found, result("start_offset"), START_OFFSET)
        expect.equal(found, result("state_batches"), [])


@case(_API, _SOURCE)
def state_that_begins_again(broker: Subject, version: int) -> None:
    """A state begins again with the same or a greater epoch, without its batches.

    Begin a state, write a batch, begin it with the same epoch; the same with a greater epoch.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        for epoch in (FIRST_STATE_EPOCH, FIRST_STATE_EPOCH + 1):
            written_state(broker, write(of, (12, 13, 0, 1), epoch=epoch))
            _answered(broker, version, initialize(of, epoch), ErrorCode.NONE)
            seen = state_batches(broker, of)
            expect.true(not seen, "no batches", seen)


@case(_API, _SOURCE)
def lower_state_epoch(broker: Subject, version: int) -> None:
    """A lower state epoch than the known one is refused with FENCED_STATE_EPOCH.

    Begin a state, begin it with a lower epoch.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        request = initialize(of, FIRST_STATE_EPOCH - 1)
        _answered(broker, version, request, ErrorCode.FENCED_STATE_EPOCH)


@case(_API, _CHECKS)
def negative_partition(broker: Subject, version: int) -> None:
    """A negative partition is refused with INVALID_REQUEST.

    Begin the state of partition -1 of a topic.
    """
    with share_partition(broker, partition=-1) as of:
        _answered(broker, version, initialize(of), ErrorCode.INVALID_REQUEST)


@case(_API, _CHECKS)
def unknown_topic(broker: Subject, version: int) -> None:
    """A topic id that no topic has is refused with UNKNOWN_TOPIC_OR_PARTITION.

    Begin the state of partitions of an unknown topic id.
    """
    found = coordinated(broker, MADE_UP)
    _answered(broker, version, initialize(found), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case(_API, _SOURCE)
def nothing_to_begin(broker: Subject, version: int) -> None:
    """A request without topics, or without a group, has a response without results.

    Send both, then one with a topic.
    """
    with share_partition(broker) as of:
        without_topics = InitializeShareGroupStateRequest(group_id=of.group_id, topics=[])
        for request in (without_topics, initialize(SharePartition("", of.topic_id))):
            answer = broker.ask(request, version, InitializeShareGroupStateResponse)
            expect.equal(answer, "results", [])
        _answered(broker, version, initialize(of), ErrorCode.NONE)
