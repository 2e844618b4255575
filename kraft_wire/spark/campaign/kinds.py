"""The kinds of a campaign: simulated runs, crash states, or requests to two brokers.

Each kind gives the `Result` of a run, so that one table, one sum and one page serve all of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, Protocol

from kraft_wire.conformance.case import Listener
from kraft_wire.conformance.connection import split_address
from kraft_wire.conformance.differences import differences
from kraft_wire.conformance.drawn.sequence import drawn_cases
from kraft_wire.conformance.profile import DEFAULT_PROFILE, read_profile
from kraft_wire.conformance.recording import Recording
from kraft_wire.conformance.run import rows_of, run_rows
from kraft_wire.conformance.target import Unreachable, learn_target
from kraft_wire.conformance.verdict import Exchange
from kraft_wire.sim.crash.points import QUICK, QUICK_QUORUM, SCENARIOS
from kraft_wire.sim.crash.runs import ScenarioReport, run_scenario
from kraft_wire.sim.crash.stories import QUORUM_SCENARIOS
from kraft_wire.sim.runs.campaign import results_of
from kraft_wire.sim.runs.run import Failure, Result
from kraft_wire.spark.failure import PipelineError
from kraft_wire.wire.generated.registry import request_class

__all__ = ["ComparedBrokers", "CrashStates", "Kind", "SimulatedRuns", "broken_result"]

_CRASH: Final = "S29 CrashSafe"
_ALIKE: Final = "brokers answer alike"
_DIFFERENCES_MAX: Final = 5
_TIMEOUT_S: Final = 10.0


class Kind(Protocol):
    """The run of each seed."""

    @property
    def about(self) -> dict[str, object]:
        """The parameters that identify this campaign, for the table's folder."""

    def result(self, seed: int) -> tuple[Result, float]:
        """Run one seed; return its result and its processor time in seconds."""

    def replay(self, seed: int) -> str:
        """Return the command that runs one seed locally."""


@dataclass(frozen=True, slots=True)
class SimulatedRuns:
    """Runs of the simulator, as `kraft-wire sim --seeds` has them."""

    events: int = 2_000
    nodes: int | None = None
    brokers: int | None = None
    focus: str | None = None
    model: bool = False
    canary: bool = False

    @property
    def about(self) -> dict[str, object]:
        """What is run."""
        return {"kind": "simulation", **{name: getattr(self, name) for name in self.__slots__}}

    def result(self, seed: int) -> tuple[Result, float]:
        """Run one seed."""
        (found,) = results_of(
            [seed],
            events=self.events,
            nodes=self.nodes,
            brokers=self.brokers,
            canary=self.canary,
            model=self.model,
            focus=self.focus,
        )
        return found

    def replay(self, seed: int) -> str:
        """Return the command for one seed."""
        words = [f"kraft-wire sim --seed {seed} --events {self.events}"]
        for name in ("nodes", "brokers", "focus"):
            value = getattr(self, name)
            words += [] if value is None else [f"--{name} {value}"]
        words += [f"--{name}" for name in ("model", "canary") if getattr(self, name)]
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class CrashStates:
    """Crash states of storage and of a quorum's nodes: all scenarios, drawn with the seed."""

    scenario: str | None = None
    """The only scenario to run; all of them without it."""

    @property
    def about(self) -> dict[str, object]:
        """What is run."""
        return {"kind": "crash states", "scenario": self.scenario}

    def result(self, seed: int) -> tuple[Result, float]:
        """Run the scenarios: an event is a state, and a mark counts a scenario's states."""
        started, found, figures = time.process_time(), Result(seed), blake2b(digest_size=16)
        for scenario in SCENARIOS:
            if self.scenario not in (None, scenario.name):
                continue
            limits = QUICK_QUORUM if scenario in QUORUM_SCENARIOS else QUICK
            report = run_scenario(scenario, limits, seed=seed)
            figures.update(repr(replace(report, seconds=0.0)).encode())
            _add(found, report)
        found.trace_hash = figures.hexdigest()
        return found, time.process_time() - started

    def replay(self, seed: int) -> str:
        """Return the command for one seed."""
        only = "" if self.scenario is None else f" --scenario '{self.scenario}'"
        return f"python -m kraft_wire.sim.crash.points --quick --seed {seed}{only}"


def _add(found: Result, report: ScenarioReport) -> None:
    found.events += report.states
    found.useful_events += report.operations
    found.looked[_CRASH] += report.checks
    found.marks[report.name] += report.states
    if report.violations and found.failure is None:
        text = f"{report.name}: {report.violations} violations: {'; '.join(report.examples)}"
        found.failure = Failure(_CRASH, text, found.events, 0)


@dataclass(frozen=True, slots=True)
class ComparedBrokers:
    """Drawn requests that are sent to two brokers, as `kraft-wire conform --random` sends them."""

    addresses: tuple[str, str]
    requests: int = 100
    profile: str = DEFAULT_PROFILE

    @property
    def about(self) -> dict[str, object]:
        """What is run."""
        return {"kind": "drawn requests", "requests": self.requests, "profile": self.profile}

    def check(self) -> None:
        """Raise PipelineError where a broker cannot be reached: each seed would be an error."""
        try:
            for each in self.addresses:
                learn_target(split_address(each), _TIMEOUT_S)
        except (Unreachable, ValueError) as error:
            raise PipelineError(f"--random-conformance: {error}") from error

    def result(self, seed: int) -> tuple[Result, float]:
        """Send one sequence: an event is an exchange, and a mark counts an API's version."""
        started, found = time.process_time(), Result(seed)
        left, right = (self._recorded(seed, each) for each in self.addresses)
        exchanges = [each for row in left.rows for each in row.exchanges]
        found.events = len(exchanges)
        found.marks.update(_name(each) for each in exchanges)
        unequal = differences(left, right)
        found.looked[_ALIKE] = len(exchanges)
        verdicts = [str(row.verdict) for each in (left, right) for row in each.rows]
        if unequal or verdicts != ["passed", "passed"]:
            lines = [f"{each.path}: {each.left} and {each.right}" for each in unequal]
            text = "; ".join(lines[:_DIFFERENCES_MAX] or verdicts)
            found.failure = Failure(_ALIKE, text, found.events, 0)
        digest = blake2b(repr(sorted(found.marks.items())).encode(), digest_size=16)
        found.trace_hash = digest.hexdigest()
        return found, time.process_time() - started

    def _recorded(self, seed: int, address: str) -> Recording:
        target = learn_target(split_address(address), _TIMEOUT_S)
        profile = read_profile(self.profile)
        rows = rows_of(drawn_cases([seed], self.requests, profile), profile)
        outcomes = run_rows(rows, {Listener.BROKER: target}, keeps_exchanges=True)
        return Recording.of(outcomes, address, self.profile)

    def replay(self, seed: int) -> str:
        """Return the command for one seed."""
        what = f"--random {seed}:{seed + 1} --requests {self.requests} --profile {self.profile}"
        return f"kraft-wire conform --compare {' '.join(self.addresses)} {what}"


def _name(exchange: Exchange) -> str:
    name = request_class(exchange.api_key).NAME.removesuffix("Request")
    return f"{name} {exchange.version}"


def broken_result(seed: int, error: Exception) -> Result:
    """Return the result of a seed whose run raised: the campaign continues with the others."""
    text = f"the run failed: {type(error).__name__}: {error}"
    return Result(seed, failure=Failure("(error)", text, 0, 0))
