"""JoinGroup of a member of the classic protocol into a consumer group (KIP-848, online upgrade).

The request takes the steps of a heartbeat that joins (`member_steps`) and is answered at once. A
static member may come with the other protocol; if it took the place of the last member of the
consumer protocol, the group becomes a classic one in the same batch (`downgrade`).
"""

from dataclasses import replace
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import Appended
from kraft_wire.broker.groups.classic.group import CONSUMER_PROTOCOL_TYPE
from kraft_wire.broker.groups.classic.join import JoinAttempt
from kraft_wire.broker.groups.consumer.checks import check_capacity, find_holder, find_static
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.member_steps import (
    Walk,
    raise_epoch,
    reconcile,
    retarget,
    store,
    subscribe,
    take_place,
    use_names,
)
from kraft_wire.broker.groups.consumer.migration.classic_members import Outcome
from kraft_wire.broker.groups.consumer.migration.downgrade import (
    Downgrade,
    downgrade,
    is_downgrade_due,
)
from kraft_wire.broker.groups.consumer.migration.embedded_protocol import (
    owned_partitions,
    subscription_of,
)
from kraft_wire.broker.groups.consumer.migration.policy import MigrationPolicy, migration_policy
from kraft_wire.broker.groups.consumer.migration.upgrade import classic_metadata_of
from kraft_wire.broker.groups.consumer.regex_evaluation import MayDescribe
from kraft_wire.broker.groups.consumer.session import await_sync, renew_session
from kraft_wire.broker.groups.consumer.target_assignment import last_target
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.model import random_uuid, uuid_to_text
from kraft_wire.wire.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.join_group import JoinGroupResponse
from kraft_wire.wire.message import MalformedMessage

__all__ = ["join"]

_MEMBER_ID_REQUIRED_FROM: Final = 4
_UNCHANGED: Final = -1


def join(
    shard: GroupShard,
    group: ConsumerGroup,
    attempt: JoinAttempt,
    may_describe: MayDescribe | None,
    at: ClockReading,
) -> Outcome[JoinGroupResponse]:
    """Let a member of the classic protocol in, or have it continue.

    `may_describe`: whether the client may know a topic that an expression of the group matches.

    Errors, first match wins: INCONSISTENT_GROUP_PROTOCOL (the migration policy is "disabled"),
    GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, MEMBER_ID_REQUIRED, UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, UNKNOWN_SERVER_ERROR (the subscription cannot be read), those of the append.
    """
    settings = shard.env.settings()
    member_id = attempt.member_id or uuid_to_text(random_uuid(shard.env.random_source))
    if migration_policy(settings) is MigrationPolicy.DISABLED:
        return _refused(attempt, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    full = check_capacity(group, member_id, settings.group_consumer_max_size)
    if full is not None:
        return _refused(attempt, full.error)
    if not _is_supported(group, attempt):
        return _refused(attempt, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    is_known = bool(attempt.member_id) or attempt.group_instance_id is not None
    if not is_known and attempt.waiting.api_version >= _MEMBER_ID_REQUIRED_FROM:
        return Outcome(attempt.refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    walk = _entered(shard, group, attempt, member_id)
    if isinstance(walk, Refusal):
        return _refused(attempt, walk.error)
    walk.may_describe = may_describe
    taken = _taken(walk, attempt, at)
    return _refused(attempt, taken.error) if isinstance(taken, Refusal) else taken


def _is_supported(group: ConsumerGroup, attempt: JoinAttempt) -> bool:
    """Whether every member of the classic protocol supports one of the client's protocols."""
    known = [
        [protocol.name for protocol in each.classic_metadata.supported_protocols]
        for each in group.members.values()
        if each.classic_metadata is not None
    ]
    return attempt.protocol_type == CONSUMER_PROTOCOL_TYPE and any(
        all(name in names for names in known) for name in attempt.protocols
    )


def _refused(attempt: JoinAttempt, error: ErrorCode) -> Outcome[JoinGroupResponse]:
    """Answer with the error alone: only the classic kind of group repeats the id of the request."""
    return Outcome(attempt.refused(error))


def _entered(
    shard: GroupShard, group: ConsumerGroup, attempt: JoinAttempt, member_id: str
) -> Walk | Refusal:
    """Find the member, or make it; a static one without an id takes its instance's place."""
    instance_id = attempt.group_instance_id
    if instance_id is not None and attempt.member_id:
        found = find_static(group, member_id, instance_id)
        return found if isinstance(found, Refusal) else Walk(shard, group, None, found, found)
    holder = None if instance_id is None else find_holder(group, instance_id)
    if isinstance(holder, Refusal):
        return holder
    if holder is None:
        member = group.members.get(member_id) or ConsumerMember(member_id)
        return Walk(shard, group, None, member, member)
    member = replace(holder, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    walk = Walk(shard, group, None, member, member)
    take_place(walk, holder.member_id)
    return walk


def _taken(
    walk: Walk, attempt: JoinAttempt, at: ClockReading
) -> Outcome[JoinGroupResponse] | Refusal:
    """Take the steps of a member that was found."""
    try:
        subscription = subscription_of(next(iter(attempt.protocols.values())))
    except MalformedMessage:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    walk.owned = owned_partitions(subscription, walk.shard.env.image())
    _describe(walk, attempt, subscription)
    refused = subscribe(walk, at)
    if refused is not None:
        return refused
    holder_id = walk.group.static_members.get(attempt.group_instance_id or "")
    if holder_id is not None and _is_last_modern(walk, holder_id):
        return _downgraded(walk, attempt, holder_id, at)
    is_due = walk.has_new_names or walk.regex.changes_topics
    is_homogeneous = raise_epoch(walk, is_due=is_due)
    aim = retarget(walk, is_homogeneous, at)
    if isinstance(aim, Refusal):
        return aim
    refused = reconcile(walk, *aim)
    return refused or _finish(walk, attempt, at)


def _is_last_modern(walk: Walk, holder_id: str) -> bool:
    """Whether a member takes the place of the last one that uses the consumer protocol."""
    holder = walk.group.members[holder_id]
    return holder.classic_metadata is None and is_downgrade_due(
        walk.shard, walk.group, (holder_id,), replacements=1
    )


def _describe(walk: Walk, attempt: JoinAttempt, subscription: ConsumerProtocolSubscription) -> None:
    """Apply the request's fields to the member; absent fields keep their values."""
    former = walk.former
    timeout_ms = attempt.rebalance_timeout_ms
    walk.member = replace(
        former,
        instance_id=attempt.group_instance_id or former.instance_id,
        rack_id=subscription.rack_id or former.rack_id,
        rebalance_timeout_ms=former.rebalance_timeout_ms
        if timeout_ms == _UNCHANGED
        else timeout_ms,
        subscribed_topic_names=use_names(walk, subscription.topics),
        subscribed_topic_regex="",
        client_id=attempt.client_id,
        client_host=attempt.client_host,
        classic_metadata=classic_metadata_of(attempt.protocols, attempt.session_timeout_ms),
    )


def _finish(
    walk: Walk, attempt: JoinAttempt, at: ClockReading
) -> Outcome[JoinGroupResponse] | Refusal:
    """Write the records, set the timers, and answer."""
    appended = store(walk, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    shard, group_id, member = walk.shard, walk.group.group_id, walk.member
    shard.timers.cancel(ConsumerTimer(ConsumerTimerKind.JOIN, group_id, member.member_id))
    renew_session(shard, group_id, member, at)
    await_sync(shard, group_id, member, at)
    return _answer(walk, attempt, appended)


def _answer(walk: Walk, attempt: JoinAttempt, appended: Appended) -> Outcome[JoinGroupResponse]:
    response = JoinGroupResponse(
        generation_id=walk.member.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=next(iter(attempt.protocols)),
        member_id=walk.member.member_id,
    )
    return Outcome(response, appended.safe_at)


def _downgraded(
    walk: Walk, attempt: JoinAttempt, holder_id: str, at: ClockReading
) -> Outcome[JoinGroupResponse] | Refusal:
    """Turn the group into a classic one, in which a member takes the place of its instance's."""
    group = walk.group
    assert holder_id in group.members, holder_id
    raise_epoch(walk, is_due=walk.has_new_names or walk.regex.changes_topics)
    target = last_target(group, walk.member)
    rebalances = walk.epoch > group.assignment_epoch
    if not rebalances:
        refused = reconcile(walk, group.assignment_epoch, target)
        if refused is not None:
            return refused
    left = [each for each in group.members.values() if each.member_id != holder_id]
    targets = dict(group.targets.items()) | {walk.member.member_id: target}
    done = Downgrade(
        group,
        [*left, walk.member],
        targets,
        {holder_id: walk.member.member_id},
        walk.records,
        rebalances=rebalances,
    )
    appended = downgrade(walk.shard, done, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    return _answer(walk, attempt, appended)
