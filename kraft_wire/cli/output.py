"""How every verb prints and ends: one table style, one JSON style, one exit code per kind of error.

Tables are those of `kraft_wire.cli.tables`. JSON keys are
snake_case, times are in milliseconds (`..._ms`). Exit codes: 0 done, 1 refused by the cluster,
2 could not run.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from kraft_wire.cli.bootstrap import addresses_of, connect_any, given_or_default
from kraft_wire.cli.tables import new_table, print_table, wide_console
from kraft_wire.client import BrokerConnection, BrokerConnectionError
from kraft_wire.client.cluster import ClusterClient, ClusterRefused, ClusterSettings
from kraft_wire.client.refused import AdminRefused
from kraft_wire.wire.message import UnencodableMessage

__all__ = [
    "AsJson",
    "WrongInput",
    "administered",
    "clustered",
    "complain",
    "connected",
    "counted",
    "new_table",
    "numbers",
    "one_topic",
    "print_json",
    "print_table",
    "refusals",
    "wide_console",
]

_REFUSED: Final = 1
_COULD_NOT_RUN: Final = 2

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class WrongInput(Exception):
    """An argument is not of its form; the text is one line."""


@contextmanager
def refusals(verb: str) -> Iterator[None]:
    """Turn every problem into one line on standard error and the exit code of its kind."""
    try:
        yield
    except (AdminRefused, ClusterRefused) as refused:
        complain(verb, refused)
        raise typer.Exit(_REFUSED) from refused
    except (WrongInput, BrokerConnectionError, UnencodableMessage) as problem:
        complain(verb, problem)
        raise typer.Exit(_COULD_NOT_RUN) from problem


@contextmanager
def connected(verb: str, addresses: str) -> Iterator[BrokerConnection]:
    """Connect to any of the addresses; every problem ends the command as in `refusals`."""
    with refusals(verb), connect_any(addresses) as connection:
        yield connection


@contextmanager
def administered(
    verb: str, servers: str | None, controllers: str | None
) -> Iterator[BrokerConnection]:
    """Connect to any of the brokers, or of the controllers; problems as in `refusals`."""
    with refusals(verb):
        controllers, servers = given_or_default(controllers, servers)
        with connect_any(controllers or servers or "") as connection:
            yield connection


@contextmanager
def clustered(verb: str, addresses: str, *, seconds: float = 30.0) -> Iterator[ClusterClient]:
    """Connect to a cluster, and retry passing errors for `seconds`; problems as in `refusals`."""
    with refusals(verb):
        settings = ClusterSettings(addresses_of(addresses), deadline_seconds=seconds)
        with ClusterClient(settings) as cluster:
            cluster.any_broker()
            yield cluster


def one_topic(argument: str | None, option: str | None) -> str:
    """Return the topic of a command that takes it in either way. Errors: WrongInput."""
    if argument is not None and option not in (None, argument):
        raise WrongInput(f"two topics are given: {argument} and {option}")
    topic = argument or option
    if not topic:
        raise WrongInput("give a topic")
    return topic


def numbers(values: Sequence[int], nothing: str = "none") -> str:
    """Return ids as a table shows them."""
    return " ".join(map(str, values)) or nothing


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 node`, `2 nodes`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def complain(verb: str, problem: object) -> None:
    """Print one line on standard error."""
    sys.stderr.write(f"kraft-wire {verb}: {problem}\n")
