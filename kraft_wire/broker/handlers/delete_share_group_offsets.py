"""DeleteShareGroupOffsets, API key 92, version 0.

Behaviour:   removes the state of whole topics from a share group without members; the answer waits
             for the share coordinators
Versions:    -
Left out:    nothing
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.delete_offsets import DeletedTopic, delete_offsets
from kraft_wire.broker.groups.share.request_checks import check_offsets_request
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse | Parked:
    """Delete the offsets of topics of a share group.

    Errors of all, first match wins: UNSUPPORTED_VERSION (share groups are switched off),
    INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those of
    `groups.share.delete_offsets.delete_offsets`.
    """
    refused = check_offsets_request(broker.image, request.group_id)
    if refused is not None:
        return _refused(refused)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return _refused(Refusal(shard))
    deferred = DeferredResponse[DeleteShareGroupOffsetsResponse](
        broker.groups.env.complete, context.reply_to
    )

    def deleted(outcome: Sequence[DeletedTopic] | Refusal) -> None:
        deferred.send(_refused(outcome) if isinstance(outcome, Refusal) else _answer(outcome))

    names = [topic.topic_name for topic in request.topics]
    delete_offsets(shard, request.group_id, names, arrival_of(context), deleted)
    return deferred.result()


def _refused(refusal: Refusal) -> DeleteShareGroupOffsetsResponse:
    words = refusal.message or refusal.error.message
    return DeleteShareGroupOffsetsResponse(error_code=refusal.error, error_message=words)


def _answer(deleted: Sequence[DeletedTopic]) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        responses=[
            DeleteShareGroupOffsetsResponseTopic(
                topic_name=each.topic,
                topic_id=each.topic_id or ZERO_UUID,
                error_code=each.error,
                error_message=each.message,
            )
            for each in deleted
        ]
    )
