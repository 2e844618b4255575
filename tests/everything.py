"""`python -m tests.everything`: all that must pass, with every judge; behind `make test-all`.

Phases run one after the other, and the first that fails ends the run. No test runs twice: the two
lanes leave out what the checks and the coverage have run. The lane with judges is serial, because
its tests share one machine with JVMs and judge each other's delays. At the end the time of each
phase, the slowest tests, and in the last line how many tests passed.
"""

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from tests.check import TIDY_TESTS

CHECKOUT = Path(__file__).resolve().parents[1]
SLOWEST = 10

COVERED = ("tests/wire", "tests/storage", "tests/golden/test_corpus.py")
"""What `make coverage` runs."""

REPORT = "--junitxml="
REST = " ".join(f"--ignore={path}" for path in (*TIDY_TESTS, *COVERED))

PHASES: dict[str, list[str]] = {
    "checks": ["make", "check", f"ARGS={REPORT}"],
    "coverage": ["make", "coverage", f"ARGS={REPORT}"],
    "simulated quorums": ["make", "sim", "SEEDS=0:500"],
    "simulated clusters": ["make", "sim-clusters", "SEEDS=1500:1524"],
    "tests without judges": ["make", "test", f"ARGS={REST} {REPORT}"],
    "tests with judges": ["make", "test-judged", f"ARGS={REST} {REPORT}"],
}
"""Commands; one that runs pytest ends with where pytest writes its report."""

OF_MAKE = frozenset({"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARGS"})
"""How a make hands its own variables to the makes below it, which here have others."""

OUTCOMES = {"failure": "failed", "skipped": "skipped", "error": "error"}
"""By the element in pytest's report."""

WORDS = ("failed", "passed", "skipped", "error")
"""In the order of pytest's last line."""


@dataclass(frozen=True, slots=True)
class Phase:
    """How one phase ended."""

    name: str
    seconds: float
    succeeded: bool


@dataclass(frozen=True, slots=True)
class Timed:
    """One test as pytest's report has it."""

    name: str
    seconds: float
    outcome: str


def run(name: str, report: Path) -> Phase:
    """Run one phase."""
    command = [each + str(report) if each.endswith(REPORT) else each for each in PHASES[name]]
    environment = {key: value for key, value in os.environ.items() if key not in OF_MAKE}
    print(f"\n=== {name}", flush=True)
    started = time.monotonic()
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, check=False)
    return Phase(name, time.monotonic() - started, done.returncode == 0)


def tests_of(report: Path) -> list[Timed]:
    """Read pytest's report; none where the phase ran no test."""
    if not report.exists():
        return []
    return [
        Timed(
            name=f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}",
            seconds=float(case.get("time", 0)),
            outcome=next((OUTCOMES[each.tag] for each in case if each.tag in OUTCOMES), "passed"),
        )
        for case in ElementTree.parse(report).iter("testcase")
    ]


def summary(phases: Sequence[Phase], tests: Sequence[Timed]) -> str:
    """One line as pytest writes it, of all phases together, after the phase that failed."""
    counts = Counter(each.outcome for each in tests)
    told = [f"{counts[word]} {word}" for word in WORDS if counts[word]] or ["no tests ran"]
    failed = [f"{phase.name}: FAILED, " for phase in phases if not phase.succeeded]
    seconds = sum(phase.seconds for phase in phases)
    return f"{''.join(failed)}{', '.join(told)} in {seconds:.2f}s ({_clock(seconds)})"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the phases, and print what took how long."""
    parser = argparse.ArgumentParser(prog="python -m tests.everything", description=__doc__)
    parser.add_argument("--only", action="append", choices=PHASES, help="repeatable")
    chosen = parser.parse_args(arguments).only or PHASES
    phases: list[Phase] = []
    tests: list[Timed] = []
    with TemporaryDirectory() as folder:
        for number, name in enumerate(each for each in PHASES if each in chosen):
            report = Path(folder, f"{number}.xml")
            phases.append(run(name, report))
            tests += tests_of(report)
            if not phases[-1].succeeded:
                break
    print("\n=== durations")
    for phase in phases:
        print(f"{_clock(phase.seconds)}  {phase.name}")
    for test in sorted(tests, key=lambda each: -each.seconds)[:SLOWEST]:
        print(f"{test.seconds:7.1f} s  {test.name}")
    print(summary(phases, tests))
    return 0 if all(phase.succeeded for phase in phases) else 1


if __name__ == "__main__":
    sys.exit(main())
