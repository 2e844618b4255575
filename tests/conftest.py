"""What every test may ask for: the judge rule, a kraft-wire server process, an Apache node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import judges
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess

_NOT_RUN: list[tuple[str, str]] = []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what answers fast before what starts other programs, so that a mistake shows early."""
    items.sort(key=_cost)


def _cost(item: pytest.Item) -> int:
    markers = {marker.name for marker in item.iter_markers()}
    if "client" in markers or "slow" in markers:
        return 2
    return int(bool(markers & judges.PROGRAMS.keys()))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose judge is missing, or fail it where judges are required."""
    needed = [name for name in judges.PROGRAMS if item.get_closest_marker(name)]
    missing = judges.missing_programs(needed)
    if not missing:
        return
    reason = judges.not_run_reason(missing)
    if judges.judges_are_required():
        pytest.fail(f"{reason}, and CI=true makes a missing judge a failure", pytrace=False)
    _NOT_RUN.append((item.nodeid, reason))
    pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that were not run, each with what it lacks."""
    if not _NOT_RUN:
        return
    terminalreporter.section("not run for lack of a judge")
    for nodeid, reason in _NOT_RUN:
        terminalreporter.line(f"{nodeid}: {reason}")


@pytest.fixture(scope="session")
def apache_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheNode]:
    """One combined Apache Kafka 4.3.1 node for the whole session (mark the test ``java``)."""
    with ApacheNode(tmp_path_factory.mktemp("apache")) as node:
        yield node


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One ``kraft-wire server`` process for a module of tests that do not disturb each other."""
    with ServerProcess(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def server_process(tmp_path: Path) -> Iterator[ServerProcess]:
    """A ``kraft-wire server`` process of the test's own, which it may stop and start."""
    with ServerProcess(tmp_path) as server:
        yield server
