"""The tasks that a member has: active ones with the epoch in which it was given each (KIP-1071)."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.broker.groups.object_sizes import PARTITION_BYTES
from kraft_wire.broker.groups.streams.tasks import Tasks, TasksTuple, merge_tasks
from kraft_wire.wire.generated.streams_group_current_member_assignment_value import TaskIds

__all__ = ["NOTHING_ASSIGNED", "ActiveTasks", "AssignedTasks", "active_tasks", "plain_tasks"]

ActiveTasks: TypeAlias = Mapping[str, Mapping[int, int]]
"""Subtopology id to partitions, each with the assignment epoch that gave it to the member."""


class AssignedTasks(NamedTuple):
    """Active, standby and warm-up tasks of one member."""

    active: ActiveTasks
    standby: Tasks
    warmup: Tasks

    @property
    def is_empty(self) -> bool:
        """Whether no subtopology is listed."""
        return not (self.active or self.standby or self.warmup)

    @property
    def without_epochs(self) -> TasksTuple:
        """The same tasks, as a target names them."""
        active = {each: frozenset(epochs) for each, epochs in self.active.items()}
        return TasksTuple(active, self.standby, self.warmup)

    def merge(self, other: "AssignedTasks") -> "AssignedTasks":
        """Return the tasks of both; a task of both has the epoch of the other."""
        active = {each: dict(epochs) for each, epochs in self.active.items()}
        for subtopology_id, epochs in other.active.items():
            active.setdefault(subtopology_id, {}).update(epochs)
        return AssignedTasks(
            active,
            merge_tasks(self.standby, other.standby),
            merge_tasks(self.warmup, other.warmup),
        )

    @property
    def size_bytes(self) -> int:
        """Memory that the tasks take, as `object_sizes` counts it."""
        kinds = (*self.active.values(), *self.standby.values(), *self.warmup.values())
        return PARTITION_BYTES * sum(map(len, kinds))


NOTHING_ASSIGNED: Final = AssignedTasks({}, {}, {})


def active_tasks(stored: Sequence[TaskIds], member_epoch: int) -> ActiveTasks:
    """Return the active tasks of a record; those without epochs have the member's."""
    tasks = {}
    for each in stored:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [member_epoch] * len(each.partitions)
        tasks[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return tasks


def plain_tasks(stored: Sequence[TaskIds]) -> Tasks:
    """Return the standby or warm-up tasks of a record."""
    return {each.subtopology_id: frozenset(each.partitions) for each in stored}
