"""What every test may ask for: the judge rule, a kraft-wire server process, an Apache node."""

from __future__ import annotations

import gc
import json
import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import judges
from tests.apache.node import ApacheNode
from tests.everything import DURATIONS
from tests.server_process import ServerProcess
from tests.spark import class_archive

pytest_plugins = ["tests.whole_files"]

settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")  # a busy machine makes no example wrong

os.environ.setdefault(class_archive.OPTIONS, class_archive.quick_options())

LANES = ("all", "without", "only")
"""What `--judges` takes: every test, those that need no judge, or those that need one."""

MORE_WORKERS = {"all": 3, "without": 0, "only": 1}
"""Workers of a lane beyond one a processor."""

ALONE = "alone"
"""The mark of a test that nothing but its like may run beside."""

UNTIMED_S = 50.0
"""What a file is taken to need, by what its tests cost, where no run has timed it."""

_left_out: dict[str, int] = {}
"""Tests that `--judges without` left out, by judge; a worker of xdist reports its own."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--judges` chooses a lane."""
    text = "tests that need a judge: run them too (default), run all without them, or only them"
    parser.addoption("--judges", choices=LANES, default=LANES[0], help=text)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Run more workers than processors where tests wait for judges to start."""
    more = MORE_WORKERS[config.getoption("--judges")]
    return len(os.sched_getaffinity(0)) + more if more else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file that has no test to run alone: `-m alone` would import them all."""
    if config.option.markexpr != ALONE or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    return None if f"mark.{ALONE}" in text or f'"{ALONE}"' in text else True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen lane, in an order in which a mistake shows early.

    Fast tests run before those that start other programs. Parallel workers take the longest
    files first: one that began last would keep one worker busy after the others are done. A file
    that nobody has timed is as long as its tests' marks say.
    """
    lane = config.getoption("--judges", default=LANES[0])
    if lane != "all":
        chosen: list[pytest.Item] = []
        others: list[pytest.Item] = []
        for item in items:
            (chosen if bool(_judges_of(item)) is (lane == "only") else others).append(item)
        _left_out.update(Counter(name for item in others for name in _judges_of(item)))
        config.hook.pytest_deselected(items=others)
        items[:] = chosen
    if hasattr(config, "workerinput"):
        seconds: dict[str, float] = json.loads(DURATIONS.read_text(encoding="utf-8"))
        items.sort(key=lambda item: -seconds.get(_file_of(item), UNTIMED_S * _cost(item)))
    else:
        items.sort(key=_cost)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what all tests share out of every garbage collection: each would search it whole."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _judges_of(item: pytest.Item) -> list[str]:
    return [name for name in judges.PROGRAMS if item.get_closest_marker(name)]


def _cost(item: pytest.Item) -> int:
    if item.get_closest_marker("client") or item.get_closest_marker("slow"):
        return 2
    return int(bool(_judges_of(item)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose judge is missing, or fail it where judges are required."""
    missing = judges.missing_programs(_judges_of(item))
    if not missing:
        return
    reason = judges.not_run_reason(missing)
    if judges.judges_are_required():
        pytest.fail(f"{reason}, and CI=true makes a missing judge a failure", pytrace=False)
    pytest.skip(reason)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist hands over what it left out; all workers leave out the same."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = _left_out


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker left out."""
    _left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that were not run, each with what it lacks, and the judges left out."""
    skipped = [
        (report.nodeid, report.longrepr[2].removeprefix("Skipped: "))
        for report in terminalreporter.stats.get("skipped", ())
    ]
    not_run = [(nodeid, reason) for nodeid, reason in skipped if judges.is_not_run(reason)]
    if not_run:
        terminalreporter.section("not run for lack of a judge")
        for nodeid, reason in not_run:
            terminalreporter.line(f"{nodeid}: {reason}")
    if _left_out:
        terminalreporter.section("judges that were not run")
        for judge, count in sorted(_left_out.items()):
            tests = "test" if count == 1 else "tests"
            line = f"{judge:10}{count:5} {tests:5}  {judges.how_to_get(judge)}"
            terminalreporter.line(line)
        terminalreporter.line("`make test-all` runs every test with every judge.")


@pytest.fixture(scope="module", autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Collect garbage behind each module: what it left open fails its own last test.

    Python warns of an unclosed file or socket when it collects it, which could be in any later
    test of the same worker.
    """
    yield
    gc.collect()


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
