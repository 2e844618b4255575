"""Which members had a task before, as active or as standby."""

from typing import NamedTuple

from kraft_wire.broker.groups.java_collections import JavaHashMap
from kraft_wire.broker.groups.streams.assignors.process_state import ProcessState, TaskId
from kraft_wire.broker.groups.streams.assignors.spec import StreamsGroupSpec
from kraft_wire.broker.groups.streams.tasks import Tasks

__all__ = ["Member", "PreviousMembers"]


class Member(NamedTuple):
    """A member and the process that it runs in."""

    member_id: str
    process: ProcessState

    @property
    def task_count(self) -> int:
        """How many tasks the member has got by now."""
        return self.process.task_counts[self.member_id]


class PreviousMembers:
    """The former tasks of a group, by task."""

    __slots__ = ("_active", "_standby")

    def __init__(self, spec: StreamsGroupSpec, processes: JavaHashMap[str, ProcessState]) -> None:
        self._active: dict[TaskId, Member] = {}
        """The last member in the group's order, if several had it."""
        self._standby: dict[TaskId, list[Member]] = {}
        for member_id, each in spec.members.items():
            member = Member(member_id, processes[each.process_id])
            self._active.update(dict.fromkeys(_tasks(each.active), member))
            for task in _tasks(each.standby):
                self._standby.setdefault(task, []).append(member)

    def active_member(self, task: TaskId) -> Member | None:
        """Return the member that had a task as active."""
        return self._active.get(task)

    def standby_member(self, task: TaskId) -> Member | None:
        """Return the least loaded of the members that had a task as standby."""
        members = self._standby.get(task)
        return _least_loaded(members) if members else None

    def standby_member_without(self, task: TaskId) -> Member | None:
        """Return the least loaded member whose process does not have the task yet.

        It is None also when the process of the first member has the task, and another's does not.
        """
        members = self._standby.get(task)
        if not members or task in members[0].process.tasks:
            return None
        return _least_loaded(members, without=task)


def _least_loaded(members: list[Member], without: TaskId | None = None) -> Member:
    """Return the member that is below the first both by its process's load and by its own."""
    found = members[0]
    load, count = found.process.load, found.task_count
    for member in members[1:]:
        process = member.process
        if process.load < load and without not in process.tasks and member.task_count < count:
            found, load, count = member, process.load, member.task_count
    return found


def _tasks(tasks: Tasks) -> list[TaskId]:
    return [
        TaskId(subtopology_id, partition)
        for subtopology_id, partitions in tasks.items()
        for partition in partitions
    ]
