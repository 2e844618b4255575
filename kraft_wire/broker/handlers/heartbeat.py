"""Heartbeat, API key 12, versions 0-4.

Behaviour:   restarts the member's session timeout; REBALANCE_IN_PROGRESS makes the member join
             again; while the coordinator loads, the response has no error
Versions:    v3 static members (KIP-345)
Left out:    nothing
"""

from typing import TYPE_CHECKING

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.classic.sync import heartbeat
from kraft_wire.broker.groups.consumer.migration import classic_members
from kraft_wire.broker.groups.consumer.migration.classic_members import consumer_group_of
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse:
    """Keep a member alive.

    Errors, first match wins: INVALID_GROUP_ID, NOT_COORDINATOR, then those of
    `groups.classic.sync.heartbeat`, in a consumer group those of
    `groups.consumer.migration.classic_members.heartbeat`.
    """
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = broker.groups.shard_of(request.group_id)
    if isinstance(shard, GroupShard):
        group = consumer_group_of(shard, request.group_id)
        if group is None:
            error = heartbeat(shard, request, arrival_of(context))
        else:
            error = classic_members.heartbeat(shard, group, request, arrival_of(context))
        return HeartbeatResponse(error_code=error)
    if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        # A member must not give up its assignment because its coordinator moved.
        return HeartbeatResponse()
    return HeartbeatResponse(error_code=shard)
