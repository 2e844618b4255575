"""`python -m tests.check`: what must hold before a test is worth running; behind `make check`.

Every step is a program of its own; as many run at a time as there are processors, the longest
first. The output of a step is shown only when it fails. Arguments go to the step that runs pytest.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(sys.executable).parent
STEP_SECONDS_MAX = 300

PYTHON = str(PROGRAMS / "python")
TIDY_TESTS = (
    "tests/test_tidy.py",
    "tests/test_error_orders.py",
    "tests/test_docs.py",
    "tests/test_words.py",
    "tests/test_time_as_argument.py",
    "tests/test_argument_names.py",
    "tests/test_import_contracts.py",
    "tests/mutants/test_catalogue.py",
    "tests/mutants/test_random_drawing.py",
    "tests/codegen",
)
PARALLEL = ("--numprocesses", "logical", "--maxprocesses", "4", "--dist", "loadfile")
TIDINESS = "tidiness and documents"

STEPS: dict[str, list[str]] = {
    "types": [str(PROGRAMS / "mypy")],
    TIDINESS: [PYTHON, "-m", "pytest", "-q", "--durations=0", *PARALLEL, *TIDY_TESTS],
    "generated code": [PYTHON, "-m", "codegen", "--check"],
    "import contracts": [str(PROGRAMS / "lint-imports")],
    "lint": [str(PROGRAMS / "ruff"), "check"],
    "format": [str(PROGRAMS / "ruff"), "format", "--check"],
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one step ended."""

    name: str
    seconds: float
    succeeded: bool
    output: str


def run_step(name: str) -> Outcome:
    """Run one step of the table."""
    started = time.monotonic()
    done = subprocess.run(
        [*STEPS[name], *(sys.argv[1:] if name == TIDINESS else ())],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=STEP_SECONDS_MAX,
        check=False,
    )
    seconds = time.monotonic() - started
    return Outcome(name, seconds, done.returncode == 0, done.stdout + done.stderr)


def main() -> int:
    """Run all steps, print a line for each, and the whole output of those that failed."""
    started = time.monotonic()
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as workers:
        outcomes = list(workers.map(run_step, STEPS))
    for outcome in outcomes:
        verdict = "ok" if outcome.succeeded else "FAILED"
        print(f"{outcome.name:24}{outcome.seconds:6.1f} s  {verdict}")
    for outcome in outcomes:
        if not outcome.succeeded:
            print(f"\n--- {outcome.name}\n{outcome.output}")
    print(f"{'in all':24}{time.monotonic() - started:6.1f} s")
    return 0 if all(outcome.succeeded for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
