"""Expiry of committed offsets, what a deleted topic takes along, and the bound on their memory."""

from __future__ import annotations

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import TransactionalWrite
from kraft_wire.broker.groups.classic.group import GroupState
from kraft_wire.broker.groups.offsets.commit import commit_offsets
from kraft_wire.broker.groups.offsets.expiry import expire_offsets
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.metadata.image import TopicImage
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.groups.harness import Harness, image_of, topic_id_of
from tests.broker.groups.ready_groups import stable_member, with_topic
from tests.broker.groups.requests import (
    Member,
    commit_topic,
    committed,
    finish_rebalance,
)

MINUTE_MS = 60_000

WEEK_MS = 7 * 24 * 60 * MINUTE_MS


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
    repeated = commit_topic("topic", 4)
    repeated.partitions *= 3
    again = OffsetCommitRequest(group_id="group", topics=[repeated])
    errors = [each.error_code for each in harness.send(again, 9).response.topics[0].partitions]
    assert errors == [ErrorCode.NONE, *[ErrorCode.POLICY_VIOLATION] * 2], "one replaces, two add"


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


def test_nothing_expires_while_members_gather_who_may_subscribe_to_it() -> None:
    harness = with_topic()
    harness.create_topic("another")
    member = stable_member(harness, session_timeout_ms=1_800_000)
    member.commit("another")
    (shard,) = harness.groups.shards()  # type: ignore[misc]  # loaded
    later = ClockReading(harness.now_ms, harness.wall_ms + WEEK_MS)
    newcomer = Member(harness)
    newcomer.join()
    assert shard.groups["group"].is_in(GroupState.PREPARING_REBALANCE)
    assert expire_offsets(shard, later) == 0
    member.join()
    finish_rebalance(member, newcomer)
    assert shard.groups["group"].is_in(GroupState.STABLE)
    assert expire_offsets(shard, later) == 1


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
    later = ClockReading(harness.now_ms, harness.wall_ms + WEEK_MS)
    assert expire_offsets(shard, later) == 0
    assert committed(harness) == {("topic", 0): 1}
    assert expire_offsets(shard, later) == 1


def loaded(harness: Harness) -> GroupShard:
    (shard,) = harness.groups.shards()  # type: ignore[misc]  # loaded
    assert isinstance(shard, GroupShard)
    return shard


def expired_at(harness: Harness, wall_ms: int) -> int:
    return expire_offsets(loaded(harness), ClockReading(harness.now_ms, wall_ms))


def test_offsets_expire_to_the_millisecond() -> None:
    harness = with_topic()
    Member(harness).commit()
    end_ms = harness.wall_ms + WEEK_MS
    assert [expired_at(harness, at_ms) for at_ms in (end_ms - 1, end_ms)] == [0, 1]
    Member(harness).commit(version=4, retention_time_ms=5 * MINUTE_MS)
    end_ms = harness.wall_ms + 5 * MINUTE_MS
    assert [expired_at(harness, at_ms) for at_ms in (end_ms - 1, end_ms)] == [0, 1]


def test_without_members_each_offset_expires_after_its_own_commit() -> None:
    harness = with_topic()
    harness.create_topic("another")
    first_ms = harness.wall_ms
    Member(harness).commit("topic")
    harness.advance(60 * MINUTE_MS)
    Member(harness).commit("another")
    assert expired_at(harness, first_ms + WEEK_MS) == 1
    assert committed(harness) == {("another", 0): 1}
    assert expired_at(harness, first_ms + WEEK_MS + 60 * MINUTE_MS) == 1
    assert loaded(harness).groups == {}


def test_group_with_offsets_in_a_transaction_stays() -> None:
    harness = with_topic()
    harness.create_topic("another")
    Member(harness).commit("another")
    shard, at = loaded(harness), ClockReading(harness.now_ms, harness.wall_ms)
    commit = OffsetCommitRequest(group_id="group", topics=[commit_topic("topic", 1)])
    commit_offsets(shard, commit, commit.topics, 9, at, TransactionalWrite(1, 0, None))
    assert expired_at(harness, harness.wall_ms + 2 * WEEK_MS) == 1
    assert list(shard.groups) == ["group"]
    assert committed(harness) == {}


def test_group_that_has_given_out_an_id_stays() -> None:
    harness = with_topic()
    member = Member(harness)
    assert member.join_once().error == ErrorCode.MEMBER_ID_REQUIRED
    assert expired_at(harness, harness.wall_ms + WEEK_MS) == 0
    assert list(loaded(harness).groups) == ["group"]
    harness.advance(11_000)
    assert expired_at(harness, harness.wall_ms + WEEK_MS) == 0
    assert loaded(harness).groups == {}
