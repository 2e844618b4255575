"""A streams group (KIP-1071): epochs, topology, members, targets and the processes of tasks.

Bookkeeping only. Every change is a record, so `replay.py` and a heartbeat change a group by the
same methods, and the group is always what its log says. Not in the log, as in Kafka: the configured
topology, a requested shutdown and the endpoints of applications.
"""

from collections.abc import Mapping
from enum import Enum

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.java_collections import TimelineHashMap
from kraft_wire.broker.groups.object_sizes import GROUP_BYTES, PARTITION_BYTES
from kraft_wire.broker.groups.streams.endpoint_answers import EndpointAnswers
from kraft_wire.broker.groups.streams.group_topology import (
    subtopologies_by_source,
    topology_size_bytes,
)
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.records import group_tombstones
from kraft_wire.broker.groups.streams.seen_topics import SeenTopics
from kraft_wire.broker.groups.streams.task_processes import TaskProcesses
from kraft_wire.broker.groups.streams.tasks import TasksTuple
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredTopology
from kraft_wire.wire.generated.streams_group_topology_value import StreamsGroupTopologyValue

__all__ = ["StreamsGroup", "StreamsGroupState"]

_FIRST_EPOCH = 1


class StreamsGroupState(Enum):
    """A state, by the name that ListGroups and StreamsGroupDescribe show."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    """Topics of the topology are missing or wrong."""
    ASSIGNING = "Assigning"
    """The target is older than the group's epoch."""
    RECONCILING = "Reconciling"
    """A member does not have all of its target yet."""
    STABLE = "Stable"


class StreamsGroup:
    """One group; memory and the processes of tasks always agree with its members."""

    kind = GroupType.STREAMS
    offsets_expire = True

    __slots__ = (
        "_memory",
        "assignment_configs",
        "assignment_epoch",
        "assignment_timestamp_ms",
        "configured",
        "endpoints",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "processes",
        "revocation_epochs",
        "safe_at",
        "seen_topics",
        "shutdown_member_id",
        "size_bytes",
        "subtopologies",
        "targets",
        "topology",
        "validated_topology_epoch",
    )

    def __init__(self, group_id: str, memory: MemoryUse) -> None:
        self._memory = memory
        self.group_id = group_id
        self.epoch = _FIRST_EPOCH
        self.metadata_hash = 0
        """Of the topology's topics, when the epoch was last raised."""
        self.validated_topology_epoch = 0
        """The topology whose topics are all there; -1 if they are not."""
        self.assignment_configs: Mapping[str, str] = {}
        """What the assignor was last given."""
        self.assignment_epoch = _FIRST_EPOCH
        """The group's epoch for which the targets were computed; -1 after their tombstone."""
        self.assignment_timestamp_ms = 0
        """Wall clock of that computation."""
        self.members: TimelineHashMap[str, StreamsMember] = TimelineHashMap()
        self.targets: TimelineHashMap[str, TasksTuple] = TimelineHashMap()
        """Member id to the tasks that the member is to have."""
        self.processes = TaskProcesses()
        self.topology: StreamsGroupTopologyValue | None = None
        self.subtopologies: dict[str, str] = {}
        """Source and repartition source topics, each with the id of its subtopology."""
        self.configured: ConfiguredTopology | None = None
        """The topology with the topics of the metadata; None: not looked at since the load."""
        self.endpoints = EndpointAnswers()
        self.revocation_epochs: dict[str, int] = {}
        """Member id to the epoch that a member must leave in time by giving tasks back."""
        self.shutdown_member_id: str | None = None
        """The member that asked the whole application to stop; the last member ends it."""
        self.safe_at = 0
        """High watermark that commits the newest records of the group."""
        self.seen_topics = SeenTopics()
        self.size_bytes = 0
        self._resize(GROUP_BYTES + len(group_id))

    # --- What the group is -------------------------------------------------------------------

    @property
    def state(self) -> StreamsGroupState:
        """How far the group is on its way to the newest assignment."""
        topology = self.topology
        if self.is_empty:
            return StreamsGroupState.EMPTY
        if topology is None or topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(each.is_reconciled_to(self.assignment_epoch) for each in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        """The state that ListGroups shows."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""
        return not len(self.members)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads the topic."""
        return not self.is_empty and topic in self.subtopologies

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the tombstones that remove the group from the log, in the order of Kafka's."""
        return group_tombstones(self.group_id, list(self.members))

    # --- Changes -----------------------------------------------------------------------------

    def put_epoch(
        self, epoch: int, metadata_hash: int, validated_epoch: int, configs: Mapping[str, str]
    ) -> None:
        """Store what the newest record of the group says."""
        self.epoch, self.metadata_hash = epoch, metadata_hash
        self.validated_topology_epoch, self.assignment_configs = validated_epoch, configs
        self._end_shutdown()

    def put_target_epoch(self, epoch: int, wall_ms: int) -> None:
        """Store for which epoch the targets were computed, and when."""
        self.assignment_epoch, self.assignment_timestamp_ms = epoch, wall_ms
        self._end_shutdown()

    def put_topology(self, topology: StreamsGroupTopologyValue | None) -> None:
        """Store the topology; None: its tombstone."""
        former, self.topology = self.topology, topology
        self.subtopologies = {} if topology is None else subtopologies_by_source(topology)
        self._resize(topology_size_bytes(topology) - topology_size_bytes(former))
        self._end_shutdown()

    def put_configured(self, configured: ConfiguredTopology) -> None:
        """Keep the topology with the topics of the metadata; drop what endpoints were answered."""
        self.configured = configured
        self.endpoints.forget_all()

    def put_member(self, member: StreamsMember) -> None:
        """Store a member in place of the one with its id."""
        former = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._release_tasks(former)
        self.processes.add(member.assigned, member.process_id)
        self.processes.add(member.pending_revocation, member.process_id)
        self.endpoints.forget(member.member_id)
        self._resize(member.size_bytes - (0 if former is None else former.size_bytes))
        self._end_shutdown()

    def remove_member(self, member_id: str) -> None:
        """Drop a member, if it is there."""
        member = self.members.pop(member_id)
        if member is not None:
            self._release_tasks(member)
            self.endpoints.forget(member_id)
            self.revocation_epochs.pop(member_id, None)
            self._resize(-member.size_bytes)
            self._end_shutdown()

    def put_target(self, member_id: str, target: TasksTuple) -> None:
        """Store what a member is to have."""
        former = self.targets.get(member_id)
        self.targets[member_id] = target
        self._resize(_target_bytes(target) - _target_bytes(former))

    def remove_target(self, member_id: str) -> None:
        """Drop a member's target, if it has one."""
        self._resize(-_target_bytes(self.targets.pop(member_id)))

    def request_shutdown(self, member_id: str) -> None:
        """Note the first member that asked the application to stop."""
        if self.shutdown_member_id is None:
            self.shutdown_member_id = member_id

    def release(self) -> None:
        """Release the counted memory of the group, which is removed."""
        self._resize(-self.size_bytes)

    def _release_tasks(self, member: StreamsMember | None) -> None:
        if member is not None:
            self.processes.remove(member.assigned, member.process_id)
            self.processes.remove(member.pending_revocation, member.process_id)

    def _end_shutdown(self) -> None:
        if self.is_empty:
            self.shutdown_member_id = None

    def _resize(self, more_bytes: int) -> None:
        self.size_bytes += more_bytes
        self._memory.add(more_bytes)


def _target_bytes(target: TasksTuple | None) -> int:
    if target is None:
        return 0
    return PARTITION_BYTES * sum(len(each) for tasks in target for each in tasks.values())
