"""ConsumerGroupHeartbeat, API key 68, versions 0-1.

Behaviour:   one request joins a group, keeps a member alive, reports what it owns, leaves; the
             answer waits until the ISR has what it says; the first one that joins a classic group
             turns it into a consumer group
Versions:    v1 regular expressions, member ids made by the client (KIP-1082)
Left out:    nothing
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.consumer.heartbeat import Client, heartbeat
from kraft_wire.broker.groups.consumer.request_checks import check_request
from kraft_wire.broker.groups.consumer.switch import serves_consumer_groups
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.model import random_uuid, uuid_to_text
from kraft_wire.settings.server_assignors import assignor_names
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Parked:
    """Take a member's heartbeat.

    Errors, first match wins: UNSUPPORTED_VERSION (consumer groups are switched off),
    INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those
    of `groups.consumer.heartbeat.heartbeat`.
    """
    if not serves_consumer_groups(broker.image, broker.settings):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assignors = assignor_names(broker.settings.group_consumer_assignors)
    refused = check_request(request, context.api_version, assignors)
    if refused is not None:
        return _refused(refused)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return ConsumerGroupHeartbeatResponse(error_code=shard)
    if not request.member_id:
        request.member_id = uuid_to_text(random_uuid(broker.random_source))
    client = Client(
        client_id=context.client_id or "",
        host="/" + context.client_host.removeprefix("/"),
        may_describe=None if broker.rights is None else broker.rights.topic_rights(context),
    )
    outcome = heartbeat(shard, request, client, arrival_of(context))
    if isinstance(outcome, Refusal):
        return _refused(outcome)
    if outcome.safe_at is None:
        return outcome.response

    def answered(errors: Mapping[int, ErrorCode]) -> ConsumerGroupHeartbeatResponse:
        for error in errors.values():
            return ConsumerGroupHeartbeatResponse(error_code=error)
        return outcome.response

    return shard.env.commits.answer_when_committed(
        context, {shard.log.partition: outcome.safe_at}, answered
    )


def _refused(refusal: Refusal) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)
