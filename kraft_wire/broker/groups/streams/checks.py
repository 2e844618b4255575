"""Whether a member of a streams group may do what it asks: capacity, identity, epochs, tasks.

The functions return why not, in Kafka's words.
"""

from collections.abc import Collection, Mapping, Sequence

from kraft_wire.broker.groups.finding import find_group_of
from kraft_wire.broker.groups.group_types import GroupType
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.groups.streams.group import StreamsGroup
from kraft_wire.broker.groups.streams.member import StreamsMember
from kraft_wire.broker.groups.streams.request_checks import JOIN
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredSubtopology
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.streams_group_heartbeat import StreamsGroupHeartbeatRequest, TaskIds

__all__ = ["check_capacity", "check_epoch", "check_tasks", "find_group", "find_member"]


def find_group(shard: GroupShard, group_id: str, missing: str) -> StreamsGroup | Refusal:
    """Return a streams group; see `find_group_of`."""
    return find_group_of(StreamsGroup, GroupType.STREAMS, shard, group_id, missing)


def check_capacity(group: StreamsGroup, members_max: int) -> Refusal | None:
    """A full group takes no join; in 4.3.1 also not that of a member which joins again."""
    if len(group.members) < members_max:
        return None
    return Refusal(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The streams group has reached its maximum capacity of {members_max} members.",
    )


def find_member(group: StreamsGroup, member_id: str) -> StreamsMember | Refusal:
    """Return a member by its id."""
    member = group.members.get(member_id)
    if member is not None:
        return member
    return Refusal(
        ErrorCode.UNKNOWN_MEMBER_ID,
        f"Member {member_id} is not a member of group {group.group_id}.",
    )


def check_epoch(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> Refusal | None:
    """A member sends its epoch, or the one before with tasks that it still has.

    The answer with the newer epoch may have been lost.
    """
    epoch, known = request.member_epoch, member.member_epoch
    if epoch in (JOIN, known):
        return None
    size = "greater" if epoch > known else "smaller"
    assigned = member.assigned
    if (
        epoch < known
        and epoch == member.previous_member_epoch
        and _are_within(request.active_tasks, assigned.active)
        and _are_within(request.standby_tasks, assigned.standby)
        and _are_within(request.warmup_tasks, assigned.warmup)
    ):
        return None
    return Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {size} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({known}). The member must abandon all its partitions and rejoin.",
    )


def check_tasks(
    subtopologies: Mapping[str, ConfiguredSubtopology], tasks: Sequence[TaskIds] | None
) -> Refusal | None:
    """The tasks that a member reports are tasks of the topology."""
    for task in tasks or ():
        subtopology = subtopologies.get(task.subtopology_id)
        if subtopology is None:
            return Refusal(
                ErrorCode.INVALID_REQUEST,
                f"Subtopology {task.subtopology_id} does not exist in the topology.",
            )
        count = subtopology.number_of_tasks
        for partition in task.partitions:
            if not 0 <= partition < count:
                return Refusal(ErrorCode.INVALID_REQUEST, _no_task(task, partition, count))
    return None


def _no_task(task: TaskIds, partition: int, count: int) -> str:
    return (
        f"Task {partition} for subtopology {task.subtopology_id} is invalid. Number of tasks for "
        f"this subtopology: {count}"
    )


def _are_within(owned: Sequence[TaskIds] | None, assigned: Mapping[str, Collection[int]]) -> bool:
    """Whether a member is known to own nothing but assigned tasks."""
    return owned is not None and all(
        task.subtopology_id in assigned
        and all(each in assigned[task.subtopology_id] for each in task.partitions)
        for task in owned
    )
