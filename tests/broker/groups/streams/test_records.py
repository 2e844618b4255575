"""The records of a streams group, key and value, with their lists in Kafka's order."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.groups.streams.assigned_tasks import AssignedTasks
from kraft_wire.broker.groups.streams.member import MemberState, StreamsMember, UserEndpoint
from kraft_wire.broker.groups.streams.records import (
    current_assignment_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    target_epoch_record,
    target_record,
    topology_record,
)
from kraft_wire.broker.groups.streams.tasks import TasksTuple
from kraft_wire.wire.generated.streams_group_topology_value import (
    StreamsGroupTopologyValue,
    Subtopology,
)
from kraft_wire.wire.json_form import message_to_json
from tests.broker.groups.read_records import GROUP, MEMBER, keys_of, read_record, removed


def tasks(subtopology_id: str, *partitions: int) -> dict[str, Any]:
    return {"subtopologyId": subtopology_id, "partitions": list(partitions)}


def active(subtopology_id: str, *partitions: int, epochs: list[int]) -> dict[str, Any]:
    return {**tasks(subtopology_id, *partitions), "assignmentEpochs": epochs}


@pytest.mark.parametrize("endpoint", [None, {"host": "app", "port": 8080}])
def test_member_is_written_with_all_that_it_is(endpoint: dict[str, Any] | None) -> None:
    member = StreamsMember(
        "m",
        instance_id="i",
        rack_id="r",
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=7,
        topology_epoch=3,
        process_id="p",
        user_endpoint=None if endpoint is None else UserEndpoint(**endpoint),
        client_tags={"b": "2", "a": "1"},
    )
    assert read_record(member_record("group", member)) == (
        "StreamsGroupMemberMetadata",
        MEMBER,
        {
            "instanceId": "i",
            "rackId": "r",
            "clientId": "c",
            "clientHost": "/h",
            "rebalanceTimeoutMs": 7,
            "topologyEpoch": 3,
            "processId": "p",
            "userEndpoint": endpoint,
            "clientTags": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
        },
    )


def test_epochs_and_topology_are_records_of_the_group() -> None:
    assert read_record(epoch_record("group", 5, 77, 3, {"b": "2", "a": "1"})) == (
        "StreamsGroupMetadata",
        GROUP,
        {
            "epoch": 5,
            "metadataHash": 77,
            "validatedTopologyEpoch": 3,
            "lastAssignmentConfigs": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
        },
    )
    assert read_record(target_epoch_record("group", 6, 99)) == (
        "StreamsGroupTargetAssignmentMetadata",
        GROUP,
        {"assignmentEpoch": 6, "assignmentTimestamp": 99},
    )
    stored = StreamsGroupTopologyValue(epoch=2, subtopologies=[Subtopology(subtopology_id="0")])
    assert read_record(topology_record("group", stored)) == (
        "StreamsGroupTopology",
        GROUP,
        message_to_json(stored, 0),
    )


def test_tasks_are_written_by_subtopology_and_partition() -> None:
    target = TasksTuple(
        {"b": frozenset({3, 1, 2}), "a": frozenset({9, 8})},
        {"c": frozenset({5, 4})},
        {"d": frozenset({7, 6})},
    )
    assert read_record(target_record("group", "m", target)) == (
        "StreamsGroupTargetAssignmentMember",
        MEMBER,
        {
            "activeTasks": [tasks("a", 8, 9), tasks("b", 1, 2, 3)],
            "standbyTasks": [tasks("c", 4, 5)],
            "warmupTasks": [tasks("d", 6, 7)],
        },
    )


def test_what_a_member_has_is_written_with_epochs_for_active_tasks() -> None:
    member = StreamsMember(
        "m",
        member_epoch=9,
        previous_member_epoch=8,
        state=MemberState.UNREVOKED_TASKS,
        assigned=AssignedTasks(
            {"b": {2: 7, 1: 9}, "a": {0: 4}}, {"c": frozenset({5, 4})}, {"d": frozenset({6})}
        ),
        pending_revocation=AssignedTasks(
            {"e": {1: 3}}, {"f": frozenset({2})}, {"h": frozenset({8}), "g": frozenset({7})}
        ),
    )
    assert read_record(current_assignment_record("group", member)) == (
        "StreamsGroupCurrentMemberAssignment",
        MEMBER,
        {
            "memberEpoch": 9,
            "previousMemberEpoch": 8,
            "state": int(MemberState.UNREVOKED_TASKS),
            "activeTasks": [active("a", 0, epochs=[4]), active("b", 1, 2, epochs=[9, 7])],
            "standbyTasks": [tasks("c", 4, 5)],
            "warmupTasks": [tasks("d", 6)],
            "activeTasksPendingRevocation": [active("e", 1, epochs=[3])],
            "standbyTasksPendingRevocation": [tasks("f", 2)],
            "warmupTasksPendingRevocation": [tasks("g", 7), tasks("h", 8)],
        },
    )


def test_tombstones_come_in_the_order_that_a_load_needs() -> None:
    """Current assignments, targets, then members, each member in turn; the topology is last."""
    current_, target, metadata = (
        "StreamsGroupCurrentMemberAssignment",
        "StreamsGroupTargetAssignmentMember",
        "StreamsGroupMemberMetadata",
    )
    assert [read_record(each) for each in member_tombstones("group", "m")] == [
        removed(kind, MEMBER) for kind in (current_, target, metadata)
    ]
    members = keys_of("m2", "m1")
    assert [read_record(each) for each in group_tombstones("group", ["m2", "m1"])] == [
        *(removed(current_, each) for each in members),
        *(removed(target, each) for each in members),
        removed("StreamsGroupTargetAssignmentMetadata"),
        *(removed(metadata, each) for each in members),
        removed("StreamsGroupMetadata"),
        removed("StreamsGroupTopology"),
    ]
