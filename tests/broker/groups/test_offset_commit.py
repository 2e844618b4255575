"""OffsetCommit: who may commit what, and when it is visible."""

from __future__ import annotations

import pytest

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.groups.harness import topic_id_of
from tests.broker.groups.ready_groups import (
    begin_loading,
    lose_coordination,
    stable_group,
    stable_member,
    with_topic,
)
from tests.broker.groups.requests import (
    Member,
    commit_topic,
    committed,
)


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


def test_a_topic_without_partitions_is_answered_if_it_does_not_exist() -> None:
    """4.3.1's `KafkaApis.handleOffsetCommitRequest`, `OffsetCommitResponse.Builder`."""
    topics = [OffsetCommitRequestTopic(name=name) for name in ("topic", "nowhere")]
    request = OffsetCommitRequest(group_id="group", topics=topics)
    response = with_topic().send(request, 9).response
    assert [(topic.name, topic.partitions) for topic in response.topics] == [("nowhere", [])]


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


def test_errors_in_order() -> None:
    harness = with_topic()
    nobody = Member(harness, member_id="nobody", generation_id=7)

    def error(topic_id: Uuid, partition: int) -> int:
        topic = commit_topic("", 1, partition, topic_id=topic_id)
        return nobody.commit(version=10, topics=[topic])

    lose_coordination(harness)
    assert error(topic_id_of("nowhere"), 9) == ErrorCode.UNKNOWN_TOPIC_ID
    assert error(topic_id_of("topic"), 9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error(topic_id_of("topic"), 0) == ErrorCode.NOT_COORDINATOR
    begin_loading(harness)
    assert error(topic_id_of("topic"), 0) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert error(topic_id_of("topic"), 0) == ErrorCode.GROUP_ID_NOT_FOUND
    stable_member(harness)
    assert error(topic_id_of("topic"), 0) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_counts_as_a_heartbeat_also_while_the_group_gathers_its_members() -> None:
    """`validateOffsetCommit` of release 4.3.1: in a stable group and in the join phase."""
    harness = with_topic()
    _, members = stable_group(harness, 2)
    committing, silent = members
    Member(harness, client_id="newcomer").join()
    assert committing.heartbeat() == silent.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    harness.advance(8_000)
    assert committing.commit() == ErrorCode.NONE
    harness.advance(4_000)
    assert silent.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert committing.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
