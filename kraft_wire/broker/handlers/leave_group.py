"""LeaveGroup, API key 13, versions 0-5.

Behaviour:   each member has its own result; before v3 the error of the one member is that of the
             response
Versions:    v3 several members, static ones by instance id (KIP-345) · v5 reasons (KIP-800)
Left out:    nothing
"""

from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.classic.leave import leave
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_BATCHED_FROM: Final = 3


def handle(
    broker: "Broker", context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse:
    """Take members out of a group.

    Errors, first match wins: INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS; per
    member those of `groups.classic.leave.leave`.
    """
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return LeaveGroupResponse(error_code=shard)
    if context.api_version >= _BATCHED_FROM:
        members = leave(shard, request.group_id, request.members, arrival_of(context))
        return LeaveGroupResponse(members=members)
    leaving = [MemberIdentity(member_id=request.member_id)]
    (left,) = leave(shard, request.group_id, leaving, arrival_of(context))
    return LeaveGroupResponse(error_code=left.error_code)
