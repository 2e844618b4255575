"""DescribeShareGroupOffsets, API key 90, versions 0-1.

Behaviour:   where the share partitions of groups begin, as the share coordinators have it; all
             initialised ones if no topics are named
Versions:    v1 lag (KIP-1226)
Left out:    the lag of partitions that another broker leads, which is -1
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading, arrival_of
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.late_answer import LateAnswer
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.model import ZERO_UUID, LeaderEpoch
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_NOT_KNOWN: Final = -1
_ANY_LEADER: Final = LeaderEpoch(0)

_Topics = dict[str, Sequence[int]]


def handle(
    broker: "Broker", context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse | Parked:
    """Describe the start offsets of share groups.

    Errors per group, first match wins: UNSUPPORTED_VERSION (share groups are switched off),
    NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS; both only if no topics are named. What is not
    known is -1 without an error.
    """
    answer: LateAnswer[DescribeShareGroupOffsetsResponse] = LateAnswer(
        broker.groups.env.complete, context.reply_to
    )
    groups = [
        DescribeShareGroupOffsetsResponseGroup(group_id=each.group_id) for each in request.groups
    ]
    asked: dict[SharePartitionKey, LeaderEpoch] = {}
    named: list[_Topics] = []
    for group, answered in zip(request.groups, groups, strict=True):
        topics = _asked(broker, group)
        if isinstance(topics, ErrorCode):
            answered.error_code = topics
            topics = {}
        named.append(topics)
        asked.update(dict.fromkeys(_keys(broker, group.group_id, topics), _ANY_LEADER))

    def known(results: Mapping[SharePartitionKey, PersisterResult], at: ClockReading) -> None:
        for group, topics in zip(groups, named, strict=True):
            found = [_topic(broker, group.group_id, name, topics[name], results) for name in topics]
            group.topics = sorted(found, key=lambda each: each.topic_id == ZERO_UUID)
        answer.give(DescribeShareGroupOffsetsResponse(groups=groups))

    if asked:
        broker.groups.env.share_persister().read_summary(asked, arrival_of(context), known)
    else:
        known({}, arrival_of(context))
    return answer.now_or_parked()


def _asked(broker: "Broker", group: DescribeShareGroupOffsetsRequestGroup) -> _Topics | ErrorCode:
    """Return the partitions that are named, or that are initialised."""
    if not serves_share_groups(broker.image):
        return ErrorCode.UNSUPPORTED_VERSION
    if group.topics is not None:
        return {topic.topic_name: topic.partitions for topic in group.topics}
    shard = broker.groups.shard_of(group.group_id)
    if not isinstance(shard, GroupShard):
        return shard
    found = shard.other_groups.get(group.group_id)
    known = found.share_partitions if isinstance(found, ShareGroup) else None
    if known is None:
        return {}
    topics = [
        (broker.image.topic_by_id(topic_id), each.partitions)
        for topic_id, each in known.initialized.items()
    ]
    return {topic.name: list(numbers) for topic, numbers in topics if topic is not None}


def _keys(broker: "Broker", group_id: str, topics: _Topics) -> list[SharePartitionKey]:
    """Return the share partitions whose topic partitions exist."""
    keys = []
    for name, numbers in topics.items():
        topic = broker.image.topic(name)
        if topic is not None:
            keys += [
                SharePartitionKey(group_id, topic.topic_id, number)
                for number in numbers
                if number in topic.partitions
            ]
    return keys


def _topic(
    broker: "Broker",
    group_id: str,
    name: str,
    numbers: Sequence[int],
    results: Mapping[SharePartitionKey, PersisterResult],
) -> DescribeShareGroupOffsetsResponseTopic:
    topic = broker.image.topic(name)
    topic_id = ZERO_UUID if topic is None else topic.topic_id
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id,
        partitions=[
            _partition(
                broker, name, number, results.get(SharePartitionKey(group_id, topic_id, number))
            )
            for number in numbers
        ],
    )


def _partition(
    broker: "Broker", name: str, number: int, result: PersisterResult | None
) -> DescribeShareGroupOffsetsResponsePartition:
    answer = DescribeShareGroupOffsetsResponsePartition(
        partition_index=number, start_offset=_NOT_KNOWN, lag=_NOT_KNOWN
    )
    state = None if result is None or result.error is not ErrorCode.NONE else result.state
    if state is None:
        return answer
    answer.start_offset, answer.leader_epoch = state.start_offset, state.leader_epoch
    partition = broker.partition(name, number)
    is_led = partition is not None and partition.is_leader
    if is_led and _NOT_KNOWN not in (state.start_offset, state.delivery_complete_count):
        assert partition is not None, name
        done = state.start_offset + state.delivery_complete_count
        answer.lag = partition.high_watermark - done
    return answer
