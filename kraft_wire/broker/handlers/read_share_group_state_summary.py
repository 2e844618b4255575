"""ReadShareGroupStateSummary, API key 87, versions 0-1.

Behaviour:   returns start offset, epochs and count of completed deliveries, to describe offsets and
             lag · a share partition without state has -1 and no error · a
             response leaves once all that it shows is committed · no group, no topics or a topic
             without partitions: an empty response
Versions:    v0 (KIP-932) · v1 the count of completed deliveries (KIP-1226)
Left out:    nothing
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.serving import StateResults, is_answered_empty, serve
from kraft_wire.model import LeaderEpoch
from kraft_wire.wire.generated.read_share_group_state_summary import (
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse | Parked:
    """Read start offsets and counts of share partitions (KIP-932).

    Errors per partition, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_REQUEST (negative partition), UNKNOWN_TOPIC_OR_PARTITION; while it waits also
    COORDINATOR_NOT_AVAILABLE.
    """
    if is_answered_empty(request.group_id, request.topics):
        return ReadShareGroupStateSummaryResponse()
    calls = [
        StateCall(
            CallKind.SUMMARY,
            SharePartitionKey(request.group_id, topic.topic_id, each.partition),
            LeaderEpoch(each.leader_epoch),
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    return serve(broker, context, calls, _response)


def _response(results: StateResults) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(
        results=[
            ReadStateSummaryResult(
                topic_id=topic_id,
                partitions=[_partition(number, each) for number, each in partitions.items()],
            )
            for topic_id, partitions in results.items()
        ]
    )


def _partition(number: int, result: PersisterResult) -> PartitionResult:
    error, words, state = result
    answer = PartitionResult(partition=number, error_code=error, error_message=words)
    if state is not None:
        answer.state_epoch = state.state_epoch
        answer.leader_epoch = state.leader_epoch
        answer.start_offset = state.start_offset
        answer.delivery_complete_count = state.delivery_complete_count
    return answer
