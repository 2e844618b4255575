"""ShareGroupHeartbeat, API key 76, version 1.

Behaviour:   one request joins a share group, keeps a member alive, leaves; the answer waits until
             the ISR has what it says
Versions:    v0 was an early access
Left out:    nothing
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.heartbeat import ShareClient, share_heartbeat
from kraft_wire.broker.groups.share.request_checks import check_request
from kraft_wire.broker.share_switch import serves_share_groups
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | Parked:
    """Take a member's heartbeat.

    Errors, first match wins: UNSUPPORTED_VERSION (share groups are switched off), INVALID_REQUEST,
    NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those of
    `groups.share.heartbeat.share_heartbeat`.
    """
    if not serves_share_groups(broker.image):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    refused = check_request(request)
    if refused is not None:
        return _refused(refused)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return ShareGroupHeartbeatResponse(error_code=shard)
    client = ShareClient(context.client_id or "", "/" + context.client_host.removeprefix("/"))
    outcome = share_heartbeat(shard, request, client, arrival_of(context))
    if isinstance(outcome, Refusal):
        return _refused(outcome)
    if outcome.safe_at is None:
        return outcome.response

    def answered(errors: Mapping[int, ErrorCode]) -> ShareGroupHeartbeatResponse:
        for error in errors.values():
            return ShareGroupHeartbeatResponse(error_code=error)
        return outcome.response

    return shard.env.commits.answer_when_committed(
        context, {shard.log.partition: outcome.safe_at}, answered
    )


def _refused(refusal: Refusal) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)
