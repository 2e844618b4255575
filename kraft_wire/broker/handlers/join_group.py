"""JoinGroup, API key 11, versions 0-9.

Behaviour:   parked until the group has a generation, unless there is an error or the request of a
             follower changes nothing; the leader's response lists the members and their metadata;
             a consumer group (KIP-848) answers at once, without a leader
Versions:    v1 rebalance timeout of its own (KIP-62) · v4 MEMBER_ID_REQUIRED (KIP-394) · v5 static
             members (KIP-345) · v7 protocol type in the answer · v8 reason (KIP-800) ·
             v9 SkipAssignment for a restarted static leader (KIP-814)
Left out:    GROUP_MAX_SIZE_REACHED also limits the bytes of a group
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.groups.classic.join import JoinAttempt, join
from kraft_wire.broker.groups.classic.member import ParkedRequest
from kraft_wire.broker.groups.consumer.migration import classic_join
from kraft_wire.broker.groups.consumer.migration.classic_members import Outcome, consumer_group_of
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle"]


def handle(
    broker: "Broker", context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Parked:
    """Let a member into its group.

    Errors, first match wins: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, NOT_COORDINATOR,
    COORDINATOR_LOAD_IN_PROGRESS, then those of `groups.classic.join.join`, in a consumer group
    those of `groups.consumer.migration.classic_join.join`.
    """
    waiting = ParkedRequest(context.reply_to, context.api_version)
    client_host = "/" + context.client_host.removeprefix("/")
    attempt = JoinAttempt.of(request, waiting, context.client_id or "", client_host)
    if not request.group_id:
        return attempt.refused(ErrorCode.INVALID_GROUP_ID, request.member_id)
    settings = broker.settings
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        return attempt.refused(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
    shard = broker.groups.shard_of(request.group_id)
    if not isinstance(shard, GroupShard):
        return attempt.refused(shard)
    group = consumer_group_of(shard, request.group_id)
    if group is not None:
        rights = None if broker.rights is None else broker.rights.topic_rights(context)
        outcome = classic_join.join(shard, group, attempt, rights, arrival_of(context))
        return _committed(shard, context, attempt, outcome)
    answer = join(shard, attempt, arrival_of(context))
    return PARKED if answer is None else answer


def _committed(
    shard: GroupShard,
    context: RequestContext,
    attempt: JoinAttempt,
    outcome: Outcome[JoinGroupResponse],
) -> JoinGroupResponse | Parked:
    """Answer a member of a consumer group once the ISR has what the answer says."""
    if outcome.safe_at is None:
        return outcome.response

    def answered(errors: Mapping[int, ErrorCode]) -> JoinGroupResponse:
        for error in errors.values():
            return attempt.refused(error, attempt.member_id)
        return outcome.response

    return shard.env.commits.answer_when_committed(
        context, {shard.log.partition: outcome.safe_at}, answered
    )
