"""`python -m mutants [--only ID ...] [--jobs N] [--json]`: kill every mutant of the catalogue.

Prints a table: what each mutant is, what killed it, and how many seeds, states or tests that took.
Exit code 0 when all are dead, 1 when one lives (or its code moved), 2 for wrong arguments.
"""

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from statistics import median

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from mutants.campaign import Result, run_all
from mutants.catalogue import Mutant, load_all

__all__ = ["main"]

_WIDTH = 170
"""Of the table, where it goes into a file."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign."""
    parser = ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="repeatable")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--json", action="store_true", help="figures as one JSON object")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error("--jobs is at least 1")
    catalogue = load_all()
    wanted = [one.upper() for each in options.only for one in each.split(",")]
    unknown = [one for one in wanted if one not in {each.id.upper() for each in catalogue}]
    if unknown:
        parser.error(f"no mutant is named {', '.join(unknown)}")
    chosen = [one for one in catalogue if not wanted or one.id.upper() in wanted]
    console = Console(stderr=options.json)
    if not console.is_terminal:
        console.width = _WIDTH
    results = _run(console, chosen, options.jobs)
    console.print(_table(results))
    _tell(console, results)
    if options.json:
        print(json.dumps(_figures(results)))
    return int(not all(one.is_killed for one in results))


def _run(console: Console, chosen: Sequence[Mutant], jobs: int) -> list[Result]:
    columns = (
        TextColumn("mutants"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(chosen))

        def on_result(result: Result) -> None:
            progress.update(task, advance=1, description=f"{result.mutant.id} {result.state}")
            if not console.is_terminal:
                console.print(_line(result), markup=False, highlight=False, soft_wrap=True)

        return run_all(chosen, jobs, on_result)


def _line(result: Result) -> str:
    needed = f"{result.needed:,} {result.unit}" if result.unit else "-"
    return (
        f"{result.mutant.id:6} {result.state:9} {needed:>14} {result.seconds:6.1f} s  {result.by}"
    )


def _table(results: Sequence[Result]) -> Table:
    table = Table(title="Mutants")
    for column in ("id", "deliberate bug", "mirrors", "module", "killed by", "needed", "s"):
        table.add_column(column, justify="right" if column in ("needed", "s") else "left")
    for result in results:
        mutant = result.mutant
        table.add_row(
            mutant.id,
            escape(mutant.title),
            escape(mutant.mirrors),
            mutant.modules[0].removeprefix("kraft_wire."),
            escape(result.by if result.is_killed else f"{result.state.upper()} {result.by}"),
            f"{result.needed:,} {result.unit}",
            f"{result.seconds:.1f}",
            style=None if result.is_killed else "red",
        )
    return table


def _tell(console: Console, results: Sequence[Result]) -> None:
    """Print the totals, and for each survivor the line that runs it again."""
    figures = _figures(results)
    console.print(
        f"{figures['total']} mutants, {figures['killed']} killed, median "
        f"{figures['median_s']} s, slowest {figures['slowest']} with {figures['max_s']} s"
    )
    for result in results:
        if not result.is_killed:
            again = f"python -m mutants --only {result.mutant.id}"
            console.print(f"{again}: {result.state} {result.by}", markup=False, soft_wrap=True)


def _figures(results: Sequence[Result]) -> dict[str, object]:
    slowest = max(results, key=lambda one: one.seconds)
    return {
        "total": len(results),
        "killed": sum(one.is_killed for one in results),
        "median_s": round(median(one.seconds for one in results), 1),
        "max_s": round(slowest.seconds, 1),
        "slowest": slowest.mutant.id,
        "mutants": [one.figures() for one in results],
    }


if __name__ == "__main__":
    sys.exit(main())
