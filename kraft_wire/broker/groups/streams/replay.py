"""Replays the records of one streams group: record type to change of the group.

Apache's coordinator refuses to load a partition whose records contradict each other. Here a
tombstone removes all that belongs to its key. Type 18 belonged to early access releases, and no
release reads it.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.coordination.record_codec import (
    read_struct,
    record_type,
    value_version,
)
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.tasks import Tasks, TasksTuple
from kraft_wire.wire.generated.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.streams_group_member_metadata_key import (
    StreamsGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.streams_group_member_metadata_value import (
    StreamsGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.streams_group_metadata_key import StreamsGroupMetadataKey
from kraft_wire.wire.generated.streams_group_metadata_value import StreamsGroupMetadataValue
from kraft_wire.wire.generated.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from kraft_wire.wire.generated.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
    TaskIds,
)
from kraft_wire.wire.generated.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.generated.streams_group_topology_key import StreamsGroupTopologyKey
from kraft_wire.wire.generated.streams_group_topology_value import StreamsGroupTopologyValue
from kraft_wire.wire.message import MalformedMessage

__all__ = ["replay_record", "streams_group_remains"]

_VERSION: Final = 0
_NO_EPOCH: Final = -1


def replay_record(group: StreamsGroup, key: bytes, value: bytes | None) -> None:
    """Take one record of the group; MalformedMessage if it cannot be read."""
    replay = _BY_TYPE.get(record_type(key))
    if replay is not None:
        replay(group, key, value)


def streams_group_remains(key: bytes, value: bytes | None) -> bool:
    """Whether the group is there after a record: the tombstone of its epoch ends it."""
    return value is not None or record_type(key) != StreamsGroupMetadataKey.RECORD_TYPE


def _epoch(group: StreamsGroup, key: bytes, value: bytes | None) -> None:
    if value is None:
        return
    found = read_struct(StreamsGroupMetadataValue, value, _version(value))
    configs = {each.key: each.value for each in found.last_assignment_configs or ()}
    group.put_epoch(found.epoch, found.metadata_hash, found.validated_topology_epoch, configs)


def _topology(group: StreamsGroup, key: bytes, value: bytes | None) -> None:
    if value is None:
        group.put_topology(None)
        return
    topology = read_struct(StreamsGroupTopologyValue, value, _version(value))
    group.put_topology(topology)


def _member(group: StreamsGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(StreamsGroupMemberMetadataKey, key).member_id
    if value is None:
        group.remove_member(member_id)
        group.remove_target(member_id)
        return
    metadata = read_struct(StreamsGroupMemberMetadataValue, value, _version(value))
    group.put_member(_found(group, member_id).with_metadata(metadata))


def _target_epoch(group: StreamsGroup, key: bytes, value: bytes | None) -> None:
    if value is None:
        group.put_target_epoch(_NO_EPOCH, 0)
        return
    target = read_struct(StreamsGroupTargetAssignmentMetadataValue, value, _version(value))
    group.put_target_epoch(target.assignment_epoch, target.assignment_timestamp)


def _target(group: StreamsGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(StreamsGroupTargetAssignmentMemberKey, key).member_id
    if value is None:
        group.remove_target(member_id)
        return
    found = read_struct(StreamsGroupTargetAssignmentMemberValue, value, _version(value))
    kinds = (found.active_tasks, found.standby_tasks, found.warmup_tasks)
    group.put_target(member_id, TasksTuple(*map(_tasks, kinds)))


def _current_assignment(group: StreamsGroup, key: bytes, value: bytes | None) -> None:
    member_id = read_struct(StreamsGroupCurrentMemberAssignmentKey, key).member_id
    if value is None:
        member = group.members.get(member_id)
        if member is not None:
            group.put_member(member.without_assignment())
        return
    current = read_struct(StreamsGroupCurrentMemberAssignmentValue, value, _version(value))
    group.put_member(_found(group, member_id).with_current_assignment(current))


def _found(group: StreamsGroup, member_id: str) -> StreamsMember:
    return group.members.get(member_id) or StreamsMember(member_id)


def _tasks(stored: list[TaskIds]) -> Tasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in stored}


def _version(value: bytes) -> int:
    version = value_version(value)
    if version != _VERSION:
        raise MalformedMessage("version", 0, f"streams group value of version {version}")
    return version


_BY_TYPE: Final[dict[int, Callable[[StreamsGroup, bytes, bytes | None], None]]] = {
    StreamsGroupMetadataKey.RECORD_TYPE: _epoch,
    StreamsGroupMemberMetadataKey.RECORD_TYPE: _member,
    StreamsGroupTargetAssignmentMetadataKey.RECORD_TYPE: _target_epoch,
    StreamsGroupTargetAssignmentMemberKey.RECORD_TYPE: _target,
    StreamsGroupCurrentMemberAssignmentKey.RECORD_TYPE: _current_assignment,
    StreamsGroupTopologyKey.RECORD_TYPE: _topology,
}
