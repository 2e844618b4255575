"""The tasks of a streams member: a task is one partition number of one subtopology (KIP-1071)."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

__all__ = ["NO_TASKS", "Tasks", "TasksTuple", "is_disjoint", "merge_tasks"]

Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Subtopology id to partitions."""


class TasksTuple(NamedTuple):
    """Active, standby and warm-up tasks of one member."""

    active: Tasks
    standby: Tasks
    warmup: Tasks

    @property
    def is_empty(self) -> bool:
        """Whether no subtopology is listed; one that is listed without partitions counts."""
        return not (self.active or self.standby or self.warmup)

    def merge(self, other: "TasksTuple") -> "TasksTuple":
        """Return the tasks of both, kind by kind."""
        return TasksTuple(*map(merge_tasks, self, other))

    def contains_any(self, other: "TasksTuple") -> bool:
        """Whether both have a task in common as the same kind."""
        return not all(map(is_disjoint, self, other))


def merge_tasks(first: Tasks, second: Tasks) -> Tasks:
    """Return the union, for each subtopology."""
    merged = dict(first)
    for subtopology_id, partitions in second.items():
        merged[subtopology_id] = merged.get(subtopology_id, frozenset()) | partitions
    return merged


def is_disjoint(first: Tasks, second: Tasks) -> bool:
    """Whether no task is in both."""
    return all(
        partitions.isdisjoint(second.get(subtopology_id, ()))
        for subtopology_id, partitions in first.items()
    )


NO_TASKS: Final = TasksTuple({}, {}, {})
