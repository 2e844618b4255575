"""``make golden``: vectors of a fresh seed from Apache's classes, and the table of our answers.

``python -m tests.golden [--seed N] [--vectors 5] [--malformed 2]``. Exit code 0 means that every
single answer was Apache's, 1 that one was not, 2 that Apache's classes could not be run.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

from tests.apache import jars
from tests.apache.java_process import JavaFailed
from tests.golden.batches import compare_built_batches
from tests.golden.comparison import Comparison, compare
from tests.golden.generate import generate

COLUMNS = (
    ("kind", "left"),
    ("names", "right"),
    ("versions", "right"),
    ("vectors", "right"),
    ("decode", "right"),
    ("json", "right"),
    ("encode", "right"),
    ("objects", "right"),
    ("accepts", "right"),
    ("refuses", "right"),
    ("with byte", "right"),
    ("other json", "right"),
)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--vectors", type=int, default=5, help="good ones per message and version")
    parser.add_argument("--malformed", type=int, default=2, help="spoiled ones likewise")
    return parser.parse_args()


def print_table(console: Console, result: Comparison) -> None:
    """One row per kind, one for all."""
    table = Table(title=f"kraft_wire against the classes of Apache Kafka {jars.RELEASE}")
    for name, justify in COLUMNS:
        table.add_column(name, justify="left" if justify == "left" else "right")
    for name, kind in sorted(result.kinds.items()):
        figures = [len(kind.names), len(kind.versions), kind.vectors, *kind.tallies()]
        table.add_row(name, *map(str, figures))
    kinds = list(result.kinds.values())
    totals = [
        sum(len(kind.names) for kind in kinds),
        sum(len(kind.versions) for kind in kinds),
        sum(kind.vectors for kind in kinds),
    ]
    sums = [
        f"{sum(t.right for t in column)}/{sum(t.asked for t in column)}"
        for column in zip(*(kind.tallies() for kind in kinds), strict=True)
    ]
    table.add_section()
    table.add_row("all", *map(str, totals), *sums)
    console.print(table)


def main() -> int:
    """Generate, compare, print."""
    wanted = arguments()
    console = Console(width=165)
    path = jars.CHECKOUT / "var" / "golden" / f"seed-{wanted.seed}.jsonl"
    started = time.monotonic()
    try:
        generate(
            path,
            seed=wanted.seed,
            per_version=wanted.vectors,
            malformed=wanted.malformed,
            large=True,
        )
    except (JavaFailed, jars.JarsMissing, FileNotFoundError, subprocess.TimeoutExpired) as problem:
        console.print(f"could not run: {problem}", markup=False)
        return 2
    result = compare(path)
    built = compare_built_batches(path)
    print_table(console, result)
    for difference in [*result.problems, *built.problems]:
        console.print(difference, markup=False)
    console.print(
        f"seed {wanted.seed}, {time.monotonic() - started:.0f} s; "
        f"batches that we built and Apache read: {built.tally}",
        markup=False,
    )
    if result.perfect and not built.problems:
        path.unlink()
        return 0
    console.print(f"the vectors are kept in {path}", markup=False)
    return 1


if __name__ == "__main__":
    sys.exit(main())
