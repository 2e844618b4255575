"""Which process has a task: the newest for an active one, each for copies."""

from __future__ import annotations

from kraft_wire.broker.groups.streams.assigned_tasks import AssignedTasks
from kraft_wire.broker.groups.streams.task_processes import TaskProcesses

RUN = AssignedTasks({"0": {1: 4}}, {}, {})
STANDBY = AssignedTasks({}, {"0": frozenset({1, 2})}, {})
WARMUP = AssignedTasks({}, {}, {"0": frozenset({2})})


def test_active_task_is_of_the_process_that_was_given_it_last() -> None:
    processes = TaskProcesses()
    assert processes.active("0", 1) is None
    processes.add(RUN, "p")
    processes.add(RUN, "q")
    assert (processes.active("0", 1), processes.active("1", 1)) == ("q", None)
    processes.remove(RUN, "p")
    assert processes.active("0", 1) == "q"
    processes.remove(RUN, "q")
    processes.remove(RUN, "q")
    assert processes.active("0", 1) is None
    assert not processes.keeps_copy("q", "0", 1)


def test_copy_is_of_each_process_until_it_is_taken_once() -> None:
    """As in 4.3.1 it does not count how many members of the process have the task."""
    processes = TaskProcesses()
    for process in ("p", "p", "q"):
        processes.add(STANDBY, process)
    processes.add(WARMUP, "q")

    def copies(process: str) -> list[bool]:
        return [processes.keeps_copy(process, "0", each) for each in (0, 1, 2)]

    assert (copies("p"), copies("q")) == ([False, True, True], [False, True, True])
    processes.remove(STANDBY, "p")
    assert (copies("p"), copies("q")) == ([False] * 3, [False, True, True])
    processes.remove(STANDBY, "q")
    assert copies("q") == [False, False, True]
    processes.remove(WARMUP, "p")
    assert copies("q") == [False, False, True]
    processes.remove(WARMUP, "q")
    assert copies("q") == [False] * 3


def test_tasks_that_no_process_has_take_no_memory() -> None:
    processes = TaskProcesses()
    for tasks in (RUN, STANDBY, WARMUP):
        processes.add(tasks, "p")
        processes.add(tasks, "q")
        processes.remove(tasks, "p")
        processes.remove(tasks, "q")
    assert [getattr(processes, each) for each in TaskProcesses.__slots__] == [{}, {}, {}]
