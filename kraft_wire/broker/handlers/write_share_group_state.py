"""WriteShareGroupState, API key 85, versions 0-1.

Behaviour:   adds delivery states of ranges of offsets, and moves the start offset unless it is -1 ·
             the leader of a topic partition sends it · leader and state epoch are compared with the
             known ones and raise neither · a response has a result for each partition and leaves
             once all are committed · no group, no topics or a topic without partitions: an empty
             response
Versions:    v0 (KIP-932), the count of completed deliveries is then -1 · v1 has it (KIP-1226)
Left out:    nothing
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.share_persister import (
    DeliveryStateBatch,
    SharePartitionKey,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.serving import StateResults, is_answered_empty, serve
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.wire.generated.write_share_group_state import (
    PartitionData,
    PartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse | Parked:
    """Add to the state of share partitions (KIP-932).

    Errors per partition, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_REQUEST (negative partition, no state), FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION, and that of a batch that ends before it begins or has no known
    state; while it waits also COORDINATOR_NOT_AVAILABLE.
    """
    if is_answered_empty(request.group_id, request.topics):
        return WriteShareGroupStateResponse()
    calls = [
        StateCall(
            CallKind.WRITE,
            SharePartitionKey(request.group_id, topic.topic_id, each.partition),
            _write(each),
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    return serve(broker, context, calls, _response)


def _write(data: PartitionData) -> ShareStateWrite:
    return ShareStateWrite(
        state_epoch=data.state_epoch,
        leader_epoch=LeaderEpoch(data.leader_epoch),
        start_offset=Offset(data.start_offset),
        delivery_complete_count=data.delivery_complete_count,
        batches=[
            DeliveryStateBatch(
                Offset(each.first_offset),
                Offset(each.last_offset),
                each.delivery_state,
                each.delivery_count,
            )
            for each in data.state_batches
        ],
    )


def _response(results: StateResults) -> WriteShareGroupStateResponse:
    return WriteShareGroupStateResponse(
        results=[
            WriteStateResult(
                topic_id=topic_id,
                partitions=[
                    PartitionResult(partition=number, error_code=error, error_message=words)
                    for number, (error, words, _) in partitions.items()
                ],
            )
            for topic_id, partitions in results.items()
        ]
    )
