"""The steps of a member's heartbeat: what it is, the topology, the epoch, the targets, its tasks.

Each step adds records to those of the request, which are written as one batch at the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.assignors.spec import TaskAssignorFailed
from kraft_wire.broker.groups.streams.checks import check_tasks
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.group_settings import (
    assignment_configs,
    assignment_interval_ms,
    initial_rebalance_delay_ms,
)
from kraft_wire.broker.groups.streams.group_topology import followed_topics, is_same_topology
from kraft_wire.broker.groups.streams.member import StreamsMember, UserEndpoint
from kraft_wire.broker.groups.streams.reconciliation import reconciled
from kraft_wire.broker.groups.streams.records import (
    current_assignment_record,
    epoch_record,
    member_record,
    topology_record,
)
from kraft_wire.broker.groups.streams.target_assignment import computed_targets, target_records
from kraft_wire.broker.groups.streams.tasks import NO_TASKS, Tasks, TasksTuple
from kraft_wire.broker.groups.streams.timers import first_rebalance
from kraft_wire.broker.groups.streams.topology.configured_topology import (
    ConfiguredTopology,
    configure,
)
from kraft_wire.broker.groups.streams.topology.failures import GroupStatus, TopologyRefused
from kraft_wire.broker.groups.streams.topology.subtopologies import subtopologies_by_id
from kraft_wire.broker.groups.streams.topology.topology_value import topology_value
from kraft_wire.broker.groups.target_times import may_compute_targets
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    TaskIds,
    Topology,
)
from kraft_wire.wire.generated.streams_group_topology_value import StreamsGroupTopologyValue

__all__ = [
    "Walk",
    "await_more_members",
    "configure_topics",
    "describe",
    "raise_epoch",
    "reconcile",
    "retarget",
]

_NOT_READY = -1
"""Validated topology epoch while topics are missing or wrong."""
_UNCHANGED = -1
_SERVER_ERROR = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
"""Kafka's coordinator stumbles, and logs why."""


@dataclass(slots=True)
class Walk:
    """One heartbeat on its way through the steps."""

    shard: GroupShard
    group: StreamsGroup
    former: StreamsMember
    """The member before, as its records have it."""
    member: StreamsMember
    is_known_group: bool
    """Whether a group of this id is stored, of whatever kind."""
    records: list[CoordinatorRecord] = field(default_factory=list)
    statuses: list[Status] = field(default_factory=list)
    topology: StreamsGroupTopologyValue | None = None
    """The group's topology, perhaps brought by this heartbeat."""
    is_raised: bool = False
    """Whether this heartbeat raises the group's epoch."""
    has_stepped: bool = False
    """Whether the member's state or tasks are written."""
    epoch: int = 0
    metadata_hash: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)

    def add_status(self, status: GroupStatus, detail: str) -> None:
        """Tell the member about the group."""
        self.statuses.append(Status(status_code=status, status_detail=detail))


# --- What the member is ----------------------------------------------------------------------


def describe(
    walk: Walk, request: StreamsGroupHeartbeatRequest, client_id: str, host: str
) -> StreamsGroupTopologyValue | Refusal:
    """Apply what the request says about the member; return the group's topology.

    Null means unchanged. Errors, first match wins: UNKNOWN_SERVER_ERROR (tags or subtopologies that
    are listed twice, no topology), INVALID_REQUEST (another topology).
    """
    former, group = walk.former, walk.group
    tags, endpoint = former.client_tags, former.user_endpoint
    if request.client_tags is not None:
        tags = {each.key: each.value for each in request.client_tags}
        if len(tags) != len(request.client_tags):
            return _SERVER_ERROR
    if request.user_endpoint is not None:
        endpoint = UserEndpoint(request.user_endpoint.host, request.user_endpoint.port)
    timeout_ms = request.rebalance_timeout_ms
    walk.member = replace(
        former,
        rack_id=former.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            former.rebalance_timeout_ms if timeout_ms == _UNCHANGED else timeout_ms
        ),
        topology_epoch=(
            former.topology_epoch if request.topology is None else request.topology.epoch
        ),
        client_id=client_id,
        client_host=host,
        process_id=former.process_id if request.process_id is None else request.process_id,
        client_tags=tags,
        user_endpoint=endpoint,
    )
    if walk.member != former:
        walk.records.append(member_record(group.group_id, walk.member))
        walk.is_raised = True
    topology = _topology(walk, request.topology)
    if not isinstance(topology, Refusal):
        _tell_stale(walk)
    return topology


def _topology(walk: Walk, given: Topology | None) -> StreamsGroupTopologyValue | Refusal:
    """Return the group's topology, which its first member brings."""
    known = walk.group.topology
    if given is None:
        return _SERVER_ERROR if known is None else known
    topology = topology_value(given)
    try:
        subtopologies_by_id(topology)
    except TopologyRefused as refused:
        return refused.refusal
    if known is None:
        walk.records.append(topology_record(walk.group.group_id, topology))
        return topology
    if known.epoch > given.epoch or is_same_topology(known, topology):
        return known
    return Refusal(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")


def _tell_stale(walk: Walk) -> None:
    known, epoch = walk.group.topology, walk.member.topology_epoch
    if known is not None and epoch < known.epoch:
        walk.add_status(
            GroupStatus.STALE_TOPOLOGY,
            f"The member's topology epoch {epoch} is behind the group's topology epoch "
            f"{known.epoch}.",
        )


# --- Topics and the epoch --------------------------------------------------------------------


def configure_topics(
    walk: Walk, topology: StreamsGroupTopologyValue
) -> ConfiguredTopology | Refusal:
    """Return the topology with the topics of the metadata, computed again if they changed.

    Errors: those of `configure`.
    """
    group, image = walk.group, walk.shard.env.image()
    walk.metadata_hash = group.metadata_hash
    configured = group.configured
    if (
        group.topology is not None
        and configured is not None
        and not group.seen_topics.may_differ(image)
    ):
        return configured
    names = followed_topics(topology)
    walk.metadata_hash = walk.shard.env.topic_hashes.group_hash(names, image)
    has_changed = walk.metadata_hash != group.metadata_hash
    walk.is_raised = walk.is_raised or has_changed
    if group.topology is None or configured is None or has_changed:
        try:
            configured = configure(topology, walk.metadata_hash, image)
        except TopologyRefused as refused:
            return refused.refusal
        group.put_configured(configured)
    return configured


def raise_epoch(
    walk: Walk,
    topology: StreamsGroupTopologyValue,
    configured: ConfiguredTopology,
    request: StreamsGroupHeartbeatRequest,
    at: ClockReading,
) -> Refusal | None:
    """Raise the group's epoch if the member, topics, or settings of the assignor are others.

    Error: INVALID_REQUEST (tasks that the topology does not have).
    """
    group, shard = walk.group, walk.shard
    validated_epoch = _NOT_READY
    if configured.is_ready:
        validated_epoch = topology.epoch
        assert configured.subtopologies is not None, group.group_id
        for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
            refused = check_tasks(configured.subtopologies, tasks)
            if refused is not None:
                return refused
    walk.configs = assignment_configs(shard.env, group.group_id)
    walk.epoch = group.epoch
    walk.is_raised = (
        walk.is_raised
        or validated_epoch != group.validated_topology_epoch
        or walk.configs != group.assignment_configs
    )
    if walk.is_raised:
        walk.epoch = epoch_after(group.epoch)
        walk.records.append(
            epoch_record(
                group.group_id, walk.epoch, walk.metadata_hash, validated_epoch, walk.configs
            )
        )
    await_more_members(walk, at)
    return None


def await_more_members(walk: Walk, at: ClockReading) -> None:
    """Delay the first target of a group that was empty (KIP-1071: initial rebalance delay)."""
    group_id = walk.group.group_id
    delay_ms = initial_rebalance_delay_ms(walk.shard.env, group_id)
    timer = first_rebalance(group_id)
    if walk.group.is_empty and delay_ms > 0 and timer not in walk.shard.timers:
        walk.shard.timers.schedule(timer, at.now_ms + delay_ms)


# --- Targets and tasks -----------------------------------------------------------------------


def retarget(
    walk: Walk, configured: ConfiguredTopology, at: ClockReading
) -> tuple[int, TasksTuple] | Refusal:
    """Compute the targets if they are due; return the epoch and the member's target.

    UNKNOWN_SERVER_ERROR, as in Kafka, if the assignor fails.
    """
    group, env, member_id = walk.group, walk.shard.env, walk.member.member_id
    if first_rebalance(group.group_id) in walk.shard.timers:
        walk.add_status(
            GroupStatus.ASSIGNMENT_DELAYED,
            "Assignment delayed due to the configured initial rebalance delay.",
        )
        return group.assignment_epoch, NO_TASKS
    if group.assignment_epoch >= walk.epoch:
        return group.assignment_epoch, group.targets.get(member_id) or NO_TASKS
    interval_ms = assignment_interval_ms(env, group.group_id)
    if not may_compute_targets(group.assignment_timestamp_ms, interval_ms, at.wall_ms):
        walk.add_status(
            GroupStatus.ASSIGNMENT_DELAYED,
            "Assignment delayed due to the configured assignment interval.",
        )
        return group.assignment_epoch, group.targets.get(member_id) or NO_TASKS
    try:
        targets = computed_targets(group, walk.member, configured, walk.configs)
    except TaskAssignorFailed as failed:
        return Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"Failed to compute a new target assignment for epoch {walk.epoch}: {failed}",
        )
    walk.records += target_records(group, targets, walk.epoch, at.wall_ms)
    return walk.epoch, targets[member_id]


def reconcile(
    walk: Walk, target_epoch: int, target: TasksTuple, request: StreamsGroupHeartbeatRequest
) -> Refusal | None:
    """Let the member take its next step to its target.

    Errors: UNKNOWN_SERVER_ERROR (owned subtopologies that are listed twice), FENCED_MEMBER_EPOCH.
    """
    member = walk.member
    if member.is_reconciled_to(target_epoch):
        return None
    owned = _owned(request)
    if isinstance(owned, Refusal):
        return owned
    after = reconciled(member, target_epoch, target, owned, walk.group.processes)
    if isinstance(after, Refusal):
        return after
    if after != member:
        walk.records.append(current_assignment_record(walk.group.group_id, after))
        walk.has_stepped = True
    walk.member = after
    return None


def _owned(request: StreamsGroupHeartbeatRequest) -> TasksTuple | Refusal | None:
    """Return the tasks that a member reports, None if it does not."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    kinds = []
    for listed in (active, standby, warmup):
        tasks = _tasks(listed)
        if len(tasks) != len(listed):
            return _SERVER_ERROR
        kinds.append(tasks)
    return TasksTuple(*kinds)


def _tasks(listed: list[TaskIds]) -> Tasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in listed}
