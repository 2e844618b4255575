"""LeaveGroup: one or more members leave, by themselves or removed by an administrator.

KIP-345: a static member may be removed by its instance id alone. KIP-800: requests carry reasons.
"""

from collections.abc import Sequence

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.classic.rebalance import rebalance_or_complete_join, remove_members
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.leave_group import MemberIdentity, MemberResponse

__all__ = ["leave"]


def leave(
    shard: GroupShard, group_id: str, leaving: Sequence[MemberIdentity], at: ClockReading
) -> list[MemberResponse]:
    """Remove each member that can be identified, then rebalance once for all of them.

    Errors per member, first match wins: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    group = shard.groups.get(group_id)
    if group is None:
        return [_response(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in leaving]
    responses = [_response(identity, _leave_one(shard, group, identity)) for identity in leaving]
    if any(response.error_code == ErrorCode.NONE for response in responses) and not group.is_in(
        GroupState.EMPTY
    ):
        rebalance_or_complete_join(shard, group, at)
    return responses


def _leave_one(shard: GroupShard, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    member_id = identity.member_id
    instance_id = identity.group_instance_id
    if not member_id:
        if instance_id is None or instance_id not in group.static_members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = group.static_members[instance_id]
    elif member_id not in group.pending_members:
        error = group.validate_member(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
    remove_members(shard, group, [member_id])
    return ErrorCode.NONE


def _response(identity: MemberIdentity, error: ErrorCode) -> MemberResponse:
    return MemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=error,
    )
