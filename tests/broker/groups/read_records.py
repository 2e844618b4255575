"""Reads a record of `__consumer_offsets` as the JSON form of its key and value."""

from __future__ import annotations

from typing import Any

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import read_struct, record_type, value_version
from kraft_wire.wire.generated.registry import message_class
from kraft_wire.wire.json_form import message_to_json

KINDS = {
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}
"""The record types of `CoordinatorRecordType`, all with values of version 0."""
GROUP = {"groupId": "group"}
MEMBER = {"groupId": "group", "memberId": "m"}

Read = tuple[str, Any, Any]
"""The kind of a record, its key, and its value; None: a tombstone."""


def read_record(record: CoordinatorRecord) -> Read:
    """Return what a record is, and what it says."""
    kind = KINDS[record_type(record.key)]
    key = message_to_json(read_struct(message_class(f"{kind}Key"), record.key), 0)
    if record.value is None:
        return kind, key, None
    assert value_version(record.value) == 0
    value = read_struct(message_class(f"{kind}Value"), record.value)
    return kind, key, message_to_json(value, 0)


def removed(kind: str, key: dict[str, str] = GROUP) -> Read:
    """Return the tombstone of a kind and key."""
    return kind, key, None


def keys_of(*member_ids: str) -> list[dict[str, str]]:
    """Return the keys of members of the group."""
    return [{"groupId": "group", "memberId": each} for each in member_ids]
