"""ReadShareGroupState, API key 84: leaders read what groups have consumed (KIP-932)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.share_states import (
    ERROR,
    FIRST_STATE_EPOCH,
    LEADER_EPOCH,
    MADE_UP,
    START_OFFSET,
    SharePartition,
    begun,
    coordinated,
    read,
    result,
    share_partition,
    write,
    written_state,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)

_API: Final = "ReadShareGroupState"
_SOURCE: Final = "KIP-932, ReadShareGroupState API"
_CHECKS: Final = "org.apache.kafka.coordinator.share.ShareCoordinatorShard, readState"


def _answered(
    broker: Subject, version: int, request: ReadShareGroupStateRequest, code: ErrorCode
) -> ReadShareGroupStateResponse:
    answer = broker.ask(request, version, ReadShareGroupStateResponse)
    expect.error(answer, ERROR, code)
    return answer


@case(_API, _SOURCE)
def written_batches(broker: Subject, version: int) -> None:
    """A state has its epoch, its start offset and the batches that were written.

    Begin a state, write two batches, read it.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        written_state(broker, write(of, (11, 12, 0, 2), (14, 14, 4, 5)))
        answer = _answered(broker, version, read(of, LEADER_EPOCH), ErrorCode.NONE)
        expect.equal(answer, "results[0].topic_id", of.topic_id)
        expect.equal(answer, result("partition"), 0)
        expect.equal(answer, result("state_epoch"), FIRST_STATE_EPOCH)
        expect.equal(answer, result("start_offset"), START_OFFSET)
        for index, wanted in enumerate([(11, 12, 0, 2), (14, 14, 4, 5)]):
            names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
            for name, value in zip(names, wanted, strict=True):
                expect.equal(answer, result(f"state_batches[{index}].{name}"), value)


@case(_API, _SOURCE)
def older_leader_epoch(broker: Subject, version: int) -> None:
    """A leader epoch below that of an earlier read is refused with FENCED_LEADER_EPOCH.

    Begin a state, read it with leader epoch 5, then with 4, and without one.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        _answered(broker, version, read(of, LEADER_EPOCH), ErrorCode.NONE)
        older = read(of, LEADER_EPOCH - 1)
        _answered(broker, version, older, ErrorCode.FENCED_LEADER_EPOCH)
        _answered(broker, version, read(of), ErrorCode.NONE)


@case(_API, _CHECKS)
def state_that_has_not_begun(broker: Subject, version: int) -> None:
    """A state that has not begun is refused with INVALID_REQUEST.

    Read the state of a new group.
    """
    with share_partition(broker) as of:
        _answered(broker, version, read(of), ErrorCode.INVALID_REQUEST)


@case(_API, _CHECKS)
def negative_partition(broker: Subject, version: int) -> None:
    """A negative partition is refused with INVALID_REQUEST.

    Read the state of partition -1 of a topic.
    """
    with share_partition(broker, partition=-1) as of:
        _answered(broker, version, read(of), ErrorCode.INVALID_REQUEST)


@case(_API, _CHECKS)
def unknown_topic(broker: Subject, version: int) -> None:
    """A state that has not begun is INVALID_REQUEST, also of a topic id that no topic has.

    Read the state of a partition of an unknown topic id.
    """
    found = coordinated(broker, MADE_UP)
    _answered(broker, version, read(found), ErrorCode.INVALID_REQUEST)


@case(_API, _SOURCE)
def nothing_to_read(broker: Subject, version: int) -> None:
    """A request without topics, or without a group, has a response without results.

    Send both, then one with a topic.
    """
    with share_partition(broker) as of:
        without_topics = ReadShareGroupStateRequest(group_id=of.group_id, topics=[])
        for request in (without_topics, read(SharePartition("", of.topic_id))):
            answer = broker.ask(request, version, ReadShareGroupStateResponse)
            expect.equal(answer, "results", [])
        _answered(broker, version, read(of), ErrorCode.INVALID_REQUEST)
