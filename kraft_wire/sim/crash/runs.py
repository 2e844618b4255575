"""One crash scenario with its enumerator and its figures; and storage without a safeguard.

A run goes over the scenario once per size of a sector, and counts a state (the content of the disk)
once, for all sizes. `without` takes a safeguard away: fsync, directory sync, CRC, or the order of
sync and rename; then violations must be found.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from kraft_wire.sim.crash.harness import Scenario
from kraft_wire.sim.crash.states import CrashState, Enumerator, Limits
from kraft_wire.sim.disk.files import SECTOR_BYTES, SimFileSystem
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["LARGE_SECTOR_BYTES", "SAFEGUARDS", "Pass", "ScenarioReport", "run_scenario"]

SAFEGUARDS: Final = ("fsync", "dirsync", "crc", "rename-order")
LARGE_SECTOR_BYTES: Final = 4096
_EXAMPLES_MAX: Final = 3
_TOLD_EVERY: Final = 64


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a scenario with one size of sector, until a total number of states."""

    sector_bytes: int
    states_max: int


@dataclass(slots=True)
class ScenarioReport:
    """The figures of one scenario."""

    name: str
    operations: int = 0
    states: int = 0
    checks: int = 0
    during_recovery: int = 0
    refused: int = 0
    violations: int = 0
    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)


class _Run:
    """One scenario with its enumerator and report; the `Recorder` of the scenario."""

    def __init__(self, scenario: Scenario, limits: Limits, without: str | None, seed: int) -> None:
        self.report = ScenarioReport(scenario.name)
        self.on_states: Callable[[int], None] = lambda count: None
        self.enumerator = Enumerator(limits, Random(seed), self._check)
        self._scenario = scenario
        self._without = without
        self.sector_bytes = SECTOR_BYTES
        self._ledger: Callable[[], object] = lambda: None
        self._reported = 0

    def go_over(self, sector_bytes: int, states_max: int) -> None:
        """Record the scenario, crashing at every change."""
        self.sector_bytes = sector_bytes
        self.enumerator.limits = replace(self.enumerator.limits, states_max=states_max)
        started = time.process_time()
        try:
            self._scenario.run(self)
        except Exception as error:
            if self._without is None:
                raise
            self._violation(f"the run itself breaks: {type(error).__name__}: {error}")
        self._tell()
        self.report.operations = self.enumerator.operations
        self.report.states = len(self.enumerator.images)
        self.report.seconds += round(time.process_time() - started, 1)

    # -- the scenario's calls --------------------------------------------------------------------

    @property
    def has_enough(self) -> bool:
        return self.enumerator.is_exhausted

    @property
    def keeps_its_word(self) -> bool:
        return self._without is None

    def prepare(self, fs: SimFileSystem) -> None:
        fs.sector_bytes = self.sector_bytes
        self._weaken(fs)

    def watch(self, fs: SimFileSystem, ledger: Callable[[], object]) -> None:
        self._ledger = ledger
        self.enumerator.watch(fs, ledger, 1)

    def finish(self) -> None:
        assert self.enumerator.watched is not None
        self.enumerator.crash_here(self.enumerator.watched, self._ledger())

    # -- checks ----------------------------------------------------------------------------------

    def _weaken(self, fs: SimFileSystem) -> None:
        """Take one safeguard away."""
        if self._without == "fsync":
            fs.ignores_fsync = lambda path: True
        elif self._without == "rename-order":
            fs.ignores_fsync = lambda path: path.endswith((".tmp", ".part", ".cleaned"))
        elif self._without == "dirsync":
            fs.ignores_directory_sync = True

    def _check(self, state: CrashState) -> None:
        """Recover one image and take its outcome into the report."""
        report = self.report
        report.checks += 1
        if report.checks % _TOLD_EVERY == 0:
            self._tell()
        fs = SimFileSystem.from_image(state.image)
        self.prepare(fs)
        is_due = report.checks % self.enumerator.limits.recovery_every == 0
        if state.depth == 1 and is_due and not self.enumerator.is_exhausted:
            self.enumerator.watch(fs, lambda: state.ledger, 2, is_ordered=state.is_ordered)
        report.during_recovery += state.depth - 1
        try:
            outcome = self._scenario.verify(fs, state.ledger, state.is_ordered)
        except Exception as error:  # noqa: BLE001  # recovery must not raise any error
            self._violation(f"{type(error).__name__}: {error}")
            return
        report.refused += outcome.is_refused
        for violation in outcome.violations:
            self._violation(violation)

    def _tell(self) -> None:
        count = len(self.enumerator.images)
        self.on_states(count - self._reported)
        self._reported = count

    def _violation(self, text: str) -> None:
        self.report.violations += 1
        if len(self.report.examples) < _EXAMPLES_MAX and text not in self.report.examples:
            self.report.examples.append(text)


@contextmanager
def _without_crc(is_off: bool) -> Iterator[None]:
    """Let every checksum count as right for a while."""
    original = RecordBatch.crc_is_valid
    if is_off:
        setattr(RecordBatch, "crc_is_valid", lambda self: True)  # noqa: B010  # a mutant
    try:
        yield
    finally:
        setattr(RecordBatch, "crc_is_valid", original)  # noqa: B010  # and its end


def run_scenario(
    scenario: Scenario,
    limits: Limits,
    *,
    without: str | None = None,
    seed: int = 1,
    passes: Sequence[Pass] = (),
    on_states: Callable[[int], None] = lambda count: None,
    fingerprints: set[int] | None = None,
) -> ScenarioReport:
    """Crash one scenario everywhere and return the figures.

    `passes`: by default one pass with sectors of 512 bytes. The hashes of the states go into
    `fingerprints`, which are comparable within a process and its forks.
    """
    run = _Run(scenario, limits, without, seed)
    run.on_states = on_states
    with _without_crc(without == "crc"):
        for one in passes or (Pass(SECTOR_BYTES, limits.states_max),):
            run.go_over(one.sector_bytes, one.states_max)
    if fingerprints is not None:
        fingerprints |= run.enumerator.images
    return run.report
