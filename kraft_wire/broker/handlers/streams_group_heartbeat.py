"""StreamsGroupHeartbeat, API key 88, version 0.

Behaviour:   one request joins a streams group, keeps a member alive, leaves; the answer waits until
             the ISR has what it says, and internal topics that are missing are created then
Versions:    v0
Left out:    what 4.3.1 refuses, too: static members, task offsets, warm-up tasks, patterns of
             source topics, changes of the topology
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group_settings import heartbeat_interval_ms
from kraft_wire.broker.groups.streams.heartbeat import (
    StreamsClient,
    StreamsHeartbeatOutcome,
    streams_heartbeat,
)
from kraft_wire.broker.groups.streams.request_checks import check_request
from kraft_wire.broker.groups.streams.switch import serves_streams_groups
from kraft_wire.broker.groups.streams.topology.internal_topics import create_internal_topics
from kraft_wire.broker.groups.streams.topology.request_checks import (
    check_topic_names,
    named_topics,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]

_HEARTBEATS_WITH_AN_ERROR: Final = 2
"""How many of them are told about a topic that could not be created."""


def handle(
    broker: "Broker", context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse | Parked:
    """Take a member's heartbeat.

    Errors, first match wins: UNSUPPORTED_VERSION (streams groups are switched off),
    STREAMS_INVALID_TOPOLOGY (names of topics), INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY,
    NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those of
    `groups.streams.heartbeat.streams_heartbeat`.
    """
    if not serves_streams_groups(broker.image, broker.settings):
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    names = [] if request.topology is None else named_topics(request.topology)
    refused = check_topic_names(names) or check_request(request)
    if refused is not None:
        return _refused(refused)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return StreamsGroupHeartbeatResponse(error_code=shard)
    client = StreamsClient(context.client_id or "", "/" + context.client_host.removeprefix("/"))
    outcome = streams_heartbeat(shard, request, client, arrival_of(context))
    if isinstance(outcome, Refusal):
        return _refused(outcome)
    if outcome.safe_at is None:
        _create_topics(broker, context, request.group_id, outcome)
        return outcome.response

    def answered(errors: Mapping[int, ErrorCode]) -> StreamsGroupHeartbeatResponse:
        for error in errors.values():
            return StreamsGroupHeartbeatResponse(error_code=error)
        _create_topics(broker, context, request.group_id, outcome)
        return outcome.response

    return shard.env.commits.answer_when_committed(
        context, {shard.log.partition: outcome.safe_at}, answered
    )


def _create_topics(
    broker: "Broker", context: RequestContext, group_id: str, outcome: StreamsHeartbeatOutcome
) -> None:
    """Have internal topics created that are missing, and say in the answer what is in the way."""
    if not outcome.topics_to_create:
        return
    rights = broker.rights
    interval_ms = heartbeat_interval_ms(broker.groups.env, group_id)
    create_internal_topics(
        outcome.response,
        outcome.topics_to_create,
        may_create=None if rights is None else rights.creation_rights(context),
        creation=broker.groups.internal_topic_creation,
        errors_kept_ms=_HEARTBEATS_WITH_AN_ERROR * interval_ms,
        now_ms=context.now_ms,
    )


def _refused(refusal: Refusal) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=refusal.error, error_message=refusal.message)
