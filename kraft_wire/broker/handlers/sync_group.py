"""SyncGroup, API key 14, versions 0-5.

Behaviour:   parked until the leader has sent the assignment and it is stored; a stable group
             returns its assignment at once, and so does a consumer group (KIP-848)
Versions:    v3 static members (KIP-345) · v5 protocol type and name, mandatory in the request
             (KIP-559)
Left out:    nothing
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.classic.member import ParkedRequest
from kraft_wire.broker.groups.classic.sync import sync
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.migration import classic_members
from kraft_wire.broker.groups.consumer.migration.classic_members import consumer_group_of
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_PROTOCOL_MANDATORY_FROM: Final = 5


def handle(
    broker: "Broker", context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Parked:
    """Hand out a member's assignment.

    Errors, first match wins: INCONSISTENT_GROUP_PROTOCOL (v5+ without protocol type or name),
    INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those of
    `groups.classic.sync.sync`, in a consumer group those of
    `groups.consumer.migration.classic_members.sync`.
    """
    if context.api_version >= _PROTOCOL_MANDATORY_FROM and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return SyncGroupResponse(error_code=shard)
    waiting = ParkedRequest(context.reply_to, context.api_version)
    group = consumer_group_of(shard, request.group_id)
    if group is not None:
        return _synced(shard, group, context, request)
    answer = sync(shard, request, waiting, arrival_of(context))
    return PARKED if answer is None else answer


def _synced(
    shard: GroupShard, group: ConsumerGroup, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Parked:
    """Hand out an assignment once the ISR has it."""
    outcome = classic_members.sync(shard, group, request, arrival_of(context))
    if outcome.safe_at is None or outcome.safe_at <= shard.log.high_watermark():
        return outcome.response

    def answered(errors: Mapping[int, ErrorCode]) -> SyncGroupResponse:
        for error in errors.values():
            return SyncGroupResponse(error_code=error)
        return outcome.response

    return shard.env.commits.answer_when_committed(
        context, {shard.log.partition: outcome.safe_at}, answered
    )
