"""A classic group becomes a consumer group while its members are in it (KIP-848, online upgrade).

The first ConsumerGroupHeartbeat that joins does it. Generation becomes epoch, the last assignments
become targets and what members have; members keep using the classic protocol until they leave or
join again (`classic_members`).
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.member import Member
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import AssignedPartitions, ConsumerMember
from kraft_wire.broker.groups.consumer.migration.embedded_protocol import (
    assignment_of,
    partitions_by_id,
    subscription_of,
)
from kraft_wire.broker.groups.consumer.migration.policy import migration_policy
from kraft_wire.broker.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    member_record,
    target_epoch_record,
    target_record,
)
from kraft_wire.broker.groups.consumer.subscriptions import subscriptions
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.broker.groups.records import group_tombstone
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.generated.sync_group import SyncGroupResponse
from kraft_wire.wire.message import MalformedMessage

__all__ = [
    "check_upgrade",
    "classic_metadata_of",
    "tell_to_rejoin",
    "upgrade_records",
    "upgraded",
]


class _CustomAssignor(Exception):
    """An assignment carries data of an assignor that the coordinator cannot take over."""


def check_upgrade(env: GroupEnvironment, classic: ClassicGroup) -> Refusal | None:
    """Return why a classic group with members cannot be converted: GROUP_ID_NOT_FOUND."""
    settings = env.settings()
    if not migration_policy(settings).allows_upgrade:
        return _refused(classic, "online upgrade is disabled.")
    if not classic.uses_consumer_protocol:
        return _refused(classic, "the group does not use the consumer embedded protocol.")
    if len(classic.members) > settings.group_consumer_max_size:
        return _refused(classic, "the group size exceeds the consumer group maximum size.")
    return None


def tell_to_rejoin(shard: GroupShard, classic: ClassicGroup) -> None:
    """Answer every parked request: the members are to join the group that this one becomes.

    As in Kafka, also if the group then cannot be converted.
    """
    again = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic.members.values():
        shard.answer_join(
            classic, member, JoinGroupResponse(error_code=again, member_id=member.member_id)
        )
        shard.answer_sync(member, SyncGroupResponse(error_code=again))


def upgraded(env: GroupEnvironment, classic: ClassicGroup) -> ConsumerGroup | Refusal:
    """Return the consumer group that a classic one becomes; GROUP_ID_NOT_FOUND.

    UNKNOWN_SERVER_ERROR, as in Kafka, for a group that never had a generation, or whose leader gave
    a partition to two members.
    """
    group = ConsumerGroup(classic.group_id, env.memory)
    try:
        _fill(group, classic, env.image())
    except MalformedMessage:
        found: Refusal | None = _refused(classic, "the embedded consumer protocol is malformed.")
    except _CustomAssignor:
        found = _refused(classic, _CUSTOM_ASSIGNOR)
    except KeyError:
        found = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        found = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) if _has_shared_partition(group) else None
    if found is not None:
        group.release()
        return found
    names = subscriptions(group.members.values(), {}).names
    group.metadata_hash = env.topic_hashes.group_hash(names, env.image())
    return group


def upgrade_records(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """Write the tombstone of the classic group, and the consumer group that it became."""
    group_id, members = group.group_id, list(group.members.values())
    return [
        group_tombstone(group_id),
        *(member_record(group_id, each) for each in members),
        epoch_record(group_id, group.epoch, group.metadata_hash),
        *(
            target_record(group_id, each.member_id, group.targets.get(each.member_id) or {})
            for each in members
        ),
        target_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp_ms),
        *(current_assignment_record(group_id, each) for each in members),
    ]


_CUSTOM_ASSIGNOR: Final = (
    "an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
    "default assignor before re-attempting the upgrade."
)


def _refused(classic: ClassicGroup, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {classic.group_id} to consumer group because {reason}",
    )


def _fill(group: ConsumerGroup, classic: ClassicGroup, image: MetadataImage) -> None:
    """Take epochs and members over; KeyError for a member without the group's protocol."""
    group.epoch = group.assignment_epoch = classic.generation_id
    protocol = classic.protocol_name or ""
    for member_id in java_hash_set(classic.members):
        member = classic.members[member_id]
        subscription = subscription_of(member.protocols[protocol])
        assigned = _assigned(member, image)
        group.put_target(member_id, dict(assigned.items()))
        group.put_member(
            ConsumerMember(
                member_id=member_id,
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id or None,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=tuple(dict.fromkeys(subscription.topics)),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                classic_metadata=classic_metadata_of(member.protocols, member.session_timeout_ms),
                member_epoch=classic.generation_id,
                previous_member_epoch=classic.generation_id,
                assigned=_with_epoch(assigned, classic.generation_id),
            )
        )


def _has_shared_partition(group: ConsumerGroup) -> bool:
    given_count = sum(
        len(partitions) for each in group.members.values() for partitions in each.assigned.values()
    )
    return given_count > len(group.holders())


def classic_metadata_of(
    protocols: Mapping[str, bytes], session_timeout_ms: int
) -> ClassicMemberMetadata:
    """Return what a record keeps of a classic member's JoinGroup request."""
    return ClassicMemberMetadata(
        session_timeout_ms=session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols.items()
        ],
    )


def _assigned(member: Member, image: MetadataImage) -> JavaHashMap[Uuid, tuple[int, ...]]:
    if not member.assignment:
        return JavaHashMap()
    assignment = assignment_of(member.assignment)
    if assignment.user_data:
        raise _CustomAssignor(member.member_id)
    return partitions_by_id(assignment, image)


def _with_epoch(topics: JavaHashMap[Uuid, tuple[int, ...]], epoch: int) -> AssignedPartitions:
    found: AssignedPartitions = JavaHashMap()
    for topic_id, partitions in topics.items():
        epochs: JavaHashMap[int, int] = JavaHashMap()
        for partition in partitions:
            epochs[partition] = epoch
        found[topic_id] = epochs
    return found
