"""ReadShareGroupState, API key 84, version 0.

Behaviour:   returns start offset, state epoch and delivery states of share partitions · the leader
             of a topic partition sends it, and its epoch becomes the known one · a response has a
             result for each partition and leaves once all that it shows is committed · no group, no
             topics or a topic without partitions: an empty response
Versions:    v0 (KIP-932)
Left out:    nothing
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.serving import StateResults, is_answered_empty, serve
from kraft_wire.model import LeaderEpoch
from kraft_wire.wire.generated.read_share_group_state import (
    PartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse | Parked:
    """Read the state of share partitions, for the leader of an epoch (KIP-932).

    Errors per partition, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_REQUEST (negative partition, no state), FENCED_LEADER_EPOCH,
    UNKNOWN_TOPIC_OR_PARTITION; while it waits also COORDINATOR_NOT_AVAILABLE.
    """
    if is_answered_empty(request.group_id, request.topics):
        return ReadShareGroupStateResponse()
    calls = [
        StateCall(
            CallKind.READ,
            SharePartitionKey(request.group_id, topic.topic_id, each.partition),
            LeaderEpoch(each.leader_epoch),
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    return serve(broker, context, calls, _response)


def _response(results: StateResults) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(
        results=[
            ReadStateResult(
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
        answer.start_offset = state.start_offset
        answer.state_batches = [
            StateBatch(
                first_offset=first, last_offset=last, delivery_state=status, delivery_count=count
            )
            for first, last, status, count in state.batches
        ]
    return answer
