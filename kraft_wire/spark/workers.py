"""Plain functions on plain values, run by Spark's workers: one task a value, results to the driver.

A result must be small: files stay where the worker wrote them. A task may run twice, when a worker
is lost or slow, so each attempt needs new names for its files.
"""

import os
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kraft_wire.spark.failure import translated

__all__ = ["Amount", "Tell", "attempt_name", "run_on_workers", "silent"]

T = TypeVar("T")
R = TypeVar("R")


class Amount(NamedTuple):
    """How much work something is or was."""

    files: int = 0
    size_bytes: int = 0
    records: int = 0


Tell = Callable[[Amount], None]
"""Called with the amount of work since its last call."""

_POLL_S: Final = 0.25
_RESULT: Final = "result binary"


def silent(_amount: Amount) -> None:
    """Report nothing."""


def attempt_name() -> str:
    """Return a name that no other attempt of any task of this job has."""
    context = TaskContext.get()
    if context is None:
        return f"{os.getpid()}"
    return f"{context.partitionId():05d}-{context.taskAttemptId()}"


def run_on_workers(
    spark: SparkSession,
    tasks: Sequence[T],
    work: Callable[[T], R],
    *,
    amount_of: Callable[[T, R], Amount] = lambda _task, _result: Amount(),
    tell: Tell = silent,
) -> list[R]:
    """Return the results of `work` in the order of tasks; PipelineError for the first failure.

    `amount_of` returns the amount of work of a task, for the progress.
    """
    if not tasks:
        return []
    with translated():
        try:
            context = spark.sparkContext
        except (AttributeError, PySparkException):  # a Connect session has no context
            return _over_frame(spark, tasks, work)
        counters = [context.accumulator(0) for _ in Amount._fields]

        def one(task: T) -> R:
            result = work(task)
            for counter, gained in zip(counters, amount_of(task, result), strict=True):
                counter.add(gained)
            return result

        with _Watch(counters, tell):
            return context.parallelize(tasks, len(tasks)).map(one).collect()


def _over_frame(spark: SparkSession, tasks: Sequence[T], work: Callable[[T], R]) -> list[R]:
    """Do the same with data frames only."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [pickle.dumps((at, work(tasks[at]))) for at in batch.column("id").to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.binary())], ["result"])

    frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(run, _RESULT)
    results: list[tuple[int, R]] = [pickle.loads(row.result) for row in frame.collect()]
    return [result for _, result in sorted(results, key=lambda pair: pair[0])]


class _Watch:
    """Reads the counters while the job runs, and reports their increase."""

    def __init__(self, counters: Sequence[Any], tell: Tell) -> None:
        self._counters = counters
        self._tell = tell
        self._told = Amount()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_POLL_S):
            self._look()
        self._look()

    def _look(self) -> None:
        now = Amount(*(int(counter.value) for counter in self._counters))
        gained = Amount(*(new - old for new, old in zip(now, self._told, strict=True)))
        self._told = now
        if any(gained):
            self._tell(gained)
