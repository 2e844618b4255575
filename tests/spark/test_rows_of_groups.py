"""Whole rows of groups, members and offsets of every kind of group, from records made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.wire.generated import consumer_group_current_member_assignment_key as consumer_now
from kraft_wire.wire.generated import consumer_group_current_member_assignment_value as consumer_has
from kraft_wire.wire.generated import consumer_group_member_metadata_key as consumer_member
from kraft_wire.wire.generated import consumer_group_member_metadata_value as consumer_about
from kraft_wire.wire.generated import consumer_group_target_assignment_member_key as consumer_to
from kraft_wire.wire.generated import consumer_group_target_assignment_member_value as consumer_goal
from kraft_wire.wire.generated import share_group_current_member_assignment_key as share_now
from kraft_wire.wire.generated import share_group_current_member_assignment_value as share_has
from kraft_wire.wire.generated import share_group_target_assignment_member_key as share_to
from kraft_wire.wire.generated import share_group_target_assignment_member_value as share_goal
from kraft_wire.wire.generated import streams_group_current_member_assignment_key as streams_now
from kraft_wire.wire.generated import streams_group_current_member_assignment_value as streams_has
from kraft_wire.wire.generated import streams_group_target_assignment_member_key as streams_to
from kraft_wire.wire.generated import streams_group_target_assignment_member_value as streams_goal
from kraft_wire.wire.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraft_wire.wire.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraft_wire.wire.generated.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.generated.group_metadata_key import GroupMetadataKey
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraft_wire.wire.generated.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kraft_wire.wire.generated.share_group_member_metadata_value import (
    ShareGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.share_group_metadata_key import ShareGroupMetadataKey
from kraft_wire.wire.generated.share_group_metadata_value import ShareGroupMetadataValue
from kraft_wire.wire.generated.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.generated.streams_group_member_metadata_key import (
    StreamsGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.streams_group_member_metadata_value import (
    StreamsGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.streams_group_metadata_key import StreamsGroupMetadataKey
from kraft_wire.wire.generated.streams_group_metadata_value import StreamsGroupMetadataValue
from kraft_wire.wire.generated.streams_group_topology_key import StreamsGroupTopologyKey
from kraft_wire.wire.generated.streams_group_topology_value import StreamsGroupTopologyValue
from kraft_wire.wire.message import Message
from tests.broker.groups.requests import subscription
from tests.spark.offsets_log import BEGAN_MS, TOPIC_ID, OffsetsLog

TEXT = uuid_to_text(TOPIC_ID)
GONE = Uuid(bytes(16 * [7]))
CLIENT: dict[str, Any] = {"client_id": "client", "client_host": "/127.0.0.1"}


@pytest.fixture
def log(tmp_path: Path) -> OffsetsLog:
    return OffsetsLog(tmp_path)


def at(offset: int) -> datetime:
    """The time of a record."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=BEGAN_MS + offset)


def put(log: OffsetsLog, records: list[tuple[Message, Message]]) -> None:
    for key, value in records:
        log.put(key, value)


GROUP: dict[str, Any] = {
    "clusterId": "cluster",
    "coordinatorPartition": 0,
    **dict.fromkeys(("protocol", "generation", "leader", "topologyEpoch")),
}
MEMBER: dict[str, Any] = {
    "clusterId": "cluster",
    "groupId": "g",
    "memberId": "m",
    "clientId": "client",
    "clientHost": "/127.0.0.1",
    "isClassic": False,
    **dict.fromkeys(("instanceId", "rack", "state", "subscribedTopics", "subscribedRegex")),
    **dict.fromkeys(("assignor", "assignment", "pendingRevocation", "targetAssignment")),
    **dict.fromkeys(("processId", "topologyEpoch", "tasks")),
    **dict.fromkeys(("tasksPendingRevocation", "targetTasks")),
}


def place(partition: int, topic: str | None = "t", topic_id: str | None = TEXT) -> dict[str, Any]:
    return {"topic": topic, "topicId": topic_id, "partition": partition}


def test_rows_of_a_share_group(log: OffsetsLog) -> None:
    about = ShareGroupMemberMetadataValue(rack_id="r", subscribed_topic_names=["u", "t"], **CLIENT)
    has = share_has.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=4,
        previous_member_epoch=3,
        assigned_partitions=[share_has.TopicPartitions(topic_id=TOPIC_ID, partitions=[2, 1])],
    )
    goal = share_goal.ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            share_goal.TopicPartition(topic_id=GONE, partitions=[5]),
            share_goal.TopicPartition(topic_id=TOPIC_ID, partitions=[0]),
        ]
    )
    member = {"group_id": "g", "member_id": "m"}
    put(
        log,
        [
            (ShareGroupMemberMetadataKey(**member), about),
            (ShareGroupMetadataKey(group_id="g"), ShareGroupMetadataValue(epoch=5)),
            (share_to.ShareGroupTargetAssignmentMemberKey(**member), goal),
            (
                ShareGroupTargetAssignmentMetadataKey(group_id="g"),
                ShareGroupTargetAssignmentMetadataValue(assignment_epoch=4),
            ),
            (share_now.ShareGroupCurrentMemberAssignmentKey(**member), has),
        ],
    )
    tables = log.tables(t=TOPIC_ID)
    assert tables["groups"] == [
        GROUP
        | {
            "groupId": "g",
            "groupType": "share",
            "state": "Stable",
            "protocolType": "share",
            "groupEpoch": 5,
            "assignmentEpoch": 4,
            "members": 1,
            "changedOffset": 4,
            "changedTimestamp": at(4),
        }
    ]
    assert tables["members"] == [
        MEMBER
        | {
            "groupType": "share",
            "rack": "r",
            "memberEpoch": 4,
            "state": "Stable",
            "subscribedTopics": ["t", "u"],
            "assignment": [place(1), place(2)],
            "targetAssignment": [place(0), place(5, None, uuid_to_text(GONE))],
        }
    ]


def test_rows_of_a_streams_group(log: OffsetsLog) -> None:
    about = StreamsGroupMemberMetadataValue(
        instance_id="i", rack_id=None, topology_epoch=3, process_id="p", **CLIENT
    )

    def has_tasks(name: str, *partitions: int) -> list[streams_has.TaskIds]:
        epochs = [1] * len(partitions)
        ids = streams_has.TaskIds(
            subtopology_id=name, partitions=[*partitions], assignment_epochs=epochs
        )
        return [ids]

    def goal_tasks(name: str, *partitions: int) -> list[streams_goal.TaskIds]:
        return [streams_goal.TaskIds(subtopology_id=name, partitions=[*partitions])]

    has = streams_has.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=6,
        previous_member_epoch=5,
        state=2,
        active_tasks=[*has_tasks("1", 4, 3), *has_tasks("0", 9)],
        standby_tasks=has_tasks("0", 1),
        warmup_tasks=has_tasks("0", 2),
        active_tasks_pending_revocation=has_tasks("2", 7),
    )
    goal = streams_goal.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=goal_tasks("1", 3), warmup_tasks=goal_tasks("0", 8)
    )
    member = {"group_id": "g", "member_id": "m"}
    put(
        log,
        [
            (StreamsGroupMemberMetadataKey(**member), about),
            (StreamsGroupMetadataKey(group_id="g"), StreamsGroupMetadataValue(epoch=7)),
            (StreamsGroupTopologyKey(group_id="g"), StreamsGroupTopologyValue(epoch=3)),
            (streams_to.StreamsGroupTargetAssignmentMemberKey(**member), goal),
            (streams_now.StreamsGroupCurrentMemberAssignmentKey(**member), has),
        ],
    )
    tables = log.tables()
    (group,) = tables["groups"]
    assert (group["groupType"], group["protocolType"]) == ("streams", "streams")
    assert (group["groupEpoch"], group["topologyEpoch"], group["members"]) == (7, 3, 1)
    names = ("kind", "subtopology", "partition")
    tasks = [
        *(("active", "0", 9), ("active", "1", 3), ("active", "1", 4)),
        *(("standby", "0", 1), ("warmup", "0", 2)),
    ]
    target = [("active", "1", 3), ("warmup", "0", 8)]
    assert tables["members"] == [
        MEMBER
        | {
            "groupType": "streams",
            "instanceId": "i",
            "memberEpoch": 6,
            "state": "UnrevokedTasks",
            "processId": "p",
            "topologyEpoch": 3,
            "tasks": [dict(zip(names, each, strict=True)) for each in tasks],
            "tasksPendingRevocation": [{"kind": "active", "subtopology": "2", "partition": 7}],
            "targetTasks": [dict(zip(names, each, strict=True)) for each in target],
        }
    ]


def test_rows_of_a_consumer_group(log: OffsetsLog) -> None:
    about = consumer_about.ConsumerGroupMemberMetadataValue(
        instance_id="i",
        rack_id="r",
        subscribed_topic_names=["u", "t"],
        subscribed_topic_regex="",
        rebalance_timeout_ms=1,
        server_assignor="uniform",
        classic_member_metadata=consumer_about.ClassicMemberMetadata(),
        **CLIENT,
    )
    has = consumer_has.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2,
        previous_member_epoch=1,
        state=2,
        assigned_partitions=[consumer_has.TopicPartitions(topic_id=TOPIC_ID, partitions=[1])],
        partitions_pending_revocation=[
            consumer_has.TopicPartitions(topic_id=TOPIC_ID, partitions=[4, 3])
        ],
    )
    goal = consumer_goal.ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[consumer_goal.TopicPartition(topic_id=TOPIC_ID, partitions=[2])]
    )
    member = {"group_id": "g", "member_id": "m"}
    put(
        log,
        [
            (consumer_member.ConsumerGroupMemberMetadataKey(**member), about),
            (ConsumerGroupMetadataKey(group_id="g"), ConsumerGroupMetadataValue(epoch=2)),
            (consumer_to.ConsumerGroupTargetAssignmentMemberKey(**member), goal),
            (
                ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
                ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2),
            ),
            (consumer_now.ConsumerGroupCurrentMemberAssignmentKey(**member), has),
        ],
    )
    tables = log.tables(t=TOPIC_ID)
    assert tables["groups"] == [
        GROUP
        | {
            "groupId": "g",
            "groupType": "consumer",
            "state": "Reconciling",
            "protocolType": "consumer",
            "groupEpoch": 2,
            "assignmentEpoch": 2,
            "members": 1,
            "changedOffset": 4,
            "changedTimestamp": at(4),
        }
    ]
    assert tables["members"] == [
        MEMBER
        | {
            "groupType": "consumer",
            "instanceId": "i",
            "rack": "r",
            "isClassic": True,
            "memberEpoch": 2,
            "state": "UnreleasedPartitions",
            "subscribedTopics": ["t", "u"],
            "assignor": "uniform",
            "assignment": [place(1)],
            "pendingRevocation": [place(3), place(4)],
            "targetAssignment": [place(2)],
        }
    ]


def test_rows_of_a_classic_group(log: OffsetsLog) -> None:
    member = MemberMetadata(
        member_id="m",
        group_instance_id="i",
        rebalance_timeout=1,
        session_timeout=1,
        subscription=subscription("t"),
        assignment=b"",
        **CLIENT,
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m",
        current_state_timestamp=BEGAN_MS,
        members=[member],
    )
    log.put(GroupMetadataKey(group="g"), value, 3)
    tables = log.tables()
    assert tables["groups"] == [
        GROUP
        | {
            "groupId": "g",
            "groupType": "classic",
            "state": "Stable",
            "protocolType": "consumer",
            "protocol": "range",
            "generation": 3,
            "leader": "m",
            "groupEpoch": None,
            "assignmentEpoch": None,
            "members": 1,
            "changedOffset": 0,
            "changedTimestamp": at(0),
        }
    ]
    assert tables["members"] == [
        MEMBER
        | {
            "groupType": "classic",
            "instanceId": "i",
            "isClassic": True,
            "memberEpoch": 3,
            "subscribedTopics": ["t"],
            "assignor": "range",
            "assignment": [],
        }
    ]


def test_rows_of_offsets(log: OffsetsLog) -> None:
    log.commit("b", 7, partition=1)
    log.commit("b", 5, leader_epoch=3, metadata="x")
    log.commit("a", 6, producer_id=9, topic_id=TOPIC_ID)
    row = {
        "clusterId": "cluster",
        "topic": "t",
        "topicId": None,
        "coordinatorPartition": 0,
        "state": "committed",
        "leaderEpoch": None,
        "metadata": "",
        "producerId": None,
        "commitTimestamp": at(0),
        "expireTimestamp": None,
    }
    assert log.tables()["group_offsets"] == [
        row
        | {
            "groupId": "a",
            "partition": 0,
            "committedOffset": 6,
            "recordOffset": 2,
            "state": "pending",
            "producerId": 9,
            "topicId": TEXT,
        },
        row
        | {
            "groupId": "b",
            "partition": 0,
            "committedOffset": 5,
            "recordOffset": 1,
            "leaderEpoch": 3,
            "metadata": "x",
        },
        row | {"groupId": "b", "partition": 1, "committedOffset": 7, "recordOffset": 0},
    ]
