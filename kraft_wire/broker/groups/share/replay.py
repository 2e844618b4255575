"""Replays the records of one share group: record type to change of the group.

Apache's coordinator refuses to load a partition whose records contradict each other. Here a
tombstone removes all that belongs to its key.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.coordination.record_codec import (
    read_struct,
    record_type,
    value_version,
)
from kraft_wire.broker.groups.assignors.spec import given, target_of
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.state_partitions import (
    DeletingTopics,
    NamedPartitions,
    PartitionsByTopic,
    StatePartitions,
    partition_set,
)
from kraft_wire.wire.generated.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kraft_wire.wire.generated.share_group_member_metadata_value import (
    ShareGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.share_group_metadata_key import ShareGroupMetadataKey
from kraft_wire.wire.generated.share_group_metadata_value import ShareGroupMetadataValue
from kraft_wire.wire.generated.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from kraft_wire.wire.generated.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from kraft_wire.wire.generated.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from kraft_wire.wire.generated.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
)
from kraft_wire.wire.generated.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.message import MalformedMessage

__all__ = ["replay_record", "share_group_remains"]

_VERSION: Final = 0
_NO_EPOCH: Final = -1


def replay_record(group: ShareGroup, key: bytes, value: bytes | None) -> None:
    """Take one record of the group; MalformedMessage if it cannot be read."""
    _BY_TYPE[record_type(key)](group, key, value)


def share_group_remains(key: bytes, value: bytes | None) -> bool:
    """Whether the group is there after a record: the tombstone of its epoch ends it."""
    return value is not None or record_type(key) != ShareGroupMetadataKey.RECORD_TYPE


def _member(group: ShareGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(ShareGroupMemberMetadataKey, key).member_id
    if value is None:
        group.remove_member(member_id)
        group.remove_target(member_id)
        return
    metadata = read_struct(ShareGroupMemberMetadataValue, value, _version(value))
    group.put_member(_found(group, member_id).with_metadata(metadata))


def _epoch(group: ShareGroup, key: bytes, value: bytes | None) -> None:
    if value is None:
        return
    epoch = read_struct(ShareGroupMetadataValue, value, _version(value))
    group.epoch, group.metadata_hash = epoch.epoch, epoch.metadata_hash


def _target_epoch(group: ShareGroup, key: bytes, value: bytes | None) -> None:
    if value is None:
        group.assignment_epoch, group.assignment_timestamp_ms = _NO_EPOCH, 0
        return
    target = read_struct(ShareGroupTargetAssignmentMetadataValue, value, _version(value))
    group.assignment_epoch = target.assignment_epoch
    group.assignment_timestamp_ms = target.assignment_timestamp


def _target(group: ShareGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(ShareGroupTargetAssignmentMemberKey, key).member_id
    if value is None:
        group.remove_target(member_id)
        return
    target = read_struct(ShareGroupTargetAssignmentMemberValue, value, _version(value))
    stored = {each.topic_id: tuple(each.partitions) for each in target.topic_partitions}
    group.put_target(member_id, target_of(given(stored)))


def _current_assignment(group: ShareGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(ShareGroupCurrentMemberAssignmentKey, key).member_id
    if value is None:
        member = group.members.get(member_id)
        if member is not None:
            group.put_member(member.without_assignment())
        return
    current = read_struct(ShareGroupCurrentMemberAssignmentValue, value, _version(value))
    group.put_member(_found(group, member_id).with_current_assignment(current))


def _state_partitions(group: ShareGroup, key: bytes, value: bytes | None) -> None:
    if value is None:
        group.put_state_partitions(None)
        return
    found = read_struct(ShareGroupStatePartitionMetadataValue, value, _version(value))
    deleting: DeletingTopics = JavaHashMap()
    for topic in found.deleting_topics:
        deleting[topic.topic_id] = topic.topic_name
    initializing = _partitions_by_topic(found.initializing_topics)
    initialized = _partitions_by_topic(found.initialized_topics)
    group.put_state_partitions(StatePartitions(initializing, initialized, deleting))


def _found(group: ShareGroup, member_id: str) -> ShareMember:
    """Return a member; one without records is put in first, as in Apache's order."""
    member = group.members.get(member_id)
    if member is None:
        member = ShareMember(member_id)
        group.put_member(member)
    return member


def _partitions_by_topic(topics: list[TopicPartitionsInfo]) -> PartitionsByTopic:
    found: PartitionsByTopic = JavaHashMap()
    for topic in topics:
        found[topic.topic_id] = NamedPartitions(topic.topic_name, partition_set(topic.partitions))
    return found


def _version(value: bytes) -> int:
    version = value_version(value)
    if version != _VERSION:
        raise MalformedMessage("version", 0, f"share group value of version {version}")
    return version


_BY_TYPE: Final[dict[int, Callable[[ShareGroup, bytes, bytes | None], None]]] = {
    ShareGroupMemberMetadataKey.RECORD_TYPE: _member,
    ShareGroupMetadataKey.RECORD_TYPE: _epoch,
    ShareGroupTargetAssignmentMetadataKey.RECORD_TYPE: _target_epoch,
    ShareGroupTargetAssignmentMemberKey.RECORD_TYPE: _target,
    ShareGroupCurrentMemberAssignmentKey.RECORD_TYPE: _current_assignment,
    ShareGroupStatePartitionMetadataKey.RECORD_TYPE: _state_partitions,
}
