"""The records of committed offsets and of classic groups, byte for byte and field for field."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from kraft_wire.model import Uuid
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.broker.groups.harness import WALL_MS, topic_id_of
from tests.broker.groups.ready_groups import stable_member, with_topic
from tests.broker.groups.requests import Member, subscription

TOPIC_ID = topic_id_of("topic")
OFFSET_KEY = struct.pack(">hh5sh5si", 1, 5, b"group", 5, b"topic", 1)
"""Version 1: group, topic, partition."""


def value_1(expires_ms: int) -> bytes:
    """The value that a commit with a retention time has: no leader epoch, no topic id."""
    return struct.pack(">hqh4sqq", 1, 42, 4, b"note", WALL_MS, expires_ms)


def value_4(leader_epoch: int, metadata: bytes, topic_id: Uuid) -> bytes:
    """The value of any other commit: compact text, and the topic's id as tagged field 0."""
    body = struct.pack(">hqi", 4, 42, leader_epoch) + bytes([len(metadata) + 1]) + metadata
    return body + struct.pack(">q", WALL_MS) + b"\x01\x00\x10" + topic_id


@pytest.mark.parametrize(
    ("version", "of_request", "of_partition", "value"),
    [
        (2, {"retention_time_ms": 5_000}, {}, value_1(WALL_MS + 5_000)),
        (4, {"retention_time_ms": 0}, {}, value_1(WALL_MS)),
        (4, {"retention_time_ms": -2}, {}, value_1(WALL_MS - 2)),
        (3, {"retention_time_ms": (1 << 63) - 1}, {}, value_1((1 << 63) - 1)),
        (4, {"retention_time_ms": -1}, {}, value_4(-1, b"note", TOPIC_ID)),
        (5, {}, {}, value_4(-1, b"note", TOPIC_ID)),
        (6, {}, {"committed_leader_epoch": 7}, value_4(7, b"note", TOPIC_ID)),
        (10, {}, {"committed_metadata": None}, value_4(-1, b"", TOPIC_ID)),
    ],
)
def test_commit_is_written_in_the_version_that_its_retention_time_needs(
    version: int, of_request: dict[str, Any], of_partition: dict[str, Any], value: bytes
) -> None:
    """`GroupCoordinatorRecordHelpers.newOffsetCommitRecord` of 4.3."""
    harness = with_topic()
    fields = {"partition_index": 1, "committed_offset": 42, "committed_metadata": "note"}
    partition = OffsetCommitRequestPartition(**{**fields, **of_partition})
    topic = OffsetCommitRequestTopic(name="topic", topic_id=TOPIC_ID, partitions=[partition])
    harness.send(OffsetCommitRequest(group_id="group", topics=[topic], **of_request), version)
    assert harness.store.records() == [(OFFSET_KEY, value)]


def test_generation_is_written_with_its_members() -> None:
    """`newGroupMetadataRecord`: version 3, one record when the leader's assignment is there."""
    harness = with_topic()
    leader = stable_member(harness, client_id="first", instance_id="i1", session_timeout_ms=7_000)
    other = Member(harness, client_id="second", topics=("topic", "more"))
    harness.wall_ms += 60
    other.join()
    leader.join_once()
    leader.joined()
    other.joined()
    harness.wall_ms += 5
    leader.sync({leader.member_id: b"one", other.member_id: b"two"})
    key, value = harness.store.records()[-1]
    assert key == struct.pack(">hh5s", 2, 5, b"group")
    assert value is not None
    assert value[:2] == b"\x00\x03"
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host="/127.0.0.1",
            rebalance_timeout=30_000,
            session_timeout=member.session_timeout_ms,
            subscription=subscription(*member.topics),
            assignment=assignment,
        )
        for member, assignment in ((leader, b"one"), (other, b"two"))
    ]
    expected = GroupMetadataValue(
        protocol_type="consumer",
        generation=2,
        protocol="range",
        leader=leader.member_id,
        current_state_timestamp=harness.wall_ms - 5,
        members=members,
    )
    assert value[2:] == bytes(expected.encode(3))


def test_group_is_written_before_its_first_member() -> None:
    harness = with_topic()
    member = Member(harness)
    member.join()
    key = struct.pack(">hh5s", 2, 5, b"group")
    empty = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=WALL_MS
    )
    assert harness.store.records() == [(key, b"\x00\x03" + bytes(empty.encode(3)))]
