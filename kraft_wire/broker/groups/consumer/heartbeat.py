"""ConsumerGroupHeartbeat: how a member joins, stays, changes what it reads, and leaves (KIP-848).

`heartbeat` finds the group and the member, or makes them, and takes the steps of `member_steps`.
A classic group with members becomes a consumer group with the first one that joins (`upgrade`).
"""

from dataclasses import dataclass, replace
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.consumer.checks import (
    LEFT_FOR_A_WHILE,
    check_capacity,
    check_epoch,
    check_instance_free,
    find_dynamic,
    find_group,
    find_holder,
    find_static,
)
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.group_settings import heartbeat_interval_ms
from kraft_wire.broker.groups.consumer.leave import leave_for_a_while, remove_members
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
from kraft_wire.broker.groups.consumer.migration.upgrade import (
    check_upgrade,
    tell_to_rejoin,
    upgrade_records,
    upgraded,
)
from kraft_wire.broker.groups.consumer.reconciliation import Owned
from kraft_wire.broker.groups.consumer.regex_evaluation import MayDescribe
from kraft_wire.broker.groups.consumer.session import renew_session
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.frozen import frozen
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Client", "HeartbeatOutcome", "heartbeat"]

_JOIN: Final = 0
_LEAVE: Final = -1
_UNCHANGED: Final = -1


@frozen
class Client:
    """The sender of a heartbeat."""

    client_id: str
    host: str
    """The address with a leading slash."""
    may_describe: MayDescribe | None = None
    """Whether a topic that an expression matches may be told; None: all may."""


@dataclass(slots=True)
class HeartbeatOutcome:
    """The answer to a heartbeat, and when it may be given."""

    response: ConsumerGroupHeartbeatResponse
    safe_at: int | None = None
    """High watermark of the group's partition to wait for; None: now."""


def heartbeat(
    shard: GroupShard,
    request: ConsumerGroupHeartbeatRequest,
    client: Client,
    at: ClockReading,
) -> HeartbeatOutcome | Refusal:
    """Take a heartbeat, and return the answer or why there is none.

    Errors, first match wins: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH, INVALID_REGULAR_EXPRESSION,
    those of the append.
    """
    if request.member_epoch in (_LEAVE, LEFT_FOR_A_WHILE):
        return _leave(shard, request, at)
    walk = _entered(shard, request)
    if isinstance(walk, Refusal):
        return walk
    walk.may_describe = client.may_describe
    _describe(walk, request, client)
    outcome = _taken(walk, request, at)
    if isinstance(outcome, Refusal) and walk.group.group_id not in shard.other_groups:
        walk.group.release()
    return outcome


def _taken(
    walk: Walk, request: ConsumerGroupHeartbeatRequest, at: ClockReading
) -> HeartbeatOutcome | Refusal:
    """Take the steps of a heartbeat whose sender is known."""
    refused = subscribe(walk, at)
    if refused is not None:
        return refused
    is_due = walk.has_new_names or walk.regex.changes_topics
    is_homogeneous = raise_epoch(walk, is_due=is_due)
    aim = retarget(walk, is_homogeneous, at)
    if isinstance(aim, Refusal):
        return aim
    refused = reconcile(walk, *aim)
    return refused or _finish(walk, request, at)


# --- Who it is -------------------------------------------------------------------------------


def _leave(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, at: ClockReading
) -> HeartbeatOutcome | Refusal:
    group_id, member_id = request.group_id, request.member_id
    group = find_group(shard, group_id, f"Group {group_id} not found.")
    if isinstance(group, Refusal):
        return group
    if request.instance_id is None:
        member = find_dynamic(group, member_id)
    else:
        member = find_static(group, member_id, request.instance_id)
    if isinstance(member, Refusal):
        return member
    if request.member_epoch == LEFT_FOR_A_WHILE and request.instance_id is not None:
        appended = leave_for_a_while(shard, group, member, at)
    else:
        appended = remove_members(shard, group, [member], at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=request.member_epoch
    )
    return HeartbeatOutcome(response, appended.safe_at)


def _entered(shard: GroupShard, request: ConsumerGroupHeartbeatRequest) -> Walk | Refusal:
    """Find the group and the member, or make them; a new group is stored with its first record."""
    group = _found_or_made(shard, request)
    if isinstance(group, Refusal):
        return group
    size_max = shard.env.settings().group_consumer_max_size
    walk = check_capacity(group, request.member_id, size_max) or (
        _entered_dynamic if request.instance_id is None else _entered_static
    )(shard, group, request)
    is_stored = group.group_id in shard.other_groups
    if isinstance(walk, Refusal):
        if not is_stored:
            group.release()
    elif not is_stored and len(group.members):
        walk.upgraded = shard.groups[group.group_id]
        walk.records[:0] = upgrade_records(group)
    return walk


def _found_or_made(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroup | Refusal:
    """Return the group; a member that joins makes it, or converts a classic one."""
    group_id = request.group_id
    found = find_group(shard, group_id, f"Consumer group {group_id} not found.")
    is_taken = group_id in shard.other_groups
    if not isinstance(found, Refusal) or request.member_epoch != _JOIN or is_taken:
        return found
    classic = shard.groups.get(group_id)
    if classic is None or classic.is_in(GroupState.EMPTY):
        return ConsumerGroup(group_id, shard.env.memory)
    refused = check_upgrade(shard.env, classic)
    if refused is not None:
        return refused
    tell_to_rejoin(shard, classic)
    return upgraded(shard.env, classic)


def _entered_dynamic(
    shard: GroupShard, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> Walk | Refusal:
    owned = _owned(request)
    member = find_dynamic(group, request.member_id)
    if isinstance(member, Refusal):
        if request.member_epoch != _JOIN:
            return member
        member = ConsumerMember(request.member_id)
    refused = check_epoch(member, request.member_epoch, owned)
    return refused or Walk(shard, group, owned, member, member)


def _entered_static(
    shard: GroupShard,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
) -> Walk | Refusal:
    owned = _owned(request)
    member_id, instance_id = request.member_id, request.instance_id
    assert instance_id is not None, request
    if request.member_epoch != _JOIN:
        member = find_static(group, member_id, instance_id)
        if isinstance(member, Refusal):
            return member
        refused = check_epoch(member, request.member_epoch, owned)
        return refused or Walk(shard, group, owned, member, member)
    holder = find_holder(group, instance_id)
    if holder is None:
        member = group.members.get(member_id) or ConsumerMember(member_id)
        return Walk(shard, group, owned, member, member)
    if isinstance(holder, Refusal):
        return holder
    refused = check_instance_free(holder, member_id)
    if refused is not None:
        return refused
    member = replace(holder, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    walk = Walk(shard, group, owned, member, member)
    take_place(walk, holder.member_id)
    return walk


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    owned: dict[Uuid, list[int]] = {}
    for topic in request.topic_partitions:
        owned.setdefault(topic.topic_id, []).extend(topic.partitions)
    return owned


# --- What it subscribes to -------------------------------------------------------------------


def _describe(walk: Walk, request: ConsumerGroupHeartbeatRequest, client: Client) -> None:
    """Apply the member's fields in the request; null means unchanged."""
    former = walk.former
    if _says_nothing_new(request, client, former):
        return
    names = former.subscribed_topic_names
    if request.subscribed_topic_names is not None:
        names = use_names(walk, request.subscribed_topic_names)
    regex = request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    walk.member = replace(
        former,
        instance_id=_or_former(request.instance_id, former.instance_id),
        rack_id=_or_former(request.rack_id, former.rack_id),
        server_assignor=_or_former(request.server_assignor, former.server_assignor),
        rebalance_timeout_ms=former.rebalance_timeout_ms
        if timeout_ms == _UNCHANGED
        else timeout_ms,
        subscribed_topic_names=names,
        subscribed_topic_regex=former.subscribed_topic_regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.host,
        classic_metadata=None,
    )


def _says_nothing_new(
    request: ConsumerGroupHeartbeatRequest, client: Client, former: ConsumerMember
) -> bool:
    """Whether the member stays as it is: most heartbeats are so."""
    return (
        request.instance_id in (None, former.instance_id)
        and request.rack_id is None
        and request.server_assignor is None
        and request.rebalance_timeout_ms == _UNCHANGED
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and client.client_id == former.client_id
        and client.host == former.client_host
        and former.classic_metadata is None
    )


def _or_former(given: str | None, former: str | None) -> str | None:
    return former if given is None else given


# --- The end ---------------------------------------------------------------------------------


def _finish(
    walk: Walk, request: ConsumerGroupHeartbeatRequest, at: ClockReading
) -> HeartbeatOutcome | Refusal:
    """Write the records, set the timers, and answer."""
    shard, member = walk.shard, walk.member
    appended = store(walk, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    group = walk.group
    renew_session(shard, group.group_id, member, at)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(shard.env, group.group_id),
    )
    if _wants_assignment(walk, request):
        response.assignment = Assignment(
            topic_partitions=[
                ResponseTopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in member.assigned.items()
            ]
        )
    return HeartbeatOutcome(response, appended.safe_at)


def _wants_assignment(walk: Walk, request: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the answer lists partitions: to a join, a full request, and if they changed."""
    is_full = (
        request.rebalance_timeout_ms != _UNCHANGED
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        and request.topic_partitions is not None
    )
    has_changed = walk.member.assigned != walk.former.assigned
    return request.member_epoch == _JOIN or is_full or has_changed
