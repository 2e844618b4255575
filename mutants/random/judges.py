"""What runs in a child: tests in a given order, and seeds of the simulators.

Each tells what began and what came of it, line by line: after a kill it is known what hung.
"""

import signal
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from types import FrameType

import pytest

from mutants.random.fork_server import Tell

__all__ = ["LEFT_OUT", "run_seeds", "run_tests"]

LEFT_OUT = "not (java or kcat or go or node or chromium or slow)"
"""Tests of others' programs, and slow ones, judge no random mutant; a client's library may."""

_TIMEOUT_S = 60.0
_SLOWER = 10
"""A test that takes so many times its time without a mutant hangs."""

_KINDS: Mapping[str, tuple[str | None, int, int | None]] = {
    "quorum": (None, 2_000, None),
    "membership": ("membership", 1_500, None),
    "odd-quorum": ("odd-answers", 2_000, None),
    "cluster": (None, 4_000, 0),
    "transactions": ("transactions", 4_000, 0),
    "groups": ("groups", 4_000, 0),
    "eligible-replicas": ("eligible-replicas", 4_000, 0),
    "directories": ("directories", 4_000, 0),
    "odd-cluster": ("odd-answers", 4_000, 0),
    "tools": ("tools", 4_000, 0),
}
"""Focus, events, and brokers (None: a quorum; 0: a number from the seed) of each kind of seed."""
_SEED_TIMEOUT_S = 60


class _Hangs(BaseException):
    """A seed does not end. No `except Exception` of the product may take it."""


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise _Hangs(f"Timeout (>{_SEED_TIMEOUT_S}.0s)")


class _Listener:
    """Chooses and orders tests, and tells what becomes of them."""

    def __init__(
        self,
        tell: Tell,
        wanted: Mapping[str, float] | None,
        hang_s: float,
        took_hits: Callable[[], str] | None,
    ) -> None:
        self._tell, self._wanted, self._hits = tell, wanted, took_hits
        self._hang_s = hang_s
        self._outcome, self._why, self._started = "", "", 0.0
        self._own: list[str] = []
        """What the present test has run before it made a shared fixture."""
        self._shared: dict[pytest.FixtureDef[object], list[str]] = {}
        """What making each fixture of more than one test has run."""
        self._used: list[pytest.FixtureDef[object]] = []
        """The shared fixtures of the present test."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what is wanted, in that order."""
        if self._wanted is None:
            return
        order = {nodeid: place for place, nodeid in enumerate(self._wanted)}
        items[:] = sorted(
            (one for one in items if one.nodeid in order), key=lambda one: order[one.nodeid]
        )
        for item in items:
            limit = max(self._hang_s, self._wanted[item.nodeid] * _SLOWER)
            item.add_marker(pytest.mark.timeout(limit))

    def pytest_collection_finish(self) -> None:
        """Note what importing the tests has run."""
        if self._hits is not None:
            self._tell({"collected": self._hits()})

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Take the beginning of a test."""
        self._outcome, self._why, self._started = "passed", "", time.monotonic()
        if self._hits is None:
            self._tell({"began": nodeid})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Note which shared fixtures a test has; what made them counts for each of their tests."""
        known = getattr(item, "_fixtureinfo", None)
        chosen = [] if known is None else [each[-1] for each in known.name2fixturedefs.values()]
        self._used = [each for each in chosen if each.scope != "function"]

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[object]
    ) -> Generator[None, object, object]:
        """Keep apart what making a shared fixture runs."""
        if self._hits is None or fixturedef.scope == "function":
            return (yield)
        self._own.append(self._hits())
        try:
            return (yield)
        finally:
            self._shared.setdefault(fixturedef, []).append(self._hits())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one phase of a test."""
        if report.outcome != "passed" and self._outcome != "failed":
            self._outcome = report.outcome
            self._why = str(report.longrepr)[-300:] if report.failed else ""

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Take the end of a test."""
        line: dict[str, object] = {"test": nodeid, "outcome": self._outcome, "why": self._why}
        line["seconds"] = round(time.monotonic() - self._started, 4)
        if self._hits is not None:
            line["hits"] = self._hits()
            shared = [each for one in self._used for each in self._shared.get(one, ())]
            line["more_hits"] = [*self._own, *shared]
            self._own = []
        self._tell(line)


def run_tests(
    tell: Tell,
    files: Sequence[str],
    wanted: Mapping[str, float] | None = None,
    hang_s: float = 0,
    took_hits: Callable[[], str] | None = None,
) -> None:
    """Run tests of some files until one fails; or all of them, where hits are noted.

    `wanted` are node ids with their usual seconds, in the order in which they run; None: all. A
    test hangs that takes ten times its time, and `hang_s` at least.
    """
    _tame_hypothesis()
    options = ["-q", "-p", "no:randomly", "--tb=line", "--no-header", f"--timeout={_TIMEOUT_S}"]
    options += ["-m", LEFT_OUT, "--hypothesis-profile=mutants"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # preloaded
    options += [] if took_hits is not None else ["-x"]
    code = pytest.main([*options, *files], plugins=[_Listener(tell, wanted, hang_s, took_hits)])
    tell({"ended": int(code)})


def _tame_hypothesis() -> None:
    """Let no test depend on chance, on time or on what an earlier run found."""
    from hypothesis import HealthCheck, Phase, settings

    settings.register_profile(
        "mutants",
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate, Phase.target),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )


def run_seeds(
    tell: Tell, seeds: Sequence[tuple[str, int]], took_hits: Callable[[], str] | None = None
) -> None:
    """Run seeds until one fails; or all, where hits are noted.

    Their kinds are those of `_KINDS`. Every step of a quorum is held against the model.
    """
    import kraft_wire
    from kraft_wire.sim.judge.invariants import kinds_of
    from kraft_wire.sim.runs.campaign import drawn
    from kraft_wire.sim.runs.run import run_plan

    assert str(Path.cwd()) in str(kraft_wire.__file__), "the package is not the copy's"
    signal.signal(signal.SIGALRM, _hangs)
    for kind, seed in seeds:
        tell({"began": f"{kind}:{seed}"})
        signal.alarm(_SEED_TIMEOUT_S)
        started = time.monotonic()
        line: dict[str, object] = {"test": f"{kind}:{seed}", "outcome": "passed", "why": ""}
        try:
            focus, events, brokers = _KINDS[kind]
            plan = drawn(seed, events=events, nodes=None, brokers=brokers, focus=focus)
            result = run_plan(plan, kinds=kinds_of(canary=False, model=brokers is None))
            line["trace"] = result.trace_hash
            if result.failure is not None:
                line["outcome"] = "failed"
                line["why"] = f"{result.failure.invariant} {result.failure.text}"[:300]
        except (Exception, _Hangs) as error:  # noqa: BLE001  # every kind of failure is a finding
            line["outcome"], line["why"] = "failed", f"{type(error).__name__}: {error}"[:300]
        signal.alarm(0)
        line["seconds"] = round(time.monotonic() - started, 4)
        if took_hits is not None:
            line["hits"] = took_hits()
        tell(line)
        if line["outcome"] == "failed" and took_hits is None:
            return
