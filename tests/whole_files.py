"""How parallel workers share out the tests: a file is one worker's, also where a worker has died.

A worker dies when a native library of a test aborts the process. xdist's own scheduler then hands
files that are complete to other workers, which wait for their next test endlessly, and runs the
test that killed the worker again.

Files that ask for the Spark session are in few groups: a worker's session serves all of its files,
and takes as long to start and to warm up as some of them to run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.everything import CHECKOUT, DURATIONS

__all__ = ["WholeFiles", "grouped", "pytest_xdist_make_scheduler", "sharers"]

READY_MIN = 2
"""Tests that a worker must hold to run one: it runs a test once it knows the next."""

SHARED = "spark: SparkSession"
"""How a test asks for the session."""
GROUPS = 2


def sharers(checkout: Path) -> list[str]:
    """Return the files that ask for the session, as the ids of their tests begin."""
    found = (checkout / "tests" / "spark").glob("test_*.py")
    asking = (each for each in found if SHARED in each.read_text(encoding="utf-8"))
    return sorted(str(each.relative_to(checkout)) for each in asking)


def grouped(files: list[str], seconds: Mapping[str, float]) -> dict[str, str]:
    """Return the group of each file: the longest file first, each to the shortest group so far."""
    groups = {f"files with one Spark session, {number}": 0.0 for number in range(GROUPS)}
    chosen: dict[str, str] = {}
    for file in sorted(files, key=lambda each: -seconds.get(each, 0.0)):
        chosen[file] = min(groups, key=lambda each: groups[each])
        groups[chosen[file]] += seconds.get(file, 0.0)
    return chosen


@cache
def _groups() -> dict[str, str]:
    return grouped(sharers(CHECKOUT), json.loads(DURATIONS.read_text(encoding="utf-8")))


class WholeFiles(LoadFileScheduling):
    """Hands out files in order; the rest of a dead worker's files goes to the others."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Forget a worker; return the test that it ran when it died, which is not run again."""
        files = self.assigned_work.pop(node)
        crashed = next(
            (test for tests in files.values() for test, is_done in tests.items() if not is_done),
            None,
        )
        if crashed is None:
            return None
        files[self._split_scope(crashed)][crashed] = True
        self.workqueue.update(
            {file: tests for file, tests in files.items() if not all(tests.values())}
        )
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def _split_scope(self, nodeid: str) -> str:
        """Return the group of a test's file, or the file."""
        file: str = super()._split_scope(nodeid)
        return _groups().get(file, file)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Hand out a file; one that has just died gives it back in `remove_node`."""
        with suppress(OSError):
            super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        """Hand out files until the worker has enough to run, or none is left."""
        if node not in self.registered_collections:
            return  # it takes the place of one that died, and still collects
        super()._reschedule(node)
        while self._is_starved(node):
            self._assign_work_unit(node)

    def _is_starved(self, node: WorkerController) -> bool:
        pending = self._pending_of(self.assigned_work[node])
        return bool(self.workqueue) and not node.shutting_down and pending < READY_MIN


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeFiles | None:
    """Take the place of xdist's scheduler of whole files."""
    return WholeFiles(config, log) if config.getoption("dist") == "loadfile" else None
