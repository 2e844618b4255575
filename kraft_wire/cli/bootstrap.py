"""Where a command begins: one pair of options, one default and one pair of variables for all verbs.

`--bootstrap-server` names brokers and `--bootstrap-controller` controllers, as in Kafka's tools.
Without either it is KRAFT_WIRE_BOOTSTRAP_SERVER (KRAFT_WIRE_BOOTSTRAP is an older name), else
127.0.0.1:9092.
"""

import os
from typing import Annotated, Final

import typer

from kraft_wire.client import BrokerConnection, BrokerConnectionError, split_address

__all__ = [
    "LOCAL",
    "Bootstrap",
    "Controllers",
    "Servers",
    "addresses_of",
    "connect_any",
    "given_or_default",
]

LOCAL: Final = "127.0.0.1:9092"
_SERVER_VARIABLES: Final = ["KRAFT_WIRE_BOOTSTRAP_SERVER", "KRAFT_WIRE_BOOTSTRAP"]
_CONTROLLER_VARIABLE: Final = "KRAFT_WIRE_BOOTSTRAP_CONTROLLER"

Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help="Brokers to start from.",
        envvar=_SERVER_VARIABLES,
    ),
]
Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help=f"Brokers to start from (default: {_SERVER_VARIABLES[0]}, else {LOCAL}).",
    ),
]
Controllers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        "-c",
        metavar="HOST:PORT,...",
        help=f"Controllers to start from (default: {_CONTROLLER_VARIABLE}).",
    ),
]


def given_or_default(controllers: str | None, servers: str | None) -> tuple[str | None, str | None]:
    """Return the controllers or the servers as bootstrap addresses, None for the other.

    Errors: BrokerConnectionError if both are given.
    """
    if controllers is not None and servers is not None:
        raise BrokerConnectionError("give one of --bootstrap-controller and --bootstrap-server")
    if controllers is not None or servers is not None:
        return controllers, servers
    named = next((os.environ[name] for name in _SERVER_VARIABLES if os.environ.get(name)), None)
    controllers = os.environ.get(_CONTROLLER_VARIABLE) or None
    if named is None and controllers is not None:
        return controllers, None
    return None, named or LOCAL


def addresses_of(text: str) -> tuple[str, ...]:
    """Split `host:port,host:port`. Errors: BrokerConnectionError, one line."""
    addresses = tuple(each.strip() for each in text.split(",") if each.strip())
    if not addresses:
        raise BrokerConnectionError("the list of addresses is empty: host:port[,host:port...]")
    for each in addresses:
        split_address(each)
    return addresses


def connect_any(text: str) -> BrokerConnection:
    """Connect to the first address that answers. Errors: BrokerConnectionError, one line."""
    problems = []
    for address in addresses_of(text):
        try:
            return BrokerConnection(address)
        except BrokerConnectionError as problem:
            problems.append(str(problem))
    raise BrokerConnectionError("; ".join(problems))
