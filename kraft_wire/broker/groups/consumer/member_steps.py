"""The steps of a member, whatever the request: subscribe, raise the epoch, find targets, move on.

Each step adds records to those of the request, which are written as one batch at the end: who the
member is, what it subscribes to, the group's epoch, the targets, the member's own step
(`reconciliation`). A ConsumerGroupHeartbeat takes them (`heartbeat`), and a JoinGroup of a member
that uses the classic protocol (`classic_members`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.groups.assignors.spec import AssignmentFailed, Target
from kraft_wire.broker.groups.classic.group import ClassicGroup
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
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
from kraft_wire.broker.groups.consumer.regex_evaluation import MayDescribe
from kraft_wire.broker.groups.consumer.regexes import RegexChange, regex_change
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.broker.groups.consumer.session import limit_revocation, renew_session
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
from kraft_wire.broker.groups.consumer.timers import ConsumerTimer, ConsumerTimerKind
from kraft_wire.broker.groups.consumer.write import write
from kraft_wire.broker.groups.records import group_tombstone
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard, end_classic_group
from kraft_wire.settings.server_assignors import assignor_names
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "Walk",
    "raise_epoch",
    "reconcile",
    "retarget",
    "store",
    "subscribe",
    "take_place",
    "use_names",
]


@dataclass(slots=True)
class Walk:
    """One heartbeat or JoinGroup request of a member on its way through the steps."""

    shard: GroupShard
    group: ConsumerGroup
    owned: Owned
    former: ConsumerMember
    """The member before, as its records have it; a copy for a static member that returns."""
    member: ConsumerMember
    replaced_id: str | None = None
    """The static member whose place this one takes under another id."""
    records: list[CoordinatorRecord] = field(default_factory=list)
    epoch: int = 0
    regex: RegexChange = field(default_factory=RegexChange)
    may_describe: MayDescribe | None = None
    upgraded: ClassicGroup | None = None
    """The classic group with members that the group was until now."""
    has_looked: bool = False
    """Whether the group's topics were compared with the metadata."""
    has_new_names: bool = False
    has_stepped: bool = False
    """Whether the member's own step changed it."""


def take_place(walk: Walk, holder_id: str) -> None:
    """Give the member the place of a static one: what it has, its target, its state."""
    group_id, member = walk.group.group_id, walk.member
    walk.replaced_id = holder_id if holder_id != member.member_id else None
    walk.records += member_tombstones(group_id, holder_id)
    walk.records.append(member_record(group_id, member))
    inherited = walk.group.targets.get(holder_id) or {}
    walk.records.append(target_record(group_id, member.member_id, inherited))
    walk.records.append(current_assignment_record(group_id, member))


# --- What it subscribes to -------------------------------------------------------------------


def subscribe(walk: Walk, at: ClockReading) -> Refusal | None:
    """Note what the member subscribes to now; INVALID_REGULAR_EXPRESSION."""
    if walk.member is not walk.former and walk.member != walk.former:
        walk.records.append(member_record(walk.group.group_id, walk.member))
    change = regex_change(walk.shard, walk.group, walk.former, walk.member, at)
    if isinstance(change, Refusal):
        return change
    walk.regex = change
    walk.records += change.tombstones(walk.group.group_id)
    return None


def use_names(walk: Walk, requested: Iterable[str]) -> tuple[str, ...]:
    """Return the topics that the member names now; the same ones keep their former order."""
    names, former = tuple(dict.fromkeys(requested)), walk.former.subscribed_topic_names
    if sorted(names) == sorted(former):
        return former
    walk.has_new_names = True
    return names


def topics_of(walk: Walk) -> Subscriptions:
    """Return what the group subscribes to after this heartbeat."""
    replaced = (walk.replaced_id, walk.member.member_id)
    others = [each for each in walk.group.members.values() if each.member_id not in replaced]
    return subscriptions([*others, walk.member], _regexes(walk))


def _regexes(walk: Walk) -> Mapping[str, ResolvedRegex]:
    return resolved_regexes(walk.group, walk.regex.unused)


# --- What the group is to have ---------------------------------------------------------------


def raise_epoch(walk: Walk, *, is_due: bool) -> bool | None:
    """Raise the group's epoch if it is due, or its topics changed in the metadata.

    Returns whether the subscription is homogeneous, None if it was not computed.
    """
    group, env = walk.group, walk.shard.env
    walk.epoch = group.epoch
    if not is_due and not group.is_metadata_due(env.image()):
        return None
    topics = topics_of(walk)
    metadata_hash = env.topic_hashes.group_hash(topics.names, env.image())
    if is_due or metadata_hash != group.metadata_hash:
        walk.epoch = epoch_after(group.epoch)
        walk.records.append(epoch_record(group.group_id, walk.epoch, metadata_hash))
    if group.has_partition_metadata:
        walk.records.append(partition_metadata_tombstone(group.group_id))
    walk.has_looked = True
    return topics.is_homogeneous


def retarget(
    walk: Walk, is_homogeneous: bool | None, at: ClockReading
) -> tuple[int, Target] | Refusal:
    """Compute the targets if they are due; return the epoch and the member's target.

    UNKNOWN_SERVER_ERROR, as in Kafka, if the assignor fails.
    """
    group, env = walk.group, walk.shard.env
    if not is_target_due(env, group, walk.epoch, at.wall_ms):
        return group.assignment_epoch, last_target(group, walk.member)
    if is_homogeneous is None:
        # As in Kafka, a new member without topics does not count yet.
        is_homogeneous = subscriptions(group.members.values(), _regexes(walk)).is_homogeneous
    stored = group.members.get(walk.replaced_id or walk.member.member_id)
    default = assignor_names(env.settings().group_consumer_assignors)[0]
    assignor = preferred_assignor(group, stored, walk.member, default)
    try:
        targets = computed_targets(
            group,
            walk.member,
            walk.replaced_id,
            env.image(),
            is_homogeneous=is_homogeneous,
            assignor=assignor,
        )
    except AssignmentFailed:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    walk.records += target_records(group, targets, walk.epoch, at.wall_ms)
    return walk.epoch, targets[walk.member.member_id]


def reconcile(walk: Walk, target_epoch: int, target: Target) -> Refusal | None:
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


def store(walk: Walk, at: ClockReading) -> Appended:
    """Write the records, and let the group be what they say; after an error nothing changed."""
    shard, group = walk.shard, walk.group
    if walk.upgraded is not None:
        appended = _store_upgraded(walk, walk.upgraded, at)
    else:
        if group.group_id in shard.groups:
            # An empty classic group ends with the first records of the new one.
            walk.records.insert(0, group_tombstone(group.group_id))
        appended = write(shard, group, walk.records, at)
        if appended.error is ErrorCode.NONE and group.group_id not in shard.other_groups:
            shard.put_other_group(group, at)
    if appended.error is not ErrorCode.NONE:
        return appended
    if walk.has_looked:
        walk.group.note_metadata(topics_of(walk).names, shard.env.image())
    _schedule(walk, at)
    walk.regex.begin(shard, walk.group, walk.may_describe, at)
    return appended


def _store_upgraded(walk: Walk, classic: ClassicGroup, at: ClockReading) -> Appended:
    """Write the group again from its records, as a load does, and end the classic one."""
    shard = walk.shard
    fresh = ConsumerGroup(classic.group_id, shard.env.memory)
    appended = write(shard, fresh, walk.records, at)
    if appended.error is not ErrorCode.NONE:
        fresh.release()
        return appended
    end_classic_group(shard, classic, at)
    shard.put_other_group(fresh, at)
    converted, walk.group = walk.group, fresh
    for each in converted.members.values():
        renew_session(shard, fresh.group_id, each, at)
    converted.release()
    return appended


def _schedule(walk: Walk, at: ClockReading) -> None:
    """Set and cancel the timers that the member's step is about."""
    shard, group_id, member = walk.shard, walk.group.group_id, walk.member
    if not walk.has_stepped:
        return
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        limit_revocation(shard, group_id, member, at)
    else:
        rebalance = ConsumerTimerKind.REBALANCE
        shard.timers.cancel(ConsumerTimer(rebalance, group_id, member.member_id))
