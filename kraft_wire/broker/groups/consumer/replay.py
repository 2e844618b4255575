"""Replays the records of one consumer group: record type to change of the group.

Apache's coordinator refuses to load a partition whose records contradict each other. Here a
tombstone removes all that belongs to its key, and a partition that two members hold is theirs.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.coordination.record_codec import (
    read_struct,
    record_type,
    value_version,
)
from kraft_wire.broker.groups.assignors.spec import given, target_of
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.wire.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_key import (
    ConsumerGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ConsumerGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kraft_wire.wire.generated.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kraft_wire.wire.generated.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_regular_expression_key import (
    ConsumerGroupRegularExpressionKey,
)
from kraft_wire.wire.generated.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from kraft_wire.wire.generated.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from kraft_wire.wire.generated.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kraft_wire.wire.generated.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.message import MalformedMessage

__all__ = ["group_remains", "replay_record"]

_VERSION: Final = 0
_NO_EPOCH: Final = -1


def replay_record(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    """Take one record of the group; MalformedMessage if it cannot be read."""
    _BY_TYPE[record_type(key)](group, key, value)


def group_remains(key: bytes, value: bytes | None) -> bool:
    """Whether the group is there after a record: the tombstone of its epoch ends it."""
    return value is not None or record_type(key) != ConsumerGroupMetadataKey.RECORD_TYPE


def _epoch(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    if value is None:
        return
    epoch = read_struct(ConsumerGroupMetadataValue, value, _version(value))
    group.epoch, group.metadata_hash = epoch.epoch, epoch.metadata_hash


def _partition_metadata(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    group.has_partition_metadata = value is not None


def _member(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(ConsumerGroupMemberMetadataKey, key).member_id
    if value is None:
        group.remove_member(member_id)
        group.remove_target(member_id)
        return
    metadata = read_struct(ConsumerGroupMemberMetadataValue, value, _version(value))
    member = group.members.get(member_id) or ConsumerMember(member_id)
    group.put_member(member.with_metadata(metadata))


def _target_epoch(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    if value is None:
        group.assignment_epoch, group.assignment_timestamp_ms = _NO_EPOCH, 0
        return
    target = read_struct(ConsumerGroupTargetAssignmentMetadataValue, value, _version(value))
    group.assignment_epoch = target.assignment_epoch
    group.assignment_timestamp_ms = target.assignment_timestamp


def _target(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(ConsumerGroupTargetAssignmentMemberKey, key).member_id
    if value is None:
        group.remove_target(member_id)
        return
    target = read_struct(ConsumerGroupTargetAssignmentMemberValue, value, _version(value))
    stored = {each.topic_id: tuple(each.partitions) for each in target.topic_partitions}
    group.put_target(member_id, target_of(given(stored)))


def _current_assignment(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(ConsumerGroupCurrentMemberAssignmentKey, key).member_id
    member = group.members.get(member_id)
    if value is None:
        if member is not None:
            group.put_member(member.without_assignment())
        return
    current = read_struct(ConsumerGroupCurrentMemberAssignmentValue, value, _version(value))
    group.put_member((member or ConsumerMember(member_id)).with_current_assignment(current))


def _regex(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    regex = read_struct(ConsumerGroupRegularExpressionKey, key).regular_expression
    if value is None:
        group.remove_regex(regex)
        return
    found = read_struct(ConsumerGroupRegularExpressionValue, value, _version(value))
    group.put_regex(regex, ResolvedRegex(tuple(found.topics), found.version, found.timestamp))


def _version(value: bytes) -> int:
    version = value_version(value)
    if version != _VERSION:
        raise MalformedMessage("version", 0, f"consumer group value of version {version}")
    return version


_BY_TYPE: Final[dict[int, Callable[[ConsumerGroup, bytes, bytes | None], None]]] = {
    ConsumerGroupMetadataKey.RECORD_TYPE: _epoch,
    ConsumerGroupPartitionMetadataKey.RECORD_TYPE: _partition_metadata,
    ConsumerGroupMemberMetadataKey.RECORD_TYPE: _member,
    ConsumerGroupTargetAssignmentMetadataKey.RECORD_TYPE: _target_epoch,
    ConsumerGroupTargetAssignmentMemberKey.RECORD_TYPE: _target,
    ConsumerGroupCurrentMemberAssignmentKey.RECORD_TYPE: _current_assignment,
    ConsumerGroupRegularExpressionKey.RECORD_TYPE: _regex,
}
