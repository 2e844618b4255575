"""What is planted in the counts of an application is found."""

from __future__ import annotations

import pytest

from tests.streams.verdict import counted_again, lost_counts, wrong_counts, wrong_store

FED = {"a": 3, "b": 1}


def test_counts_that_are_exact_are_right_however_partitions_interleave() -> None:
    assert wrong_counts(FED, [("a", 1), ("b", 1), ("a", 2), ("a", 3)]) == []
    assert wrong_store(FED, [("a", 1), ("b", 1), ("a", 3)]) == []


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        ([("a", 1), ("a", 2), ("b", 1)], "a: 2 counts of 3; 0 twice [], 1 missing [3]"),
        ([("a", 1), ("a", 2), ("a", 2), ("a", 3), ("b", 1)], "1 twice [2], 0 missing"),
        ([("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1)], "1 too high [4]"),
        ([("a", 1), ("a", 3), ("a", 2), ("b", 1)], "a: counts out of order"),
        ([("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1)], "c: counts of a key that nobody fed"),
        ([("a", 1), ("a", 2), ("a", 3)], "b: 0 counts of 1"),
    ],
    ids=["lost", "twice", "too-high", "order", "strange-key", "key-lost"],
)
def test_a_wrong_count_is_named(counted: list[tuple[str, int]], told: str) -> None:
    [problem] = wrong_counts(FED, counted)
    assert told in problem


def test_a_store_that_ends_elsewhere_is_named() -> None:
    assert wrong_store(FED, [("a", 3), ("b", 2)]) == ["b: the store has 2, not 1"]
    assert wrong_store(FED, [("a", 3)]) == ["b: the store has None, not 1"]


def test_records_that_were_lost_or_counted_again_are_named() -> None:
    counted = [("a", 1), ("a", 2), ("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1)]
    assert lost_counts(FED, counted) == []
    assert counted_again(FED, counted) == 1
    assert lost_counts(FED, [("a", 2)]) == ["a: counted 2 of 3", "b: counted 0 of 1"]
