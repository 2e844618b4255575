"""What the `topics` verbs share: where they connect to, how they print, and how they end."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table

from kraft_wire.cli.topics.admin import AdminRefused
from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.wire.message import UnencodableMessage

__all__ = [
    "LOCAL",
    "AsJson",
    "Bootstrap",
    "Name",
    "WrongInput",
    "complain",
    "connected",
    "new_table",
    "numbers",
    "print_json",
    "print_table",
    "read",
]

_REFUSED: Final = 1
_COULD_NOT_RUN: Final = 2
_WIDTH: Final = 10_000
"""A file or a pipe gets whole lines, however long."""

LOCAL: Final = "127.0.0.1:9092"
Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server", "-b", help="A broker, as host:port.", envvar="KRAFT_WIRE_BOOTSTRAP"
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(help="The topic.")]


class WrongInput(Exception):
    """An argument is not of its form; the text is one line."""


@contextmanager
def connected(address: str) -> Iterator[BrokerConnection]:
    """Connect; every problem ends the command with one line and the exit code of its kind."""
    try:
        with BrokerConnection(address) as connection:
            yield connection
    except AdminRefused as refused:
        complain(refused)
        raise typer.Exit(_REFUSED) from refused
    except (BrokerConnectionError, UnencodableMessage) as problem:
        complain(problem)
        raise typer.Exit(_COULD_NOT_RUN) from problem


@contextmanager
def read() -> Iterator[None]:
    """Read arguments; a wrong one ends the command before anybody is asked."""
    try:
        yield
    except WrongInput as problem:
        complain(problem)
        raise typer.Exit(_COULD_NOT_RUN) from problem


def numbers(values: Sequence[int], nothing: str = "none") -> str:
    """Return ids as they stand in a table."""
    return " ".join(map(str, values)) or nothing


def new_table(*columns: str) -> Table:
    """Return an empty table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table."""
    width = None if sys.stdout.isatty() else _WIDTH
    Console(width=width, highlight=False).print(table)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def complain(problem: object) -> None:
    """Say what went wrong."""
    sys.stderr.write(f"kraft-wire topics: {problem}\n")
