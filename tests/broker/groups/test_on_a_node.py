"""The coordinator inside a whole node, over real storage on a simulated disk."""

from __future__ import annotations

import struct
import zlib

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.broker.groups.requests import Member, commit_topic, committed
from tests.broker.groups.stories import SESSION_MS, joined, pair, static_pair
from tests.broker.groups.test_replay import offset_key, offset_value

SAFE = {"log_flush_interval_messages": "1"}


def restarted(door: NodeDoor, fs: SimFileSystem, **overrides: str) -> NodeDoor:
    fresh = NodeDoor(fs, now_ms=door.now_ms, **overrides)
    fresh.settle()
    return fresh


def test_groups_and_offsets_survive_a_clean_restart() -> None:
    door = NodeDoor(SimFileSystem())
    door.prepare("topic")
    leader, follower = static_pair(door, "group")
    assert leader.commit(offset=11) == ErrorCode.NONE
    door.node.begin_stop(door.now_ms, door.wall_ms)
    door.stop()
    fresh = restarted(door, door.fs)
    for member in (leader, follower):
        member.door = fresh
        assert member.heartbeat() == ErrorCode.NONE
    assert committed(fresh) == {("topic", 0): 11}


def test_a_long_log_is_loaded_in_pieces() -> None:
    door = NodeDoor(SimFileSystem())
    door.prepare("topic")
    metadata = "x" * 4_000
    for offset in range(200):
        request = OffsetCommitRequest(
            group_id=f"group-{offset % 3}", topics=[commit_topic("topic", offset, 0, metadata)]
        )
        door.send(request, 9)
    door.node.begin_stop(door.now_ms, door.wall_ms)
    door.stop()
    fresh = NodeDoor(door.fs, now_ms=door.now_ms)
    found = {tuple(committed(fresh, f"group-{n}").values()) for n in range(3)}
    assert found == {(197,), (198,), (199,)}


def old_message(offset: int, key: bytes, value: bytes, magic: int) -> bytes:
    """A message of format 0 or 1, as brokers before 0.11 wrote it (KIP-31, KIP-32)."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1) if magic else b"")
    body += struct.pack(">i", len(key)) + key + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def test_commits_in_messages_of_formats_0_and_1_are_loaded() -> None:
    """Apache's coordinator reads them; here a partition with one of them was loaded for ever."""
    door = NodeDoor(SimFileSystem(), offsets_topic_num_partitions="1")
    door.prepare("topic")
    for group in ("first", "last"):
        request = OffsetCommitRequest(group_id=group, topics=[commit_topic("topic", 5)])
        door.send(request, 9)
    door.node.begin_stop(door.now_ms, door.wall_ms)
    door.stop()
    stem = f"{DIRECTORY}/{OFFSETS_TOPIC}-0/{0:020d}"
    first, last = parse_batches(door.fs.read(f"{stem}.log"))
    old = old_message(1, offset_key("one"), offset_value(7), 1)
    old += old_message(2, offset_key("nought"), offset_value(8, 0), 0)
    tail = bytearray(last.view)
    struct.pack_into(">q", tail, 0, 3)
    content = bytes(first.view) + old + tail
    index = struct.pack(">ii", 3, len(content) - len(tail))
    for suffix, data in ((".log", content), (".index", index)):
        file = door.fs.open(stem + suffix)
        file.truncate(0)
        file.pwrite(data, 0)
        file.fsync()
    directory = stem.rpartition("/")[0]
    door.fs.rename(f"{directory}/{2:020d}.snapshot", f"{directory}/{4:020d}.snapshot")
    fresh = restarted(door, door.fs, offsets_topic_num_partitions="1")
    found = {group: committed(fresh, group) for group in ("first", "one", "nought", "last")}
    assert [each.get(("topic", 0)) for each in found.values()] == [5, 7, 8, 5]


def test_a_commit_is_answered_when_it_is_flushed_where_that_is_promised() -> None:
    door = NodeDoor(SimFileSystem(), **SAFE)
    door.prepare("topic")
    door.keeps_flushes_back = True
    request = OffsetCommitRequest(group_id="group", topics=[commit_topic("topic", 5)])
    first = door.send(request, 9, connection=2)
    second = door.send(request, 9, connection=3)
    assert first.response is None
    assert second.response is None
    crashed = restarted(door, door.fs.crashed([]), **SAFE)
    assert committed(crashed) == {}
    door.flush()
    assert first.response.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert second.response.topics[0].partitions[0].error_code == ErrorCode.NONE
    crashed = restarted(door, door.fs.crashed([]), **SAFE)
    assert committed(crashed) == {("topic", 0): 5}


def test_a_commit_whose_flush_does_not_come_is_answered_after_the_commit_timeout() -> None:
    door = NodeDoor(SimFileSystem(), **SAFE)
    door.prepare("topic")
    door.keeps_flushes_back = True
    topics = [commit_topic("topic", 5), commit_topic("nowhere", 5)]
    reply = door.send(OffsetCommitRequest(group_id="group", topics=topics), 9)
    door.advance(4_999)
    assert reply.response is None
    door.advance(1)
    errors = {topic.name: topic.partitions[0].error_code for topic in reply.response.topics}
    assert errors == {
        "topic": ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_an_assignment_is_on_the_disk_when_it_is_handed_out_where_that_is_promised() -> None:
    door = NodeDoor(SimFileSystem(), **SAFE)
    door.prepare("topic")
    member = joined(Member(door))
    member.door = restarted(door, door.fs.crashed([]), **SAFE)
    assert member.heartbeat() == ErrorCode.NONE
    assert bytes(member.sync().response.assignment) == b"assignment"


def test_a_flush_of_the_group_s_own_answers_the_commits_that_wait_for_it() -> None:
    door = NodeDoor(SimFileSystem(), offsets_topic_num_partitions="1", **SAFE)
    door.prepare("topic")
    door.keeps_flushes_back = True
    request = OffsetCommitRequest(group_id="other", topics=[commit_topic("topic", 5)])
    waiting = door.send(request, 9, connection=2)
    assert waiting.response is None
    Member(door).join_once()
    assert waiting.response.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_a_full_disk_refuses_commits_and_groups_until_it_has_room() -> None:
    door = NodeDoor(SimFileSystem())
    door.prepare("topic")
    member = joined(Member(door))
    assert member.commit(offset=1) == ErrorCode.NONE
    door.fs.capacity_bytes = door.fs.used_bytes()
    assert member.commit(offset=2) == ErrorCode.NOT_COORDINATOR
    assert Member(door, "another").join_once().error == ErrorCode.NOT_COORDINATOR
    assert committed(door) == {("topic", 0): 1}
    assert member.heartbeat() == ErrorCode.NONE
    door.fs.capacity_bytes = None
    door.advance(1_000)
    assert member.commit(offset=3) == ErrorCode.NONE
    assert committed(door) == {("topic", 0): 3}


def test_a_closed_connection_leaves_its_member_to_its_session() -> None:
    door = NodeDoor(SimFileSystem())
    door.prepare("topic")
    leader, follower = pair(door, "group")
    leader.join_once()
    door.close(leader.connection)
    assert follower.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    follower.join_once()
    assert follower.joined().generation_id == 3
    follower.sync()
    assert follower.syncing.response is None
    door.advance(SESSION_MS)
    assert follower.syncing.error == ErrorCode.REBALANCE_IN_PROGRESS
    follower.join_once()
    assert [m.member_id for m in follower.joined().members] == [follower.member_id]


def test_a_stop_answers_parked_members() -> None:
    door = NodeDoor(SimFileSystem(), group_initial_rebalance_delay_ms="3000")
    door.prepare("topic")
    member = Member(door, connection=2)
    member.join()
    assert member.joining.response is None
    door.node.begin_stop(door.now_ms, door.wall_ms)
    door._drain()
    assert member.joining.error == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", [1, 6])
def test_a_deleted_topic_takes_its_offsets_along(version: int) -> None:
    door = NodeDoor(SimFileSystem())
    door.prepare("topic")
    Member(door).commit(offset=1)
    request = DeleteTopicsRequest(topic_names=["topic"], timeout_ms=1)
    if version == 6:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name="topic")], timeout_ms=1)
    door.send(request, version)
    door.settle()
    assert committed(door) == {}


@pytest.mark.parametrize("version", [1, 6])
def test_why_the_offsets_topic_cannot_be_created_is_said(version: int) -> None:
    door = NodeDoor(SimFileSystem(), offsets_topic_replication_factor="3")
    request = FindCoordinatorRequest(coordinator_keys=["group"])
    if version < 4:
        request = FindCoordinatorRequest(key="group")
    response = door.send(request, version).response
    (found,) = response.coordinators or [response]
    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert found.error_message.startswith("__consumer_offsets cannot be created: ")


def test_attached_groups_follow_the_broker() -> None:
    door = NodeDoor(SimFileSystem())
    broker = door.node.broker
    assert isinstance(broker, Broker)
    assert broker.groups in broker.followers
    assert broker.image.topic(OFFSETS_TOPIC) is None
    assert broker.groups is broker.groups
