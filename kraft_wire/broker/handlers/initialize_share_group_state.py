"""InitializeShareGroupState, API key 83, version 0.

Behaviour:   begins the state of share partitions, or begins it again with a higher state epoch and
             without what was delivered · the group coordinator sends it, also that of another
             broker · a response has a result for each partition and leaves once all are committed ·
             no group or no topics: an empty response
Versions:    v0 (KIP-932)
Left out:    nothing
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.share_persister import InitialShareState, SharePartitionKey
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.serving import StateResults, serve
from kraft_wire.model import Offset
from kraft_wire.wire.generated.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse | Parked:
    """Begin the state of share partitions (KIP-932).

    Errors per partition, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_REQUEST (negative partition), FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION; while it
    waits also COORDINATOR_NOT_AVAILABLE.
    """
    if not request.group_id:
        return InitializeShareGroupStateResponse()
    calls = [
        StateCall(
            CallKind.INITIALIZE,
            SharePartitionKey(request.group_id, topic.topic_id, each.partition),
            InitialShareState(each.state_epoch, Offset(each.start_offset)),
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    return serve(broker, context, calls, _response)


def _response(results: StateResults) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=[
            InitializeStateResult(
                topic_id=topic_id,
                partitions=[
                    PartitionResult(partition=number, error_code=error, error_message=words)
                    for number, (error, words, _) in partitions.items()
                ],
            )
            for topic_id, partitions in results.items()
        ]
    )
