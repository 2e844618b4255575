"""The matrix of clients and ways, one node at a time; and what a failure is, apart from its place.

A cell of a good way has scenarios that produce, consume, join a group and change topics. A cell of
a bad way has one that asks for the brokers; its failure is compared between the makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import NamedTuple

from tests.clients.registry import CLIENTS, Client
from tests.clients.running import Result, run_client
from tests.clients.secured.ways import Way, Ways, reason_against

__all__ = ["GOOD_SCENARIOS", "Cell", "cells", "differences", "failure_of"]

GOOD_SCENARIOS = ("metadata", "keys", "group", "topics")
BAD_SCENARIOS = ("connect",)
_PATIENCE_S = "10"
_LATE_S = 2.0
_KIND = re.compile(
    r"\w+Error\b|\bcode=\w+|SASL authentication error: [\w ]*|certificate verify failed"
)
_CHANGING = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8,}|\d+")


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
    good = [(way, True) for way in ways.good()] if has_good else []
    for way, is_good in [*good, *((way, False) for way in ways.bad())]:
        for name in clients:
            if only in way.name:
                yield _cell(ways, CLIENTS[name], way, is_good=is_good)


def _cell(ways: Ways, client: Client, way: Way, *, is_good: bool) -> Cell:
    reason = reason_against(client.name, way)
    if reason is not None:
        return Cell(client.name, way.name, is_good, {}, reason)
    told = replace(client, environment={**client.environment, **ways.environment(way)})
    if not is_good:
        told.environment["OPERATION_SECONDS"] = _PATIENCE_S
    prefix = re.sub(r"[^a-z0-9]+", "-", f"{client.name} {way.name}".lower())
    scenarios = GOOD_SCENARIOS if is_good else BAD_SCENARIOS
    return Cell(
        client.name, way.name, is_good, run_client(told, ways.address(way), prefix, scenarios)
    )


def failure_of(result: Result) -> tuple[str, frozenset[str]]:
    """Return a failure without addresses, ids and times, and the kinds of errors heard beside it.

    How often a client says so, and in which order, is up to chance.
    """
    raised, *heard = _CHANGING.sub("N", result.detail).split(" | ")
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
            if failure_of(result) != failure_of(against):
                found.append(f"{place}: ours {result.detail!r}, Apache's {against.detail!r}")
            elif not cell.is_good and result.seconds > 2 * against.seconds + _LATE_S:
                found.append(f"{place}: ours {result.seconds} s, Apache's {against.seconds} s")
    return found
