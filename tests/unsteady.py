"""Runs a few failed tests again, alone: on a full machine another program may have been too slow.

Only tests that start programs get a second run (those marked as slow, or with a client or judge),
and only where few failed: a test of our code alone is the same run twice, and a change that breaks
much is reported at once. What passes alone is unsteady. It is reported with the reason of its
failure, so that it can be mended, but fails nothing.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.judges import PROGRAMS
from tests.junit_reports import FAILURES, Timed, read_report

__all__ = ["AGAIN_MAX", "UNSTEADY", "run_again"]

UNSTEADY = "unsteady"
"""The outcome of a test that failed, and then passed alone."""
AGAIN_MAX = 8
"""Failures of a phase up to which its failed tests run again.

Setups that fail in one file count as one: its tests share what they set up, such as a cluster.
"""
SECONDS_MAX = 10 * 60
START_PROGRAMS = " or ".join(["slow", "client", *PROGRAMS])


def run_again(tests: Sequence[Timed], checkout: Path, report: Path) -> list[Timed]:
    """Return the tests; the outcome of a failed one that passes alone is `UNSTEADY`."""
    failed = list(dict.fromkeys(each.name for each in tests if each.outcome in FAILURES))
    if not 0 < _failures_count(tests) <= AGAIN_MAX:
        return [*tests]
    print(f"\n=== again, alone: {', '.join(failed)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-m", START_PROGRAMS, f"--junitxml={report}"]
    try:
        subprocess.run([*command, *failed], cwd=checkout, check=False, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return [*tests]
    outcomes: dict[str, set[str]] = {}
    for each in read_report(report):
        outcomes.setdefault(each.name, set()).add(each.outcome)
    return [
        replace(each, outcome=UNSTEADY)
        if each.outcome in FAILURES and outcomes.get(each.name) == {"passed"}
        else each
        for each in tests
    ]


def _failures_count(tests: Sequence[Timed]) -> int:
    failed = {each.name for each in tests if each.outcome == "failed"}
    files = {each.file for each in tests if each.outcome == "error" and each.name not in failed}
    return len(failed) + len(files)
