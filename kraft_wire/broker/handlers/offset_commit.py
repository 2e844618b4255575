"""OffsetCommit, API key 8, versions 2-10.

Behaviour:   the response is sent when the offsets are in `__consumer_offsets`; partitions that do
             not exist, or whose metadata is too long, have an error each and the others are
             committed; any client may commit to a group without members (generation -1)
Versions:    v2-v4 retention time (removed by KIP-211) · v6 leader epoch (KIP-320) · v7 static
             members (KIP-345) · v9 GROUP_ID_NOT_FOUND (KIP-848) · v10 topic ids (KIP-848)
Left out:    commits of members of KIP-848 groups
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.offsets.answer import CommitAnswer
from kraft_wire.broker.groups.offsets.commit import commit_offsets, failed_topics
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.model import ZERO_UUID
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_TOPIC_IDS_FROM: Final = 10


def handle(
    broker: "Broker", context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Parked:
    """Commit offsets for a group; parked until the ISR has them, flushed if that is promised.

    Errors per partition, first match wins: UNKNOWN_TOPIC_ID (v10+), UNKNOWN_TOPIC_OR_PARTITION,
    NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those of
    `groups.offsets.commit.commit_offsets`.
    """
    answer = CommitAnswer(by_id=context.api_version >= _TOPIC_IDS_FROM)
    known = [
        topic
        for topic in (_existing(broker, requested, answer) for requested in request.topics)
        if topic.partitions
    ]
    if not known:
        return OffsetCommitResponse(topics=answer.topics)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return OffsetCommitResponse(topics=answer.with_topics(failed_topics(known, shard)))
    committed = commit_offsets(shard, request, known, context.api_version, arrival_of(context))
    if committed.safe_at is None:
        return OffsetCommitResponse(topics=answer.with_topics(committed.topics))

    def answered(errors: Mapping[int, ErrorCode]) -> OffsetCommitResponse:
        topics = committed.topics
        for error in errors.values():
            topics = failed_topics(known, error)
        return OffsetCommitResponse(topics=answer.with_topics(topics))

    return shard.env.commits.answer_when_committed(
        context, {shard.log.partition: committed.safe_at}, answered
    )


def _existing(
    broker: "Broker", requested: OffsetCommitRequestTopic, answer: CommitAnswer
) -> OffsetCommitRequestTopic:
    """Return the topic with name, id, and only the partitions that exist; answer the others."""
    image = broker.image
    topic = image.topic_by_id(requested.topic_id) if answer.by_id else image.topic(requested.name)
    if topic is None:
        unknown = (
            ErrorCode.UNKNOWN_TOPIC_ID if answer.by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        answer.refuse(requested, unknown)
        return OffsetCommitRequestTopic()
    known = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id)
    missing = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id)
    for partition in requested.partitions:
        chosen = known if partition.partition_index in topic.partitions else missing
        chosen.partitions.append(partition)
    if missing.partitions:
        answer.refuse(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert known.topic_id != ZERO_UUID, topic.name
    return known
