"""What a consumer group's heartbeat must say, and which epoch its member may send."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.groups.consumer.checks import check_epoch
from kraft_wire.broker.groups.consumer.member import AssignedPartitions, ConsumerMember
from kraft_wire.broker.groups.consumer.request_checks import check_request
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kraft_wire.wire.generated.error_code import ErrorCode

ONE, TWO = (Uuid(bytes([each]) * 16) for each in (1, 2))
OWNED = [TopicPartitions(topic_id=ONE, partitions=[0])]
NO_TOPICS = {"subscribed_topic_names": None, "subscribed_topic_regex": None}


def joining(**changes: Any) -> ConsumerGroupHeartbeatRequest:
    fields: dict[str, Any] = {
        "group_id": "group",
        "member_id": "m",
        "member_epoch": 0,
        "rebalance_timeout_ms": 5_000,
        "subscribed_topic_names": ["a"],
        "topic_partitions": [],
    }
    return ConsumerGroupHeartbeatRequest(**{**fields, **changes})


@pytest.mark.parametrize(
    ("version", "changes", "message"),
    [
        (1, {"member_id": " ", "group_id": ""}, "MemberId can't be empty."),
        (0, {"member_id": "", "member_epoch": 1}, "MemberId can't be empty."),
        (0, {"member_id": "", "member_epoch": -1}, "MemberId can't be empty."),
        (0, {"member_id": ""}, None),
        (0, {"member_id": "", "member_epoch": -2, "instance_id": "i"}, None),
        (1, {"group_id": " ", "instance_id": ""}, "GroupId can't be empty."),
        (1, {"instance_id": "", "rack_id": ""}, "InstanceId can't be empty."),
        (1, {"rack_id": " ", "rebalance_timeout_ms": -1}, "RackId can't be empty."),
        (
            1,
            {"rebalance_timeout_ms": -1, "topic_partitions": OWNED},
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (
            1,
            {"topic_partitions": OWNED, **NO_TOPICS},
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (1, {"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            1,
            NO_TOPICS,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        (1, {**NO_TOPICS, "subscribed_topic_regex": ""}, None),
        (1, {**NO_TOPICS, "subscribed_topic_names": []}, None),
        (1, {"rebalance_timeout_ms": 0, "instance_id": "i", "rack_id": "r"}, None),
        (1, {"member_epoch": -2}, "InstanceId can't be null."),
        (1, {"member_epoch": -2, "instance_id": "i"}, None),
        (1, {"member_epoch": -3, "instance_id": "i"}, "MemberEpoch is invalid."),
        (1, {"member_epoch": -1, "rebalance_timeout_ms": -1, **NO_TOPICS}, None),
        (1, {"member_epoch": 3, "topic_partitions": None, **NO_TOPICS}, None),
        (1, {"member_epoch": 3, "topic_partitions": OWNED}, None),
    ],
)
def test_first_fault_of_a_heartbeat_is_told(
    version: int, changes: dict[str, Any], message: str | None
) -> None:
    """`throwIfConsumerGroupHeartbeatRequestIsInvalid`, in its order."""
    expected = message and Refusal(ErrorCode.INVALID_REQUEST, message)
    assert check_request(joining(**changes), version, ["uniform", "range"]) == expected
    odd = joining(**changes, server_assignor="odd")
    assert check_request(odd, version, ["uniform", "range"]) == (
        expected
        or Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "ServerAssignor odd is not supported. Supported assignors: uniform, range.",
        )
    )
    usual = joining(**changes, server_assignor="range")
    assert check_request(usual, version, ["uniform", "range"]) == expected


@pytest.mark.parametrize(
    ("epoch", "owned", "is_refused"),
    [
        (0, None, None),
        (9, {TWO: [5]}, None),
        (7, {}, None),
        (7, {ONE: []}, None),
        (7, {ONE: [2, 1]}, None),
        (7, None, "smaller"),
        (7, {ONE: [1, 3]}, "smaller"),
        (7, {ONE: [3, 1]}, "smaller"),
        (7, {ONE: [1], TWO: []}, "smaller"),
        (8, {}, "smaller"),
        (6, {}, "smaller"),
        (-1, {}, "smaller"),
        (10, {}, "greater"),
    ],
)
def test_epoch_before_is_taken_with_partitions_that_the_member_has(
    epoch: int, owned: dict[Uuid, list[int]] | None, is_refused: str | None
) -> None:
    """`throwIfConsumerGroupMemberEpochIsInvalid`."""
    partitions: JavaHashMap[int, int] = JavaHashMap()
    partitions[1], partitions[2] = 4, 9
    assigned = AssignedPartitions()
    assigned[ONE] = partitions
    member = ConsumerMember("m", member_epoch=9, previous_member_epoch=7, assigned=assigned)
    expected = is_refused and Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {is_refused} member epoch ({epoch}) than the one known "
        "by the group coordinator (9). The member must abandon all its partitions and rejoin.",
    )
    assert check_epoch(member, epoch, owned) == expected
