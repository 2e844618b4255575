"""Records of `__consumer_offsets`, in the versions that Kafka 4.3.1 writes.

Offset commits are written in version 4 (topic id), or in version 1 if the client set a retention
time; group metadata in version 3.
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import coordinator_record, tombstone
from kraft_wire.wire.generated.group_metadata_key import GroupMetadataKey
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kraft_wire.wire.generated.offset_commit_key import OffsetCommitKey
from kraft_wire.wire.generated.offset_commit_value import OffsetCommitValue

if TYPE_CHECKING:
    from kraft_wire.broker.groups.classic.group import ClassicGroup
    from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey

__all__ = [
    "GROUP_METADATA",
    "LEGACY_OFFSET_COMMIT",
    "OFFSET_COMMIT",
    "empty_group_record",
    "group_record",
    "group_tombstone",
    "offset_record",
    "offset_tombstone",
]

LEGACY_OFFSET_COMMIT: Final = 0
OFFSET_COMMIT: Final = 1
GROUP_METADATA: Final = 2

_OFFSET_VERSION: Final = 4
_OFFSET_WITH_EXPIRY_VERSION: Final = 1
_GROUP_VERSION: Final = 3


def group_record(group: "ClassicGroup", assignments: dict[str, bytes]) -> CoordinatorRecord:
    """Write the group's current generation with the assignments that it is about to have."""
    members = []
    for member in group.members.values():
        assert group.protocol_name is not None, group.group_id
        members.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols[group.protocol_name],
                assignment=assignments[member.member_id],
            )
        )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=_timestamp(group.state_timestamp_ms),
        members=members,
    )
    return _group(group.group_id, value)


def empty_group_record(group_id: str, wall_ms: int) -> CoordinatorRecord:
    """Write that a group exists, before its first generation."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=wall_ms
    )
    return _group(group_id, value)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the tombstone of a group."""
    return tombstone(GroupMetadataKey(group=group_id))


def offset_record(key: "OffsetKey", committed: "CommittedOffset") -> CoordinatorRecord:
    """Write one committed offset."""
    expires = committed.expire_timestamp_ms is not None
    version = _OFFSET_WITH_EXPIRY_VERSION if expires else _OFFSET_VERSION
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=_timestamp(committed.expire_timestamp_ms),
        topic_id=committed.topic_id,
    )
    return coordinator_record(_offset_key(key), value, version)


def offset_tombstone(key: "OffsetKey") -> CoordinatorRecord:
    """Return the tombstone of a committed offset."""
    return tombstone(_offset_key(key))


def _group(group_id: str, value: GroupMetadataValue) -> CoordinatorRecord:
    return coordinator_record(GroupMetadataKey(group=group_id), value, _GROUP_VERSION)


def _offset_key(key: "OffsetKey") -> OffsetCommitKey:
    return OffsetCommitKey(group=key.group_id, topic=key.topic, partition=key.partition)


def _timestamp(wall_ms: int | None) -> int:
    return -1 if wall_ms is None else wall_ms
