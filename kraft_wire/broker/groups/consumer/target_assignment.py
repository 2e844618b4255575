"""The target of a group: when it is computed again, with which assignor, and its records.

A target is computed when the group's epoch is above that of the last one, at most once per
assignment interval (KIP-1263). Only targets that differ are written.
"""

from collections.abc import Iterable, Mapping

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.assignors.names import ASSIGNORS
from kraft_wire.broker.groups.assignors.spec import (
    AssignmentFailed,
    GroupSpec,
    MemberSpec,
    Target,
    same_target,
)
from kraft_wire.broker.groups.consumer.group import ConsumerGroup
from kraft_wire.broker.groups.consumer.group_settings import assignment_interval_ms
from kraft_wire.broker.groups.consumer.member import ConsumerMember
from kraft_wire.broker.groups.consumer.records import target_epoch_record, target_record
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.broker.groups.consumer.subscriptions import names_of
from kraft_wire.broker.groups.environment import GroupEnvironment
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.target_times import may_compute_targets
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid

__all__ = [
    "computed_targets",
    "is_target_due",
    "last_target",
    "most_used",
    "preferred_assignor",
    "target_records",
]


def is_target_due(env: GroupEnvironment, group: ConsumerGroup, epoch: int, wall_ms: int) -> bool:
    """Whether the targets are older than the epoch, and may be computed again now."""
    if group.assignment_epoch >= epoch:
        return False
    interval_ms = assignment_interval_ms(env, group.group_id)
    return may_compute_targets(group.assignment_timestamp_ms, interval_ms, wall_ms)


def last_target(group: ConsumerGroup, member: ConsumerMember) -> Target:
    """Return a member's last target; of a static member that of its instance."""
    member_id: str | None = member.member_id
    if member.instance_id is not None:
        member_id = group.static_members.get(member.instance_id)
    return (None if member_id is None else group.targets.get(member_id)) or {}


def preferred_assignor(
    group: ConsumerGroup,
    former: ConsumerMember | None,
    updated: ConsumerMember,
    default: str,
) -> str:
    """Return the server assignor that most members name, with one member as it will be."""
    counts = group.assignor_users.copy()
    if former is not None and former.server_assignor is not None:
        counts.add(former.server_assignor, -1)
    if updated.server_assignor is not None:
        counts.add(updated.server_assignor, 1)
    return most_used(counts.items(), default)


def most_used(counts: Iterable[tuple[str, int]], default: str) -> str:
    """Return the first of the server assignors that most members name."""
    return max(counts, key=lambda each: each[1], default=(default, 0))[0]


def computed_targets(
    group: ConsumerGroup,
    updated: ConsumerMember,
    replaced_id: str | None,
    image: MetadataImage,
    *,
    is_homogeneous: bool,
    assignor: str,
) -> dict[str, Target]:
    """Return the target of every member, with one member as it will be.

    `replaced_id` is the static member whose place the updated one takes.
    """
    regexes = dict(group.regexes.items())
    members: JavaHashMap[str, MemberSpec] = JavaHashMap()
    for member_id, member in group.members.items():
        members[member_id] = _spec(member, group.targets.get(member_id) or {}, regexes, image)
    changes: JavaHashMap[str, MemberSpec | None] = JavaHashMap()
    inherited = group.targets.get(replaced_id or updated.member_id) or {}
    changes[updated.member_id] = _spec(updated, inherited, regexes, image)
    if replaced_id is not None:
        changes[replaced_id] = None
    for member_id, spec in changes.items():
        if spec is None:
            members.pop(member_id)
        else:
            members[member_id] = spec
    counts: dict[Uuid, int] = {}
    for spec in members.values():
        for topic_id in spec.topic_ids:
            topic = image.topic_by_id(topic_id)
            assert topic is not None, topic_id
            counts[topic_id] = len(topic.partitions)
    assign = ASSIGNORS.get(assignor)
    if assign is None:  # of another cluster, whose broker had a class of this name
        raise AssignmentFailed(f"there is no assignor {assignor}")
    made = assign(GroupSpec(members, is_homogeneous, counts))
    return {member_id: made.get(member_id, {}) for member_id in members}


def target_records(
    group: ConsumerGroup, targets: Mapping[str, Target], epoch: int, wall_ms: int
) -> list[CoordinatorRecord]:
    """Write the targets that are new or differ, then the epoch that they are for."""
    records = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if (former := group.targets.get(member_id)) is None or not same_target(former, target)
    ]
    return [*records, target_epoch_record(group.group_id, epoch, wall_ms)]


def _spec(
    member: ConsumerMember,
    target: Target,
    regexes: Mapping[str, ResolvedRegex],
    image: MetadataImage,
) -> MemberSpec:
    names = names_of(member, regexes)
    topics = [image.topic(name) for name in names]
    topic_ids = tuple(topic.topic_id for topic in topics if topic is not None)
    return MemberSpec(member.instance_id, topic_ids, len(names), target)
