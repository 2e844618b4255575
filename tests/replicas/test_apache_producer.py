"""What a producer of Apache's tells, or fails to tell, is not lost on the way."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.replicas.apache_producer import ApacheLoad
from tests.replicas.load import PENDING, Order, Pace

pytestmark = pytest.mark.java


def load(tmp_path: Path) -> ApacheLoad:
    """A producer of forty records that may all be sent at once, to a port where nobody listens."""
    pace = Pace()
    pace.set(1e6)
    return ApacheLoad(Order(0, "127.0.0.1:1", "t", 1, 40, pace, tmp_path / "producer.log"))


def run(told: ApacheLoad, seconds_max: float) -> None:
    """Let it begin, and end it when all is granted."""
    told.start()
    while told.is_alive() and told.left:
        time.sleep(0.01)
    told.finish(seconds_max)


def test_promises_and_refusals_are_heard(tmp_path: Path) -> None:
    told = load(tmp_path)
    told._command = ["sh", "-c", "read granted; echo 0 5; echo 1 -1; echo '2 ! it is full'; cat"]
    run(told, 30)
    assert told.sent == 40
    assert list(told.offsets[:4]) == [5, -1, PENDING, PENDING]
    (refused, left) = told.failures
    assert "record 2: it is full" in refused
    assert left.startswith("38 records have no acknowledgement")


def test_a_program_that_ends_too_early_is_a_failure(tmp_path: Path) -> None:
    told = load(tmp_path)
    told._command = ["sh", "-c", "read granted; exit 3"]
    run(told, 30)
    assert "it ended with 3" in told.failures[0]


def test_a_producer_that_reaches_nobody_is_ended_and_its_records_are_told_as_pending(
    tmp_path: Path,
) -> None:
    told = load(tmp_path)
    run(told, 3)
    assert not told.is_alive()
    assert told.failures == ["40 records have no acknowledgement after 3 s"]
