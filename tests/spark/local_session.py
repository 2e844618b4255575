"""A session whose workers are this process: the verbs without Java, one task after another.

It has what `run_on_workers` and `parallelism_of` ask of a classic session, and nothing else. That
the same verbs run on Spark is judged by the tests that need Java.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

__all__ = ["LocalSession"]


class LocalSession:
    """A session with a setting or two, and a number of cores."""

    def __init__(self, cores: int = 3, **settings: str) -> None:
        self.conf = settings
        self.sparkContext = _Context(cores)
        self.tasks: list[Any] = self.sparkContext.tasks
        """What was handed to workers."""


class _Counter:
    def __init__(self, value: int) -> None:
        self.value = value

    def add(self, amount: int) -> None:
        self.value += amount


class _Context:
    def __init__(self, cores: int) -> None:
        self.defaultParallelism = cores
        self.tasks: list[Any] = []

    def accumulator(self, value: int) -> _Counter:
        return _Counter(value)

    def parallelize(self, tasks: Sequence[Any], count: int) -> _Job:
        assert count == len(tasks), "each task is a partition of its own"
        self.tasks += tasks
        return _Job(tasks)


class _Job:
    def __init__(self, tasks: Sequence[Any]) -> None:
        self._tasks = tasks
        self._work: Callable[[Any], Any] = lambda task: task

    def map(self, work: Callable[[Any], Any]) -> _Job:
        self._work = work
        return self

    def collect(self) -> list[Any]:
        found = []
        for number, task in enumerate(self._tasks):
            with _attempt(number):
                found.append(self._work(task))
        return found


class _Attempt:
    def __init__(self, number: int) -> None:
        self._number = number

    def partitionId(self) -> int:
        return self._number

    def taskAttemptId(self) -> int:
        return 100 + self._number


@contextmanager
def _attempt(number: int) -> Iterator[None]:
    with patch("kraft_wire.spark.workers.TaskContext.get", lambda: _Attempt(number)):
        yield
