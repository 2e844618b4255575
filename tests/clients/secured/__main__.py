"""``make clients-secured``: every client × every protocol, mechanism and fault, on one node.

``python -m tests.clients.secured [--make ours|4.3.1|both] [--client NAME]… [--only TEXT]
[--faults] [--json]``. With ``both``, the default, failures are compared: the client's words without
numbers, and when they came (no later than twice the time of Apache's and two seconds). Exit code 0
means that all works and fails as it has to, alike on both makes; 1 that something does not; 2 that
a client is missing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.apache.jars import RELEASE
from tests.clients.__main__ import available
from tests.clients.registry import CLIENTS
from tests.clients.secured.matrix import Cell, cells, differences
from tests.clients.secured.nodes import started
from tests.clients.secured.ways import Ways
from tests.mixed.controller import OURS

Matrix = dict[str, list[Cell]]
"""Cells by make."""


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients.secured", description=__doc__)
    parser.add_argument("--make", choices=(OURS, RELEASE, "both"), default="both")
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--only", default="", help="ways whose name has this text")
    parser.add_argument("--faults", action="store_true", help="only where clients have to fail")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    return parser.parse_args()


def run(
    make: str, home: Path, clients: Sequence[str], wanted: argparse.Namespace, console: Console
) -> list[Cell]:
    """Run all cells on a node of one make."""
    found = []
    with started(home / make, is_apache=make != OURS) as node:
        ways = Ways(node, home / make / "files")
        for cell in cells(ways, clients, wanted.only, has_good=not wanted.faults):
            found.append(cell)
            if not cell.is_as_wanted:
                console.print(f"{make} {cell.client} {cell.way}: {cell.results}", markup=False)
    return found


def print_table(console: Console, make: str, found: list[Cell]) -> None:
    """One row per way, one column per client."""
    shown = Table(title=f"clients on {make}")
    shown.add_column("way")
    names = list(dict.fromkeys(cell.client for cell in found))
    for name in names:
        shown.add_column(name, justify="right")
    by_place = {(cell.way, cell.client): cell for cell in found}
    for way in dict.fromkeys(cell.way for cell in found):
        shown.add_row(way, *(_mark(by_place[way, name]) for name in names))
    console.print(shown)


def _mark(cell: Cell) -> str:
    if cell.reason is not None:
        return "–"
    seconds = sum(each.seconds for each in cell.results.values())
    word = "works" if cell.is_good else "fails"
    return f"{word} {seconds:.1f} s" if cell.is_as_wanted else "WRONG"


def main() -> int:
    """Run what was asked for."""
    wanted = arguments()
    console = Console(stderr=wanted.json, width=200)
    named = wanted.client or list(CLIENTS)
    clients = [name for name in named if available(CLIENTS[name], console)]
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-secured-"))
    makes = (RELEASE, OURS) if wanted.make == "both" else (wanted.make,)
    matrix = {make: run(make, home, clients, wanted, console) for make in makes}
    unlike = differences(matrix[OURS], matrix[RELEASE]) if len(makes) > 1 else []
    if wanted.json:
        shown = {make: [cell.as_json() for cell in found] for make, found in matrix.items()}
        print(json.dumps({"cells": shown, "differences": unlike}))
    for make, found in matrix.items():
        print_table(console, make, found)
        run_count = sum(cell.reason is None for cell in found)
        wrong = sum(not cell.is_as_wanted for cell in found)
        console.print(f"{make}: {run_count} cells, {wrong} wrong")
    for line in unlike:
        console.print(line, markup=False)
    console.print(f"{len(unlike)} differences between the makes" if len(makes) > 1 else "")
    is_green = not unlike and all(cell.is_as_wanted for found in matrix.values() for cell in found)
    if is_green:
        shutil.rmtree(home)
    if clients != named:
        return 2
    return 0 if is_green else 1


if __name__ == "__main__":
    sys.exit(main())
