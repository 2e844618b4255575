"""Records of streams groups in `__consumer_offsets`: types 17 and 19 to 23, values of version 0.

Subtopologies, partitions and client tags are sorted, as Kafka writes them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.record_codec import coordinator_record, tombstone
from kraft_wire.broker.groups.java_collections import java_order
from kraft_wire.wire.generated.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kraft_wire.wire.generated.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kraft_wire.wire.generated.streams_group_current_member_assignment_value import (
    TaskIds as CurrentTaskIds,
)
from kraft_wire.wire.generated.streams_group_member_metadata_key import (
    StreamsGroupMemberMetadataKey,
)
from kraft_wire.wire.generated.streams_group_member_metadata_value import (
    Endpoint,
    KeyValue,
    StreamsGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.streams_group_metadata_key import StreamsGroupMetadataKey
from kraft_wire.wire.generated.streams_group_metadata_value import (
    LastAssignmentConfig,
    StreamsGroupMetadataValue,
)
from kraft_wire.wire.generated.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from kraft_wire.wire.generated.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
    TaskIds,
)
from kraft_wire.wire.generated.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kraft_wire.wire.generated.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kraft_wire.wire.generated.streams_group_topology_key import StreamsGroupTopologyKey
from kraft_wire.wire.generated.streams_group_topology_value import StreamsGroupTopologyValue

if TYPE_CHECKING:
    from kraft_wire.broker.groups.streams.assigned_tasks import ActiveTasks
    from kraft_wire.broker.groups.streams.member import StreamsMember
    from kraft_wire.broker.groups.streams.tasks import Tasks, TasksTuple

__all__ = [
    "current_assignment_record",
    "epoch_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "target_epoch_record",
    "target_record",
    "topology_record",
]

_VERSION: Final = 0


def member_record(group_id: str, member: "StreamsMember") -> CoordinatorRecord:
    """Write what a member is, and how it can be reached."""
    endpoint = member.user_endpoint
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            KeyValue(key=key, value=member.client_tags[key])
            for key in sorted(member.client_tags, key=java_order)
        ],
    )
    return coordinator_record(_member_key(group_id, member.member_id), value, _VERSION)


def epoch_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> CoordinatorRecord:
    """Write the group's epoch; the validated topology epoch is -1 if topics are not ready."""
    value = StreamsGroupMetadataValue(
        epoch=epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            LastAssignmentConfig(key=key, value=assignment_configs[key])
            for key in sorted(assignment_configs, key=java_order)
        ],
    )
    return coordinator_record(StreamsGroupMetadataKey(group_id=group_id), value, _VERSION)


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> CoordinatorRecord:
    """Write the group's topology."""
    return coordinator_record(StreamsGroupTopologyKey(group_id=group_id), topology, _VERSION)


def target_epoch_record(group_id: str, epoch: int, wall_ms: int) -> CoordinatorRecord:
    """Write for which epoch of the group the targets were computed, and when."""
    value = StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=wall_ms
    )
    key = StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)
    return coordinator_record(key, value, _VERSION)


def target_record(group_id: str, member_id: str, target: "TasksTuple") -> CoordinatorRecord:
    """Write the tasks that a member is to have."""
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_tasks(target.active),
        standby_tasks=_target_tasks(target.standby),
        warmup_tasks=_target_tasks(target.warmup),
    )
    return coordinator_record(_target_key(group_id, member_id), value, _VERSION)


def current_assignment_record(group_id: str, member: "StreamsMember") -> CoordinatorRecord:
    """Write a member's epoch and state, and its tasks."""
    assigned, pending = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        active_tasks=_active_tasks(assigned.active),
        standby_tasks=_current_tasks(assigned.standby),
        warmup_tasks=_current_tasks(assigned.warmup),
        active_tasks_pending_revocation=_active_tasks(pending.active),
        standby_tasks_pending_revocation=_current_tasks(pending.standby),
        warmup_tasks_pending_revocation=_current_tasks(pending.warmup),
    )
    return coordinator_record(_current_key(group_id, member.member_id), value, _VERSION)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """Return the tombstones of a member that is removed, in the order that a load needs."""
    return [
        tombstone(_current_key(group_id, member_id)),
        tombstone(_target_key(group_id, member_id)),
        tombstone(_member_key(group_id, member_id)),
    ]


def group_tombstones(group_id: str, member_ids: Sequence[str]) -> list[CoordinatorRecord]:
    """Return the tombstones of a whole group; Apache cannot load them in another order."""
    return [
        *(tombstone(_current_key(group_id, member_id)) for member_id in member_ids),
        *(tombstone(_target_key(group_id, member_id)) for member_id in member_ids),
        tombstone(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(tombstone(_member_key(group_id, member_id)) for member_id in member_ids),
        tombstone(StreamsGroupMetadataKey(group_id=group_id)),
        tombstone(StreamsGroupTopologyKey(group_id=group_id)),
    ]


def _target_tasks(tasks: "Tasks") -> list[TaskIds]:
    return [
        TaskIds(subtopology_id=each, partitions=sorted(tasks[each]))
        for each in sorted(tasks, key=java_order)
    ]


def _current_tasks(tasks: "Tasks") -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(subtopology_id=each, partitions=sorted(tasks[each]))
        for each in sorted(tasks, key=java_order)
    ]


def _active_tasks(tasks: "ActiveTasks") -> list[CurrentTaskIds]:
    written = []
    for subtopology_id in sorted(tasks, key=java_order):
        epochs = tasks[subtopology_id]
        partitions = sorted(epochs)
        written.append(
            CurrentTaskIds(
                subtopology_id=subtopology_id,
                partitions=partitions,
                assignment_epochs=[epochs[each] for each in partitions],
            )
        )
    return written


def _member_key(group_id: str, member_id: str) -> StreamsGroupMemberMetadataKey:
    return StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> StreamsGroupTargetAssignmentMemberKey:
    return StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> StreamsGroupCurrentMemberAssignmentKey:
    return StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
