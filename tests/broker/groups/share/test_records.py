"""The records of a share group, key and value, with their lists in Kafka's order."""

from __future__ import annotations

from kraft_wire.broker.groups.java_collections import java_hash_set
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.records import (
    current_assignment_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    state_partitions_record,
    target_epoch_record,
    target_record,
)
from kraft_wire.broker.groups.share.state_partitions import (
    DeletingTopics,
    NamedPartitions,
    PartitionsByTopic,
    StatePartitions,
    partition_set,
)
from kraft_wire.model import Uuid, uuid_to_text
from tests.broker.groups.read_records import GROUP, MEMBER, keys_of, read_record, removed

ONE, TWO, THREE = (Uuid(bytes([each]) * 16) for each in (1, 2, 3))
ASSIGNED = {TWO: (3, 1), ONE: (0,)}
LISTED = [
    {"topicId": uuid_to_text(TWO), "partitions": [3, 1]},
    {"topicId": uuid_to_text(ONE), "partitions": [0]},
]


def test_member_is_written_with_its_sorted_topics() -> None:
    member = ShareMember("m", "r", "c", "/h", java_hash_set(["b", "a", "c"]))
    assert read_record(member_record("group", member)) == (
        "ShareGroupMemberMetadata",
        MEMBER,
        {
            "rackId": "r",
            "clientId": "c",
            "clientHost": "/h",
            "subscribedTopicNames": ["a", "b", "c"],
        },
    )


def test_epochs_are_records_of_the_group() -> None:
    assert read_record(epoch_record("group", 5, 77)) == (
        "ShareGroupMetadata",
        GROUP,
        {"epoch": 5, "metadataHash": 77},
    )
    assert read_record(target_epoch_record("group", 6, 99)) == (
        "ShareGroupTargetAssignmentMetadata",
        GROUP,
        {"assignmentEpoch": 6, "assignmentTimestamp": 99},
    )


def test_assignments_are_written_in_their_order() -> None:
    assert read_record(target_record("group", "m", ASSIGNED)) == (
        "ShareGroupTargetAssignmentMember",
        MEMBER,
        {"topicPartitions": LISTED},
    )
    member = ShareMember("m", member_epoch=9, previous_member_epoch=8, assigned=ASSIGNED)
    assert read_record(current_assignment_record("group", member)) == (
        "ShareGroupCurrentMemberAssignment",
        MEMBER,
        {
            "memberEpoch": 9,
            "previousMemberEpoch": 8,
            "state": 0,
            "assignedPartitions": LISTED,
        },
    )


def test_share_partitions_are_written_by_what_happens_to_them() -> None:
    initializing, initialized = PartitionsByTopic(), PartitionsByTopic()
    initializing[ONE] = NamedPartitions("one", partition_set([0, 2]))
    initialized[TWO] = NamedPartitions("two", partition_set([1]))
    deleting = DeletingTopics()
    deleting[THREE] = "three"
    topics = StatePartitions(initializing, initialized, deleting)
    one, two, three = map(uuid_to_text, (ONE, TWO, THREE))
    assert read_record(state_partitions_record("group", topics)) == (
        "ShareGroupStatePartitionMetadata",
        GROUP,
        {
            "initializingTopics": [{"topicId": one, "topicName": "one", "partitions": [0, 2]}],
            "initializedTopics": [{"topicId": two, "topicName": "two", "partitions": [1]}],
            "deletingTopics": [{"topicId": three, "topicName": "three"}],
        },
    )


def test_tombstones_come_in_the_order_that_a_load_needs() -> None:
    current, target, metadata = (
        "ShareGroupCurrentMemberAssignment",
        "ShareGroupTargetAssignmentMember",
        "ShareGroupMemberMetadata",
    )
    assert [read_record(each) for each in member_tombstones("group", "m")] == [
        removed(kind, MEMBER) for kind in (current, target, metadata)
    ]
    members = keys_of("m2", "m1")
    assert [read_record(each) for each in group_tombstones("group", ["m2", "m1"])] == [
        *(removed(current, each) for each in members),
        *(removed(target, each) for each in members),
        removed("ShareGroupTargetAssignmentMetadata"),
        *(removed(metadata, each) for each in members),
        removed("ShareGroupStatePartitionMetadata"),
        removed("ShareGroupMetadata"),
    ]
