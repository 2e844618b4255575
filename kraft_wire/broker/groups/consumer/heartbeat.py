"""ConsumerGroupHeartbeat: how a member joins, stays, changes what it reads, and leaves (KIP-848).

`heartbeat` walks through the steps of a heartbeat in order; each adds records, which are written
as one batch at the end: who the member is, what it subscribes to, the group's epoch, the targets,
the member's own step (`reconciliation`). Regular expressions are in `regexes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.assignors.spec import Target
from kraft_wire.broker.groups.classic.states import GroupState
from kraft_wire.broker.groups.consumer.checks import (
    LEFT_FOR_A_WHILE,
    check_capacity,
    check_epoch,
    check_instance_free,
    find_dynamic,
    find_static,
)
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.group_settings import (
    assignment_interval_ms,
    heartbeat_interval_ms,
)
from kraft_wire.broker.groups.consumer.leave import leave_for_a_while, remove_member
from kraft_wire.broker.groups.consumer.member import ConsumerMember, MemberState
from kraft_wire.broker.groups.consumer.reconciliation import Owned, Reconciliation, reconciled
from kraft_wire.broker.groups.consumer.records import (
    current_assignment_record,
    epoch_record,
    member_record,
    member_tombstones,
    partition_metadata_tombstone,
    target_record,
)
from kraft_wire.broker.groups.consumer.refusal import Refusal
from kraft_wire.broker.groups.consumer.regex_evaluation import MayDescribe
from kraft_wire.broker.groups.consumer.regexes import RegexChange, regex_change
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.broker.groups.consumer.subscriptions import (
    Subscriptions,
    names_of,
    resolved_regexes,
    subscriptions,
)
from kraft_wire.broker.groups.consumer.target_assignment import (
    computed_targets,
    is_target_due,
    last_target,
    preferred_assignor,
    target_records,
)
from kraft_wire.broker.groups.consumer.ticking import limit_revocation, renew_session
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.consumer.write import write
from kraft_wire.broker.groups.records import group_tombstone
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.frozen import frozen
from kraft_wire.model import Uuid
from kraft_wire.settings.server_assignors import assignor_names
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


@dataclass(slots=True)
class _Walk:
    """One heartbeat on its way through the steps."""

    shard: GroupShard
    group: ConsumerGroup
    request: ConsumerGroupHeartbeatRequest
    owned: Owned
    former: ConsumerMember
    """The member before, as its records have it; a copy for a static member that returns."""
    member: ConsumerMember
    replaced_id: str | None = None
    """The static member whose place this one takes."""
    records: list[CoordinatorRecord] = field(default_factory=list)
    epoch: int = 0
    regex: RegexChange = field(default_factory=RegexChange)
    may_describe: MayDescribe | None = None
    has_looked: bool = False
    """Whether the group's topics were compared with the metadata."""
    has_new_names: bool = False
    has_stepped: bool = False
    """Whether the member's own step changed it."""


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
    _describe(walk, client)
    outcome = _taken(walk, at)
    if isinstance(outcome, Refusal) and walk.group.group_id not in shard.other_groups:
        walk.group.release()
    return outcome


def _taken(walk: _Walk, at: ClockReading) -> HeartbeatOutcome | Refusal:
    """Take the steps of a heartbeat whose sender is known."""
    refused = _subscribe(walk, at)
    if refused is not None:
        return refused
    is_homogeneous = _raise_epoch(walk)
    target_epoch, target = _retarget(walk, is_homogeneous, at)
    refused = _reconcile(walk, target_epoch, target)
    return refused or _finish(walk, at)


# --- Who it is -------------------------------------------------------------------------------


def _find(shard: GroupShard, group_id: str, missing: str) -> ConsumerGroup | Refusal:
    found = shard.other_groups.get(group_id)
    if isinstance(found, ConsumerGroup):
        return found
    if found is None and group_id not in shard.groups:
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, missing)
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")


def _leave(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, at: ClockReading
) -> HeartbeatOutcome | Refusal:
    group_id, member_id = request.group_id, request.member_id
    group = _find(shard, group_id, f"Group {group_id} not found.")
    if isinstance(group, Refusal):
        return group
    goes = remove_member
    if request.instance_id is None:
        member = find_dynamic(group, member_id)
    else:
        member = find_static(group, member_id, request.instance_id)
        if request.member_epoch == LEFT_FOR_A_WHILE:
            goes = leave_for_a_while
    if isinstance(member, Refusal):
        return member
    appended = goes(shard, group, member, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id, member_epoch=request.member_epoch
    )
    return HeartbeatOutcome(response, appended.safe_at)


def _entered(shard: GroupShard, request: ConsumerGroupHeartbeatRequest) -> _Walk | Refusal:
    """Find the group and the member, or make them; a new group is stored with its first record."""
    group_id = request.group_id
    found = _find(shard, group_id, f"Consumer group {group_id} not found.")
    if isinstance(found, Refusal):
        classic = shard.groups.get(group_id)
        is_free = group_id not in shard.other_groups and (
            classic is None or classic.is_in(GroupState.EMPTY)
        )
        if request.member_epoch != _JOIN or not is_free:
            return found
        found = ConsumerGroup(group_id, shard.env.memory)
    refused = check_capacity(found, request.member_id, shard.env.settings().group_consumer_max_size)
    if refused is not None:
        return refused
    if request.instance_id is None:
        return _entered_dynamic(shard, found, request)
    return _entered_static(shard, found, request, request.instance_id)


def _entered_dynamic(
    shard: GroupShard, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> _Walk | Refusal:
    owned = _owned(request)
    member = find_dynamic(group, request.member_id)
    if isinstance(member, Refusal):
        if request.member_epoch != _JOIN:
            return member
        member = ConsumerMember(request.member_id)
    refused = check_epoch(member, request.member_epoch, owned)
    return refused or _Walk(shard, group, request, owned, member, member)


def _entered_static(
    shard: GroupShard,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    instance_id: str,
) -> _Walk | Refusal:
    owned = _owned(request)
    member_id = request.member_id
    if request.member_epoch != _JOIN:
        member = find_static(group, member_id, instance_id)
        if isinstance(member, Refusal):
            return member
        refused = check_epoch(member, request.member_epoch, owned)
        return refused or _Walk(shard, group, request, owned, member, member)
    holder_id = group.static_members.get(instance_id)
    if holder_id is None:
        member = group.members.get(member_id) or ConsumerMember(member_id)
        return _Walk(shard, group, request, owned, member, member)
    holder = group.members[holder_id]
    refused = check_instance_free(holder, member_id)
    if refused is not None:
        return refused
    member = replace(holder, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    walk = _Walk(shard, group, request, owned, member, member)
    walk.replaced_id = holder_id if holder_id != member_id else None
    walk.records += member_tombstones(group.group_id, holder_id)
    walk.records.append(member_record(group.group_id, member))
    inherited = group.targets.get(holder_id) or {}
    walk.records.append(target_record(group.group_id, member_id, inherited))
    walk.records.append(current_assignment_record(group.group_id, member))
    return walk


def _owned(request: ConsumerGroupHeartbeatRequest) -> Owned:
    if request.topic_partitions is None:
        return None
    owned: dict[Uuid, list[int]] = {}
    for topic in request.topic_partitions:
        owned.setdefault(topic.topic_id, []).extend(topic.partitions)
    return owned


# --- What it subscribes to -------------------------------------------------------------------


def _describe(walk: _Walk, client: Client) -> None:
    """Apply the member's fields in the request; null means unchanged."""
    request, former = walk.request, walk.former
    names = former.subscribed_topic_names
    requested = request.subscribed_topic_names
    if requested is not None and sorted(dict.fromkeys(requested)) != sorted(names):
        names = tuple(dict.fromkeys(requested))
        walk.has_new_names = True
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


def _or_former(given: str | None, former: str | None) -> str | None:
    return former if given is None else given


def _subscribe(walk: _Walk, at: ClockReading) -> Refusal | None:
    if walk.member != walk.former:
        walk.records.append(member_record(walk.group.group_id, walk.member))
    change = regex_change(walk.shard, walk.group, walk.former, walk.member, at)
    if isinstance(change, Refusal):
        return change
    walk.regex = change
    walk.records += change.tombstones(walk.group.group_id)
    return None


def _topics(walk: _Walk) -> Subscriptions:
    """Return what the group subscribes to after this heartbeat."""
    replaced = (walk.replaced_id, walk.member.member_id)
    others = [each for each in walk.group.members.values() if each.member_id not in replaced]
    return subscriptions([*others, walk.member], _regexes(walk))


def _regexes(walk: _Walk) -> Mapping[str, ResolvedRegex]:
    return resolved_regexes(walk.group, walk.regex.unused)


# --- What the group is to have ---------------------------------------------------------------


def _raise_epoch(walk: _Walk) -> bool:
    """Raise the group's epoch if its topics changed; whether the subscription is homogeneous."""
    group, env = walk.group, walk.shard.env
    walk.epoch = group.epoch
    is_due = walk.has_new_names or walk.regex.changes_topics
    if not is_due and not group.is_metadata_due(env.image()):
        # As in Kafka, a new member without topics does not count yet.
        return subscriptions(group.members.values(), _regexes(walk)).is_homogeneous
    topics = _topics(walk)
    metadata_hash = env.topic_hashes.group_hash(topics.names, env.image())
    if is_due or metadata_hash != group.metadata_hash:
        walk.epoch += 1
        walk.records.append(epoch_record(group.group_id, walk.epoch, metadata_hash))
    if group.has_partition_metadata:
        walk.records.append(partition_metadata_tombstone(group.group_id))
    walk.has_looked = True
    return topics.is_homogeneous


def _retarget(walk: _Walk, is_homogeneous: bool, at: ClockReading) -> tuple[int, Target]:
    """Compute the targets if they are due; return the epoch and the member's target."""
    group, env = walk.group, walk.shard.env
    interval_ms = assignment_interval_ms(env, group.group_id)
    if not is_target_due(group, walk.epoch, interval_ms, at.wall_ms):
        return group.assignment_epoch, last_target(group, walk.member)
    stored = group.members.get(walk.replaced_id or walk.member.member_id)
    default = assignor_names(env.settings().group_consumer_assignors)[0]
    assignor = preferred_assignor(group, stored, walk.member, default)
    targets = computed_targets(
        group,
        walk.member,
        walk.replaced_id,
        env.image(),
        is_homogeneous=is_homogeneous,
        assignor=assignor,
    )
    walk.records += target_records(group, targets, walk.epoch, at.wall_ms)
    return walk.epoch, targets[walk.member.member_id]


def _reconcile(walk: _Walk, target_epoch: int, target: Target) -> Refusal | None:
    """Take the member's own step towards its target."""
    has_new_subscription = walk.has_new_names or walk.regex.is_new
    if not has_new_subscription and walk.member.is_reconciled_to(target_epoch):
        return None
    group, image = walk.group, walk.shard.env.image()
    names = names_of(walk.member, dict(group.regexes.items()))
    topics = [image.topic(name) for name in names]
    holders = group.holders()
    step = Reconciliation(
        target_epoch=target_epoch,
        target=target,
        subscribed=tuple(each.topic_id for each in topics if each is not None),
        has_names=bool(names),
        is_held=lambda topic_id, partition: (topic_id, partition) in holders,
        owned=walk.owned,
        has_new_subscription=has_new_subscription,
    )
    after = reconciled(walk.member, step)
    if isinstance(after, Refusal):
        return after
    if after != walk.member:
        walk.records.append(current_assignment_record(group.group_id, after))
        walk.has_stepped = True
    walk.member = after
    return None


# --- The end ---------------------------------------------------------------------------------


def _finish(walk: _Walk, at: ClockReading) -> HeartbeatOutcome | Refusal:
    """Write the records, set the timers, and answer."""
    shard, group, member = walk.shard, walk.group, walk.member
    if group.group_id in shard.groups:
        # An empty classic group ends with the first records of the new one.
        walk.records.insert(0, group_tombstone(group.group_id))
    appended = write(shard, group, walk.records, at)
    if appended.error is not ErrorCode.NONE:
        return Refusal(appended.error)
    if group.group_id not in shard.other_groups:
        shard.put_other_group(group)
    if walk.has_looked:
        group.note_metadata(_topics(walk).names, shard.env.image())
    _schedule(walk, at)
    walk.regex.begin(shard, group, walk.may_describe, at)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(shard.env, group.group_id),
    )
    if _wants_assignment(walk):
        response.assignment = Assignment(
            topic_partitions=[
                ResponseTopicPartitions(topic_id=topic_id, partitions=list(partitions))
                for topic_id, partitions in member.assigned.items()
            ]
        )
    return HeartbeatOutcome(response, appended.safe_at)


def _wants_assignment(walk: _Walk) -> bool:
    """Whether the answer lists partitions: to a join, a full request, and if they changed."""
    request = walk.request
    is_full = (
        request.rebalance_timeout_ms != _UNCHANGED
        and (
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        )
        and request.topic_partitions is not None
    )
    has_changed = walk.member.assigned != walk.former.assigned
    return request.member_epoch == _JOIN or is_full or has_changed


def _schedule(walk: _Walk, at: ClockReading) -> None:
    shard, group_id, member = walk.shard, walk.group.group_id, walk.member
    renew_session(shard, group_id, member, at)
    if walk.has_stepped and member.state is MemberState.UNREVOKED_PARTITIONS:
        limit_revocation(shard, group_id, member, at)
    elif walk.has_stepped:
        shard.timers.cancel(ConsumerTimer(ConsumerTimerKind.REBALANCE, group_id, member.member_id))
