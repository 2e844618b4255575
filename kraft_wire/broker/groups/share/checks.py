"""Whether a member of a share group may do what it asks: capacity, identity, epochs.

The functions return why not, in Kafka's words.
"""

from kraft_wire.broker.groups.finding import find_group_of
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.request_checks import JOIN
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["check_capacity", "check_empty", "check_epoch", "find_group", "find_member"]


def find_group(shard: GroupShard, group_id: str, missing: str) -> ShareGroup | Refusal:
    """Return a share group; see `find_group_of`."""
    return find_group_of(ShareGroup, GroupType.SHARE, shard, group_id, missing)


def check_capacity(group: ShareGroup, member_id: str, members_max: int) -> Refusal | None:
    """A full group takes no member that it does not know."""
    if len(group.members) < members_max or member_id in group.members:
        return None
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The share group has reached its maximum capacity of {members_max} members.",
    )


def check_empty(group: ShareGroup) -> Refusal | None:
    """Start offsets can be changed only in a group without members."""
    if group.is_empty:
        return None
    return Refusal.of(ErrorCode.NON_EMPTY_GROUP)


def find_member(group: ShareGroup, member_id: str) -> ShareMember | Refusal:
    """Return a member by its id."""
    member = group.members.get(member_id)
    if member is not None:
        return member
    return Refusal(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


def check_epoch(member: ShareMember, epoch: int) -> Refusal | None:
    """A member sends its epoch, or the one before, whose answer may have been lost."""
    known, previous = member.member_epoch, member.previous_member_epoch
    if epoch in (JOIN, known) or (epoch < known and epoch == previous):
        return None
    size, reason = ("greater", "")
    if epoch < known:
        size = "smaller"
        reason = f", and it does not match the previous member epoch ({previous})"
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The share group member has a {size} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({known}){reason}. The member must abandon all its partitions and "
        "rejoin.",
    )
