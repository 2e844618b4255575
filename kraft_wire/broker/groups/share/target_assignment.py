"""The target of a share group: when it is computed again, and its records.

A target is computed when the group's epoch is above that of the last one, at most once per
assignment interval (KIP-1263). Only targets that differ are written, and only initialised share
partitions are given.
"""

from collections.abc import Mapping

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.assignors import simple
from kraft_wire.broker.groups.assignors.spec import GroupSpec, MemberSpec, Target, same_target
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.share.group import ShareGroup
from kraft_wire.broker.groups.share.member import ShareMember
from kraft_wire.broker.groups.share.records import target_epoch_record, target_record
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid

__all__ = ["computed_targets", "is_assignment_missing", "target_records"]


def is_assignment_missing(group: ShareGroup) -> bool:
    """Whether some initialised partitions of a subscribed topic are in no member's target."""
    topics = group.state_partitions
    if group.is_empty or topics is None:
        return False
    assigned: dict[Uuid, dict[int, None]] = {}
    for target in group.targets.values():
        for topic_id, partitions in target.items():
            assigned.setdefault(topic_id, {}).update(dict.fromkeys(partitions))
    return any(
        topic.name in group.subscribers
        and assigned.get(topic_id, {}) != dict.fromkeys(topic.partitions)
        for topic_id, topic in topics.initialized.items()
    )


def computed_targets(
    group: ShareGroup, updated: ShareMember, image: MetadataImage, *, is_homogeneous: bool
) -> dict[str, Target]:
    """Return the target of every member, with one member as it will be; AssignmentFailed."""
    members: JavaHashMap[str, MemberSpec] = JavaHashMap()
    for member_id, member in group.members.items():
        members[member_id] = _spec(group, member, image)
    members[updated.member_id] = _spec(group, updated, image)
    counts: dict[Uuid, int] = {}
    for spec in members.values():
        for topic_id in spec.topic_ids:
            topic = image.topic_by_id(topic_id)
            assert topic is not None, topic_id
            counts[topic_id] = len(topic.partitions)
    topics = group.state_partitions
    ready = {} if topics is None else dict(topics.initialized.items())
    assignable = {topic_id: each.partitions for topic_id, each in ready.items()}
    made = simple.assign(GroupSpec(members, is_homogeneous, counts, assignable))
    return {member_id: made.get(member_id, {}) for member_id in members}


def target_records(
    group: ShareGroup, targets: Mapping[str, Target], epoch: int, wall_ms: int
) -> list[CoordinatorRecord]:
    """Write the targets that are new or differ, then the epoch that they are for."""
    records = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if (former := group.targets.get(member_id)) is None or not same_target(former, target)
    ]
    return [*records, target_epoch_record(group.group_id, epoch, wall_ms)]


def _spec(group: ShareGroup, member: ShareMember, image: MetadataImage) -> MemberSpec:
    names = member.subscribed_topic_names
    topics = [image.topic(name) for name in names]
    topic_ids = tuple(topic.topic_id for topic in topics if topic is not None)
    return MemberSpec(None, topic_ids, len(names), group.targets.get(member.member_id) or {})
