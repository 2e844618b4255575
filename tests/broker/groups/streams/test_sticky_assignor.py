"""Where Kafka's `StickyTaskAssignor` puts the tasks of small groups (KIP-1071).

The expectations are made by hand; `test_against_apache.py` has large groups.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.broker.groups.streams.our_answers import our_answer

Tasks = dict[str, list[int]]
NONE: Tasks = {}


class Had(NamedTuple):
    """A member, its process, and the tasks that it had."""

    process: str
    active: Tasks = NONE
    standby: Tasks = NONE


class Has(NamedTuple):
    """The tasks that a member gets."""

    active: Tasks = NONE
    standby: Tasks = NONE


class Case(NamedTuple):
    """A group: subtopologies with their tasks, stateful ones in capitals, and its members."""

    topology: dict[str, int]
    members: dict[str, Had]
    expected: dict[str, Has]
    replicas: int | None = None


CASES = {
    "those of low partitions stay, of each subtopology": Case(
        {"y": 2, "x": 2},
        {"a": Had("P", {"x": [0, 1], "y": [0, 1]}), "b": Had("Q")},
        {"a": Has({"x": [0], "y": [0]}), "b": Has({"x": [1], "y": [1]})},
    ),
    "the last of several former members has it": Case(
        {"x": 1},
        {"a": Had("P", {"x": [0]}), "b": Had("Q", {"x": [0]})},
        {"a": Has(), "b": Has({"x": [0]})},
    ),
    "former active before former standby": Case(
        {"x": 2},
        {"a": Had("P", {"x": [0]}), "b": Had("Q", {}, {"x": [0]})},
        {"a": Has({"x": [0]}), "b": Has({"x": [1]})},
    ),
    "former standby before others": Case(
        {"x": 2},
        {"a": Had("P"), "b": Had("Q", {}, {"x": [0, 1]})},
        {"a": Has({"x": [1]}), "b": Has({"x": [0]})},
    ),
    "the first of former standbys with equal load": Case(
        {"x": 1},
        {"a": Had("P", {}, {"x": [0]}), "b": Had("Q", {}, {"x": [0]})},
        {"a": Has({"x": [0]}), "b": Has()},
    ),
    "a former standby with less load": Case(
        {"x": 3},
        {
            "a": Had("P", {"x": [0]}, {"x": [1]}),
            "b": Had("Q", {}, {"x": [1]}),
            "c": Had("R"),
        },
        {"a": Has({"x": [0]}), "b": Has({"x": [1]}), "c": Has({"x": [2]})},
    ),
    "less load of the process alone does not count": Case(
        {"x": 4},
        {
            "a": Had("P", {"x": [0]}, {"x": [2]}),
            "b": Had("Q", {"x": [1]}, {"x": [2]}),
            "c": Had("Q"),
        },
        {"a": Has({"x": [0, 2]}), "b": Has({"x": [1]}), "c": Has({"x": [3]})},
    ),
    "load is tasks per member of a process": Case(
        {"x": 3},
        {"a": Had("P"), "b": Had("P"), "c": Had("Q")},
        {"a": Has({"x": [0]}), "b": Has({"x": [2]}), "c": Has({"x": [1]})},
    ),
    "members of a process in the order of Java's heap": Case(
        {"x": 4},
        {"a": Had("P"), "b": Had("P"), "c": Had("P")},
        {"a": Has({"x": [0]}), "b": Has({"x": [2]}), "c": Has({"x": [1, 3]})},
    ),
    "tasks without a former owner are given in the order of their subtopologies": Case(
        {"y": 1, "x": 2},
        {"a": Had("P"), "b": Had("Q"), "c": Had("R")},
        {"a": Has({"x": [0]}), "b": Has({"y": [0]}), "c": Has({"x": [1]})},
    ),
    "no standby without replicas": Case(
        {"X": 1}, {"a": Had("P"), "b": Had("Q")}, {"a": Has({"X": [0]}), "b": Has()}, 0
    ),
    "no standby of what has no state": Case(
        {"X": 1, "y": 1},
        {"a": Had("P"), "b": Had("Q")},
        {"a": Has({"X": [0]}), "b": Has({"y": [0]}, {"X": [0]})},
        1,
    ),
    "standbys go to processes in the order of Java's heap": Case(
        {"X": 3},
        {"a": Had("P"), "b": Had("Q"), "c": Had("R")},
        {
            "a": Has({"X": [0]}, {"X": [2]}),
            "b": Has({"X": [2]}, {"X": [1]}),
            "c": Has({"X": [1]}, {"X": [0]}),
        },
        1,
    ),
    "a former active is the first standby": Case(
        {"X": 2},
        {"a": Had("P", {"X": [0, 1]}), "b": Had("Q")},
        {"a": Has({"X": [0]}, {"X": [1]}), "b": Has({"X": [1]}, {"X": [0]})},
        1,
    ),
    "a former standby stays one": Case(
        {"X": 1},
        {"a": Had("P", {"X": [0]}), "b": Had("Q"), "c": Had("R", {}, {"X": [0]})},
        {"a": Has({"X": [0]}), "b": Has(), "c": Has({}, {"X": [0]})},
        1,
    ),
    "none of the former standbys, if the first has it as active": Case(
        {"X": 1, "y": 2},
        {
            "a": Had("P", {}, {"X": [0]}),
            "b": Had("Q", {"y": [0]}, {"X": [0]}),
            "c": Had("R"),
        },
        {"a": Has({"X": [0]}), "b": Has({"y": [0]}), "c": Has({"y": [1]}, {"X": [0]})},
        1,
    ),
    "a process has a task once": Case(
        {"X": 1},
        {"a": Had("P"), "b": Had("P"), "c": Had("Q")},
        {"a": Has({"X": [0]}), "b": Has(), "c": Has({}, {"X": [0]})},
        2,
    ),
    "as many standbys as replicas": Case(
        {"X": 1},
        {"a": Had("P", {"X": [0]}), "b": Had("Q"), "c": Had("R"), "d": Had("S")},
        {"a": Has({"X": [0]}), "b": Has({}, {"X": [0]}), "c": Has(), "d": Has({}, {"X": [0]})},
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_tasks_go_where_kafka_puts_them(name: str) -> None:
    topology, members, expected, replicas = CASES[name]
    answer = our_answer(
        {
            "kind": "assign",
            "replicas": None if replicas is None else str(replicas),
            "topology": {each: (count, each.isupper()) for each, count in topology.items()},
            "members": [{"id": each, **had._asdict()} for each, had in members.items()],
        }
    )
    targets = {each: {**has._asdict(), "warmup": {}} for each, has in expected.items()}
    assert answer == {"targets": targets}


def test_no_member_is_a_failure_that_names_the_first_task() -> None:
    question = {"kind": "assign", "replicas": None, "members": []}
    answer = our_answer({**question, "topology": {"y": (1, False), "x": (2, False)}})
    assert answer == {"failed": "No process available to assign active task x_0."}
    assert our_answer({**question, "topology": {"x": (0, True)}}) == {"targets": {}}
