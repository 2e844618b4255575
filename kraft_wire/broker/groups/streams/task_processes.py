"""Which processes of an application have which tasks (KIP-1071).

A member may be given a task only when no other process, or no other task of the same process, is in
its way. A process counts once for a task, as in 4.3.1: when one of two of its members loses a
standby task, the process no longer has it.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kraft_wire.broker.groups.streams.assigned_tasks import AssignedTasks
from kraft_wire.broker.groups.streams.tasks import Tasks

__all__ = ["TaskProcesses"]

_Holders: TypeAlias = dict[tuple[str, int], dict[str, None]]


class TaskProcesses:
    """Tasks with the processes that have them, also those that are being given back."""

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._standby: _Holders = {}
        self._warmup: _Holders = {}

    def active(self, subtopology_id: str, partition: int) -> str | None:
        """Return the process that runs a task, None if there is none."""
        return self._active.get((subtopology_id, partition))

    def keeps_copy(self, process_id: str, subtopology_id: str, partition: int) -> bool:
        """Whether a process has a task as a standby or a warm-up task."""
        task = (subtopology_id, partition)
        return process_id in self._standby.get(task, ()) or process_id in self._warmup.get(task, ())

    def add(self, tasks: AssignedTasks, process_id: str) -> None:
        """Note that a process has tasks; the newest process has an active task."""
        for task in _of(tasks.active):
            self._active[task] = process_id
        for held, holders in ((tasks.standby, self._standby), (tasks.warmup, self._warmup)):
            for task in _of(held):
                holders.setdefault(task, {})[process_id] = None

    def remove(self, tasks: AssignedTasks, process_id: str) -> None:
        """Note that a process does not have tasks any more; those of others stay."""
        for task in _of(tasks.active):
            if self._active.get(task) == process_id:
                del self._active[task]
        _remove(tasks.standby, self._standby, process_id)
        _remove(tasks.warmup, self._warmup, process_id)


def _of(tasks: Mapping[str, Iterable[int]]) -> list[tuple[str, int]]:
    return [(each, partition) for each, partitions in tasks.items() for partition in partitions]


def _remove(tasks: Tasks, holders: _Holders, process_id: str) -> None:
    for task in _of(tasks):
        of_task = holders.get(task, {})
        of_task.pop(process_id, None)
        if not of_task:
            holders.pop(task, None)
