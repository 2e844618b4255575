"""DeleteShareGroupState, API key 86, version 0.

Behaviour:   removes the state of share partitions, by a tombstone each, where there is one · the
             group coordinator sends it · a response has a result for each partition and leaves once
             all are committed · no group, no topics or a topic without partitions: an empty
             response
Versions:    v0 (KIP-932)
Left out:    nothing
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.broker.share_state.calls import CallKind, StateCall
from kraft_wire.broker.share_state.serving import StateResults, is_answered_empty, serve
from kraft_wire.wire.generated.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse | Parked:
    """Remove the state of share partitions (KIP-932).

    Errors per partition, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    INVALID_REQUEST (negative partition), UNKNOWN_TOPIC_OR_PARTITION; while it waits also
    COORDINATOR_NOT_AVAILABLE.
    """
    if is_answered_empty(request.group_id, request.topics):
        return DeleteShareGroupStateResponse()
    calls = [
        StateCall(
            CallKind.DELETE,
            SharePartitionKey(request.group_id, topic.topic_id, each.partition),
            None,
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    return serve(broker, context, calls, _response)


def _response(results: StateResults) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(
        results=[
            DeleteStateResult(
                topic_id=topic_id,
                partitions=[
                    PartitionResult(partition=number, error_code=error, error_message=words)
                    for number, (error, words, _) in partitions.items()
                ],
            )
            for topic_id, partitions in results.items()
        ]
    )
