"""What a restart brings back, also from a log that another coordinator wrote."""

from __future__ import annotations

import pytest

from kraft_wire.broker.groups.replay import CoordinatorReplay, group_id_of
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_member_metadata_key import (
    ConsumerGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ConsumerGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraft_wire.wire.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.group_metadata_key import GroupMetadataKey
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraft_wire.wire.generated.legacy_offset_commit_key import LegacyOffsetCommitKey
from kraft_wire.wire.generated.legacy_offset_commit_value import LegacyOffsetCommitValue
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue
from kraft_wire.wire.generated.offset_delete import OffsetDeleteRequest
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kraft_wire.wire.generated.share_group_metadata_key import ShareGroupMetadataKey
from kraft_wire.wire.generated.share_group_metadata_value import ShareGroupMetadataValue
from kraft_wire.wire.generated.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from kraft_wire.wire.generated.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from kraft_wire.wire.generated.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.generated.streams_group_metadata_key import StreamsGroupMetadataKey
from kraft_wire.wire.generated.streams_group_metadata_value import StreamsGroupMetadataValue
from kraft_wire.wire.generated.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.generated.streams_group_topology_key import StreamsGroupTopologyKey
from kraft_wire.wire.generated.streams_group_topology_value import (
    StreamsGroupTopologyValue,
    Subtopology,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.broker.groups.harness import Harness, MemoryStore, topic_id_of
from tests.broker.groups.requests import Member, committed, fetch_group, finish_rebalance

COMMIT_MARKER = b"\x00\x00\x00\x01"
ABORT_MARKER = b"\x00\x00\x00\x00"


def key_of(kind: int, message: Message) -> bytes:
    return kind.to_bytes(2, "big") + bytes(message.encode(0))


def value_of(version: int, message: Message) -> bytes:
    return version.to_bytes(2, "big") + bytes(message.encode(version))


def offset_key(group: str = "group", topic: str = "topic", partition: int = 0) -> bytes:
    return key_of(1, OffsetCommitKey(group=group, topic=topic, partition=partition))


def offset_value(offset: int, version: int = 4) -> bytes:
    return value_of(version, OffsetCommitValue(offset=offset, metadata="", commit_timestamp=1))


def loaded(*records: tuple[bytes | None, bytes | None], **settings: int) -> Harness:
    store = MemoryStore()
    store.append_records(0, [Record(key, value) for key, value in records])
    return Harness(store=store, **settings)


def stable_group(harness: Harness) -> list[Member]:
    members = [Member(harness, client_id=f"client-{n}") for n in range(2)]
    for member in members:
        member.join()
    harness.advance(3_000)
    finish_rebalance(*members)
    return members


def test_a_stable_group_goes_on_after_a_restart_without_a_rebalance() -> None:
    harness = Harness(group_initial_rebalance_delay_ms=1_000)
    harness.create_topic("topic")
    members = stable_group(harness)
    members[0].commit(offset=77)
    fresh = harness.restart()
    for member in members:
        member.door = fresh
        assert member.heartbeat() == ErrorCode.NONE
        assert bytes(member.sync().response.assignment) == member.member_id.encode()
    assert committed(fresh) == {("topic", 0): 77}
    assert fresh.group("group").subscribed_topics == {"topic": None}


def test_members_get_a_whole_session_to_come_back_after_a_restart() -> None:
    harness = Harness(group_initial_rebalance_delay_ms=1_000)
    members = stable_group(harness)
    fresh = harness.restart()
    for member in members:
        member.door = fresh
    fresh.advance(9_999)
    assert members[0].heartbeat() == ErrorCode.NONE
    fresh.advance(1)
    assert members[1].heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    assert members[0].heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_above_a_lowered_maximum_rebalances_after_a_restart() -> None:
    harness = Harness(group_initial_rebalance_delay_ms=1_000)
    first, second = stable_group(harness)
    fresh = harness.restart(group_max_size=1)
    first.door = second.door = fresh
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    first.join_once()
    assert second.join_once().error == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_while_a_partition_is_loaded_its_groups_are_not_there_yet() -> None:
    harness = Harness()
    harness.create_topic("topic")
    member = Member(harness)
    member.join()
    harness.settle()
    finish_rebalance(member)
    loading = Harness(store=harness.store, offsets_partitions=0)
    loading.create_topic("topic")
    loading.create_topic("__consumer_offsets")
    member.door = loading
    in_progress = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert member.heartbeat() == ErrorCode.NONE
    assert member.join_once().error == in_progress
    assert member.sync().error == in_progress
    assert member.leave().error == in_progress
    assert member.commit() == in_progress
    assert loading.send(ListGroupsRequest(), 5).error == in_progress
    fetched = loading.send(fetch_group("group", "topic"), 9).response.groups[0]
    assert fetched.error_code == in_progress
    described = loading.send(DescribeGroupsRequest(groups=["group"]), 5).response.groups[0]
    assert described.error_code == in_progress
    deleted = loading.send(DeleteGroupsRequest(groups_names=["group"]), 2).response.results[0]
    assert deleted.error_code == in_progress
    assert loading.send(OffsetDeleteRequest(group_id="group"), 0).error == in_progress
    old = OffsetFetchRequest(
        group_id="group", topics=[OffsetFetchRequestTopic(name="topic", partition_indexes=[0])]
    )
    (topic,) = loading.send(old, 1).response.topics
    assert topic.partitions[0].error_code == in_progress
    assert loading.send(old, 2).error == in_progress
    loading.settle()
    assert member.heartbeat() == ErrorCode.NONE
    assert member.sync().error == ErrorCode.NONE


def test_a_partition_that_moves_away_answers_whoever_waits() -> None:
    harness = Harness(group_initial_rebalance_delay_ms=1_000)
    member = Member(harness)
    member.join()
    assert member.joining.is_parked
    harness.delete_topic("__consumer_offsets")
    assert member.joining.error == ErrorCode.NOT_COORDINATOR
    assert member.heartbeat() == ErrorCode.NOT_COORDINATOR
    harness.advance(10_000)
    assert harness.groups.runtime.deadline_ms() is None


def test_a_partition_that_comes_back_is_loaded_again_and_its_members_join_again() -> None:
    harness = Harness(offsets_partitions=1, group_initial_rebalance_delay_ms=1_000)
    harness.create_topic("topic")
    assert Member(harness).commit(offset=5) == ErrorCode.NONE
    member = Member(harness)
    member.join()
    harness.lead("__consumer_offsets", 2, 1)
    assert member.joining.error == ErrorCode.NOT_COORDINATOR
    assert Member(harness).commit(offset=6) == ErrorCode.NOT_COORDINATOR
    harness.lead("__consumer_offsets", 1, 2)
    assert Member(harness).commit(offset=7) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert committed(harness) == {("topic", 0): 5}


def test_a_partition_that_is_led_under_a_new_epoch_is_loaded_again() -> None:
    harness = Harness(offsets_partitions=1, group_initial_rebalance_delay_ms=1_000)
    harness.create_topic("topic")
    assert Member(harness).commit(offset=5) == ErrorCode.NONE
    harness.lead("__consumer_offsets", 1, 2)
    assert Member(harness).commit(offset=6) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    harness.settle()
    assert committed(harness) == {("topic", 0): 5}


def test_a_stopping_coordinator_answers_whoever_waits() -> None:
    harness = Harness(group_initial_rebalance_delay_ms=1_000)
    first, second = stable_group(harness)
    leader, follower = (
        (first, second)
        if harness.group("group").leads(first.member_id)
        else (
            second,
            first,
        )
    )
    leader.join_once()
    follower.topics = ("other",)
    follower.join_once()
    leader.joined()
    follower.joined()
    follower.sync()
    assert follower.syncing.is_parked
    harness.groups.runtime.stop()
    assert follower.syncing.error == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", range(5))
def test_offset_commit_values_of_every_version_are_read(version: int) -> None:
    assert committed(loaded((offset_key(), offset_value(9, version)))) == {("topic", 0): 9}


def test_a_legacy_offset_commit_is_read() -> None:
    key = key_of(0, LegacyOffsetCommitKey(group="group", topic="topic", partition=0))
    value = value_of(0, LegacyOffsetCommitValue(offset=4, metadata="old", commit_timestamp=1))
    assert committed(loaded((key, value))) == {("topic", 0): 4}


@pytest.mark.parametrize("version", range(5))
def test_group_metadata_values_of_every_version_are_read(version: int) -> None:
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="member",
        members=[
            MemberMetadata(member_id="member", client_id="c", client_host="/h", session_timeout=7)
        ],
    )
    key = key_of(2, GroupMetadataKey(group="group"))
    group = loaded((key, value_of(version, value))).group("group")
    assert (group.state.value, group.generation_id, group.leader_id) == ("Stable", 3, "member")
    assert group.members["member"].rebalance_timeout_ms == 7


def test_tombstones_take_back_what_came_before() -> None:
    group_key = key_of(2, GroupMetadataKey(group="group"))
    empty = value_of(3, GroupMetadataValue(protocol_type="consumer", generation=1))
    harness = loaded(
        (offset_key(), offset_value(1)),
        (group_key, empty),
        (offset_key(), None),
        (group_key, None),
        (offset_key("never"), None),
    )
    assert harness.send(ListGroupsRequest(), 5).response.groups == []
    assert harness.groups.runtime.ignored == {}


def test_what_cannot_be_read_is_counted_by_reason_and_the_rest_is_loaded() -> None:
    group_key = key_of(2, GroupMetadataKey(group="broken"))
    contradiction = GroupMetadataValue(
        protocol_type="consumer",
        protocol="range",
        leader="nobody",
        members=[MemberMetadata(member_id="member")],
    )
    harness = loaded(
        (None, b"value"),
        (b"", b"value"),
        (b"\x00\x63rest", b"value"),
        (b"\x00\x01\x00", offset_value(1)),
        (offset_key("odd"), b"\x00\x09"),
        (group_key, b"\x00\x09"),
        (group_key, value_of(3, contradiction)),
        (b"\x00\x03\x00\x09x", b"value"),
        (offset_key(), offset_value(5)),
    )
    assert committed(harness) == {("topic", 0): 5}
    assert sum(harness.groups.runtime.ignored.values()) == 8
    assert harness.groups.runtime.ignored["record without key"] == 1
    assert harness.groups.runtime.ignored["record type 99"] == 1
    assert harness.groups.runtime.ignored["group metadata that contradicts itself"] == 1


def test_a_batch_that_cannot_be_read_hides_no_other() -> None:
    """Apache's load fails there; ours counts the batch."""
    harness = Harness()
    shard = harness.groups.shard_of("group")
    assert isinstance(shard, GroupShard)
    replay = CoordinatorReplay(shard)
    good = build_batch([Record(offset_key(), offset_value(5))])
    cut = bytearray(build_batch([Record(offset_key(), offset_value(6))]))
    cut[61] = 0x7F  # the record says that it is longer than the batch
    for data in (cut, good):
        replay.batch(RecordBatch(memoryview(data)))
    assert replay.ignored == {"batch that cannot be read": 1}
    assert committed(harness) == {("topic", 0): 5}


def test_a_control_record_that_ends_no_transaction_leaves_it_open() -> None:
    """As `CoordinatorLoaderImpl.processMemoryRecords`, which looks for COMMIT and ABORT alone."""
    store = MemoryStore()
    pending = Record(offset_key(), offset_value(2))
    store.append_records(0, [pending], producer_id=5, is_transactional=True)
    for kind in (2, 3, 9):
        other = Record(b"\x00\x00" + kind.to_bytes(2, "big"), b"\x00" * 6)
        store.append_records(0, [other], producer_id=5, is_transactional=True, is_control=True)
    harness = Harness(store=store)
    assert committed(harness) == {}
    kinds = {f"control record of type {kind}": 1 for kind in (2, 3, 9)}
    assert harness.groups.runtime.ignored == kinds
    assert committed(ended(store, COMMIT_MARKER)) == {("topic", 0): 2}


def ended(store: MemoryStore, marker: bytes) -> Harness:
    """End the transaction of producer 5, and load the log."""
    record = Record(marker, b"\x00" * 6)
    store.append_records(0, [record], producer_id=5, is_transactional=True, is_control=True)
    return Harness(store=store)


@pytest.mark.parametrize(
    ("key", "group_id"),
    [
        (b"\x00\x03\x00\x02ab", "ab"),
        (b"\x00\x03\x00\x02abc", "ab"),
        (b"\x00\x03\x00\x00", ""),
        (b"\x00\x03\x00", None),
        (b"\x00\x03", None),
        (b"\x00\x03\xff\xffab", None),
        (b"\x00\x03\x00\x03ab", None),
        (b"\x00\x03\x00\x02\xc3\x28", None),
    ],
)
def test_group_of_a_key(key: bytes, group_id: str | None) -> None:
    """A key is its type and the struct, whose first field is the group; null is not allowed."""
    assert group_id_of(key) == group_id


def other_group(harness: Harness, group_id: str) -> ShareGroup | StreamsGroup | None:
    shard = harness.groups.shard_of(group_id)
    assert isinstance(shard, GroupShard)
    group = shard.other_groups.get(group_id)
    assert group is None or isinstance(group, (ShareGroup, StreamsGroup))
    return group


Pair = tuple[bytes, bytes | None]


def share_records() -> list[Pair]:
    """A share group's epoch, its target's epoch and its share partitions."""
    topic = TopicPartitionsInfo(topic_id=Uuid(b"\x07" * 16), topic_name="topic", partitions=[1])
    partitions = ShareGroupStatePartitionMetadataValue(initialized_topics=[topic])
    return [
        (
            key_of(11, ShareGroupMetadataKey(group_id="shared")),
            value_of(0, ShareGroupMetadataValue(epoch=5, metadata_hash=6)),
        ),
        (
            key_of(12, ShareGroupTargetAssignmentMetadataKey(group_id="shared")),
            value_of(
                0,
                ShareGroupTargetAssignmentMetadataValue(assignment_epoch=4, assignment_timestamp=9),
            ),
        ),
        (
            key_of(15, ShareGroupStatePartitionMetadataKey(group_id="shared")),
            value_of(0, partitions),
        ),
    ]


def streams_records() -> list[Pair]:
    """A streams group's epoch, its target's epoch and its topology."""
    topology = StreamsGroupTopologyValue(
        epoch=3, subtopologies=[Subtopology(subtopology_id="0", source_topics=["topic"])]
    )
    return [
        (
            key_of(17, StreamsGroupMetadataKey(group_id="streams")),
            value_of(
                0,
                StreamsGroupMetadataValue(epoch=5, metadata_hash=6, validated_topology_epoch=3),
            ),
        ),
        (
            key_of(20, StreamsGroupTargetAssignmentMetadataKey(group_id="streams")),
            value_of(
                0,
                StreamsGroupTargetAssignmentMetadataValue(
                    assignment_epoch=4, assignment_timestamp=9
                ),
            ),
        ),
        (key_of(23, StreamsGroupTopologyKey(group_id="streams")), value_of(0, topology)),
    ]


def test_tombstones_take_back_the_parts_of_a_share_group() -> None:
    """As `GroupMetadataManager.replay`: the target's epoch is -1 again, the timestamp 0."""
    epoch, target, partitions = share_records()
    group = other_group(loaded(epoch, target, partitions), "shared")
    assert isinstance(group, ShareGroup)
    assert (group.epoch, group.metadata_hash) == (5, 6)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (4, 9)
    assert group.state_partitions is not None
    target_gone, partitions_gone = (target[0], None), (partitions[0], None)
    group = other_group(loaded(epoch, target, partitions, target_gone, partitions_gone), "shared")
    assert isinstance(group, ShareGroup)
    assert (group.epoch, group.metadata_hash) == (5, 6)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (-1, 0)
    assert group.state_partitions is None


def test_tombstones_take_back_the_parts_of_a_streams_group() -> None:
    """As `GroupMetadataManager.replay`: the target's epoch is -1 again, the timestamp 0."""
    epoch, target, topology = streams_records()
    group = other_group(loaded(epoch, target, topology), "streams")
    assert isinstance(group, StreamsGroup)
    assert (group.epoch, group.metadata_hash, group.validated_topology_epoch) == (5, 6, 3)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (4, 9)
    assert group.subtopologies == {"topic": "0"}
    target_gone, topology_gone = (target[0], None), (topology[0], None)
    group = other_group(loaded(epoch, target, topology, target_gone, topology_gone), "streams")
    assert isinstance(group, StreamsGroup)
    assert (group.epoch, group.metadata_hash, group.validated_topology_epoch) == (5, 6, 3)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (-1, 0)
    assert (group.topology, group.subtopologies) == (None, {})


@pytest.mark.parametrize("records", [share_records(), streams_records()], ids=["share", "streams"])
def test_the_tombstone_of_its_epoch_ends_a_group(records: list[Pair]) -> None:
    """The last of the tombstones that a coordinator writes for a group."""
    harness = loaded(*records, *((key, None) for key, _ in reversed(records)))
    assert harness.send(ListGroupsRequest(), 5).response.groups == []
    assert harness.groups.runtime.ignored == {}


@pytest.mark.parametrize("records", [share_records(), streams_records()], ids=["share", "streams"])
def test_values_of_a_newer_release_are_left_alone(records: list[Pair]) -> None:
    """`CoordinatorRecordSerde.deserialize` takes version 0 of these alone."""
    newer = [(key, b"\x00\x01" + (value or b"")[2:]) for key, value in records]
    harness = loaded(*newer)
    assert harness.send(ListGroupsRequest(), 5).response.groups == []
    assert harness.groups.runtime.ignored == {"malformed version": 3}
    harness = loaded(*records, *newer)
    assert len(harness.send(ListGroupsRequest(), 5).response.groups) == 1
    assert harness.groups.runtime.ignored == {"malformed version": 3}


def test_a_committed_transaction_s_offsets_are_visible_and_an_aborted_one_s_are_not() -> None:
    store = MemoryStore()
    for producer_id, marker in ((1, COMMIT_MARKER), (2, ABORT_MARKER)):
        commit = Record(offset_key(f"group-{producer_id}"), offset_value(producer_id))
        store.append_records(0, [commit], producer_id=producer_id, is_transactional=True)
        ended = Record(marker, b"\x00\x00\x00\x00\x00\x00")
        store.append_records(
            0, [ended], producer_id=producer_id, is_transactional=True, is_control=True
        )
    harness = Harness(store=store)
    assert committed(harness, "group-1") == {("topic", 0): 1}
    assert committed(harness, "group-2") == {}


def test_an_open_transaction_makes_its_offset_unstable() -> None:
    store = MemoryStore()
    store.append_records(0, [Record(offset_key(), offset_value(1))])
    pending = Record(offset_key(), offset_value(2))
    store.append_records(0, [pending], producer_id=5, is_transactional=True)
    harness = Harness(store=store)
    request = fetch_group("group", "topic")
    fetched = harness.send(request, 9).response.groups[0].topics[0].partitions[0]
    assert (fetched.committed_offset, fetched.error_code) == (1, ErrorCode.NONE)
    request.require_stable = True
    fetched = harness.send(request, 9).response.groups[0].topics[0].partitions[0]
    assert (fetched.committed_offset, fetched.error_code) == (
        -1,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )
    everything = fetch_group("group")
    everything.require_stable = True
    fetched = harness.send(everything, 9).response.groups[0].topics[0].partitions[0]
    assert fetched.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_a_transaction_never_takes_an_offset_back_that_was_committed_after_it() -> None:
    store = MemoryStore()
    pending = Record(offset_key(), offset_value(1))
    store.append_records(0, [pending], producer_id=5, is_transactional=True)
    store.append_records(0, [Record(offset_key(), offset_value(2))])
    ended = Record(COMMIT_MARKER, b"\x00\x00\x00\x00\x00\x00")
    store.append_records(0, [ended], producer_id=5, is_transactional=True, is_control=True)
    assert committed(Harness(store=store)) == {("topic", 0): 2}


def consumer_group(*, members: int) -> list[tuple[bytes | None, bytes | None]]:
    """Records of a KIP-848 group with a committed offset."""
    records: list[tuple[bytes | None, bytes | None]] = [
        (
            key_of(3, ConsumerGroupMetadataKey(group_id="modern")),
            value_of(0, ConsumerGroupMetadataValue(epoch=1)),
        ),
        (offset_key("modern"), offset_value(6)),
    ]
    for n in range(members):
        key = ConsumerGroupMemberMetadataKey(group_id="modern", member_id=f"member-{n}")
        value = ConsumerGroupMemberMetadataValue(
            subscribed_topic_names=["topic"], server_assignor=None
        )
        records.append((key_of(5, key), value_of(0, value)))
    return records


def test_a_group_of_another_protocol_keeps_its_id_while_it_has_members() -> None:
    harness = loaded(*consumer_group(members=1))
    harness.create_topic("topic")
    member = Member(harness, group_id="modern")
    assert member.join_once().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert member.commit() == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(harness, "modern") == {("topic", 0): 6}
    (listed,) = harness.send(ListGroupsRequest(), 5).response.groups
    assert (listed.group_type, listed.group_state, listed.protocol_type) == (
        "consumer",
        "Reconciling",
        "consumer",
    )
    described = harness.send(DescribeGroupsRequest(groups=["modern"]), 6).response.groups[0]
    assert described.error_message == "Group modern is not a classic group."
    deleted = harness.send(DeleteGroupsRequest(groups_names=["modern"]), 2).response.results[0]
    assert deleted.error_code == ErrorCode.NON_EMPTY_GROUP
    assert harness.groups.runtime.ignored == {}


def test_an_empty_group_of_another_protocol_becomes_a_classic_one_with_its_offsets() -> None:
    harness = loaded(*consumer_group(members=0))
    harness.create_topic("topic")
    assert Member(harness, group_id="modern").commit(offset=8) == ErrorCode.NONE
    member = Member(harness, group_id="modern")
    member.join()
    harness.settle()
    finish_rebalance(member)
    again = harness.restart()
    (listed,) = again.send(ListGroupsRequest(), 5).response.groups
    assert (listed.group_type, listed.group_state) == ("classic", "Stable")
    assert committed(again, "modern") == {("topic", 0): 8}


def test_an_empty_group_of_another_protocol_can_be_deleted() -> None:
    harness = loaded(*consumer_group(members=0))
    deleted = harness.send(DeleteGroupsRequest(groups_names=["modern"]), 2).response.results[0]
    assert deleted.error_code == ErrorCode.NONE
    again = harness.restart()
    assert again.send(ListGroupsRequest(), 5).response.groups == []
    assert committed(again, "modern") == {}


def test_a_group_of_another_protocol_whose_tombstones_come_leaves_its_offsets() -> None:
    share = key_of(11, ShareGroupMetadataKey(group_id="shared"))
    metadata, offset = consumer_group(members=0)
    harness = loaded(metadata, offset, (metadata[0], None), (share, b"\x00\x00"), (share, None))
    (listed,) = harness.send(ListGroupsRequest(), 5).response.groups
    assert (listed.group_id, listed.group_type) == ("modern", "classic")
    assert committed(harness, "modern") == {("topic", 0): 6}


def test_topics_deleted_while_loading_take_their_offsets_along() -> None:
    store = MemoryStore()
    store.append_records(0, [Record(offset_key(), offset_value(1))])
    harness = Harness(store=store, offsets_partitions=0)
    harness.create_topic("topic")
    harness.create_topic("__consumer_offsets")
    harness.delete_topic("topic")
    harness.settle()
    assert committed(harness) == {}


def test_offset_commits_carry_the_topic_s_id() -> None:
    harness = Harness()
    harness.create_topic("topic")
    Member(harness).commit()
    shard = harness.restart().groups.shard_of("group")
    assert isinstance(shard, GroupShard)
    assert shard.offsets.of_group("group")["topic"][0].topic_id == topic_id_of("topic")
