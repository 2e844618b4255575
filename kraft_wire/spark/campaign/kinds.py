"""What a campaign does with a seed: a simulated run, crash states, or random requests.

Each kind gives the `Result` of a run, so that one table, one sum and one page serve all of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, Protocol

from kraft_wire.sim.crash.points import QUICK, QUICK_QUORUM, SCENARIOS
from kraft_wire.sim.crash.runs import ScenarioReport, run_scenario
from kraft_wire.sim.crash.stories import QUORUM_SCENARIOS
from kraft_wire.sim.runs.campaign import results_of
from kraft_wire.sim.runs.run import Failure, Result

__all__ = ["CrashStates", "Kind", "SimulatedRuns", "broken_result"]

_CRASH: Final = "S29 CrashSafe"


class Kind(Protocol):
    """What is done with each seed."""

    @property
    def about(self) -> dict[str, object]:
        """What tells this campaign from another one, for the table's folder."""

    def result(self, seed: int) -> tuple[Result, float]:
        """Run one seed; return what came of it and its processor time in seconds."""

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


def broken_result(seed: int, error: Exception) -> Result:
    """Return the result of a seed whose run itself raised: the campaign goes on with the others."""
    text = f"the run itself broke: {type(error).__name__}: {error}"
    return Result(seed, failure=Failure("(error)", text, 0, 0))
