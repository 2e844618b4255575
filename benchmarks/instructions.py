"""`make instructions` (`python -m benchmarks.instructions`): instructions of each hot path.

Counts with cachegrind what `Node.receive` executes from a frame to its framed answer, and compares
the counts with the budgets in `instructions.json`. A count does not depend on the load of the
machine: two runs differ by less than 0.5 %. It depends on the interpreter, which the budgets name;
with another one nothing is counted.

Exit codes: 0 within the budgets, or not comparable here; 1 over a budget, or a failed run.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.instructions_cases import CASES

__all__ = ["Budgets", "Row", "count", "load_budgets", "main", "not_comparable", "rows_of"]

BUDGETS: Final = Path(__file__).with_suffix(".json")
GROWTH_MAX: Final = 1.03
"""Count / budget above which a case fails."""
_STALE: Final = 0.97
"""Count / budget below which the budget should be lowered."""
_CHECKOUT: Final = Path(__file__).resolve().parents[1]
_REQUESTS: Final = 100
_SECONDS_MAX: Final = 600


@dataclass(frozen=True)
class Budgets:
    """What the cases may cost, and with which interpreter that was counted."""

    interpreter: str
    machine: str
    instructions: Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """One case."""

    name: str
    instructions: int
    """A request's."""
    budget: int | None
    """None where the case has no budget yet."""

    @property
    def ratio(self) -> float | None:
        """Count / budget."""
        return None if self.budget is None else round(self.instructions / self.budget, 4)

    @property
    def is_over(self) -> bool:
        """Whether the case costs more than its budget allows, or has no budget."""
        return self.budget is None or self.instructions > self.budget * GROWTH_MAX

    @property
    def verdict(self) -> str:
        """The last column of the table."""
        if self.budget is None:
            return "NO BUDGET"
        if self.is_over:
            return "OVER BUDGET"
        return "below" if self.instructions < self.budget * _STALE else "ok"


def load_budgets() -> Budgets:
    """Return the budgets of the repository."""
    return Budgets(**json.loads(BUDGETS.read_text()))


def not_comparable(budgets: Budgets) -> str | None:
    """Return why counts made here cannot be compared with the budgets, None when they can."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed (apt-get install valgrind)"
    here = (sys.version, platform.machine())
    if here != (budgets.interpreter, budgets.machine):
        return (
            f"the budgets are for Python {budgets.interpreter} on {budgets.machine}, "
            f"this is {here[0]} on {here[1]}"
        )
    return None


def count(names: list[str], requests: int = _REQUESTS) -> dict[str, int]:
    """Return the instructions of a request of each case; RuntimeError where the run fails."""
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(_CHECKOUT)}
    with tempfile.TemporaryDirectory(prefix="kraft-wire-instructions-") as folder:
        counts, data = Path(folder, "counts"), Path(folder, "data")
        counts.mkdir()
        data.mkdir()
        command = [
            *("valgrind", "--tool=cachegrind", "--cache-sim=no"),
            f"--cachegrind-out-file={counts}/%p",
            *(sys.executable, "-m", "benchmarks.instructions_forks"),
            *(str(data), str(requests), *names),
        ]
        done = subprocess.run(
            command,
            cwd=_CHECKOUT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        processes: dict[str, list[int]] = json.loads(done.stdout)
        totals = {
            name: [_total(counts / str(process)) for process in pair]
            for name, pair in processes.items()
        }
    return {name: round((more - less) / requests) for name, (less, more) in totals.items()}


def _total(path: Path) -> int:
    """Return the instructions of a process, which are the last line of cachegrind's file."""
    name, _, total = path.read_text().splitlines()[-1].partition(":")
    assert name == "summary", path
    return int(total)


def rows_of(counted: Mapping[str, int], budgets: Mapping[str, int]) -> list[Row]:
    """Return a row for each count."""
    return [Row(name, found, budgets.get(name)) for name, found in counted.items()]


def _print_table(rows: list[Row], console: Console) -> None:
    table = Table("request", "instructions", "budget", "ratio", "")
    for column in table.columns[1:4]:
        column.justify = "right"
    for row in rows:
        budget = "-" if row.budget is None else f"{row.budget:,}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
        table.add_row(row.name, f"{row.instructions:,}", budget, ratio, row.verdict)
    console.print(table)


def _write(counted: Mapping[str, int], kept: Mapping[str, int]) -> None:
    """Make the counts the budgets; cases that were not counted keep theirs."""
    merged = {name: counted.get(name, kept.get(name)) for name in CASES}
    known = {name: found for name, found in merged.items() if found is not None}
    budgets = Budgets(sys.version, platform.machine(), known)
    BUDGETS.write_text(json.dumps(asdict(budgets), indent=2) + "\n")


def main() -> int:
    """Count, compare, print; with `--write` the counts become the budgets."""
    parser = argparse.ArgumentParser(prog="make instructions")
    parser.add_argument("--only", default="", metavar="NAME", help="cases whose name contains this")
    parser.add_argument("--write", action="store_true", help="make the counts the new budgets")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    console = Console(stderr=arguments.json, highlight=False, soft_wrap=True)
    budgets = load_budgets()
    reason = not_comparable(budgets)
    if reason is not None and not (arguments.write and shutil.which("valgrind")):
        console.print(f"not counted: {reason}", markup=False)
        return 0
    counted = count([name for name in CASES if arguments.only in name])
    rows = rows_of(counted, budgets.instructions)
    _print_table(rows, console)
    if arguments.json:
        print(json.dumps({"rows": [{**asdict(row), "ratio": row.ratio} for row in rows]}))
    if arguments.write:
        _write(counted, budgets.instructions)
        return 0
    return 1 if any(row.is_over for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
