"""`python -m kraft_wire.sim.crash.points`: every crash state of storage and quorum, judged.

One row per scenario: operations, distinct states (what is on the disk, with what was promised), how
many of the checks were crashes during recovery, refusals, violations. Exit code 1 when an
acknowledged record or a vote was lost, garbage was served or recovery was not idempotent. Sectors
are 512 bytes, then 4 KiB. Then each of four safeguards is removed in turn (fsync, directory sync,
CRC, the order of sync and rename) over some scenarios of storage and of the quorum, and exit code 1
also says that the checks did not notice one; and every kind of file is damaged bit by bit
(`bit_flips`). `--without` runs all scenarios without one safeguard, where exit code 1 is what is
expected.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kraft_wire.sim.crash.bit_flips import FlipReport, flip_table, run_all
from kraft_wire.sim.crash.jobs import Job, JobResult, results_of
from kraft_wire.sim.crash.moves import MOVE_SCENARIOS
from kraft_wire.sim.crash.runs import SAFEGUARDS, ScenarioReport, run_scenario
from kraft_wire.sim.crash.scenarios import SCENARIOS as STORAGE_SCENARIOS
from kraft_wire.sim.crash.states import Limits
from kraft_wire.sim.crash.stories import QUORUM_SCENARIOS
from kraft_wire.sim.crash.transactions import TRANSACTION_SCENARIOS

__all__ = ["SAFEGUARDS", "SCENARIOS", "ScenarioReport", "main", "run_scenario"]

SCENARIOS = [
    *STORAGE_SCENARIOS,
    *MOVE_SCENARIOS,
    *TRANSACTION_SCENARIOS,
    *QUORUM_SCENARIOS,
]
FULL = Limits(exhaustive_atoms=14, random_subsets=12_000, states_max=24_000)
QUICK = Limits(exhaustive_atoms=8, random_subsets=128, states_max=1_500)
FULL_QUORUM = Limits(exhaustive_atoms=10, random_subsets=512, states_max=95_000, recovery_every=4)
QUICK_QUORUM = Limits(exhaustive_atoms=4, random_subsets=16, states_max=1_000, recovery_every=16)
_FLIPPED_BYTES = 1 << 16
_QUICK_STRIDE = 997
_WEAKENED = Limits(exhaustive_atoms=6, random_subsets=32, states_max=300)
_WEAKENED_SCENARIOS = (
    "append and flush",
    "disk full and freed",
    "vote (quorum-state)",
    "votes and elections",
    "metadata truncated",
    "snapshot fetched and installed",
    "voters added and removed",
    "quorum of one",
)


def _jobs(options: Namespace) -> list[Job]:
    """Return the jobs, the longest first."""
    is_quick = bool(options.quick or options.without)
    jobs: list[Job] = []
    for scenario in SCENARIOS:
        if options.scenario not in (None, scenario.name):
            continue
        is_quorum = scenario in QUORUM_SCENARIOS
        if is_quorum:
            limits = QUICK_QUORUM if is_quick else FULL_QUORUM
        else:
            limits = QUICK if is_quick else FULL
        if options.states:
            limits = replace(limits, states_max=options.states)
        jobs.append(Job(scenario, limits, options.without, options.seed))
    return sorted(jobs, key=lambda job: -job.limits.states_max)


def _run_all(
    console: Console, jobs: Sequence[Job], processes: int
) -> tuple[list[ScenarioReport], int]:
    """Run the jobs; return the figures in the order of the scenarios, and the distinct states."""
    results: list[JobResult] = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("crash states", total=sum(job.states_expected for job in jobs))

        def advance(states: int) -> None:
            progress.update(task, completed=states)

        for result in results_of(jobs, processes, advance):
            results.append(result)
            progress.console.print(_line(result.report), markup=False, highlight=False)
    order = {scenario.name: at for at, scenario in enumerate(SCENARIOS)}
    reports = sorted((each.report for each in results), key=lambda each: order[each.name])
    distinct: set[int] = set()
    for result in results:
        distinct.update(result.fingerprints)
    return reports, len(distinct)


def _line(report: ScenarioReport) -> str:
    found = f"{report.violations:,} violations" if report.violations else "none bad"
    return f"{report.name}: {report.states:,} states, {found}, {report.seconds:.0f} s"


def _unnoticed(console: Console, seed: int) -> list[str]:
    """Remove each safeguard in turn; return those whose absence no check noticed.

    A check must notice it both in a scenario of storage and in one of the quorum, if there is one.
    """
    missed: list[str] = []
    for safeguard in SAFEGUARDS:
        found = {True: 0, False: 0}
        for scenario in SCENARIOS:
            if scenario.name in _WEAKENED_SCENARIOS:
                report = run_scenario(scenario, _WEAKENED, without=safeguard, seed=seed)
                found[scenario in QUORUM_SCENARIOS] += report.violations
        console.print(
            f"without {safeguard}: {found[False]:,} violations found in storage, "
            f"{found[True]:,} in the quorum"
        )
        if not all(found.values()):
            missed.append(safeguard)
    return missed


def _table(reports: Sequence[ScenarioReport], title: str) -> Table:
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


def _options(arguments: list[str] | None) -> Namespace:
    parser = ArgumentParser(prog="python -m kraft_wire.sim.crash.points", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer states, about a minute")
    parser.add_argument("--without", choices=SAFEGUARDS, help="remove one safeguard")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--states", type=int, help="distinct states per scenario, at most")
    parser.add_argument("--scenario", help="only the scenario of that name")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="figures as one JSON object")
    options = parser.parse_args(arguments)
    if options.scenario not in (None, *(each.name for each in SCENARIOS)):
        parser.error(f"no scenario is named {options.scenario!r}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; 0 when the outcome is as it must be, 1 when not."""
    options = _options(arguments)
    console = Console(stderr=options.json)
    reports, distinct = _run_all(console, _jobs(options), options.processes)
    title = "Crash states" if options.without is None else f"Crash states without {options.without}"
    _tell(console, reports, distinct, title)
    flips: list[FlipReport] = []
    unnoticed: list[str] = []
    if not (options.without or options.scenario):
        unnoticed = _unnoticed(console, options.seed)
        flips = run_all(_FLIPPED_BYTES, _QUICK_STRIDE if options.quick else 1)
        console.print(flip_table(flips))
    if options.json:
        print(json.dumps(_figures(options.without, reports, distinct, flips)))
    violations = sum(report.violations for report in reports)
    violations += sum(report.violations for report in flips)
    return int(violations > 0 or bool(unnoticed))


def _tell(console: Console, reports: Sequence[ScenarioReport], distinct: int, title: str) -> None:
    console.print(_table(reports, title))
    states = sum(report.states for report in reports)
    violations = sum(report.violations for report in reports)
    console.print(
        f"{states:,} distinct states ({distinct:,} different disks over all scenarios), "
        f"{violations:,} violations"
    )
    for report in reports:
        for example in report.examples:
            console.print(f"  {report.name}: {example}", markup=False)


def _figures(
    without: str | None,
    reports: Sequence[ScenarioReport],
    distinct: int,
    flips: Sequence[FlipReport],
) -> dict[str, object]:
    return {
        "states": sum(report.states for report in reports),
        "disks": distinct,
        "violations": sum(report.violations for report in reports),
        "without": without,
        "scenarios": [asdict(report) for report in reports],
        "spoilt_files": [asdict(report) for report in flips],
    }


if __name__ == "__main__":
    sys.exit(main())
