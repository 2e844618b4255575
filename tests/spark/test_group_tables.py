"""The tables of groups, on small logs made by hand. No Spark here.

`test_groups_of_brokers.py` compares them with what brokers answer about groups of clients.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.model import uuid_to_text
from kraft_wire.wire.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_key import (
    ConsumerGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ConsumerGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraft_wire.wire.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraft_wire.wire.generated.group_metadata_key import GroupMetadataKey
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraft_wire.wire.generated.legacy_offset_commit_key import LegacyOffsetCommitKey
from kraft_wire.wire.generated.legacy_offset_commit_value import LegacyOffsetCommitValue
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue
from tests.broker.groups.requests import subscription
from tests.spark.offsets_log import BEGAN_MS, TOPIC_ID, OffsetsLog, Rows

BEGAN = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=BEGAN_MS)


@pytest.fixture
def log(tmp_path: Path) -> OffsetsLog:
    return OffsetsLog(tmp_path)


def offsets(tables: Rows) -> list[tuple[Any, ...]]:
    names = ("groupId", "partition", "state", "committedOffset", "producerId")
    return [tuple(row[name] for name in names) for row in tables["group_offsets"]]


def groups(tables: Rows) -> dict[str, tuple[Any, ...]]:
    names = ("groupType", "state", "members", "changedOffset")
    return {row["groupId"]: tuple(row[name] for name in names) for row in tables["groups"]}


def classic(*member_ids: str, generation: int = 3) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range" if member_ids else None,
        leader=member_ids[0] if member_ids else None,
        current_state_timestamp=BEGAN_MS,
        members=[
            MemberMetadata(
                member_id=each,
                group_instance_id=None,
                client_id="client",
                client_host="/127.0.0.1",
                rebalance_timeout=1,
                session_timeout=1,
                subscription=subscription("t"),
                assignment=bytes.fromhex(
                    "0000 00000001 0001 74 00000002 00000001 00000000 ffffffff"
                ),
            )
            for each in member_ids
        ],
    )


def test_newest_commit_counts_and_a_tombstone_removes_it(log: OffsetsLog) -> None:
    log.commit("a", 1)
    log.commit("a", 2, topic_id=TOPIC_ID, leader_epoch=7, metadata="m")
    log.commit("a", 5, partition=1)
    log.commit("b", 3)
    log.commit("b", None)
    tables = log.tables()
    assert offsets(tables) == [("a", 0, "committed", 2, None), ("a", 1, "committed", 5, None)]
    first, second = tables["group_offsets"]
    assert first == {
        "clusterId": "cluster",
        "groupId": "a",
        "topic": "t",
        "topicId": uuid_to_text(TOPIC_ID),
        "partition": 0,
        "coordinatorPartition": 0,
        "state": "committed",
        "committedOffset": 2,
        "leaderEpoch": 7,
        "metadata": "m",
        "commitTimestamp": BEGAN,
        "expireTimestamp": None,
        "producerId": None,
        "recordOffset": 1,
    }
    assert (second["topicId"], second["leaderEpoch"]) == (None, None)
    assert groups(tables)["a"] == ("classic", "Empty", 0, None)
    assert tables["members"] == []


def test_old_commits_are_read_with_their_expiry(log: OffsetsLog) -> None:
    legacy = LegacyOffsetCommitValue(offset=4, metadata="old", commit_timestamp=BEGAN_MS)
    log.put(LegacyOffsetCommitKey(group="a", topic="t", partition=0), legacy)
    log.put(
        OffsetCommitKey(group="b", topic="t", partition=0),
        OffsetCommitValue(
            metadata="", commit_timestamp=BEGAN_MS, offset=6, expire_timestamp=BEGAN_MS + 1000
        ),
        version=1,
    )
    first, second = log.tables()["group_offsets"]
    assert (first["committedOffset"], first["metadata"]) == (4, "old")
    assert second["committedOffset"] == 6
    assert second["expireTimestamp"] == BEGAN + timedelta(seconds=1)


def test_commit_of_a_transaction_counts_from_its_marker_on(log: OffsetsLog) -> None:
    log.commit("a", 1)
    log.commit("a", 9, producer_id=5)
    pending = log.commit("a", 8, partition=1, producer_id=6)
    log.end(5)
    log.commit("a", 7, partition=2, producer_id=5)
    log.end(5, abort=True)
    expected = [
        ("a", 0, "committed", 9, None),
        ("a", 1, "pending", 8, 6),
    ]
    tables = log.tables()
    assert offsets(tables) == expected
    assert tables["group_offsets"][1]["recordOffset"] == pending
    before = log.tables(until_offset=pending)
    assert offsets(before) == [
        ("a", 0, "committed", 1, None),
        ("a", 0, "pending", 9, 5),
        ("a", 1, "pending", 8, 6),
    ]


def test_commit_outside_a_transaction_is_not_replaced_by_the_older_one_in_it(
    log: OffsetsLog,
) -> None:
    log.commit("a", 9, producer_id=5)
    log.commit("a", 4)
    log.end(5)
    assert offsets(log.tables()) == [("a", 0, "committed", 4, None)]


def test_markers_stand_between_records_of_one_window(log: OffsetsLog) -> None:
    """A second transaction of a producer is not decided by the marker of its first one."""
    log.commit("a", 1, producer_id=5)
    log.end(5, abort=True)
    log.commit("a", 2, producer_id=5)
    log.end(5)
    log.commit("a", 3, producer_id=5)
    assert offsets(log.tables()) == [("a", 0, "committed", 2, None), ("a", 0, "pending", 3, 5)]


def test_classic_group_has_its_last_generation_and_members(log: OffsetsLog) -> None:
    log.put(GroupMetadataKey(group="g"), classic("m", generation=2), 3)
    last = log.put(GroupMetadataKey(group="g"), classic("n", "m"), 3)
    log.commit("g", 1)
    tables = log.tables()
    (group,) = tables["groups"]
    assert groups(tables) == {"g": ("classic", "Stable", 2, last)}
    assert (group["generation"], group["leader"], group["protocol"]) == (3, "n", "range")
    assert group["changedTimestamp"] == BEGAN + timedelta(milliseconds=last)
    assert [each["memberId"] for each in tables["members"]] == ["m", "n"]
    member = tables["members"][0]
    assert (member["memberEpoch"], member["assignor"], member["isClassic"]) == (3, "range", True)
    assert member["subscribedTopics"] == ["t"]
    assert member["assignment"] == [
        {"topic": "t", "topicId": None, "partition": 0},
        {"topic": "t", "topicId": None, "partition": 1},
    ]
    assert groups(log.tables(until_offset=0)) == {"g": ("classic", "Stable", 1, 0)}


@pytest.mark.parametrize("tombstone", [True, False])
def test_group_ends_with_its_tombstone(log: OffsetsLog, tombstone: bool) -> None:
    log.put(GroupMetadataKey(group="g"), classic("m"), 3)
    log.put(GroupMetadataKey(group="g"), None if tombstone else classic(), 3)
    expected = {} if tombstone else {"g": ("classic", "Empty", 0, 1)}
    tables = log.tables()
    assert groups(tables) == expected
    assert tables["members"] == []


def test_members_of_other_protocols_than_consumers_have_no_topics(log: OffsetsLog) -> None:
    value = classic("m")
    value.protocol_type = "connect"
    log.put(GroupMetadataKey(group="g"), value, 3)
    broken = classic("m")
    broken.members[0].subscription = broken.members[0].assignment = b"\xff"
    log.put(GroupMetadataKey(group="h"), broken, 3)
    for member in log.tables()["members"]:
        assert (member["subscribedTopics"], member["assignment"]) == (None, None)


def consumer_group(log: OffsetsLog, epoch: int = 2) -> None:
    log.put(
        ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"),
        ConsumerGroupMemberMetadataValue(
            instance_id="i",
            rack_id="r",
            client_id="client",
            client_host="/127.0.0.1",
            subscribed_topic_names=["t"],
            subscribed_topic_regex="t.*",
            rebalance_timeout_ms=1,
            server_assignor="uniform",
            classic_member_metadata=None,
        ),
    )
    log.put(ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=epoch))
    current = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1,
        previous_member_epoch=0,
        state=1,
        assigned_partitions=[TopicPartitions(topic_id=TOPIC_ID, partitions=[1, 0])],
        partitions_pending_revocation=[TopicPartitions(topic_id=TOPIC_ID, partitions=[2])],
    )
    log.put(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"), current)


def test_consumer_group_is_in_the_state_of_its_epochs(log: OffsetsLog) -> None:
    consumer_group(log)
    tables = log.tables(t=TOPIC_ID)
    assert groups(tables) == {"g": ("consumer", "Assigning", 1, 2)}
    (group,) = tables["groups"]
    assert (group["groupEpoch"], group["assignmentEpoch"], group["generation"]) == (2, 1, None)
    (member,) = tables["members"]
    topic = {"topic": "t", "topicId": uuid_to_text(TOPIC_ID)}
    assert member["assignment"] == [topic | {"partition": 0}, topic | {"partition": 1}]
    assert member["pendingRevocation"] == [topic | {"partition": 2}]
    assert (member["state"], member["memberEpoch"]) == ("UnrevokedPartitions", 1)
    assert (member["instanceId"], member["rack"], member["isClassic"]) == ("i", "r", False)
    assert (member["subscribedRegex"], member["assignor"]) == ("t.*", "uniform")
    gone = log.tables()["members"][0]["assignment"]
    assert [each["topic"] for each in gone] == [None, None]


def test_offsets_outlive_the_tombstones_of_their_consumer_group(log: OffsetsLog) -> None:
    consumer_group(log)
    log.commit("g", 1)
    log.put(ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), None)
    log.put(ConsumerGroupMetadataKey(group_id="g"), None)
    tables = log.tables()
    assert groups(tables) == {"g": ("classic", "Empty", 0, None)}
    assert offsets(tables) == [("g", 0, "committed", 1, None)]


def test_late_tombstone_of_another_kind_changes_nothing(log: OffsetsLog) -> None:
    at = log.put(GroupMetadataKey(group="g"), classic("m"), 3)
    log.put(ConsumerGroupMetadataKey(group_id="g"), None)
    assert groups(log.tables()) == {"g": ("classic", "Stable", 1, at)}


def test_unreadable_records_are_left_out(log: OffsetsLog) -> None:
    log.commit("a", 1)
    key = b"\x00\x01" + bytes(OffsetCommitKey(group="a", topic="t", partition=0).encode(0))
    log.raw(key, b"\x00\x63")
    log.raw(key, b"\x00\x04\x00")
    log.raw(b"\x00\x01\x00", b"\x00\x04")
    log.raw(b"\x00\x63\x00\x01a", b"")
    log.raw(None, b"")
    log.raw(b"", b"")
    new = b"\x00\x05" + bytes(ConsumerGroupMemberMetadataKey(group_id="n", member_id="m").encode(0))
    log.raw(new, b"\x00\x00\x01")
    tables = log.tables()
    assert offsets(tables) == [("a", 0, "committed", 1, None)]
    assert set(groups(tables)) == {"a"}


def test_batch_with_a_wrong_checksum_is_left_out(log: OffsetsLog) -> None:
    log.commit("a", 1)
    log.commit("a", 2)
    log.commit("b", 3)
    file = log.close()
    data = bytearray(file.read_bytes())
    at = data.index((1).to_bytes(8, "big"))
    data[at + 70] ^= 1
    file.write_bytes(data)
    assert offsets(log.tables()) == [("a", 0, "committed", 1, None), ("b", 0, "committed", 3, None)]


def test_time_that_no_clock_has_is_null(log: OffsetsLog) -> None:
    log.commit("a", 1, commit_timestamp=1 << 61)
    log.commit("b", 1, commit_timestamp=-1)
    assert [row["commitTimestamp"] for row in log.tables()["group_offsets"]] == [None, None]
