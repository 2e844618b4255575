"""Sets of tasks: union, and what two members have in common."""

from __future__ import annotations

from kraft_wire.broker.groups.streams.tasks import NO_TASKS, TasksTuple, merge_tasks

_ONE = TasksTuple({"a": frozenset({0, 1})}, {"b": frozenset({2})}, {})


def test_a_merge_keeps_the_kinds_apart() -> None:
    other = TasksTuple({"a": frozenset({1, 3})}, {}, {"b": frozenset({2})})
    assert _ONE.merge(other) == TasksTuple(
        {"a": frozenset({0, 1, 3})}, {"b": frozenset({2})}, {"b": frozenset({2})}
    )


def test_a_merge_leaves_its_arguments_alone() -> None:
    first = {"a": frozenset({0})}
    assert merge_tasks(first, {"a": frozenset({1})}) == {"a": frozenset({0, 1})}
    assert first == {"a": frozenset({0})}


def test_only_no_subtopology_at_all_is_empty() -> None:
    assert NO_TASKS.is_empty
    assert not _ONE.is_empty
    assert not TasksTuple({}, {}, {"a": frozenset()}).is_empty


def test_a_task_in_common_is_found_only_as_the_same_kind() -> None:
    assert _ONE.contains_any(TasksTuple({"a": frozenset({1})}, {}, {}))
    assert _ONE.contains_any(TasksTuple({}, {"b": frozenset({2})}, {}))
    assert not _ONE.contains_any(TasksTuple({"b": frozenset({2})}, {"a": frozenset({0})}, {}))
    assert not _ONE.contains_any(TasksTuple({"a": frozenset({2})}, {}, {}))
    assert not _ONE.contains_any(NO_TASKS)
