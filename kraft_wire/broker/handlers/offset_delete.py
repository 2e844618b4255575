"""OffsetDelete, API key 47, version 0.

Behaviour:   deletes committed offsets of topics that no member of the group reads (KIP-496); a
             partition without an offset is not an error
Versions:    v0
Left out:    nothing
"""

from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.offsets.delete import delete_offsets
from kraft_wire.broker.groups.offsets.table import OffsetKey
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Parked:
    """Delete committed offsets; parked until the ISR knows it.

    Errors, first match wins: INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
    GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP; per partition UNKNOWN_TOPIC_OR_PARTITION,
    GROUP_SUBSCRIBED_TO_TOPIC.
    """
    if not request.group_id:
        return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return OffsetDeleteResponse(error_code=shard)
    answers = dict.fromkeys(_asked_for(request), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    known = [key for key in answers if _exists(broker, key)]
    deleted = delete_offsets(shard, request.group_id, known, arrival_of(context))
    if deleted.error is not ErrorCode.NONE:
        return OffsetDeleteResponse(error_code=deleted.error)
    answers.update(deleted.answers)
    missing = {each.name for each in request.topics if broker.image.topic(each.name) is None}
    response = OffsetDeleteResponse(topics=_in_order(request, known, answers, missing))
    if deleted.safe_at is None:
        return response

    def answered(errors: Mapping[int, ErrorCode]) -> OffsetDeleteResponse:
        for error in errors.values():
            return OffsetDeleteResponse(error_code=error)
        return response

    return shard.env.commits.answer_when_committed(
        context, {shard.log.partition: deleted.safe_at}, answered
    )


def _asked_for(request: OffsetDeleteRequest) -> list[OffsetKey]:
    return [
        OffsetKey(request.group_id, topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]


def _exists(broker: "Broker", key: OffsetKey) -> bool:
    topic = broker.image.topic(key.topic)
    return topic is not None and key.partition in topic.partitions


def _in_order(
    request: OffsetDeleteRequest,
    known: list[OffsetKey],
    answers: dict[OffsetKey, ErrorCode],
    missing: Container[str],
) -> list[OffsetDeleteResponseTopic]:
    """Return the answers in Kafka's order: first the places that do not exist.

    As in `KafkaApis.handleOffsetDeleteRequest`, a missing topic is answered without partitions too.
    """
    existing = set(known)
    refused = _topics(request, answers, lambda key: key not in existing, missing)
    served = _topics(request, answers, lambda key: key in existing, ())
    if not refused:
        return served
    by_name: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in (*refused, *served):
        first = by_name.setdefault(topic.name, topic)
        if first is not topic:
            first.partitions.extend(topic.partitions)
    return list(by_name.values())


def _topics(
    request: OffsetDeleteRequest,
    answers: dict[OffsetKey, ErrorCode],
    wanted: Callable[[OffsetKey], bool],
    always: Container[str],
) -> list[OffsetDeleteResponseTopic]:
    """Answer for some of the places, and topics always, in the order of the request."""
    topics = []
    for topic in request.topics:
        indexes = (partition.partition_index for partition in topic.partitions)
        keys = [OffsetKey(request.group_id, topic.name, index) for index in indexes]
        partitions = [
            OffsetDeleteResponsePartition(partition_index=key.partition, error_code=answers[key])
            for key in keys
            if wanted(key)
        ]
        if partitions or topic.name in always:
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    return topics
