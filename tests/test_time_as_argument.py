"""Time is an argument: no attribute keeps the time of a call, and each call ends the same way.

A later call, which has another time, would read such an attribute. The few exceptions are listed
with their reason: a place that is not listed fails, as does an entry without a place. The hosts and
the simulator are left out; they own the clocks.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.tidiness import CHECKOUT, modules

KEPT: Final = {
    "kraft_wire/broker/broker.py:_now_ms": "of the last tick; completions of appends have no time",
    "kraft_wire/broker/coordination/commit_waits.py:_now_ms": "a function that returns it",
    "kraft_wire/node/authorization/asker.py:_now_ms": "of one request, with which the asker ends",
    "kraft_wire/node/event_log.py:_wall_ms": "the host's clock, for the time of a line",
    "kraft_wire/node/events/host_events.py:_now_ms": "the host's clock, for its own lines",
    "kraft_wire/node/quotas/mutation_quota.py:_now_ms": "of one request, with the budget",
}
"""Module and attribute: why."""

CORE: Final = tuple(
    f"kraft_wire/{package}/"
    for package in ("broker", "controller", "metadata", "node", "raft", "storage", "wire")
)

TIME_OF_A_CALL: Final = re.compile(r"_?(now|wall)_ms")

SOURCE = """
class Part:
    now_ms: int

    def call(self, now_ms, wall_ms):
        self._now_ms, self.count = now_ms, 1
        self.part.wall_ms: int = wall_ms
        self.asked_ms = now_ms
        wall_ms = now_ms
"""


def times_kept(tree: ast.Module) -> Iterator[str]:
    """Yield the attributes named as the time of a call that are assigned to."""
    for node in ast.walk(tree):
        is_assigned = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if is_assigned and TIME_OF_A_CALL.fullmatch(node.attr):
            yield node.attr


def test_attribute_that_keeps_a_time_is_found_and_nothing_else() -> None:
    assert sorted(times_kept(ast.parse(SOURCE))) == ["_now_ms", "wall_ms"]


def test_no_attribute_keeps_the_time_of_a_call() -> None:
    found = {
        f"{module.path}:{attribute}"
        for module in modules()
        if module.path.startswith(CORE)
        for attribute in times_kept(module.tree)
    }
    assert found == set(KEPT)


def host_calls() -> list[ast.FunctionDef]:
    """The methods of the node that a host calls with the time.

    `stop` apart, which ends everything.
    """
    tree = ast.parse((CHECKOUT / Path("kraft_wire/node/node.py")).read_text(encoding="utf-8"))
    (node,) = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == "Node"]
    return [
        each
        for each in node.body
        if isinstance(each, ast.FunctionDef)
        and (each.name == "__init__" or not each.name.startswith("_"))
        and each.name != "stop"
        and "now_ms" in [argument.arg for argument in (*each.args.args, *each.args.kwonlyargs)]
    ]


@pytest.mark.parametrize("call", host_calls(), ids=lambda each: each.name)
def test_each_call_of_the_host_ends_in_the_pump(call: ast.FunctionDef) -> None:
    pump, pump_broker = "self._pump(now_ms, wall_ms)", "self._pump_broker(now_ms, wall_ms)"
    choice = f"if of_broker_alone:\n    {pump_broker}\nelse:\n    {pump}"
    of_the_link = "pump(now_ms, wall_ms)"  # as `_links_of` returned it
    assert ast.unparse(call.body[-1]) in (pump, choice, of_the_link)
    returns = [each for each in ast.walk(call) if isinstance(each, ast.Return)]
    assert len(returns) <= (call.name == "flushed"), "a flush after `stop` alone is of no interest"


def test_the_calls_of_the_host_are_found() -> None:
    names = {each.name for each in host_calls()}
    assert {"__init__", "receive", "tick", "flushed", "link_frame", "begin_stop"} <= names
