"""What judges a sink after the kills notices what is missing, twice or strange."""

from __future__ import annotations

import os
import random

import pytest

from tests.spark.kills import KINDS, faults, planned
from tests.spark.process_tree import descendants

RIGHT: dict[str, object] = {
    "wanted": {0: 3, 1: 2},
    "partitions": {"0": [3, 3, 0, 2], "1": [2, 2, 0, 1]},
    "numbers": [5, 10],
}


def test_every_offset_once_is_no_fault() -> None:
    assert faults(RIGHT, 5) == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"partitions": {"0": [3, 3, 0, 2]}}, "partitions ['0'], not [0, 1]"),
        ({"partitions": {"0": [4, 3, 0, 2], "1": [2, 2, 0, 1]}}, "partition 0: [4, 3, 0, 2]"),
        ({"partitions": {"0": [3, 3, 0, 3], "1": [2, 2, 0, 1]}}, "partition 0: [3, 3, 0, 3]"),
        ({"partitions": {"0": [3, 3, 0, 2], "1": [1, 1, 1, 1]}}, "partition 1: [1, 1, 1, 1]"),
        ({"numbers": [4, 10]}, "values: [4, 10]"),
        ({"numbers": [5, 11]}, "values: [5, 11]"),
    ],
)
def test_each_fault_of_a_sink_is_told(changed: dict[str, object], told: str) -> None:
    found = faults(RIGHT | changed, 5)
    assert any(line.startswith(told) for line in found), found


def test_parent_has_this_process_below_it_and_this_process_has_not() -> None:
    assert os.getpid() in {each.pid for each in descendants(os.getppid())}
    assert os.getpid() not in {each.pid for each in descendants(os.getpid())}


def test_nobody_is_to_be_killed_whom_a_connector_does_not_have() -> None:
    own = planned(random.Random(1), 20, "kraftwire")
    theirs = planned(random.Random(1), 20, "kafka")
    assert (len(own), len(theirs)) == (20, 20)
    assert set(own) == set(KINDS)
    assert set(theirs) == {"driver", "driver's JVM", "executor"}
