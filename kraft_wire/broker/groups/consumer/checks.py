"""Whether a member of a consumer group may do what it asks: capacity, identity, epochs.

The functions return why not, in Kafka's words, or None.
"""

from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import AssignedPartitions, ConsumerMember
from kraft_wire.broker.groups.consumer.reconciliation import Owned
from kraft_wire.broker.groups.finding import find_group_of
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "LEFT_FOR_A_WHILE",
    "check_capacity",
    "check_epoch",
    "check_instance_free",
    "find_dynamic",
    "find_group",
    "find_holder",
    "find_static",
]

LEFT_FOR_A_WHILE = -2
"""Member epoch of a static member that will be back."""


def find_group(shard: GroupShard, group_id: str, missing: str) -> ConsumerGroup | Refusal:
    """Return a consumer group; see `find_group_of`."""
    return find_group_of(ConsumerGroup, GroupType.CONSUMER, shard, group_id, missing)


def check_capacity(group: ConsumerGroup, member_id: str, members_max: int) -> Refusal | None:
    """A full group takes no member that it does not know."""
    if len(group.members) < members_max or member_id in group.members:
        return None
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The consumer group has reached its maximum capacity of {members_max} members.",
    )


def find_dynamic(group: ConsumerGroup, member_id: str) -> ConsumerMember | Refusal:
    """Return a member by its id."""
    member = group.members.get(member_id)
    if member is not None:
        return member
    return Refusal(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


def find_static(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember | Refusal:
    """Return the member of an instance; one with another id has taken its place."""
    holder = find_holder(group, instance_id)
    if holder is None:
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if isinstance(holder, Refusal) or holder.member_id == member_id:
        return holder
    return Refusal(
        ErrorCode.FENCED_INSTANCE_ID,
        f"Static member {member_id} with instance id {instance_id} was fenced by member "
        f"{holder.member_id}.",
    )


def find_holder(group: ConsumerGroup, instance_id: str) -> ConsumerMember | Refusal | None:
    """Return the member of an instance, None if there was none.

    UNKNOWN_MEMBER_ID, as in Kafka, if a member changed its instance and left: its former instance
    still names it, until another member takes it over by that id.
    """
    holder_id = group.static_members.get(instance_id)
    return None if holder_id is None else find_dynamic(group, holder_id)


def check_instance_free(holder: ConsumerMember, member_id: str) -> Refusal | None:
    """An instance can be taken over once its member has left for a while."""
    if holder.member_epoch == LEFT_FOR_A_WHILE or holder.classic_metadata is not None:
        return None
    return Refusal(
        ErrorCode.UNRELEASED_INSTANCE_ID,
        f"Static member {member_id} with instance id {holder.instance_id} cannot join the group "
        f"because the instance id is owned by {holder.member_id} member.",
    )


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> Refusal | None:
    """A member sends its epoch, or the one before if it can show that an answer was lost."""
    known = member.member_epoch
    if epoch in (0, known):
        return None
    is_lost_answer = (
        epoch < known
        and epoch == member.previous_member_epoch
        and _is_subset(owned, member.assigned)
    )
    if is_lost_answer:
        return None
    size = "greater" if epoch > known else "smaller"
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {size} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def _is_subset(owned: Owned, assigned: AssignedPartitions) -> bool:
    if owned is None:
        return False
    return all(
        topic_id in assigned and all(each in assigned[topic_id] for each in partitions)
        for topic_id, partitions in owned.items()
    )
