"""`python -m tests.everything`: all that must pass, with every judge; behind `make test-all`.

Phases run one after the other, and a phase that fails does not keep the others from running: one
run names every test that fails. Only where the checks cannot even run a test does nothing follow.
The simulators and their tests run beside the other phases, with the processors that those leave to
them while they wait for judges and clocks.
No test runs twice: the queue of tests leaves out what the checks and the coverage have run. Tests
that compute and tests that wait for judges are in one queue, with more workers than processors. At
the end the time of each phase, the longest files and tests, why each test failed, and in the last
line how many passed.

A few failed tests that start other programs run again, alone (`tests.unsteady`).

`--write-durations` keeps the time of each file, so that parallel workers begin with the longest.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from tests.check import TIDY_TESTS
from tests.junit_reports import FAILURES, Timed, read_report, seconds_by_file
from tests.unsteady import UNSTEADY, run_again

CHECKOUT = Path(__file__).resolve().parents[1]
SLOWEST = 10
DURATIONS = CHECKOUT / "tests" / "durations.json"
"""Seconds by file, of those that take long, of a run on two processors."""
LONG_S = 10.0

COVERED = (
    "tests/wire",
    "tests/storage",
    "tests/golden/test_corpus.py",
    "tests/kips/test_transactions_storage.py",
)
"""What `make coverage` runs."""

SIMULATED = ("tests/sim",)
"""What `make test-simulated` runs."""

REPORT = "--junitxml="
REST = " ".join(f"--ignore={path}" for path in (*TIDY_TESTS, *COVERED, *SIMULATED))

PHASES: dict[str, list[str]] = {
    "checks": ["make", "check", f"ARGS={REPORT}"],
    "simulated quorums": ["make", "sim", "SEEDS=0:40"],
    "simulated clusters": ["make", "sim-clusters", "SEEDS=1500:1506"],
    "tests of the simulators": ["make", "test-simulated", f"ARGS={REPORT}"],
    "coverage": ["make", "coverage", f"ARGS={REPORT}"],
    "tests": ["make", "test-together", f"ARGS={REST} {REPORT}"],
    "tests that run alone": ["make", "test-alone", f"ARGS={REST} {REPORT}"],
}
"""Commands; one that runs pytest ends with where pytest writes its report."""

FIRST = "checks"

PHASE_SECONDS_MAX = 60 * 60
"""For a hang: what has run is reported, and the next phase runs."""

END_SECONDS_MAX = 60
"""For pytest to print what failed."""

BESIDE = ("simulated quorums", "simulated clusters", "tests of the simulators")
"""They begin after the checks, and give way to every other program."""
ALONE = "tests that run alone"
AGAIN = ("tests", ALONE)
"""Phases whose failed tests may run again."""
YIELDING = (sys.executable, "-m", "tests.yielding")

OF_MAKE = frozenset({"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARGS"})
"""How a make hands its own variables to the makes below it, which here have others."""

RECIPE_FAILED = 2
"""Exit code of make."""

WORDS = ("failed", "passed", "skipped", "error", UNSTEADY)
"""In the order of pytest's last line."""


@dataclass(frozen=True, slots=True)
class Phase:
    """How one phase ended."""

    name: str
    seconds: float
    exit_code: int | None
    """0 if it succeeded, None if it was ended."""
    tests: Sequence[Timed] = ()

    @property
    def succeeded(self) -> bool:
        """Whether nothing failed but tests that passed alone."""
        outcomes = {each.outcome for each in self.tests}
        is_only_unsteady = UNSTEADY in outcomes and not outcomes & FAILURES
        return self.exit_code == 0 or (self.exit_code == RECIPE_FAILED and is_only_unsteady)


def run(name: str, report: Path) -> Phase:
    """Run one phase."""
    print(f"\n=== {name}", flush=True)
    return _timed_run(name, PHASES[name], report, None)


def run_beside(name: str, report: Path) -> Phase:
    """Run one phase beside others, and print what it has written at its end."""
    with TemporaryFile("w+") as output:
        phase = _timed_run(name, [*YIELDING, *PHASES[name]], report, output)
        output.seek(0)
        print(f"\n=== {name}, beside the others\n{output.read()}", flush=True)
    return phase


def _timed_run(name: str, words: Sequence[str], report: Path, output: IO[str] | None) -> Phase:
    command = [each + str(report) if each.endswith(REPORT) else each for each in words]
    environment = {key: value for key, value in os.environ.items() if key not in OF_MAKE}
    started, was_ended = time.monotonic(), False
    process = subprocess.Popen(
        command, cwd=CHECKOUT, env=environment, start_new_session=True, stdout=output, stderr=output
    )
    try:
        process.wait(PHASE_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        was_ended = True
        print(f"\n{name}: no end within {PHASE_SECONDS_MAX} s", flush=True)
    finally:
        _end(process)
    exit_code = None if was_ended else process.returncode
    return Phase(name, time.monotonic() - started, exit_code, read_report(report))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a phase that still runs; pytest reports its results. Kill it if it goes on."""
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_SECONDS_MAX)


def run_all(chosen: Sequence[str], folder: Path) -> list[Phase]:
    """Run phases, each with its report in a folder."""
    phases: list[Phase] = []
    beside: list[Future[Phase]] = []
    reports = {name: folder / f"{number}.xml" for number, name in enumerate(PHASES)}
    with ThreadPoolExecutor(1) as simulators:
        for name in sorted(chosen, key=_place):
            if name in BESIDE:
                beside.append(simulators.submit(run_beside, name, reports[name]))
                continue
            phases.append(run(name, reports[name]))
            if name == FIRST and not phases[-1].succeeded and not phases[-1].tests:
                break
    phases += [each.result() for each in beside]
    return [_judged_again(each, folder) if each.name in AGAIN else each for each in phases]


def _judged_again(phase: Phase, folder: Path) -> Phase:
    report = folder / f"again-{_place(phase.name)}.xml"
    return replace(phase, tests=run_again(phase.tests, CHECKOUT, report))


def _place(name: str) -> int:
    return list(PHASES).index(name)


def write_durations(tests: Sequence[Timed]) -> None:
    """Keep the time of each file that takes long."""
    rounded = {file: round(seconds) for file, seconds in seconds_by_file(tests).items()}
    long = {file: seconds for file, seconds in rounded.items() if seconds >= LONG_S}
    DURATIONS.write_text(json.dumps(long, indent=2) + "\n", encoding="utf-8")


def summary(phases: Sequence[Phase], tests: Sequence[Timed], seconds: float) -> str:
    """One line as pytest writes it, of all phases together, after the phase that failed."""
    counts = Counter(each.outcome for each in tests)
    told = [f"{counts[word]} {word}" for word in WORDS if counts[word]] or ["no tests ran"]
    failed = [f"{phase.name}: FAILED, " for phase in phases if not phase.succeeded]
    return f"{''.join(failed)}{', '.join(told)} in {seconds:.2f}s ({_clock(seconds)})"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the phases, and print what took how long."""
    parser = argparse.ArgumentParser(prog="python -m tests.everything", description=__doc__)
    parser.add_argument("--only", action="append", choices=PHASES, help="repeatable")
    parser.add_argument("--write-durations", action="store_true", help=f"into {DURATIONS.name}")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    with TemporaryDirectory() as folder:
        phases = run_all(options.only or list(PHASES), Path(folder))
    tests = [test for phase in phases for test in phase.tests]
    seconds = time.monotonic() - started
    if options.write_durations:
        write_durations(tests)
    print_durations(phases, tests)
    for test in tests:
        if test.outcome in FAILURES or test.outcome == UNSTEADY:
            print(f"{test.outcome.upper()} {test.name}: {test.reason}")
    print(summary(phases, tests, seconds))
    return 0 if all(phase.succeeded for phase in phases) else 1


def print_durations(phases: Sequence[Phase], tests: Sequence[Timed]) -> None:
    """Print the time of each phase, and of the longest files and tests."""
    print("\n=== durations")
    for phase in phases:
        print(f"{_clock(phase.seconds)}  {phase.name}{'' if phase.succeeded else ': FAILED'}")
    for file, seconds in list(seconds_by_file(tests).items())[:SLOWEST]:
        print(f"{seconds:7.1f} s  {file}")
    for test in sorted(tests, key=lambda each: -each.seconds)[:SLOWEST]:
        print(f"{test.seconds:7.1f} s  {test.name}")


if __name__ == "__main__":
    sys.exit(main())
