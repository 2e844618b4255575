"""LeaveGroup, API key 13, versions 0-5.

Behaviour:   each member has its own result; before v3 the error of the one member is that of the
             response; a consumer group (KIP-848) loses members of either protocol
Versions:    v3 several members, static ones by instance id (KIP-345) · v5 reasons (KIP-800)
Left out:    nothing
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.classic.leave import leave
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.migration import classic_members
from kraft_wire.broker.groups.consumer.migration.classic_members import consumer_group_of
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
) -> LeaveGroupResponse | Parked:
    """Take members out of a group.

    Errors, first match wins: INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS; per
    member those of `groups.classic.leave.leave`, in a consumer group those of
    `groups.consumer.migration.classic_members.leave`.
    """
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return LeaveGroupResponse(error_code=shard)
    is_batched = context.api_version >= _BATCHED_FROM
    leaving = request.members if is_batched else [MemberIdentity(member_id=request.member_id)]
    group = consumer_group_of(shard, request.group_id)
    if group is not None:
        return _left(shard, group, context, leaving)
    members = leave(shard, request.group_id, leaving, arrival_of(context))
    return _in_version(LeaveGroupResponse(members=members), context)


def _left(
    shard: GroupShard,
    group: ConsumerGroup,
    context: RequestContext,
    leaving: Sequence[MemberIdentity],
) -> LeaveGroupResponse | Parked:
    """Take members out of a consumer group; the answer waits until the ISR has that."""
    outcome = classic_members.leave(shard, group, leaving, arrival_of(context))
    response = _in_version(outcome.response, context)
    if outcome.safe_at is None:
        return response

    def answered(errors: Mapping[int, ErrorCode]) -> LeaveGroupResponse:
        for error in errors.values():
            return LeaveGroupResponse(error_code=error)
        return response

    return shard.env.commits.answer_when_committed(
        context, {shard.log.partition: outcome.safe_at}, answered
    )


def _in_version(response: LeaveGroupResponse, context: RequestContext) -> LeaveGroupResponse:
    """Before v3 the error of the one member is that of the response."""
    if context.api_version >= _BATCHED_FROM or not response.members:
        return response
    return LeaveGroupResponse(error_code=response.members[0].error_code)
