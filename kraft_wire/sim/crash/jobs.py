"""Crash scenarios on several cores: one job is one scenario with every size of sector.

Processes are forked, so that all of them hash alike and states can be compared over all jobs.
"""

from __future__ import annotations

import gc
import multiprocessing
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from typing import Final

from kraft_wire.sim.crash.harness import Scenario
from kraft_wire.sim.crash.runs import LARGE_SECTOR_BYTES, Pass, ScenarioReport, run_scenario
from kraft_wire.sim.crash.states import Limits
from kraft_wire.sim.disk.files import SECTOR_BYTES

__all__ = ["Job", "JobResult", "results_of"]

_LARGE_SECTOR_SHARE: Final = 8  # of the states: fewer, larger atoms have fewer subsets that differ
_LOOK_EVERY_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Job:
    """A scenario and its limits."""

    scenario: Scenario
    limits: Limits
    without: str | None = None
    seed: int = 1

    @property
    def passes(self) -> tuple[Pass, Pass]:
        """Both sizes of sector; the second one adds its share."""
        return (
            Pass(SECTOR_BYTES, self.limits.states_max),
            Pass(LARGE_SECTOR_BYTES, self.states_expected),
        )

    @property
    def states_expected(self) -> int:
        """How many states it has where the scenario has as many."""
        states_max = self.limits.states_max
        return states_max if self.without else states_max + states_max // _LARGE_SECTOR_SHARE

    def run(self, on_states: Callable[[int], None]) -> JobResult:
        """Do it."""
        fingerprints: set[int] = set()
        report = run_scenario(
            self.scenario,
            self.limits,
            without=self.without,
            seed=self.seed,
            passes=self.passes[: 1 if self.without else 2],
            on_states=on_states,
            fingerprints=fingerprints,
        )
        return JobResult(report, array("q", fingerprints))


@dataclass(frozen=True, slots=True)
class JobResult:
    """The figures of a job, and the hashes of its disks."""

    report: ScenarioReport
    fingerprints: Sequence[int]


_jobs: Sequence[Job] = ()
_done: Synchronized[int] | None = None
"""Both set before forking: the jobs are inherited, the counter is shared."""


def results_of(
    jobs: Sequence[Job], processes: int, advance: Callable[[int], None]
) -> Iterator[JobResult]:
    """Yield each job's result; `advance` gets the number of states so far."""
    if processes <= 1 or len(jobs) == 1:
        states = 0

        def count(more: int) -> None:
            nonlocal states
            states += more
            advance(states)

        for job in jobs:
            yield job.run(count)
        return
    yield from _forked(jobs, processes, advance)


def _forked(
    jobs: Sequence[Job], processes: int, advance: Callable[[int], None]
) -> Iterator[JobResult]:
    global _jobs, _done  # a fork inherits them
    context = multiprocessing.get_context("fork")
    _jobs, _done = jobs, context.Value("q", 0)
    with context.Pool(processes, gc.freeze, maxtasksperchild=1) as pool:
        results = pool.imap_unordered(_run, range(len(jobs)), chunksize=1)
        left = len(jobs)
        while left:
            try:
                yield results.next(_LOOK_EVERY_S)
                left -= 1
            except multiprocessing.TimeoutError:
                advance(_done.value)


def _run(number: int) -> JobResult:
    return _jobs[number].run(_count)


def _count(states: int) -> None:
    assert _done is not None
    with _done.get_lock():
        _done.value += states
