"""One process of a streams application while its members get tasks."""

from typing import NamedTuple

from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.java_priority_queue import JavaPriorityQueue

__all__ = ["ProcessState", "TaskId"]


class TaskId(NamedTuple):
    """A partition number of a subtopology."""

    subtopology_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


class ProcessState:
    """The members of a process and what each has got; its load is tasks per member."""

    __slots__ = ("_by_load", "active", "load", "standby", "task_counts", "task_total", "tasks")

    def __init__(self) -> None:
        self.load = 0.0
        self.task_total = 0
        self.task_counts: JavaHashMap[str, int] = JavaHashMap()
        """Member id to how many tasks it has, of any kind."""
        self.tasks: set[TaskId] = set()
        self.active: dict[str, set[TaskId]] = {}
        self.standby: dict[str, set[TaskId]] = {}
        self._by_load: JavaPriorityQueue[tuple[str, int]] | None = None

    def add_member(self, member_id: str) -> None:
        """Add a member without tasks."""
        self.task_counts[member_id] = 0
        self._update_load()

    def add_task(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give a task to a member; return how many tasks it has then."""
        self._by_load = None
        return self._add(member_id, task, is_active)

    def add_task_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Give a task to the member with the fewest; return how many tasks it has then."""
        assert len(self.task_counts), "a process is known by its members"
        if len(self.task_counts) == 1:
            return self._add(next(iter(self.task_counts)), task, is_active)
        if self._by_load is None:
            self._by_load = JavaPriorityQueue(self.task_counts.items(), key=_second)
        least = self._by_load.poll()
        assert least is not None
        member_id, _ = least
        count = self._add(member_id, task, is_active)
        self._by_load.add((member_id, count))
        return count

    def _add(self, member_id: str, task: TaskId, is_active: bool) -> int:
        self.task_total += 1
        self.tasks.add(task)
        kind = self.active if is_active else self.standby
        kind.setdefault(member_id, set()).add(task)
        count = self.task_counts[member_id] + 1
        self.task_counts[member_id] = count
        self._update_load()
        return count

    def _update_load(self) -> None:
        self.load = self.task_total / len(self.task_counts)


def _second(entry: tuple[str, int]) -> int:
    return entry[1]
