"""OffsetFetch: some offsets, all of a group, and several groups."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from tests.broker.groups.harness import topic_id_of
from tests.broker.groups.ready_groups import begin_loading, lose_coordination, with_topic
from tests.broker.groups.requests import (
    Member,
    fetch_group,
)


@pytest.mark.parametrize("version", range(1, 11))
def test_a_fetch_answers_minus_one_for_what_was_never_committed(version: int) -> None:
    harness = with_topic()
    Member(harness).commit(offset=7, generation_id_or_member_epoch=-1)
    asked = [0, 1]
    if version < 8:
        topics = [OffsetFetchRequestTopic(name="topic", partition_indexes=asked)]
        request = OffsetFetchRequest(group_id="group", topics=topics)
        fetched = harness.send(request, version).response.topics[0]
    else:
        topic = OffsetFetchRequestTopics(
            name="topic", topic_id=topic_id_of("topic"), partition_indexes=asked
        )
        group = OffsetFetchRequestGroup(group_id="group", topics=[topic])
        response = harness.send(OffsetFetchRequest(groups=[group]), version).response
        fetched = response.groups[0].topics[0]
    offsets = [(p.partition_index, p.committed_offset, p.metadata) for p in fetched.partitions]
    assert offsets == [(0, 7, ""), (1, -1, "")]


@pytest.mark.parametrize("version", range(2, 11))
def test_a_fetch_of_everything_for_an_unknown_group_is_empty_and_no_error(version: int) -> None:
    harness = with_topic()
    if version < 8:
        response = harness.send(
            OffsetFetchRequest(group_id="nowhere", topics=None), version
        ).response
        assert (response.error_code, response.topics) == (ErrorCode.NONE, [])
    else:
        response = harness.send(fetch_group("nowhere"), version).response
        assert (response.groups[0].error_code, response.groups[0].topics) == (ErrorCode.NONE, [])


def test_a_fetch_of_everything_names_topics_by_id_and_leaves_out_those_that_are_gone() -> None:
    harness = with_topic()
    harness.create_topic("gone")
    for topic in ("topic", "gone"):
        Member(harness).commit(topic)
    harness.image = harness.image_without("gone")
    response = harness.send(fetch_group("group"), 10).response
    assert [topic.topic_id for topic in response.groups[0].topics] == [topic_id_of("topic")]


def test_several_groups_are_fetched_at_once() -> None:
    harness = with_topic()
    for n, group in enumerate(("a", "b")):
        Member(harness, group_id=group).commit(offset=n, generation_id_or_member_epoch=-1)
    groups = [fetch_group(name).groups[0] for name in ("a", "b", "c")]
    response = harness.send(OffsetFetchRequest(groups=groups), 8).response
    assert [
        [p.committed_offset for t in g.topics for p in t.partitions] for g in response.groups
    ] == [
        [0],
        [1],
        [],
    ]


def test_errors_in_order() -> None:
    harness = with_topic()
    topic = OffsetFetchRequestTopics(topic_id=topic_id_of("nowhere"), partition_indexes=[0])
    group = OffsetFetchRequestGroup(group_id="group", topics=[topic])

    def answer() -> OffsetFetchResponseGroup:
        response = harness.send(OffsetFetchRequest(groups=[group]), 10).response
        found: OffsetFetchResponseGroup = response.groups[0]
        return found

    lose_coordination(harness)
    assert answer().error_code == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert answer().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    join = ConsumerGroupHeartbeatRequest(
        group_id="group",
        member_id="member",
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=[],
        topic_partitions=[],
    )
    assert harness.send(join, 1).error == ErrorCode.NONE
    group.member_id, group.member_epoch = "nobody", 7
    assert answer().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    group.member_id = "member"
    assert answer().error_code == ErrorCode.STALE_MEMBER_EPOCH
    group.member_epoch = 1
    assert answer().error_code == ErrorCode.NONE
    (partition,) = answer().topics[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID
