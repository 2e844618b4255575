"""How much work Spark's workers have done is told while they work, each part of it once."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from kraft_wire.spark import workers
from kraft_wire.spark.workers import Amount


@dataclass
class Counter:
    """Counts as an accumulator of Spark's."""

    value: int = 0


def test_work_is_told_while_it_is_done_and_each_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_POLL_S", 0.001)
    counters = [Counter() for _ in Amount._fields]
    told: list[Amount] = []
    with workers._Watch(counters, told.append):
        for done in ((1, 10, 100), (1, 30, 100)):
            before = len(told)
            for counter, value in zip(counters, done, strict=True):
                counter.value = value
            until = time.monotonic() + 20
            while len(told) == before:
                assert time.monotonic() < until, "it is told before the job ends"
                time.sleep(0.001)
        counters[2].value = 105
    sums = [sum(each) for each in zip(*told, strict=True)]
    assert sums == [1, 30, 105], "the last part too"
    assert all(any(each) for each in told), "nothing is told while nothing is done"
