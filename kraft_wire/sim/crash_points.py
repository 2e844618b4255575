"""`python -m kraft_wire.sim.crash_points`: every crash state of storage, judged (RELIABILITY, 5.2).

Prints one row per scenario: operations, distinct states, refusals, violations. Exit code 1 when an
acknowledged record was lost, garbage was served or recovery was not idempotent. Sectors are 512
bytes, then 4 KiB. Then each of four safeguards is removed in turn (fsync, directory sync, CRC, the
order of sync and rename) over a few scenarios, and exit code 1 also says that the checks did not
notice one; and every kind of file is spoilt bit by bit (`bit_flips`). `--without` runs all
scenarios without one safeguard, where exit code 1 is what is expected.
"""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from random import Random

from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from kraft_wire.sim.bit_flips import FlipReport, flip_table, run_all
from kraft_wire.sim.crash_scenarios import SCENARIOS, Scenario
from kraft_wire.sim.crash_states import CrashState, Enumerator, Limits
from kraft_wire.sim.files import SECTOR_BYTES, SimFileSystem
from kraft_wire.wire.record_batch import RecordBatch

__all__ = ["SAFEGUARDS", "ScenarioReport", "main", "run_scenario"]

SAFEGUARDS = ("fsync", "dirsync", "crc", "rename-order")
FULL = Limits(exhaustive_atoms=14, random_subsets=12_000, states_max=24_000)
QUICK = Limits(exhaustive_atoms=8, random_subsets=128, states_max=1_500)
_EXAMPLES_MAX = 3
_LARGE_SECTOR_BYTES = 4096
_LARGE_SECTOR_SHARE = 8  # of the states: fewer, larger atoms have fewer subsets that differ
_FLIPPED_BYTES = 1 << 16
_QUICK_STRIDE = 997
_WEAKENED = Limits(exhaustive_atoms=6, random_subsets=32, states_max=300)
_WEAKENED_SCENARIOS = ("append and flush", "disk full and freed", "vote (quorum-state)")


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
    """One scenario with its enumerator and report."""

    def __init__(
        self,
        scenario: Scenario,
        limits: Limits,
        without: str | None,
        seed: int,
        sector_bytes: int = SECTOR_BYTES,
    ) -> None:
        self.report = ScenarioReport(scenario.name)
        self._sector_bytes = sector_bytes
        self._scenario = scenario
        self._without = without
        self._enumerator = Enumerator(limits, Random(seed), self._check)
        self.on_state: Callable[[], None] = lambda: None

    def run(self) -> ScenarioReport:
        """Record the scenario, crashing at every change."""
        started = time.perf_counter()
        fs = SimFileSystem()
        fs.sector_bytes = self._sector_bytes
        self._weaken(fs)
        ledgers: list[object] = [None]

        def watch(current_ledger: object) -> None:
            assert callable(current_ledger), current_ledger
            ledgers[0] = current_ledger
            self._enumerator.watch(fs, current_ledger, 1)

        self._scenario.run(fs, watch)
        assert callable(ledgers[0]), ledgers
        assert self._enumerator.watched is not None
        self._enumerator.crash_here(self._enumerator.watched, ledgers[0]())
        self.report.operations = self._enumerator.operations
        self.report.states = len(self._enumerator.images)
        self.report.seconds = round(time.perf_counter() - started, 1)
        return self.report

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
        self.on_state()
        fs = SimFileSystem.from_image(state.image)
        fs.sector_bytes = self._sector_bytes
        self._weaken(fs)
        if state.depth == 1 and not self._enumerator.is_exhausted:
            self._enumerator.watch(fs, lambda: state.ledger, 2, is_ordered=state.is_ordered)
        report.during_recovery += state.depth - 1
        try:
            outcome = self._scenario.verify(fs, state.ledger, state.is_ordered)
        except Exception as error:  # noqa: BLE001  # whatever it is, recovery must not raise it
            self._violation(f"{type(error).__name__}: {error}")
            return
        report.refused += outcome.is_refused
        for violation in outcome.violations:
            self._violation(violation)

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
        setattr(RecordBatch, "crc_is_valid", original)  # noqa: B010


def run_scenario(
    scenario: Scenario, limits: Limits, *, without: str | None = None, seed: int = 1
) -> ScenarioReport:
    """Crash one scenario everywhere and return the figures."""
    with _without_crc(without == "crc"):
        return _Run(scenario, limits, without, seed).run()


def _run_all(
    console: Console,
    scenarios: list[Scenario],
    limits: Limits,
    without: str | None,
    seed: int,
    sector_bytes: int = SECTOR_BYTES,
) -> list[ScenarioReport]:
    reports: list[ScenarioReport] = []
    with Progress(console=console, transient=True) as progress, _without_crc(without == "crc"):
        for scenario in scenarios:
            task = progress.add_task(scenario.name, total=limits.states_max)
            run = _Run(scenario, limits, without, seed, sector_bytes)
            run.on_state = _advancer(progress, task)
            reports.append(run.run())
            progress.remove_task(task)
    return reports


def _unnoticed(console: Console, seed: int) -> list[str]:
    """Remove each safeguard in turn; return those whose absence no check noticed."""
    missed: list[str] = []
    for safeguard in SAFEGUARDS:
        found = sum(
            run_scenario(scenario, _WEAKENED, without=safeguard, seed=seed).violations
            for scenario in SCENARIOS
            if scenario.name in _WEAKENED_SCENARIOS
        )
        console.print(f"without {safeguard}: {found:,} violations found")
        if not found:
            missed.append(safeguard)
    return missed


def _advancer(progress: Progress, task: TaskID) -> Callable[[], None]:
    return lambda: progress.advance(task)


def _table(reports: list[ScenarioReport], title: str) -> Table:
    table = Table(title=title)
    for column in ("scenario", "operations", "states", "in recovery", "refused", "violations", "s"):
        table.add_column(column, justify="left" if column == "scenario" else "right")
    for report in reports:
        table.add_row(
            report.name,
            f"{report.operations:,}",
            f"{report.states:,}",
            f"{report.during_recovery:,}",
            f"{report.refused:,}",
            f"{report.violations:,}",
            f"{report.seconds:.1f}",
        )
    return table


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; 0 when the outcome is as it must be, 1 when not."""
    parser = ArgumentParser(prog="python -m kraft_wire.sim.crash_points", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer states, about a minute")
    parser.add_argument("--without", choices=SAFEGUARDS, help="remove one safeguard")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--states", type=int, help="distinct states per scenario, at most")
    parser.add_argument("--scenario", help="only the scenario of that name")
    parser.add_argument("--json", action="store_true", help="figures as one JSON object")
    options = parser.parse_args(arguments)
    limits = QUICK if options.quick or options.without else FULL
    if options.states:
        limits = replace(limits, states_max=options.states)
    scenarios = [each for each in SCENARIOS if options.scenario in (None, each.name)]
    if not scenarios:
        parser.error(f"no scenario is named {options.scenario!r}")
    console = Console(stderr=options.json)
    reports = _run_all(console, scenarios, limits, options.without, options.seed)
    title = "Crash states" if options.without is None else f"Crash states without {options.without}"
    _tell(console, reports, title)
    large: list[ScenarioReport] = []
    flips: list[FlipReport] = []
    unnoticed: list[str] = []
    if not options.without:
        fewer = replace(limits, states_max=limits.states_max // _LARGE_SECTOR_SHARE)
        large = _run_all(console, scenarios, fewer, None, options.seed, _LARGE_SECTOR_BYTES)
        _tell(console, large, "Crash states with sectors of 4 KiB")
    if not (options.without or options.scenario):
        unnoticed = _unnoticed(console, options.seed)
        flips = run_all(_FLIPPED_BYTES, _QUICK_STRIDE if options.quick else 1)
        console.print(flip_table(flips))
    if options.json:
        print(json.dumps(_figures(options.without, reports, large, flips)))
    violations = sum(report.violations for report in [*reports, *large])
    violations += sum(report.violations for report in flips)
    return int(violations > 0 or bool(unnoticed))


def _tell(console: Console, reports: list[ScenarioReport], title: str) -> None:
    console.print(_table(reports, title))
    states = sum(report.states for report in reports)
    violations = sum(report.violations for report in reports)
    console.print(f"{states:,} distinct states, {violations:,} violations")
    for report in reports:
        for example in report.examples:
            console.print(f"  {report.name}: {example}", markup=False)


def _figures(
    without: str | None,
    reports: list[ScenarioReport],
    large: list[ScenarioReport],
    flips: list[FlipReport],
) -> dict[str, object]:
    return {
        "states": sum(report.states for report in reports),
        "violations": sum(report.violations for report in reports),
        "without": without,
        "scenarios": [asdict(report) for report in reports],
        "large_sectors": [asdict(report) for report in large],
        "spoilt_files": [asdict(report) for report in flips],
    }


if __name__ == "__main__":
    sys.exit(main())
