"""OffsetDelete: offsets that no member reads."""

from __future__ import annotations

from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.broker.groups.harness import Harness
from tests.broker.groups.ready_groups import (
    begin_loading,
    lose_coordination,
    stable_member,
    with_topic,
)
from tests.broker.groups.requests import (
    Member,
    committed,
)
from tests.broker.groups.test_streams_group_heartbeat import joining


def delete_request(group_id: str = "group", topic: str = "topic") -> OffsetDeleteRequest:
    partitions = [OffsetDeleteRequestPartition(partition_index=n) for n in range(2)]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    return OffsetDeleteRequest(group_id=group_id, topics=topics)


def partition_errors(harness: Harness, request: OffsetDeleteRequest) -> list[int]:
    response = harness.send(request, 0).response
    assert response.error_code == ErrorCode.NONE
    return [p.error_code for t in response.topics for p in t.partitions]


def test_offsets_of_an_empty_group_are_deleted() -> None:
    harness = with_topic()
    Member(harness).commit()
    assert partition_errors(harness, delete_request()) == [ErrorCode.NONE] * 2
    assert committed(harness) == {}
    assert committed(harness.restart()) == {}


def test_offsets_of_a_topic_that_a_member_reads_are_kept() -> None:
    harness = with_topic()
    harness.create_topic("another", 2)
    member = stable_member(harness)
    member.commit()
    member.commit("another")
    assert partition_errors(harness, delete_request()) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * 2
    assert partition_errors(harness, delete_request(topic="another")) == [ErrorCode.NONE] * 2
    assert committed(harness) == {("topic", 0): 1}


def test_offsets_of_a_topic_that_a_streams_member_reads_are_kept() -> None:
    """A streams group tells what it reads, as in 4.3.1; classic members may not."""
    harness = with_topic()
    harness.create_topic("another", 2)
    Member(harness).commit()
    assert harness.send(joining(), 0).error == ErrorCode.NONE
    assert partition_errors(harness, delete_request()) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * 2
    assert partition_errors(harness, delete_request(topic="another")) == [ErrorCode.NONE] * 2
    assert committed(harness) == {("topic", 0): 1}


def test_deleting_offsets_of_unknown_groups_topics_or_other_protocols_is_refused() -> None:
    harness = with_topic()
    assert harness.send(delete_request("nowhere"), 0).error == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.send(delete_request(""), 0).error == ErrorCode.INVALID_GROUP_ID
    Member(harness).commit()
    unknown = partition_errors(harness, delete_request(topic="nowhere"))
    assert unknown == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    stable_member(harness, group_id="connect", protocol_type="connect")
    assert harness.send(delete_request("connect"), 0).error == ErrorCode.NON_EMPTY_GROUP


def test_a_topic_with_partitions_that_do_not_exist_is_answered_once_those_first() -> None:
    """As 4.3.1, which checks the places before it asks the coordinator."""
    harness = with_topic()
    harness.create_topic("another", 2)
    Member(harness).commit()
    topics = [
        OffsetDeleteRequestTopic(
            name=name,
            partitions=[OffsetDeleteRequestPartition(partition_index=at) for at in (0, 7, 1)],
        )
        for name in ("topic", "nowhere", "another")
    ]
    response = harness.send(OffsetDeleteRequest(group_id="group", topics=topics), 0).response
    unknown, none = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE
    known = [(7, unknown), (0, none), (1, none)]
    assert [
        (topic.name, [(each.partition_index, each.error_code) for each in topic.partitions])
        for topic in response.topics
    ] == [("topic", known), ("nowhere", [(at, unknown) for at in (0, 7, 1)]), ("another", known)]


def test_a_missing_topic_is_answered_without_partitions_too_and_another_is_not() -> None:
    """`KafkaApis.handleOffsetDeleteRequest` of 4.3.1."""
    harness = with_topic()
    Member(harness).commit()
    request = OffsetDeleteRequest(
        group_id="group",
        topics=[OffsetDeleteRequestTopic(name=name) for name in ("topic", "missing")],
    )
    topics = harness.send(request, 0).response.topics
    assert [(each.name, each.partitions) for each in topics] == [("missing", [])]


def test_errors_in_order() -> None:
    harness = with_topic()

    def error(group_id: str = "group") -> ErrorCode:
        request = delete_request(group_id, "nowhere")
        found: ErrorCode = harness.send(request, 0).error
        return found

    lose_coordination(harness)
    assert error("") == ErrorCode.INVALID_GROUP_ID
    assert error() == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert error() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert error() == ErrorCode.GROUP_ID_NOT_FOUND
    member = stable_member(harness, protocol_type="connect")
    assert error() == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    Member(harness, group_id="simple").commit()
    assert (
        partition_errors(harness, delete_request("simple", "nowhere"))
        == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    )
    stable_member(harness, group_id="reading")
    subscribed = partition_errors(harness, delete_request("reading"))
    assert subscribed == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * 2
