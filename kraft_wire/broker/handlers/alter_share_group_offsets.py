"""AlterShareGroupOffsets, API key 91, version 0.

Behaviour:   sets where the share partitions of a group without members begin; a group that does
             not exist is made; the answer waits for the share coordinators
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
from kraft_wire.broker.groups.share.alter_offsets import AlteredTopic, StartOffsets, alter_offsets
from kraft_wire.broker.groups.share.request_checks import check_offsets_request
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import ZERO_UUID, Offset
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse | Parked:
    """Alter the start offsets of a share group.

    Errors of all, first match wins: UNSUPPORTED_VERSION (share groups are switched off),
    INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those of
    `groups.share.alter_offsets.alter_offsets`.
    """
    refused = check_offsets_request(broker.image, request.group_id)
    if refused is not None:
        return _refused(refused)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return _refused(Refusal(shard))
    deferred = DeferredResponse[AlterShareGroupOffsetsResponse](
        broker.groups.env.complete, context.reply_to
    )

    image = broker.image

    def altered(outcome: Sequence[AlteredTopic] | Refusal) -> None:
        deferred.send(
            _refused(outcome) if isinstance(outcome, Refusal) else _answer(request, outcome, image)
        )

    asked = [
        StartOffsets(
            topic.topic_name,
            {each.partition_index: Offset(each.start_offset) for each in topic.partitions},
        )
        for topic in request.topics
    ]
    alter_offsets(shard, request.group_id, asked, arrival_of(context), altered)
    return deferred.result()


def _refused(refusal: Refusal) -> AlterShareGroupOffsetsResponse:
    words = refusal.message or refusal.error.message
    return AlterShareGroupOffsetsResponse(error_code=refusal.error, error_message=words)


def _answer(
    request: AlterShareGroupOffsetsRequest, altered: Sequence[AlteredTopic], image: MetadataImage
) -> AlterShareGroupOffsetsResponse:
    """Answer for each partition as it is requested; topics that do not exist come first.

    Kafka's `AlterShareGroupOffsetsResponse.Builder`, which has each topic once.
    """
    results = {(name, number): each for name, found in altered for number, each in found.items()}
    answered: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
    for topic in sorted(request.topics, key=lambda each: image.topic(each.topic_name) is not None):
        name, known = topic.topic_name, image.topic(topic.topic_name)
        if known is None and not topic.partitions:
            continue
        topic_id = ZERO_UUID if known is None else known.topic_id
        found = answered.setdefault(
            name, AlterShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id)
        )
        for number in (each.partition_index for each in topic.partitions):
            result = results[name, number]
            found.partitions.append(
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=number,
                    error_code=result.error,
                    error_message=result.error_message,
                )
            )
    return AlterShareGroupOffsetsResponse(responses=list(answered.values()))
