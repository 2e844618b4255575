"""The catalogue of log events, beside the events that the code reports."""

import ast
from collections.abc import Iterator
from pathlib import Path

from kraft_wire.node.events.catalogue import EVENTS, LEVELS
from tests.tidiness import CHECKOUT

WRITERS = {
    *("report", "_report", "_tell", "_complain", "_try_again_later"),
    *("event", "event_at", "limited", "connection"),
}
ELSEWHERE = ("spark", "sim", "audit", "conformance", "wire", "columnar")
"""Packages whose reports are no log lines of a node."""


def sources() -> Iterator[Path]:
    for path in sorted((CHECKOUT / "kraft_wire").glob("**/*.py")):
        if path.relative_to(CHECKOUT / "kraft_wire").parts[0] not in ELSEWHERE:
            yield path


def names_in(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from names_in(node.body)
        yield from names_in(node.orelse)


def reported(path: Path) -> Iterator[str]:
    """Yield the names that calls of a module's writers are given as they stand."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        called = getattr(node.func, "attr", getattr(node.func, "id", None))
        if called in WRITERS:
            for argument in node.args[:2]:
                for name in names_in(argument):
                    if name in EVENTS or "_" in name:
                        yield name


def test_every_event_that_is_reported_is_in_the_catalogue() -> None:
    found = {name: path for path in sources() for name in reported(path)}
    assert len(found) > 30, "the scan finds the calls"
    assert {name: path for name, path in found.items() if name not in EVENTS} == {}


def test_every_event_of_the_catalogue_is_in_the_code() -> None:
    code = "".join(path.read_text() for path in sources() if path.name != "catalogue.py")
    assert [name for name in EVENTS if f'"{name}"' not in code] == []


def test_every_level_is_one_of_log4j() -> None:
    assert {each.level for each in EVENTS.values()} <= LEVELS.keys()
