"""Committing, fetching, deleting and expiring offsets."""

from __future__ import annotations

import pytest

from kraft_wire.broker.groups.expiry import expire_offsets
from kraft_wire.broker.groups.moment import Moment
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.metadata.image import TopicImage
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.broker.groups.harness import Harness, image_of, topic_id_of
from tests.broker.groups.requests import (
    Member,
    commit_topic,
    committed,
    fetch_group,
    finish_rebalance,
)

MINUTE_MS = 60_000
WEEK_MS = 7 * 24 * 60 * MINUTE_MS


def with_topic(**settings: int) -> Harness:
    harness = Harness(**settings)
    harness.create_topic("topic", 2)
    return harness


def stable_member(harness: Harness, **fields: object) -> Member:
    member = Member(harness, **fields)  # type: ignore[arg-type]  # fields of Member
    member.join()
    harness.settle()
    finish_rebalance(member)
    return member


@pytest.mark.parametrize("version", range(2, 11))
def test_a_commit_without_a_group_is_stored_and_fetched_in_every_version(version: int) -> None:
    harness = with_topic()
    topic = commit_topic("topic", 42, metadata="note", topic_id=topic_id_of("topic"))
    response = harness.send(OffsetCommitRequest(group_id="group", topics=[topic]), version).response
    (answered,) = response.topics
    assert answered.partitions[0].error_code == ErrorCode.NONE
    assert (answered.name, answered.topic_id) == (
        ("topic", bytes(16)) if version < 10 else ("", topic_id_of("topic"))
    )
    assert committed(harness) == {("topic", 0): 42}


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


def test_unknown_topics_and_partitions_are_refused_and_the_others_committed() -> None:
    harness = with_topic()
    topics = [
        commit_topic("nowhere", 1),
        commit_topic("topic", 2, partition=1),
        commit_topic("topic", 3, partition=2),
    ]
    response = harness.send(OffsetCommitRequest(group_id="group", topics=topics), 9).response
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [
        (topic.name, partition.partition_index, partition.error_code)
        for topic in response.topics
        for partition in topic.partitions
    ] == [("nowhere", 0, unknown), ("topic", 2, unknown), ("topic", 1, ErrorCode.NONE)]
    assert committed(harness) == {("topic", 1): 2}


def test_an_unknown_topic_id_is_refused_by_commit_and_fetch() -> None:
    harness = with_topic()
    stranger = topic_id_of("stranger")
    request = OffsetCommitRequest(group_id="group", topics=[commit_topic("", 1, topic_id=stranger)])
    answered = harness.send(request, 10).response.topics[0]
    assert answered.topic_id == stranger
    assert answered.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    topic = OffsetFetchRequestTopics(topic_id=stranger, partition_indexes=[0])
    group = OffsetFetchRequestGroup(group_id="group", topics=[topic])
    response = harness.send(OffsetFetchRequest(groups=[group]), 10).response
    assert response.groups[0].topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert response.groups[0].topics[0].partitions[0].committed_offset == -1


def test_metadata_that_is_too_long_is_refused_for_its_partition_alone() -> None:
    harness = with_topic(offset_metadata_max_bytes=4)
    topics = [
        commit_topic("topic", 1, partition=0, metadata="12345"),
        commit_topic("topic", 2, partition=1, metadata="1234"),
    ]
    response = harness.send(OffsetCommitRequest(group_id="group", topics=topics), 9).response
    errors = [p.error_code for t in response.topics for p in t.partitions]
    assert errors == [ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert committed(harness) == {("topic", 1): 2}


def test_metadata_is_measured_in_java_characters() -> None:
    harness = with_topic(offset_metadata_max_bytes=4)
    topics = [
        commit_topic("topic", 1, partition=0, metadata="éééé"),
        commit_topic("topic", 2, partition=1, metadata="😀😀😀"),
    ]
    response = harness.send(OffsetCommitRequest(group_id="group", topics=topics), 9).response
    errors = [p.error_code for t in response.topics for p in t.partitions]
    assert errors == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]


@pytest.mark.parametrize(
    ("version", "error"),
    [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)],
)
def test_a_generation_of_a_group_that_does_not_exist_is_refused(
    version: int, error: ErrorCode
) -> None:
    member = Member(with_topic(), member_id="member", generation_id=3)
    assert member.commit(version=version) == error


def test_a_member_commits_in_its_generation_only() -> None:
    harness = with_topic()
    member = stable_member(harness)
    assert member.commit(offset=5) == ErrorCode.NONE
    for generation_id in (9, member.generation_id - 1):
        error = member.commit(generation_id_or_member_epoch=generation_id)
        assert error == ErrorCode.ILLEGAL_GENERATION, generation_id
    assert member.commit(member_id="stranger") == ErrorCode.UNKNOWN_MEMBER_ID
    anyone = {"generation_id_or_member_epoch": -1, "member_id": ""}
    assert member.commit(**anyone) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(harness) == {("topic", 0): 5}


def test_a_member_without_assignment_is_told_to_rebalance_instead_of_committing() -> None:
    harness = with_topic()
    member = Member(harness)
    member.join()
    harness.settle()
    member.joined()
    assert member.commit() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_commits_for_its_former_generation_while_the_next_is_prepared() -> None:
    harness = with_topic()
    member = stable_member(harness)
    other = Member(harness, client_id="other")
    other.join()
    assert member.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert member.commit(offset=8) == ErrorCode.NONE


def test_a_commit_keeps_its_member_alive() -> None:
    harness = with_topic()
    member = stable_member(harness)
    for _ in range(4):
        harness.advance(6_000)
        assert member.commit() == ErrorCode.NONE


@pytest.mark.parametrize(
    ("refusal", "error"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_commit_that_is_not_in_the_log_is_not_visible(
    refusal: ErrorCode, error: ErrorCode
) -> None:
    harness = with_topic()
    harness.store.refusals = [refusal]
    assert Member(harness).commit() == error
    assert committed(harness) == {}


def test_our_bound_on_all_memory_refuses_new_offsets_and_groups_only() -> None:
    harness = Harness(group_coordinator_memory_max_bytes=2_000)
    harness.create_topic("topic", 2)
    assert Member(harness).commit(offset=1) == ErrorCode.NONE
    assert Member(harness).commit(offset=2) == ErrorCode.NONE
    more = OffsetCommitRequest(group_id="group", topics=[commit_topic("topic", 3, partition=1)])
    response = harness.send(more, 9).response
    assert response.topics[0].partitions[0].error_code == ErrorCode.POLICY_VIOLATION
    other = Member(harness, group_id="another")
    assert other.commit(offset=1) == ErrorCode.POLICY_VIOLATION


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


def test_deleting_offsets_of_unknown_groups_topics_or_other_protocols_is_refused() -> None:
    harness = with_topic()
    assert harness.send(delete_request("nowhere"), 0).error == ErrorCode.GROUP_ID_NOT_FOUND
    assert harness.send(delete_request(""), 0).error == ErrorCode.INVALID_GROUP_ID
    Member(harness).commit()
    unknown = partition_errors(harness, delete_request(topic="nowhere"))
    assert unknown == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    stable_member(harness, group_id="connect", protocol_type="connect")
    assert harness.send(delete_request("connect"), 0).error == ErrorCode.NON_EMPTY_GROUP


def test_a_deleted_topic_takes_its_offsets_along() -> None:
    harness = with_topic()
    harness.create_topic("kept")
    member = Member(harness)
    member.commit("topic")
    member.commit("kept")
    harness.delete_topic("topic")
    harness.settle()
    assert committed(harness) == {("kept", 0): 1}


def test_a_commit_for_a_former_topic_of_the_same_name_is_not_shown_by_id() -> None:
    harness = with_topic()
    Member(harness).commit()
    shard = harness.groups.shard_of("group")
    assert isinstance(shard, GroupShard)
    harness.image = image_of({"topic": TopicImage("topic", topic_id_of("renewed"), {})})
    topic = OffsetFetchRequestTopics(topic_id=topic_id_of("renewed"), partition_indexes=[0])
    group = OffsetFetchRequestGroup(group_id="group", topics=[topic])
    response = harness.send(OffsetFetchRequest(groups=[group]), 10).response
    assert response.groups[0].topics[0].partitions[0].committed_offset == -1


def test_offsets_without_a_group_expire_a_retention_time_after_their_commit() -> None:
    harness = with_topic()
    Member(harness).commit()
    harness.advance(WEEK_MS - MINUTE_MS)
    assert committed(harness) == {("topic", 0): 1}
    harness.advance(11 * MINUTE_MS)
    assert committed(harness) == {}
    assert "group" not in harness.groups.shards()[0].groups  # type: ignore[index]  # loaded


def test_offsets_of_a_group_expire_a_retention_time_after_it_became_empty() -> None:
    harness = with_topic(offsets_retention_minutes=60)
    member = stable_member(harness, session_timeout_ms=1_800_000)
    member.commit()
    harness.advance(50 * MINUTE_MS // 2)
    member.heartbeat()
    harness.advance(50 * MINUTE_MS // 2)
    member.leave()
    harness.advance(59 * MINUTE_MS)
    assert committed(harness) == {("topic", 0): 1}
    harness.advance(12 * MINUTE_MS)
    assert committed(harness) == {}


def test_offsets_that_members_read_never_expire_and_others_do() -> None:
    harness = with_topic(offsets_retention_minutes=60)
    harness.create_topic("another")
    member = stable_member(harness, session_timeout_ms=1_800_000)
    member.commit("topic")
    member.commit("another")
    for _ in range(8):
        harness.advance(10 * MINUTE_MS)
        member.heartbeat()
    assert committed(harness) == {("topic", 0): 1}


def test_a_retention_time_chosen_by_an_old_client_is_kept() -> None:
    harness = with_topic()
    Member(harness).commit(version=4, retention_time_ms=5 * MINUTE_MS)
    assert committed(harness.restart()) == {("topic", 0): 1}
    harness.advance(20 * MINUTE_MS)
    assert committed(harness) == {}


def test_an_absurd_retention_time_is_stored_as_never() -> None:
    harness = with_topic()
    assert Member(harness).commit(version=2, retention_time_ms=(1 << 63) - 1) == ErrorCode.NONE


def test_expiry_that_cannot_be_stored_is_tried_again() -> None:
    harness = with_topic()
    Member(harness).commit()
    (shard,) = harness.groups.shards()  # type: ignore[misc]  # loaded
    harness.store.refusals = [ErrorCode.KAFKA_STORAGE_ERROR]
    later = Moment(harness.now_ms, harness.wall_ms + WEEK_MS)
    assert expire_offsets(shard, later) == 0
    assert committed(harness) == {("topic", 0): 1}
    assert expire_offsets(shard, later) == 1
