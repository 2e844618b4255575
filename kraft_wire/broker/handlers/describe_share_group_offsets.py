"""DescribeShareGroupOffsets, API key 90, versions 0-1.

Behaviour:   where the share partitions of groups begin, as the share coordinators have it; all
             initialised ones if no topics are named · the leaders are asked for the ends, by which
             the lag is known (`broker/end_offsets`)
Versions:    v1 lag (KIP-1226)
Left out:    nothing
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading, arrival_of
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.end_offsets import EndOffset
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.response_budget import ResponseBudget
from kraft_wire.broker.share_persister import PersisterResult, SharePartitionKey
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.model import ZERO_UUID, LeaderEpoch, TopicPartition, Uuid
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.varint import wrap_int64

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_NOT_KNOWN: Final = -1
_ANY_LEADER: Final = LeaderEpoch(0)
_PARTITION_BYTES: Final = 30
"""Of a partition in the answer, without an error."""


class _Named(NamedTuple):
    """A topic of a group, and its partitions that are described."""

    name: str
    topic_id: Uuid
    """Zero if the topic does not exist."""
    existing: Mapping[int, object]
    numbers: Sequence[int]


_Results = Mapping[SharePartitionKey, PersisterResult]
_Ends = Mapping[TopicPartition, EndOffset]


def handle(
    broker: "Broker", context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse | Parked:
    """Describe the start offsets of share groups; an answer beyond its room ends the connection.

    Errors per group, first match wins: UNSUPPORTED_VERSION (share groups are switched off),
    NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS; both only if no topics are named. Errors per
    partition: LEADER_NOT_AVAILABLE, NETWORK_EXCEPTION (the leader does not answer), or what the
    leader answers. What the share coordinator does not know is -1 without an error.
    """
    deferred = DeferredResponse[DescribeShareGroupOffsetsResponse](
        broker.groups.env.complete, context.reply_to
    )
    groups = [
        DescribeShareGroupOffsetsResponseGroup(group_id=each.group_id) for each in request.groups
    ]
    room = ResponseBudget(broker.settings, "groups", context.api_version)
    named: list[list[_Named]] = []
    for group, answered in zip(request.groups, groups, strict=True):
        topics = _asked(broker, group)
        if isinstance(topics, Refusal):
            answered.error_code, answered.error_message = topics.error, topics.message
            topics = []
        room.take(sum(len(each.name) + _PARTITION_BYTES * len(each.numbers) for each in topics))
        named.append(topics)
    asked = {
        SharePartitionKey(group.group_id, topic.topic_id, number): TopicPartition(
            topic.name, number
        )
        for group, topics in zip(groups, named, strict=True)
        for topic in topics
        for number in topic.numbers
        if number in topic.existing
    }

    def known(results: _Results, at: ClockReading) -> None:
        started = [asked[key] for key, result in results.items() if _start(result) is not None]
        broker.share_states.end_offsets.ask(started, lambda ends: measured(results, ends))

    def measured(results: _Results, ends: _Ends) -> None:
        for group, topics in zip(groups, named, strict=True):
            found = [_topic(group.group_id, topic, results, ends) for topic in topics]
            group.topics = sorted(found, key=lambda each: each.topic_id == ZERO_UUID)
        deferred.send(DescribeShareGroupOffsetsResponse(groups=groups))

    if asked:
        wanted = dict.fromkeys(asked, _ANY_LEADER)
        broker.groups.env.share_persister().read_summary(wanted, arrival_of(context), known)
    else:
        measured({}, {})
    return deferred.result()


def _asked(
    broker: "Broker", group: DescribeShareGroupOffsetsRequestGroup
) -> list[_Named] | Refusal:
    """Return the partitions that are named, or that are initialised."""
    if not serves_share_groups(broker.image):
        return Refusal(ErrorCode.UNSUPPORTED_VERSION)  # without words, as in Kafka
    if group.topics is not None:
        numbers = {topic.topic_name: topic.partitions for topic in group.topics}
        return [_named(broker, *each) for each in numbers.items()]
    shard = broker.groups.shard_of(group.group_id)
    if not isinstance(shard, GroupShard):
        return Refusal(shard, shard.message)
    found = shard.other_groups.get(group.group_id)
    known = found.state_partitions if isinstance(found, ShareGroup) else None
    if known is None:
        return []
    topics = [
        (broker.image.topic_by_id(topic_id), each.partitions)
        for topic_id, each in known.initialized.items()
    ]
    return [_named(broker, topic.name, list(each)) for topic, each in topics if topic is not None]


def _named(broker: "Broker", name: str, numbers: Sequence[int]) -> _Named:
    topic = broker.image.topic(name)
    if topic is None:
        return _Named(name, ZERO_UUID, {}, numbers)
    return _Named(name, topic.topic_id, topic.partitions, numbers)


def _topic(
    group_id: str, topic: _Named, results: _Results, ends: _Ends
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            _partition(
                number,
                results.get(SharePartitionKey(group_id, topic.topic_id, number)),
                ends.get(TopicPartition(topic.name, number)),
            )
            for number in topic.numbers
        ],
    )


def _partition(
    number: int, result: PersisterResult | None, end: EndOffset | None
) -> DescribeShareGroupOffsetsResponsePartition:
    answer = DescribeShareGroupOffsetsResponsePartition(
        partition_index=number, start_offset=_NOT_KNOWN, lag=_NOT_KNOWN
    )
    state = None if result is None or result.error is not ErrorCode.NONE else result.state
    if state is None:
        return answer
    answer.start_offset, answer.leader_epoch = state.start_offset, state.leader_epoch
    start = _start(result)
    if start is None:
        return answer
    assert end is not None, "asked for"
    if end.error is not ErrorCode.NONE:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=number,
            error_code=end.error,
            error_message=end.error.message,
        )
    answer.lag = wrap_int64(end.offset - start)  # any client may set a start offset
    return answer


def _start(result: PersisterResult | None) -> int | None:
    """Return how many records are behind the reader, None if that is not known."""
    state = None if result is None or result.error is not ErrorCode.NONE else result.state
    if state is None or _NOT_KNOWN in (state.start_offset, state.delivery_complete_count):
        return None
    return state.start_offset + state.delivery_complete_count
