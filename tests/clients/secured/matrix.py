"""The matrix of clients and ways, one node at a time; and what a failure is, apart from its place.

A cell of a good way has scenarios that produce, consume, join a group and change topics. A cell of
a bad way has one that asks for the brokers; its failure is compared between the makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import NamedTuple

from tests.clients.registry import CLIENTS, Client
from tests.clients.running import Result, run_client
from tests.clients.secured.ways import Way, Ways, reason_against

__all__ = ["GOOD_SCENARIOS", "Cell", "cell", "cells", "differences", "failure_of", "is_alike"]

GOOD_SCENARIOS = ("metadata", "keys", "group", "topics")
BAD_SCENARIOS = ("connect",)
_PATIENCE_S = "10"
_LATE_S = 2.0
_KIND = re.compile(
    r"\w+Error\b|\bcode=\w+|SASL authentication error: [\w ]*|certificate verify failed"
)
_DEVIATION = re.compile(
    r"alert (bad certificate|certificate (required|expired|unknown)): SSL alert number \d+"
    r"|tls: (bad certificate|certificate required|(expired|unknown) certificate)"
    r"|self-signed certificate in certificate chain|unable to verify the first certificate"
)
"""Words for what DEVIATIONS.md says of alerts and chains."""
_CHANGING = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+")

Failure = tuple[str, frozenset[str]]
"""What was raised, and the kinds of errors beside it."""


class Cell(NamedTuple):
    """A client on one way, and what became of its scenarios."""

    client: str
    way: str
    is_good: bool
    results: dict[str, Result]
    reason: str | None = None
    """Why the client cannot go this way."""

    @property
    def is_as_wanted(self) -> bool:
        """Whether it works where it has to, and fails where it has to."""
        if self.reason is not None:
            return True
        if self.is_good:
            return all(each.green for each in self.results.values())
        return all(each.status == "fail" for each in self.results.values())

    def as_json(self) -> dict[str, object]:
        """Return the cell for a machine."""
        results = {name: asdict(result) for name, result in self.results.items()}
        return {**self._asdict(), "results": results, "is_as_wanted": self.is_as_wanted}


def cells(
    ways: Ways, clients: Iterable[str], only: str = "", *, has_good: bool = True
) -> Iterator[Cell]:
    """Run every client on every way whose name has the text `only`."""
    for way in [*(ways.good() if has_good else ()), *ways.bad()]:
        for name in clients:
            if only in way.name:
                yield cell(ways, CLIENTS[name], way)


@cache
def _built(name: str) -> list[str]:
    """Return how a client's harness is started, which is built once."""
    return CLIENTS[name].command()


def cell(ways: Ways, client: Client, way: Way, scenarios: Sequence[str] = ()) -> Cell:
    """Run one client on one way, by default through all scenarios of such a way."""
    reason = reason_against(client.name, way)
    if reason is not None:
        return Cell(client.name, way.name, way.is_good, {}, reason)
    told = replace(
        client,
        command=lambda: _built(client.name),
        environment={**client.environment, **ways.environment(way)},
    )
    if not way.is_good:
        told.environment["OPERATION_SECONDS"] = _PATIENCE_S
    prefix = re.sub(r"[^a-z0-9]+", "-", f"{client.name} {way.name}".lower())
    wanted = scenarios or (GOOD_SCENARIOS if way.is_good else BAD_SCENARIOS)
    found = run_client(told, ways.address(way), prefix, wanted)
    return Cell(client.name, way.name, way.is_good, found)


def is_alike(one: Failure, other: Failure) -> bool:
    """Whether two failures are the same; by chance a client says less of one."""
    return one[0] == other[0] and (one[1] <= other[1] or other[1] <= one[1])


def failure_of(result: Result) -> Failure:
    """Return a failure without addresses, ids and times, and the kinds of errors heard beside it.

    How often a client says so, and in which order, is up to chance.
    """
    raised, *heard = _CHANGING.sub("N", _DEVIATION.sub("a certificate", result.detail)).split(" | ")
    return raised, frozenset(kind for text in heard for kind in _KIND.findall(text))


def differences(ours: Iterable[Cell], theirs: Iterable[Cell]) -> list[str]:
    """Return a line for each failure of another kind than Apache's, or of another time."""
    by_place = {(cell.way, cell.client): cell for cell in theirs}
    found = []
    for cell in ours:
        other = by_place[cell.way, cell.client]
        for name, result in cell.results.items():
            against = other.results[name]
            place = f"{cell.client}, {cell.way}, {name}"
            if not is_alike(failure_of(result), failure_of(against)):
                found.append(f"{place}: ours {result.detail!r}, Apache's {against.detail!r}")
            elif not cell.is_good and result.seconds > 2 * against.seconds + _LATE_S:
                found.append(f"{place}: ours {result.seconds} s, Apache's {against.seconds} s")
    return found
