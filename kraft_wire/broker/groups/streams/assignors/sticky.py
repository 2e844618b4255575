"""Kafka's task assignor: tasks stay where they were, as far as the load stays even (KIP-1071).

Active tasks go to the member that had them, then to one that had a standby of them, then to the
least loaded process. Standby tasks go to a process that does not have the task yet, in the same
order of preference. Equal input gives the assignment of Kafka's StickyTaskAssignor.
"""

from collections.abc import Callable, Iterable, Mapping

from kraft_wire.broker.groups.java_collections import JavaHashMap, java_order
from kraft_wire.broker.groups.java_priority_queue import JavaPriorityQueue
from kraft_wire.broker.groups.streams.assignors.previous_members import Member, PreviousMembers
from kraft_wire.broker.groups.streams.assignors.process_state import ProcessState, TaskId
from kraft_wire.broker.groups.streams.assignors.quota import Quota
from kraft_wire.broker.groups.streams.assignors.spec import (
    NUM_STANDBY_REPLICAS,
    StreamsGroupSpec,
    TaskAssignorFailed,
)
from kraft_wire.broker.groups.streams.tasks import Tasks, TasksTuple
from kraft_wire.broker.groups.streams.topology.configured_topology import ConfiguredSubtopology

__all__ = ["assign"]


def assign(
    spec: StreamsGroupSpec, topology: Mapping[str, ConfiguredSubtopology]
) -> dict[str, TasksTuple]:
    """Return the tasks of each member. TaskAssignorFailed: there are tasks, but no members."""
    replicas = int(spec.configs[NUM_STANDBY_REPLICAS]) if spec.configs else 0
    assignment = _Assignment(spec, topology, replicas)
    assignment.assign_active(_task_ids(topology.items()))
    if replicas > 0:
        stateful = ((name, each) for name, each in topology.items() if each.is_stateful)
        assignment.assign_standby(_task_ids(stateful))
    return assignment.targets()


def _task_ids(subtopologies: Iterable[tuple[str, ConfiguredSubtopology]]) -> list[TaskId]:
    return [
        TaskId(subtopology_id, partition)
        for subtopology_id, subtopology in subtopologies
        for partition in range(subtopology.number_of_tasks)
    ]


def _by_partition(task: TaskId) -> tuple[int, bytes]:
    return task.partition, java_order(task.subtopology_id)


def _by_subtopology(task: TaskId) -> tuple[bytes, int]:
    return java_order(task.subtopology_id), task.partition


def _load(process: ProcessState) -> float:
    return process.load


class _Assignment:
    """One assignment while it is made."""

    def __init__(
        self, spec: StreamsGroupSpec, topology: Mapping[str, ConfiguredSubtopology], replicas: int
    ) -> None:
        self._replicas = replicas
        self._spec = spec
        active = sum(each.number_of_tasks for each in topology.values())
        stateful = sum(each.number_of_tasks for each in topology.values() if each.is_stateful)
        self._active_quota = Quota(active, len(spec.members))
        self._total_quota = Quota(active + replicas * stateful, len(spec.members))
        self._processes: JavaHashMap[str, ProcessState] = JavaHashMap(len(spec.members))
        for member_id, member in spec.members.items():
            if member.process_id not in self._processes:
                self._processes[member.process_id] = ProcessState()
            self._processes[member.process_id].add_member(member_id)
        self._previous = PreviousMembers(spec, self._processes)

    def assign_active(self, tasks: list[TaskId]) -> None:
        """Give each task to one member."""
        tasks.sort(key=_by_partition)
        tasks = self._return_to(self._previous.active_member, tasks)
        tasks = self._return_to(self._previous.standby_member, tasks)
        tasks.sort(key=_by_subtopology)
        queue = JavaPriorityQueue(self._processes.values(), key=_load)
        for task in tasks:
            process = queue.poll()
            if process is None:
                raise TaskAssignorFailed(f"No process available to assign active task {task}.")
            self._count_active(process.add_task_to_least_loaded(task, is_active=True))
            queue.add(process)

    def _return_to(
        self, previous: Callable[[TaskId], Member | None], tasks: list[TaskId]
    ) -> list[TaskId]:
        """Give tasks to previous members below their quota; return the tasks that are left."""
        left: list[TaskId] = []
        for task in tasks:
            member = previous(task)
            if member is None or not self._active_quota.has_room(member.task_count):
                left.append(task)
            else:
                self._count_active(member.process.add_task(member.member_id, task, is_active=True))
        return left

    def _count_active(self, count: int) -> None:
        self._active_quota.reached(count)
        self._total_quota.reached(count)

    def assign_standby(self, tasks: list[TaskId]) -> None:
        """Give each task to as many further processes as it has replicas, if there are enough."""
        tasks.sort(key=_by_partition, reverse=True)
        left = [(task, self._standby_to_previous(task)) for task in tasks]
        left.sort(key=lambda each: _by_subtopology(each[0]), reverse=True)
        queue = JavaPriorityQueue(self._processes.values(), key=_load)
        for task, replicas in left:
            for _ in range(replicas):
                if not self._standby_to_least_loaded(queue, task):
                    break

    def _standby_to_previous(self, task: TaskId) -> int:
        """Give replicas of a task to members that had it; return how many replicas are left."""
        for given in range(self._replicas):
            member = self._previous_for_standby(task)
            if member is None:
                return self._replicas - given
            count = member.process.add_task(member.member_id, task, is_active=False)
            self._total_quota.reached(count)
        return 0

    def _previous_for_standby(self, task: TaskId) -> Member | None:
        active = self._previous.active_member(task)
        if (
            active is not None
            and task not in active.process.tasks
            and self._total_quota.has_room(active.task_count)
        ):
            return active
        standby = self._previous.standby_member_without(task)
        has_room = standby is not None and self._total_quota.has_room(standby.task_count)
        return standby if has_room else None

    def _standby_to_least_loaded(
        self, queue: JavaPriorityQueue[ProcessState], task: TaskId
    ) -> bool:
        """Give a task to the least loaded process without it; return False if all have it."""
        passed: list[ProcessState] = []
        found = False
        while not found and (process := queue.poll()) is not None:
            passed.append(process)
            if task not in process.tasks:
                count = process.add_task_to_least_loaded(task, is_active=False)
                self._total_quota.reached(count)
                found = True
        # Kafka's recursion puts the last one back first.
        for process in reversed(passed):
            queue.add(process)
        return found

    def targets(self) -> dict[str, TasksTuple]:
        """Return the tasks of each member, also of those without any."""
        found: dict[str, TasksTuple] = {}
        for member_id, member in self._spec.members.items():
            process = self._processes[member.process_id]
            active = process.active.get(member_id, set())
            standby = process.standby.get(member_id, set())
            found[member_id] = TasksTuple(_grouped(active), _grouped(standby), {})
        return found


def _grouped(tasks: Iterable[TaskId]) -> Tasks:
    grouped: dict[str, list[int]] = {}
    for task in tasks:
        grouped.setdefault(task.subtopology_id, []).append(task.partition)
    return {subtopology_id: frozenset(each) for subtopology_id, each in grouped.items()}
