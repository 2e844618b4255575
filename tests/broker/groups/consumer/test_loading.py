"""A coordinator of ours that reads consumer groups of Apache's from its log."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import MemberState
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kraft_wire.wire.generated.consumer_group_member_metadata_key import (
    ConsumerGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ConsumerGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey,
)
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.records.record import Record
from tests.broker.groups.consumer.recorded_walks import recorded
from tests.broker.groups.harness import Harness, MemoryStore, topic_id_of
from tests.broker.groups.requests import Member, committed, finish_rebalance
from tests.broker.groups.test_offset_delete import delete_request, partition_errors
from tests.broker.groups.test_replay import (
    consumer_group,
    key_of,
    loaded,
    offset_key,
    offset_value,
    value_of,
)

TOPIC_ID = Uuid(b"\x07" * 16)
Pair = tuple[bytes, bytes | None]


def writes_of(walk: int, *, until: str) -> list[list[Pair]]:
    """Return the writes of a walk that Apache took, up to a step."""
    writes: list[list[Pair]] = []
    for step, answer in recorded()[walk]:
        if step["step"] == until:
            break
        writes += [[_pair(*record) for record in write] for write in answer.get("writes", ())]
    return writes


def _pair(key: str, value: str | None) -> Pair:
    return bytes.fromhex(key), None if value is None else bytes.fromhex(value)


def loaded_from(writes: list[list[Pair]], **settings: Any) -> Harness:
    store = MemoryStore()
    for write in writes:
        store.append_records(0, [Record(key, value) for key, value in write])
    return Harness(store=store, **settings)


def group_in(harness: Harness, group_id: str) -> ConsumerGroup:
    shard = harness.groups.shard_of(group_id)
    assert isinstance(shard, GroupShard)
    group = shard.other_groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def states(harness: Harness) -> list[tuple[str, str, str]]:
    listed = harness.send(ListGroupsRequest(), 5).response.groups
    return [(each.group_id, each.group_type, each.group_state) for each in listed]


def current(**fields: Any) -> Pair:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id="modern", member_id="member-0")
    return key_of(8, key), value_of(0, ConsumerGroupCurrentMemberAssignmentValue(**fields))


@pytest.mark.parametrize("walk", range(6))
def test_a_log_of_apache_is_loaded_whole_and_again_after_a_restart(walk: int) -> None:
    harness = loaded_from(writes_of(walk, until="delete"))
    assert harness.groups.runtime.ignored == {}
    assert states(harness) == [("group", "consumer", "Empty")]
    assert states(harness.restart()) == [("group", "consumer", "Empty")]


def test_a_deleted_group_leaves_the_tombstones_that_apache_writes() -> None:
    (walk, *_) = recorded()
    expected = [_pair(*each) for each in walk[-1][1]["writes"][0]]
    harness = loaded_from(writes_of(0, until="delete"))
    before = len(harness.store.records())
    deleted = harness.send(DeleteGroupsRequest(groups_names=["group"]), 2).response.results[0]
    assert deleted.error_code == ErrorCode.NONE
    assert harness.store.records()[before:] == expected
    assert states(harness.restart()) == []


def test_a_classic_member_of_an_empty_group_writes_apache_s_tombstones_first() -> None:
    harness = loaded_from(writes_of(0, until="delete"))
    harness.create_topic("topic")
    before = len(harness.store.records())
    member = Member(harness, group_id="group")
    member.join()
    harness.settle()
    finish_rebalance(member)
    kinds = [key[1] for key, _ in harness.store.records()[before:] if key is not None]
    assert kinds == [6, 4, 3, 2, 2]
    assert states(harness.restart()) == [("group", "classic", "Stable")]


def test_offsets_of_subscribed_topics_are_not_deleted_and_others_are() -> None:
    """848-OFF-08."""
    other = offset_key("modern", "other"), offset_value(3)
    harness = loaded(*consumer_group(members=1), other)
    harness.create_topic("topic", 2)
    harness.create_topic("other", 2)
    refused = [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * 2
    assert partition_errors(harness, delete_request("modern", "topic")) == refused
    assert partition_errors(harness, delete_request("modern", "other")) == [ErrorCode.NONE] * 2
    assert committed(harness, "modern") == {("topic", 0): 6}


def test_offsets_expire_if_no_member_reads_their_topic() -> None:
    """848-OFF-09."""
    other = offset_key("modern", "other"), offset_value(3)
    settings = {
        "offsets_retention_minutes": 1,
        "group_consumer_session_timeout_ms": 900_000,
        "group_consumer_max_session_timeout_ms": 900_000,
    }
    harness = loaded(*consumer_group(members=1), other, **settings)
    harness.advance(600_000)
    assert committed(harness, "modern") == {("topic", 0): 6}
    assert states(harness) == [("modern", "consumer", "Reconciling")]


def test_an_empty_group_goes_with_its_last_offset() -> None:
    """848-JOIN-06."""
    harness = loaded(*consumer_group(members=0), offsets_retention_minutes=1)
    assert states(harness) == [("modern", "consumer", "Empty")]
    before = len(harness.store.records())
    harness.advance(600_000)
    kinds = [key[1] for key, _ in harness.store.records()[before:] if key is not None]
    assert kinds == [1, 6, 4, 3]
    assert states(harness) == []


def test_partitions_without_epochs_get_that_of_their_member() -> None:
    """848-REC-10."""
    topics = [TopicPartitions(topic_id=TOPIC_ID, partitions=[4, 2])]
    wrong = [TopicPartitions(topic_id=TOPIC_ID, partitions=[1], assignment_epochs=[7, 7])]
    record = current(
        member_epoch=9, assigned_partitions=topics, partitions_pending_revocation=wrong
    )
    member = group_in(loaded(*consumer_group(members=1), record), "modern").members["member-0"]
    assert dict(member.assigned[TOPIC_ID].items()) == {2: 9, 4: 9}
    assert dict(member.pending_revocation[TOPIC_ID].items()) == {1: 9}


def test_a_static_member_that_left_for_a_while_has_epochs_of_0() -> None:
    """848-REC-10."""
    topics = [TopicPartitions(topic_id=TOPIC_ID, partitions=[4], assignment_epochs=[])]
    record = current(member_epoch=-2, assigned_partitions=topics)
    member = group_in(loaded(*consumer_group(members=1), record), "modern").members["member-0"]
    assert dict(member.assigned[TOPIC_ID].items()) == {4: 0}


def test_a_state_of_a_later_release_is_unknown() -> None:
    """848-RECON-09."""
    record = current(member_epoch=9, state=5)
    group = group_in(loaded(*consumer_group(members=1), record), "modern")
    assert group.members["member-0"].state is MemberState.UNKNOWN


def test_tombstones_of_members_come_before_the_one_of_their_group() -> None:
    """848-REC-06."""
    (metadata, offset, member) = consumer_group(members=1)
    gone = [(current()[0], None), (member[0], None), (metadata[0], None)]
    harness = loaded(metadata, offset, member, current(member_epoch=2), *gone)
    assert states(harness) == [("modern", "classic", "Empty")]
    assert harness.groups.runtime.ignored == {}


def test_values_of_a_later_version_are_counted_and_the_rest_is_loaded() -> None:
    metadata, offset = consumer_group(members=0)
    harness = loaded(metadata, offset, (metadata[0], b"\x00\x01"))
    assert states(harness) == [("modern", "consumer", "Empty")]
    assert harness.groups.runtime.ignored == {"malformed version": 1}


@pytest.mark.parametrize("owned", [None, [TopicPartitions(topic_id=TOPIC_ID, partitions=[1])]])
def test_a_member_in_an_unknown_state_must_own_nothing(owned: list[Any] | None) -> None:
    """`CurrentAssignmentBuilder`: the member is fenced, and reconciled once it gave all up."""
    harness = loaded(*consumer_group(members=1), current(member_epoch=1, state=5))
    harness.create_topic("topic", 2)
    beat: dict[str, Any] = {"group_id": "modern", "member_id": "member-0", "member_epoch": 1}
    request = ConsumerGroupHeartbeatRequest(
        rebalance_timeout_ms=-1, subscribed_topic_names=None, topic_partitions=owned, **beat
    )
    answer = harness.send(request, 1).response
    assert answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert answer.error_message == (
        "The consumer group member is in a unknown state. The member must abandon all its "
        "partitions and rejoin."
    )
    request.topic_partitions = []
    answer = harness.send(request, 1).response
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)
    (topic,) = answer.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (topic_id_of("topic"), [0, 1])
    member = group_in(harness, "modern").members["member-0"]
    assert (member.state, member.member_epoch) == (MemberState.STABLE, 2)


def test_partition_metadata_of_an_older_release_is_removed_with_the_next_look() -> None:
    """`GroupMetadataManager` writes its tombstone once: 4.0 had the record, 4.1 has a hash."""
    key = key_of(4, ConsumerGroupPartitionMetadataKey(group_id="modern"))
    harness = loaded(
        *consumer_group(members=1), current(member_epoch=1), (key, b"\x00\x00\x00\x00")
    )
    assert group_in(harness, "modern").has_partition_metadata
    harness.create_topic("topic", 2)
    before = len(harness.store.records())
    epoch = 1
    for _ in range(3):
        request = ConsumerGroupHeartbeatRequest(
            group_id="modern", member_id="member-0", member_epoch=epoch, rebalance_timeout_ms=-1
        )
        answer = harness.send(request, 1).response
        assert answer.error_code == ErrorCode.NONE
        epoch = answer.member_epoch
        harness.create_topic("another", epoch)
    written = [each for each in harness.store.records()[before:] if (each[0] or b"")[1] == 4]
    assert written == [(key, None)]
    assert not group_in(harness, "modern").has_partition_metadata
    assert not group_in(harness.restart(), "modern").has_partition_metadata


def test_an_assignor_that_only_another_cluster_has_is_an_unexpected_error() -> None:
    """As the NullPointerException of 4.3.1, until the member names one of this broker's."""
    key = ConsumerGroupMemberMetadataKey(group_id="modern", member_id="member-0")
    value = ConsumerGroupMemberMetadataValue(
        subscribed_topic_names=["topic"], server_assignor="com.example.Assignor"
    )
    member = key_of(5, key), value_of(0, value)
    harness = loaded(*consumer_group(members=1), member, current(member_epoch=1))
    harness.create_topic("topic", 2)
    beat: dict[str, Any] = {"group_id": "modern", "member_id": "member-0", "member_epoch": 1}
    request = ConsumerGroupHeartbeatRequest(rebalance_timeout_ms=-1, **beat)
    before = len(harness.store.records())
    answer = harness.send(request, 1).response
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert len(harness.store.records()) == before
    request.server_assignor = "range"
    answer = harness.send(request, 1).response
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)
