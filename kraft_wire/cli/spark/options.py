"""The shared parts of the verbs of `kraft-wire spark`: options and refusals.

Nothing here or in a verb's module imports Spark at the top; a verb imports it inside `refusing()`,
which first checks that everything is installed.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Final, NoReturn

import typer
from rich.text import Text

from kraft_wire.cli.spark.doctor import missing, needed
from kraft_wire.cli.tables import new_table, print_table

__all__ = ["COULD_NOT_RUN", "Conf", "Jars", "Master", "print_rows", "refusing", "settings_of"]

COULD_NOT_RUN: Final = 2

Master = Annotated[
    str, typer.Option("--master", metavar="URL", help="Spark's master, as spark-submit takes it.")
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting; may be repeated."),
]
Jars = Annotated[
    str | None, typer.Option("--jars", metavar="FILES", help="Comma-separated jars for Spark.")
]


def settings_of(conf: Sequence[str] | None, option: str = "--conf") -> dict[str, str]:
    """Return the settings of a repeated option; one without `=` ends the verb."""
    settings: dict[str, str] = {}
    for each in conf or ():
        key, equals, value = each.partition("=")
        if not equals or not key.strip():
            _refuse(f"{option} {each!r} is not KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


@contextmanager
def refusing(jars: str | None = None) -> Iterator[list[str]]:
    """Run a verb's body; an error becomes one line and exit code 2. Yields the jars as a list.

    Java and the packages of the extra are checked before the body may import them.
    """
    chosen = [each.strip() for each in (jars or "").split(",") if each.strip()]
    for line in missing(needed(chosen)):
        _refuse(f"{line} (see kraft-wire spark doctor)")
    from kraft_wire.spark.failure import PipelineError, translated

    try:
        with translated():
            yield chosen
    except PipelineError as error:
        _refuse(str(error))


def print_rows(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """End a verb with a table; whole numbers are right-aligned, with commas."""
    table = new_table(*heads)
    for at, column in enumerate(table.columns):
        is_number = bool(rows) and all(isinstance(row[at], int) for row in rows)
        column.justify = "right" if is_number else "left"
    for row in rows:
        cells = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        table.add_row(*map(Text, cells))
    print_table(table)


def _refuse(line: str) -> NoReturn:
    sys.stderr.write(f"kraft-wire spark: {line}\n")
    raise typer.Exit(COULD_NOT_RUN)
