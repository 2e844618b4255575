"""`python -m tests.mixed [--only NAME] [--cycles N] [--minutes M] [--seed S] [--keep DIR]`.

Runs the scenarios, printing each step, then a chaos run of 2+1 and of 1+2 controllers with as many
cycles as asked for, then a table of what was shown. Exit code 1 when anything failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.apache.jars import RELEASE
from tests.mixed.chaos import Chaos, Verdict
from tests.mixed.scenarios import SCENARIOS
from tests.mixed.steps import Steps

APACHE = RELEASE
QUORUMS = {
    "chaos-2+1": {1: APACHE, 2: APACHE, 3: "ours"},
    "chaos-1+2": {1: APACHE, 2: "ours", 3: "ours"},
    "chaos-3+0": {1: APACHE, 2: APACHE, 3: APACHE},
}
"""The last one, Apache's alone, is what the errors of the others are compared with."""
ALONE = "chaos-3+0"
NO_ERRORS = "Apache's controllers wrote no error that they do not write among themselves"


def say(line: str) -> None:
    """Print a step with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, flush=True)


def run_chaos(name: str, home: Path, arguments: argparse.Namespace) -> Verdict:
    """Run one of QUORUMS."""
    chaos = Chaos(home, QUORUMS[name], arguments.seed, say)
    return chaos.run(arguments.cycles, arguments.minutes * 60)


def foreign_errors(verdicts: dict[str, Verdict]) -> list[str]:
    """What Apache's controllers wrote as an error beside ours, and never among themselves."""
    if ALONE not in verdicts:
        return []
    own = verdicts[ALONE].errors
    return [
        f"{name}: x{count} {line}"
        for name, verdict in verdicts.items()
        for line, count in verdict.errors.items()
        if line not in own
    ]


def run_scenario(name: str, home: Path) -> tuple[bool, str]:
    """Run one of SCENARIOS."""
    steps = Steps(name, say)
    SCENARIOS[name](home, steps)
    return True, "\n".join(steps.figures)


def main() -> int:
    """Run what is asked for; the table comes last."""
    parser = argparse.ArgumentParser(prog="make mixed")
    parser.add_argument("--only", action="append", help="a scenario; several may be given")
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60.0, help="of each chaos run, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for directories and logs")
    arguments = parser.parse_args()
    names = arguments.only or [*SCENARIOS, *QUORUMS]
    table = Table("scenario", "held", "seconds", "figures")
    is_good = True
    verdicts: dict[str, Verdict] = {}
    with tempfile.TemporaryDirectory(prefix="mixed-") as scratch:
        for name in names:
            home = (arguments.keep or Path(scratch)) / name
            began = time.monotonic()
            say(f"== {name}")
            try:
                if name in QUORUMS:
                    verdict = verdicts[name] = run_chaos(name, home, arguments)
                    held, figures = verdict.is_good, "\n".join(verdict.lines())
                else:
                    held, figures = run_scenario(name, home)
            except AssertionError as problem:
                held, figures = False, str(problem)[:1500]
                say(str(problem))
            is_good &= held
            seconds = time.monotonic() - began
            table.add_row(name, "yes" if held else "NO", f"{seconds:.0f}", figures)
    foreign = foreign_errors(verdicts)
    if ALONE in verdicts:
        table.add_row("errors", "NO" if foreign else "yes", "", "\n".join(foreign) or NO_ERRORS)
    is_good &= not foreign
    Console(width=150).print(table)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
