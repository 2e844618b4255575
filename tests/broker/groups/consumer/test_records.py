"""What we read of consumer groups, and would write, is what Apache's group manager has."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    member_record,
    regex_record,
    target_epoch_record,
    target_record,
)
from kraft_wire.broker.groups.consumer.replay import group_remains, replay_record
from kraft_wire.model import uuid_to_text
from kraft_wire.wire.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue as CurrentAssignment,
)
from kraft_wire.wire.generated.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue as TargetAssignment,
)
from tests.broker.groups.consumer.apache_groups import Answer, Step
from tests.broker.groups.consumer.recorded_walks import fresh, recorded

Walked = list[tuple[Step, Answer]]
WALKS = recorded()
FRESH_SEEDS = range(1_000, 1_020)


class Reader:
    """A group that is made of Apache's records."""

    def __init__(self) -> None:
        self.memory = MemoryUse(lambda: 1 << 40)
        self.group: ConsumerGroup | None = None
        self.values: dict[bytes, bytes] = {}
        """The last record of each key."""

    def take(self, key: bytes, value: bytes | None) -> None:
        if self.group is None:
            assert value is not None
            self.group = ConsumerGroup("group", self.memory)
        replay_record(self.group, key, value)
        if not group_remains(key, value):
            self.group.release()
            self.group = None
        self.values.pop(key, None)
        if value is not None:
            self.values[key] = value


def follow(walk: Walked) -> Reader:
    """Read the records of a walk, and compare the group with each description of Apache's."""
    reader = Reader()
    topics: dict[str, None] = {}
    for step, answer in walk:
        if step["step"] == "topic":
            topics[step["id"]] = None
        elif step["step"] == "delete topic":
            del topics[step["id"]]
        for write in answer.get("writes", ()):
            tombstones = None
            if step["step"] == "delete":
                assert reader.group is not None
                tombstones = reader.group.tombstones()
            for key, value in write:
                reader.take(bytes.fromhex(key), None if value is None else bytes.fromhex(value))
            if tombstones is not None:
                assert [[each.key.hex(), None] for each in tombstones] == write
        for described in answer.get("groups", ()):
            assert (reader.group is not None) == (described["errorCode"] == 0)
            if reader.group is not None:
                assert as_described(reader.group, list(topics)) == stripped(described)
                assert unordered(written(reader.group)) == unordered(reader.values)
    return reader


def stripped(described: dict[str, Any]) -> dict[str, Any]:
    """Return the described group in the form of `as_described`."""
    return {
        "state": described["groupState"],
        "epoch": described["groupEpoch"],
        "assignment_epoch": described["assignmentEpoch"],
        "members": [
            {
                field: each[field]
                for field in (
                    "memberId",
                    "instanceId",
                    "rackId",
                    "memberEpoch",
                    "clientId",
                    "clientHost",
                    "subscribedTopicRegex",
                )
            }
            | {"names": sorted(each["subscribedTopicNames"])}
            for each in described["members"]
        ],
        "assigned": {
            (each["memberId"], topic["topicId"]): sorted(topic["partitions"])
            for each in described["members"]
            for topic in each["assignment"]["topicPartitions"]
        },
        "targets": {
            (each["memberId"], topic["topicId"]): topic["partitions"]
            for each in described["members"]
            for topic in each["targetAssignment"]["topicPartitions"]
        },
    }


def as_described(group: ConsumerGroup, present: list[str]) -> dict[str, Any]:
    """Return our group in the form of `stripped`, without deleted topics."""
    assigned: dict[tuple[str, str], list[int]] = {}
    for member in group.members.values():
        for topics in (member.assigned, member.pending_revocation):
            for topic_id, partitions in topics.items():
                if uuid_to_text(topic_id) in present:
                    found = assigned.setdefault((member.member_id, uuid_to_text(topic_id)), [])
                    found += partitions
    return {
        "state": group.state_name,
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "members": [
            {
                "memberId": each.member_id,
                "instanceId": each.instance_id,
                "rackId": each.rack_id,
                "memberEpoch": each.member_epoch,
                "clientId": each.client_id,
                "clientHost": each.client_host,
                "subscribedTopicRegex": each.subscribed_topic_regex,
                "names": sorted(each.subscribed_topic_names),
            }
            for each in group.members.values()
        ],
        "assigned": {key: sorted(partitions) for key, partitions in assigned.items()},
        "targets": {
            (member_id, uuid_to_text(topic_id)): list(partitions)
            for member_id, target in group.targets.items()
            for topic_id, partitions in target.items()
            if uuid_to_text(topic_id) in present
        },
    }


def written(group: ConsumerGroup) -> dict[bytes, bytes]:
    """Return every record that the group would write now."""
    records: list[CoordinatorRecord] = []
    if group.epoch > 1:  # a first member without topics does not raise it
        records.append(epoch_record(group.group_id, group.epoch, group.metadata_hash))
    if group.assignment_timestamp_ms:
        epoch, wall_ms = group.assignment_epoch, group.assignment_timestamp_ms
        records.append(target_epoch_record(group.group_id, epoch, wall_ms))
    for member in group.members.values():
        records.append(member_record(group.group_id, member))
        records.append(current_assignment_record(group.group_id, member))
    for member_id, target in group.targets.items():
        records.append(target_record(group.group_id, member_id, target))
    for regex, resolved in group.regexes.items():
        records.append(regex_record(group.group_id, regex, resolved))
    return {key: value for key, value in records if value is not None}


def unordered(records: dict[bytes, bytes]) -> dict[bytes, Any]:
    """Sort the partitions of assignments: Apache forgets their order when it reads them."""
    sorts = {7: _sorted_target, 8: _sorted}
    return {key: sorts.get(key[1], bytes)(value) for key, value in records.items()}


def _sorted_target(value: bytes) -> list[Any]:
    target, end = TargetAssignment.decode(value, 0, 2)
    assert end == len(value)
    return sorted((each.topic_id, sorted(each.partitions)) for each in target.topic_partitions)


def _sorted(value: bytes) -> list[Any]:
    current, end = CurrentAssignment.decode(value, 0, 2)
    assert end == len(value)
    both = (current.assigned_partitions, current.partitions_pending_revocation)
    return [
        current.member_epoch,
        current.previous_member_epoch,
        current.state,
        *(
            sorted(
                (topic.topic_id, partition, epoch)
                for topic in topics
                for partition, epoch in zip(
                    topic.partitions, topic.assignment_epochs or (), strict=True
                )
            )
            for topics in both
        ),
    ]


@pytest.mark.parametrize("number", range(len(WALKS)))
def test_a_group_that_is_read_is_the_one_that_apache_describes(number: int) -> None:
    reader = follow(WALKS[number])
    assert reader.group is None
    assert reader.memory.total_bytes == 0


@pytest.mark.java
def test_groups_of_fresh_walks_are_read_as_apache_describes_them() -> None:
    for walk in fresh(dict.fromkeys(FRESH_SEEDS, 80)):
        follow(walk)
