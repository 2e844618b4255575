"""Records of consumer groups in `__consumer_offsets`: types 3 to 8 and 16, values of version 0."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import coordinator_record, tombstone
from kraft_wire.broker.groups.java_collections import java_order
from kraft_wire.wire.generated.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
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
    TopicPartition,
)
from kraft_wire.wire.generated.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from kraft_wire.broker.groups.assignors.spec import Target
    from kraft_wire.broker.groups.consumer.member import AssignedPartitions, ConsumerMember
    from kraft_wire.broker.groups.consumer.results import ResolvedRegex

__all__ = [
    "current_assignment_record",
    "epoch_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "partition_metadata_tombstone",
    "regex_record",
    "regex_tombstone",
    "target_epoch_record",
    "target_record",
]

_VERSION: Final = 0


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    """Write the group's epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return coordinator_record(ConsumerGroupMetadataKey(group_id=group_id), value, _VERSION)


def member_record(group_id: str, member: "ConsumerMember") -> CoordinatorRecord:
    """Write what a member subscribes to, and how it can be reached; names are sorted."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names, key=java_order),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=member.classic_metadata,
    )
    return coordinator_record(_member_key(group_id, member.member_id), value, _VERSION)


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    """Write for which epoch of the group the targets were computed, and when."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=wall_ms
    )
    key = ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)
    return coordinator_record(key, value, _VERSION)


def target_record(group_id: str, member_id: str, target: "Target") -> CoordinatorRecord:
    """Write what a member is to have."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    return coordinator_record(_target_key(group_id, member_id), value, _VERSION)


def current_assignment_record(group_id: str, member: "ConsumerMember") -> CoordinatorRecord:
    """Write a member's epoch and state, and what it has and must give up."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state.value,
        assigned_partitions=_topic_partitions(member.assigned),
        partitions_pending_revocation=_topic_partitions(member.pending_revocation),
    )
    return coordinator_record(_current_key(group_id, member.member_id), value, _VERSION)


def regex_record(group_id: str, regex: str, resolved: "ResolvedRegex") -> CoordinatorRecord:
    """Write the topics of a regular expression, sorted."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics, key=java_order),
        version=resolved.image_version,
        timestamp=resolved.timestamp_ms,
    )
    return coordinator_record(_regex_key(group_id, regex), value, _VERSION)


def partition_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    """Return the tombstone of the subscription metadata that Kafka 4.0 wrote."""
    return tombstone(ConsumerGroupPartitionMetadataKey(group_id=group_id))


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    """Return the tombstone of a regular expression that no member uses."""
    return tombstone(_regex_key(group_id, regex))


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones of a member that is removed, in the order that a load needs."""
    return [
        tombstone(_current_key(group_id, member_id)),
        tombstone(_target_key(group_id, member_id)),
        tombstone(_member_key(group_id, member_id)),
    ]


def group_tombstones(
    group_id: str, member_ids: Sequence[str], regexes: Sequence[str]
) -> list[CoordinatorRecord]:
    """Return the tombstones of a whole group; Apache cannot load them in another order."""
    return [
        *(tombstone(_current_key(group_id, member_id)) for member_id in member_ids),
        *(tombstone(_target_key(group_id, member_id)) for member_id in member_ids),
        tombstone(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(tombstone(_member_key(group_id, member_id)) for member_id in member_ids),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        tombstone(ConsumerGroupMetadataKey(group_id=group_id)),
    ]


def _topic_partitions(assigned: "AssignedPartitions") -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=list(partitions),
            assignment_epochs=list(partitions.values()),
        )
        for topic_id, partitions in assigned.items()
    ]


def _member_key(group_id: str, member_id: str) -> ConsumerGroupMemberMetadataKey:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> ConsumerGroupTargetAssignmentMemberKey:
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> ConsumerGroupCurrentMemberAssignmentKey:
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)


def _regex_key(group_id: str, regex: str) -> ConsumerGroupRegularExpressionKey:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
