"""The records of a consumer group, key and value, with their lists in Kafka's order."""

from __future__ import annotations

import base64

from kraft_wire.broker.groups.consumer.member import AssignedPartitions, ConsumerMember, MemberState
from kraft_wire.broker.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    group_tombstones,
    member_record,
    member_tombstones,
    regex_record,
    target_epoch_record,
    target_record,
)
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
)
from tests.broker.groups.read_records import GROUP, MEMBER, keys_of, read_record, removed

ONE, TWO = (Uuid(bytes([each]) * 16) for each in (1, 2))


def regex_key(regex: str) -> dict[str, str]:
    return {"groupId": "group", "regularExpression": regex}


def having(topic_id: Uuid, **partitions: int) -> AssignedPartitions:
    """A topic's partitions, each with the epoch since which a member has it."""
    epochs: JavaHashMap[int, int] = JavaHashMap()
    for number, epoch in partitions.items():
        epochs[int(number[1:])] = epoch
    assigned = AssignedPartitions()
    assigned[topic_id] = epochs
    return assigned


def test_member_is_written_with_all_that_it_is() -> None:
    member = ConsumerMember(
        "m",
        instance_id="i",
        rack_id="r",
        client_id="c",
        client_host="/h",
        subscribed_topic_names=("b", "a"),
        subscribed_topic_regex="x.*",
        rebalance_timeout_ms=7,
        server_assignor="range",
        classic_metadata=ClassicMemberMetadata(
            session_timeout_ms=11, supported_protocols=[ClassicProtocol(name="p", metadata=b"q")]
        ),
    )
    assert read_record(member_record("group", member)) == (
        "ConsumerGroupMemberMetadata",
        MEMBER,
        {
            "instanceId": "i",
            "rackId": "r",
            "clientId": "c",
            "clientHost": "/h",
            "subscribedTopicNames": ["a", "b"],
            "subscribedTopicRegex": "x.*",
            "rebalanceTimeoutMs": 7,
            "serverAssignor": "range",
            "classicMemberMetadata": {
                "sessionTimeoutMs": 11,
                "supportedProtocols": [{"name": "p", "metadata": base64.b64encode(b"q").decode()}],
            },
        },
    )


def test_epochs_and_expressions_are_records_of_the_group() -> None:
    assert read_record(epoch_record("group", 5, 77)) == (
        "ConsumerGroupMetadata",
        GROUP,
        {"epoch": 5, "metadataHash": 77},
    )
    assert read_record(target_epoch_record("group", 6, 99)) == (
        "ConsumerGroupTargetAssignmentMetadata",
        GROUP,
        {"assignmentEpoch": 6, "assignmentTimestamp": 99},
    )
    assert read_record(regex_record("group", "x.*", ResolvedRegex(("b", "a"), 3, 8))) == (
        "ConsumerGroupRegularExpression",
        regex_key("x.*"),
        {"topics": ["a", "b"], "version": 3, "timestamp": 8},
    )


def test_assignments_are_written_in_their_order() -> None:
    one, two = uuid_to_text(ONE), uuid_to_text(TWO)
    assert read_record(target_record("group", "m", {TWO: (3, 1), ONE: (0,)})) == (
        "ConsumerGroupTargetAssignmentMember",
        MEMBER,
        {
            "topicPartitions": [
                {"topicId": two, "partitions": [3, 1]},
                {"topicId": one, "partitions": [0]},
            ]
        },
    )
    member = ConsumerMember(
        "m",
        member_epoch=9,
        previous_member_epoch=8,
        state=MemberState.UNRELEASED_PARTITIONS,
        assigned=having(ONE, _1=4, _2=9),
        pending_revocation=having(TWO, _0=3),
    )
    assert read_record(current_assignment_record("group", member)) == (
        "ConsumerGroupCurrentMemberAssignment",
        MEMBER,
        {
            "memberEpoch": 9,
            "previousMemberEpoch": 8,
            "state": 2,
            "assignedPartitions": [
                {"topicId": one, "partitions": [1, 2], "assignmentEpochs": [4, 9]}
            ],
            "partitionsPendingRevocation": [
                {"topicId": two, "partitions": [0], "assignmentEpochs": [3]}
            ],
        },
    )


def test_tombstones_come_in_the_order_that_a_load_needs() -> None:
    current, target, metadata = (
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupMemberMetadata",
    )
    assert [read_record(each) for each in member_tombstones("group", "m")] == [
        removed(kind, MEMBER) for kind in (current, target, metadata)
    ]
    members = keys_of("m2", "m1")
    tombstones = group_tombstones("group", ["m2", "m1"], ["y.*", "x.*"])
    assert [read_record(each) for each in tombstones] == [
        *(removed(current, each) for each in members),
        *(removed(target, each) for each in members),
        removed("ConsumerGroupTargetAssignmentMetadata"),
        *(removed(metadata, each) for each in members),
        removed("ConsumerGroupRegularExpression", regex_key("y.*")),
        removed("ConsumerGroupRegularExpression", regex_key("x.*")),
        removed("ConsumerGroupPartitionMetadata"),
        removed("ConsumerGroupMetadata"),
    ]
