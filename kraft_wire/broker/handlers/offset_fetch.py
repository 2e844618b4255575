"""OffsetFetch, API key 9, versions 1-10.

Behaviour:   returns -1 for partitions without a committed offset, also for groups and topics that
             do not exist; a null list of topics means all committed offsets of the group
Versions:    v2 error of the whole response · v5 leader epoch (KIP-320) · v7 require stable
             (KIP-447) · v8 several groups (KIP-709) · v9 member id and epoch (KIP-848) · v10 topic
             ids
Left out:    nothing
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.offset_checks import check_fetch
from kraft_wire.broker.groups.offsets.fetch import fetch_all_offsets, fetch_offsets
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.offset_checks import check_streams_fetch
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["failed_topic", "handle"]

_TOP_LEVEL_ERROR_FROM: Final = 2
_SEVERAL_GROUPS_FROM: Final = 8
_TOPIC_IDS_FROM: Final = 10
_FLAT_BYTES: Final = 64
"""Of a group and of each partition, beside the metadata."""


def handle(
    broker: "Broker", context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Return committed offsets; an answer beyond its room ends the connection.

    Errors per group, first match wins: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS (in every
    partition before v2), UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH (members of consumer groups, v9+);
    per partition UNKNOWN_TOPIC_ID (v10+), UNSTABLE_OFFSET_COMMIT.
    """
    version = context.api_version
    is_of_one = version < _SEVERAL_GROUPS_FROM
    room = ResponseBudget(broker.settings, "topics" if is_of_one else "groups", version)
    answers = []
    for group in [_only_group(request)] if is_of_one else request.groups:
        answer = _fetch(broker, group, version, request.require_stable)
        room.take(_size_bytes(answer))
        answers.append(answer)
    if not is_of_one:
        return OffsetFetchResponse(groups=answers)
    (answer,) = answers
    return OffsetFetchResponse(error_code=answer.error_code, topics=_before_v8(answer))


def _size_bytes(answer: OffsetFetchResponseGroup) -> int:
    """Return the approximate size of a group in the answer."""
    return _FLAT_BYTES + sum(
        _FLAT_BYTES + len(partition.metadata or "")
        for topic in answer.topics
        for partition in topic.partitions
    )


def _fetch(
    broker: "Broker", group: OffsetFetchRequestGroup, version: int, require_stable: bool
) -> OffsetFetchResponseGroup:
    answer = OffsetFetchResponseGroup(group_id=group.group_id)
    shard = broker.groups.shard_of(group.group_id)
    if not isinstance(shard, GroupShard):
        return _failed(answer, group, shard, version)
    other = shard.other_groups.get(group.group_id)
    if isinstance(other, ConsumerGroup):
        error = check_fetch(other, group.member_id, group.member_epoch)
    elif isinstance(other, StreamsGroup):
        error = check_streams_fetch(other, group.member_id, group.member_epoch)
    else:
        error = ErrorCode.NONE
    if error is not ErrorCode.NONE:
        return _failed(answer, group, error, version)
    if group.topics is None:
        fetched = fetch_all_offsets(shard, group.group_id, require_stable=require_stable)
        answer.topics = _with_ids(broker, fetched) if version >= _TOPIC_IDS_FROM else fetched
        return answer
    known = group.topics
    unknown: list[OffsetFetchRequestTopics] = []
    if version >= _TOPIC_IDS_FROM:
        known, unknown = _named(broker, group.topics)
    answer.topics = fetch_offsets(shard, group.group_id, known, require_stable=require_stable)
    answer.topics += [failed_topic(topic, ErrorCode.UNKNOWN_TOPIC_ID) for topic in unknown]
    return answer


def _named(
    broker: "Broker", topics: list[OffsetFetchRequestTopics]
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchRequestTopics]]:
    """Give the topics the names that their ids have now; those without one are the second list."""
    known: list[OffsetFetchRequestTopics] = []
    unknown: list[OffsetFetchRequestTopics] = []
    for topic in topics:
        name = broker.topic_name(topic.topic_id)
        if name is None:
            unknown.append(topic)
        else:
            topic.name = name
            known.append(topic)
    return known, unknown


def _with_ids(
    broker: "Broker", topics: list[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """Set the topics' ids; offsets of deleted topics have none and are left out."""
    found = []
    for topic in topics:
        view = broker.image.topic(topic.name)
        if view is not None:
            topic.topic_id = view.topic_id
            found.append(topic)
    return found


def _failed(
    answer: OffsetFetchResponseGroup,
    group: OffsetFetchRequestGroup,
    error: ErrorCode,
    version: int,
) -> OffsetFetchResponseGroup:
    if version >= _TOP_LEVEL_ERROR_FROM:
        answer.error_code = error
    else:
        answer.topics = [failed_topic(topic, error) for topic in group.topics or []]
    return answer


def failed_topic(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    """Return a topic's answer with one error for all of its partitions."""
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=partition, committed_offset=-1, metadata="", error_code=error
            )
            for partition in topic.partition_indexes
        ],
    )


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """Return the one group of a request before v8 in the form of later ones."""
    if request.topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    topics = [
        OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
        for topic in request.topics
    ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _before_v8(answer: OffsetFetchResponseGroup) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in answer.topics
    ]
