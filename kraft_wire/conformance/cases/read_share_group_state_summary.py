"""ReadShareGroupStateSummary, API key 87: the start of share partitions (KIP-932, KIP-1226)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.share_states import (
    ERROR,
    FIRST_STATE_EPOCH,
    LEADER_EPOCH,
    START_OFFSET,
    SharePartition,
    begun,
    read,
    result,
    share_partition,
    summarize,
    write,
    written_state,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.read_share_group_state import ReadShareGroupStateResponse
from kraft_wire.wire.generated.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

_API: Final = "ReadShareGroupStateSummary"
_SOURCE: Final = "KIP-932, ReadShareGroupStateSummary API"
_CHECKS: Final = "org.apache.kafka.coordinator.share.ShareCoordinatorShard, readStateSummary"
_COUNT_SINCE: Final = 1


def _answered(
    broker: Subject, version: int, request: ReadShareGroupStateSummaryRequest, code: ErrorCode
) -> ReadShareGroupStateSummaryResponse:
    answer = broker.ask(request, version, ReadShareGroupStateSummaryResponse)
    expect.error(answer, ERROR, code)
    return answer


@case(_API, _SOURCE)
def new_state(broker: Subject, version: int) -> None:
    """A new state has its epoch and its start offset.

    Begin a state, read it with a leader epoch, read its summary.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        broker.prepare(read(of, LEADER_EPOCH), ReadShareGroupStateResponse)
        answer = _answered(broker, version, summarize(of), ErrorCode.NONE)
        expect.equal(answer, "results[0].topic_id", of.topic_id)
        expect.equal(answer, result("partition"), 0)
        expect.equal(answer, result("state_epoch"), FIRST_STATE_EPOCH)
        expect.equal(answer, result("leader_epoch"), LEADER_EPOCH)
        expect.equal(answer, result("start_offset"), START_OFFSET)


@case(_API, "KIP-1226", since=_COUNT_SINCE)
def complete_count(broker: Subject, version: int) -> None:
    """The number of completed deliveries is 0 in a new state, and then as written.

    Begin a state, read its summary, write a batch with a count of 2, read it again.
    """
    with share_partition(broker) as of:
        begun(broker, of)
        answer = _answered(broker, version, summarize(of), ErrorCode.NONE)
        expect.equal(answer, result("delivery_complete_count"), 0)
        written_state(broker, write(of, (12, 13, 2, 1), complete_count=2))
        answer = _answered(broker, version, summarize(of), ErrorCode.NONE)
        expect.equal(answer, result("delivery_complete_count"), 2)


@case(_API, _SOURCE)
def state_that_has_not_begun(broker: Subject, version: int) -> None:
    """A state that has not begun has no start offset, and no error.

    Read the summary of a new group.
    """
    with share_partition(broker) as of:
        answer = _answered(broker, version, summarize(of), ErrorCode.NONE)
        expect.equal(answer, result("state_epoch"), 0)
        expect.equal(answer, result("start_offset"), -1)
        if version >= _COUNT_SINCE:
            expect.equal(answer, result("delivery_complete_count"), -1)


@case(_API, _CHECKS)
def negative_partition(broker: Subject, version: int) -> None:
    """A negative partition is refused with INVALID_REQUEST.

    Read the summary of partition -1 of a topic.
    """
    with share_partition(broker, partition=-1) as of:
        _answered(broker, version, summarize(of), ErrorCode.INVALID_REQUEST)


@case(_API, _SOURCE)
def nothing_to_read(broker: Subject, version: int) -> None:
    """A request without topics, or without a group, has a response without results.

    Send both.
    """
    with share_partition(broker) as of:
        without_topics = ReadShareGroupStateSummaryRequest(group_id=of.group_id, topics=[])
        for request in (without_topics, summarize(SharePartition("", of.topic_id))):
            answer = broker.ask(request, version, ReadShareGroupStateSummaryResponse)
            expect.equal(answer, "results", [])
