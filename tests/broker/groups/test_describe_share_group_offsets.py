"""DescribeShareGroupOffsets: where share partitions begin, and how far they are behind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kraft_wire.broker.end_offsets import EndOffset, EndOffsetsCallback
from kraft_wire.broker.share_persister import (
    PersisterResult,
    SharePartitionState,
)
from kraft_wire.model import ZERO_UUID, TopicPartition
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import UnencodableMessage
from tests.broker.groups.harness import Harness, Reply, topic_id_of
from tests.broker.groups.ready_groups import begin_loading, lose_coordination
from tests.broker.groups.share.ready_share_groups import key
from tests.broker.groups.test_share_group_heartbeat import (
    sharing,
    with_topic,
)


def describing(topics: dict[str, list[int]] | None) -> DescribeShareGroupOffsetsRequest:
    named = None
    if topics is not None:
        named = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=numbers)
            for name, numbers in topics.items()
        ]
    group = DescribeShareGroupOffsetsRequestGroup(group_id="group", topics=named)
    return DescribeShareGroupOffsetsRequest(groups=[group])


def described(reply: Reply) -> dict[str, list[tuple[int, int, int, int]]]:
    (group,) = reply.response.groups
    assert group.error_code == ErrorCode.NONE
    return {
        topic.topic_name: [
            (each.partition_index, each.start_offset, each.leader_epoch, each.lag)
            for each in topic.partitions
        ]
        for topic in group.topics
    }


class Leaders:
    """Whoever is asked for ends; answers when it is told to."""

    def __init__(self, harness: Harness) -> None:
        self.asked: list[tuple[set[TopicPartition], EndOffsetsCallback]] = []
        harness.share_states = SimpleNamespace(end_offsets=self)

    def ask(self, partitions: Iterable[TopicPartition], then: EndOffsetsCallback) -> None:
        self.asked.append((set(partitions), then))

    def answer(self, *ends: EndOffset) -> set[TopicPartition]:
        """Answer the oldest question by partition; return what it was about."""
        asked, then = self.asked.pop(0)
        then(dict(zip(sorted(asked), ends, strict=True)))
        return asked


def test_errors_in_order() -> None:
    """932-FEAT-02, 932-ADMIN-03, 4.3.1's `KafkaApis.describeShareGroupAllOffsetsForGroup`."""
    harness = Harness()
    lose_coordination(harness)
    harness.image = replace(harness.image, finalized_features={})

    def error() -> tuple[int, str | None]:
        (group,) = harness.send(describing(None), 1).response.groups
        return group.error_code, group.error_message

    assert error() == (ErrorCode.UNSUPPORTED_VERSION, None)
    harness.image = replace(harness.image, finalized_features={"share.version": 1})
    assert error() == (ErrorCode.NOT_COORDINATOR, "This is not the correct coordinator.")
    begin_loading(harness)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert error() == (loading, loading.message)
    harness.settle()
    assert error() == (ErrorCode.NONE, None)


def test_start_offsets_and_lag_are_described() -> None:
    """932-ADMIN-03, 932-ADMIN-04: records behind the start offset that are not complete."""
    harness = sharing("member", partitions=2)
    leaders = Leaders(harness)
    reply = harness.send(describing(None), 1)
    call = harness.share_persister.take()
    assert (call.verb, sorted(call.partitions)) == ("read_summary", [key(0), key(1)])
    states = [SharePartitionState(2, 3, 40, 10), SharePartitionState(2, 3, -1, -1)]
    call.answer_each(lambda each: PersisterResult(ErrorCode.NONE, None, states[each.partition]))
    assert reply.is_parked
    assert leaders.answer(EndOffset(100)) == {TopicPartition("topic", 0)}
    assert described(reply) == {"topic": [(0, 40, 3, 50), (1, -1, 3, -1)]}


def test_groups_that_are_named_often_have_a_bounded_answer() -> None:
    """A small request would otherwise make an answer of any size."""
    harness = sharing("member", partitions=2)
    Leaders(harness)
    room_bytes = 2 * (len("topic") + 2 * 30)
    harness.settings = replace(harness.settings, connection_write_buffer_max_bytes=room_bytes)
    request = describing(None)
    request.groups *= 2
    assert harness.send(request, 1).is_parked
    request.groups *= 2
    with pytest.raises(UnencodableMessage, match="larger than connection"):
        harness.send(request, 1)


def test_a_count_that_is_not_known_has_no_lag() -> None:
    """932-ADMIN-04."""
    harness = sharing("member", partitions=1)
    leaders = Leaders(harness)
    reply = harness.send(describing({"topic": [0]}), 1)
    harness.share_persister.take().answer(state=SharePartitionState(2, 3, 40, -1))
    assert leaders.answer() == set()
    assert described(reply) == {"topic": [(0, 40, 3, -1)]}


def test_a_lag_that_no_number_can_have_overflows() -> None:
    """As Java's: anybody may set a start offset by AlterShareGroupOffsets, however far below 0."""
    harness = sharing("member", partitions=1)
    leaders = Leaders(harness)
    reply = harness.send(describing({"topic": [0]}), 1)
    harness.share_persister.take().answer(state=SharePartitionState(2, 3, -(2**63), 0))
    leaders.answer(EndOffset(20))
    assert described(reply) == {"topic": [(0, -(2**63), 3, -(2**63) + 20)]}


def test_an_error_of_a_leader_is_that_of_its_partition() -> None:
    """932-ADMIN-04: in Kafka's words, and without what the share coordinator knows."""
    harness = sharing("member", partitions=2)
    leaders = Leaders(harness)
    reply = harness.send(describing(None), 1)
    harness.share_persister.take().answer(state=SharePartitionState(2, 3, 40, 10))
    harness.delete_topic("topic")
    leaders.answer(EndOffset(-1, ErrorCode.NETWORK_EXCEPTION), EndOffset(51))
    assert described(reply) == {"topic": [(0, 0, 0, -1), (1, 40, 3, 1)]}
    (topic,) = reply.response.groups[0].topics
    assert topic.topic_id == topic_id_of("topic")
    assert [(each.error_code, each.error_message) for each in topic.partitions] == [
        (ErrorCode.NETWORK_EXCEPTION, "The server disconnected before a response was received."),
        (ErrorCode.NONE, None),
    ]


def test_what_is_not_there_has_no_offset_and_no_error() -> None:
    """932-ADMIN-03: an unknown topic, a partition that does not exist, an error."""
    harness = with_topic(1)
    leaders = Leaders(harness)
    reply = harness.send(describing({"missing": [0], "topic": [0, 9]}), 1)
    call = harness.share_persister.take()
    assert [*call.partitions] == [key(0)]
    call.answer(error=ErrorCode.NOT_COORDINATOR)
    assert leaders.answer() == set()
    assert described(reply) == {
        "topic": [(0, -1, 0, -1), (9, -1, 0, -1)],
        "missing": [(0, -1, 0, -1)],
    }
    (group,) = reply.response.groups
    assert [topic.topic_id for topic in group.topics] == [topic_id_of("topic"), ZERO_UUID]
    assert described(harness.send(describing(None), 1)) == {}
