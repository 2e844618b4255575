"""Records of share groups in `__consumer_offsets`: types 10 to 15, values of version 0."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import coordinator_record, tombstone
from kraft_wire.broker.groups.java_collections import java_order
from kraft_wire.wire.generated.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
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
    TopicInfo,
    TopicPartitionsInfo,
)
from kraft_wire.wire.generated.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey,
)
from kraft_wire.wire.generated.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kraft_wire.wire.generated.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from kraft_wire.broker.groups.assignors.spec import Target
    from kraft_wire.broker.groups.share.member import ShareMember
    from kraft_wire.broker.groups.share.state_partitions import PartitionsByTopic, StatePartitions

__all__ = [
    "current_assignment_record",
    "epoch_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "state_partitions_record",
    "target_epoch_record",
    "target_record",
]

_VERSION: Final = 0


def member_record(group_id: str, member: "ShareMember") -> CoordinatorRecord:
    """Write what a member subscribes to, and how it can be reached; names are sorted."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names, key=java_order),
    )
    return coordinator_record(_member_key(group_id, member.member_id), value, _VERSION)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Write the group's epoch."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return coordinator_record(ShareGroupMetadataKey(group_id=group_id), value, _VERSION)


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    """Write for which epoch of the group the targets were computed, and when."""
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=wall_ms
    )
    key = ShareGroupTargetAssignmentMetadataKey(group_id=group_id)
    return coordinator_record(key, value, _VERSION)


def target_record(group_id: str, member_id: str, target: "Target") -> CoordinatorRecord:
    """Write what a member is to have."""
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    return coordinator_record(_target_key(group_id, member_id), value, _VERSION)


def current_assignment_record(group_id: str, member: "ShareMember") -> CoordinatorRecord:
    """Write a member's epoch, and what it has."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in member.assigned.items()
        ],
    )
    return coordinator_record(_current_key(group_id, member.member_id), value, _VERSION)


def state_partitions_record(group_id: str, topics: "StatePartitions") -> CoordinatorRecord:
    """Write which share partitions are initialising, initialised, and being deleted."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_partitions_info(topics.initializing),
        initialized_topics=_partitions_info(topics.initialized),
        deleting_topics=[
            TopicInfo(topic_id=topic_id, topic_name=name)
            for topic_id, name in topics.deleting.items()
        ],
    )
    key = ShareGroupStatePartitionMetadataKey(group_id=group_id)
    return coordinator_record(key, value, _VERSION)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones of a member that is removed, in the order that a load needs."""
    return [
        tombstone(_current_key(group_id, member_id)),
        tombstone(_target_key(group_id, member_id)),
        tombstone(_member_key(group_id, member_id)),
    ]


def group_tombstones(group_id: str, member_ids: Sequence[str]) -> list[CoordinatorRecord]:
    """Return the tombstones of a whole group; Apache cannot load them in another order."""
    return [
        *(tombstone(_current_key(group_id, member_id)) for member_id in member_ids),
        *(tombstone(_target_key(group_id, member_id)) for member_id in member_ids),
        tombstone(ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(tombstone(_member_key(group_id, member_id)) for member_id in member_ids),
        tombstone(ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        tombstone(ShareGroupMetadataKey(group_id=group_id)),
    ]


def _partitions_info(topics: "PartitionsByTopic") -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(
            topic_id=topic_id, topic_name=each.name, partitions=list(each.partitions)
        )
        for topic_id, each in topics.items()
    ]


def _member_key(group_id: str, member_id: str) -> ShareGroupMemberMetadataKey:
    return ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> ShareGroupTargetAssignmentMemberKey:
    return ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> ShareGroupCurrentMemberAssignmentKey:
    return ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
