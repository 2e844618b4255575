"""The steps of a member's heartbeat: what it reads, the epoch, the targets, its part, new state.

Each step adds records to those of the request, which are written as one batch at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.assignors.spec import AssignmentFailed, Target
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.group_settings import assignment_interval_ms
from kraft_wire.broker.groups.share.initialization import initializing, partitions_to_begin
from kraft_wire.broker.groups.share.member import STABLE, ShareMember, topic_names
from kraft_wire.broker.groups.share.records import (
    current_assignment_record,
    epoch_record,
    member_record,
    state_partitions_record,
)
from kraft_wire.broker.groups.share.state_partitions import PartitionsByTopic
from kraft_wire.broker.groups.share.target_assignment import (
    computed_targets,
    is_assignment_missing,
    target_records,
)
from kraft_wire.broker.groups.target_times import may_compute_targets
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Walk", "note_beginning", "raise_epoch", "reconcile", "retarget", "subscribe"]


@dataclass(slots=True)
class Walk:
    """One heartbeat on its way through the steps."""

    shard: GroupShard
    group: ShareGroup
    former: ShareMember
    """The member before, as its records have it."""
    member: ShareMember
    is_new_group: bool
    is_new_member: bool
    records: list[CoordinatorRecord] = field(default_factory=list)
    epoch: int = 0
    is_raised: bool = False
    """Whether this heartbeat raises the group's epoch."""
    names: tuple[str, ...] = ()
    """The topics of the group, whether they exist or not."""
    has_looked: bool = False
    """Whether they were compared with the metadata."""
    safe_at: int | None = None
    """High watermark that commits the records; None: they are."""
    beginning: PartitionsByTopic = field(default_factory=JavaHashMap)
    """The share partitions whose state is to begin."""


def subscribe(
    walk: Walk, names: Sequence[str] | None, rack_id: str | None, client_id: str, host: str
) -> bool:
    """Apply what the request says about the member; whether it reads other topics now."""
    former = walk.former
    walk.member = replace(
        former,
        rack_id=former.rack_id if rack_id is None else rack_id,
        subscribed_topic_names=(
            former.subscribed_topic_names if names is None else topic_names(names)
        ),
        client_id=client_id,
        client_host=host,
    )
    if walk.member != former:
        walk.records.append(member_record(walk.group.group_id, walk.member))
    return walk.member.subscribed_topic_names != former.subscribed_topic_names


def raise_epoch(walk: Walk, *, has_new_names: bool) -> bool:
    """Raise the group's epoch if the member reads other topics, or the metadata has changed.

    Also if initialised share partitions are in no target. Returns whether all members subscribe to
    the same topics.
    """
    group, image = walk.group, walk.shard.env.image()
    walk.epoch, walk.names = group.epoch, tuple(group.subscribers)
    is_pending = group.assignment_epoch < group.epoch
    is_due = has_new_names or (not is_pending and is_assignment_missing(group))
    if not is_due and not group.is_metadata_due(image):
        return group.is_homogeneous
    subscribers = _subscribers(walk)
    walk.names, walk.has_looked = tuple(subscribers), True
    metadata_hash = walk.shard.env.topic_hashes.group_hash(walk.names, image)
    if is_due or metadata_hash != group.metadata_hash:
        walk.epoch, walk.is_raised = epoch_after(group.epoch), True
        walk.records.append(epoch_record(group.group_id, walk.epoch, metadata_hash))
    return all(count == len(group.members) for count in subscribers.values())


def _subscribers(walk: Walk) -> JavaHashMap[str, int]:
    """Return topics with the number of their subscribers after this heartbeat."""
    counts = walk.group.subscribers.copy()
    for name in walk.former.subscribed_topic_names:
        counts.add(name, -1)
    for name in walk.member.subscribed_topic_names:
        counts.add(name, 1)
    return counts


def retarget(walk: Walk, at: ClockReading, *, is_homogeneous: bool) -> tuple[int, Target] | Refusal:
    """Compute the targets if they are due; return the epoch and the member's target.

    UNKNOWN_SERVER_ERROR, as in Kafka, if the assignor fails.
    """
    group, env = walk.group, walk.shard.env
    interval_ms = assignment_interval_ms(env, group.group_id)
    is_old = group.assignment_epoch < walk.epoch
    computed_ms = group.assignment_timestamp_ms
    if not is_old or not may_compute_targets(computed_ms, interval_ms, at.wall_ms):
        return group.assignment_epoch, group.targets.get(walk.member.member_id) or {}
    try:
        targets = computed_targets(group, walk.member, env.image(), is_homogeneous=is_homogeneous)
    except AssignmentFailed:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
    walk.records += target_records(group, targets, walk.epoch, at.wall_ms)
    return walk.epoch, targets[walk.member.member_id]


def reconcile(walk: Walk, target_epoch: int, target: Target) -> None:
    """Give the member its target at once: a partition may have several members."""
    member = walk.member
    if member.is_reconciled_to(target_epoch) and not walk.is_raised:
        return
    assigned = _subscribed_part(target, member, walk.shard.env.image())
    after = replace(member, assigned=assigned)
    if member.member_epoch != target_epoch:
        after = replace(
            after,
            state=STABLE,
            member_epoch=target_epoch,
            previous_member_epoch=member.member_epoch,
        )
    if not after.is_same(member):
        walk.records.append(current_assignment_record(walk.group.group_id, after))
    walk.member = after


def _subscribed_part(target: Target, member: ShareMember, image: MetadataImage) -> Target:
    """Return a target without topics that are gone, or that the member does not read any more."""
    topics = [image.topic(name) for name in member.subscribed_topic_names]
    topic_ids = [topic.topic_id for topic in topics if topic is not None]
    if all(topic_id in topic_ids for topic_id in target):
        return target
    copied: JavaHashMap[Uuid, tuple[int, ...]] = JavaHashMap(int(len(target) / 0.75 + 1))
    for topic_id, partitions in target.items():
        copied[topic_id] = partitions
    return {topic_id: target[topic_id] for topic_id in copied if topic_id in topic_ids}


def note_beginning(walk: Walk, at: ClockReading) -> None:
    """Note the subscribed share partitions whose state has to begin."""
    group, env = walk.group, walk.shard.env
    settings = env.settings()
    retry_ms = max(
        settings.group_share_initialize_retry_interval_ms, settings.offsets_commit_timeout_ms
    )
    image = env.image()
    walk.beginning = partitions_to_begin(group, walk.names, image, retry_ms, at.now_ms)
    if len(walk.beginning):
        topics = initializing(group.state_partitions, walk.beginning, image)
        walk.records.append(state_partitions_record(group.group_id, topics))
