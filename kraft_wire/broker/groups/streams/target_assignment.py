"""The target of a streams group: its members as the assignor sees them, and its records.

Only targets that differ are written. While topics of the topology are missing or wrong, no member
has tasks in its target.
"""

from collections.abc import Mapping

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.streams.assignors import sticky
from kraft_wire.broker.groups.streams.assignors.spec import StreamsGroupSpec, StreamsMemberSpec
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.records import target_epoch_record, target_record
from kraft_wire.broker.groups.streams.tasks import NO_TASKS, TasksTuple
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredTopology

__all__ = ["computed_targets", "target_records"]


def computed_targets(
    group: StreamsGroup,
    updated: StreamsMember | None,
    topology: ConfiguredTopology,
    configs: Mapping[str, str],
) -> dict[str, TasksTuple]:
    """Return the target of every member, with one member as it will be.

    They come in the order in which Kafka writes them. TaskAssignorFailed.
    """
    members: JavaHashMap[str, StreamsMemberSpec] = JavaHashMap()
    for member_id, member in group.members.items():
        members[member_id] = _spec(group, member)
    if updated is not None:
        members[updated.member_id] = _spec(group, updated)
    if not topology.is_ready:
        return dict.fromkeys(members, NO_TASKS)
    assert topology.subtopologies is not None, group.group_id
    made = sticky.assign(StreamsGroupSpec(members, configs), topology.subtopologies)
    return {member_id: made.get(member_id, NO_TASKS) for member_id in members}


def target_records(
    group: StreamsGroup, targets: Mapping[str, TasksTuple], epoch: int, wall_ms: int
) -> list[CoordinatorRecord]:
    """Write the targets that are new or differ, then the epoch that they are for."""
    records = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    return [*records, target_epoch_record(group.group_id, epoch, wall_ms)]


def _spec(group: StreamsGroup, member: StreamsMember) -> StreamsMemberSpec:
    target = group.targets.get(member.member_id) or NO_TASKS
    return StreamsMemberSpec(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        process_id=member.process_id,
        client_tags=member.client_tags,
        active=target.active,
        standby=target.standby,
        warmup=target.warmup,
    )
