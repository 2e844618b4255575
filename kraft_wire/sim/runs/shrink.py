"""Shrinks a failing plan to the shortest one that fails in the same way.

It removes first the time after the failure, then faults by delta debugging (halves, then smaller
parts, then one by one), then clients and observers. Then it resets the habits and settings of the
cluster that can have their usual value. Every candidate is run; it counts when the same invariant
breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from kraft_wire.sim.plans.plan import Fault, Habits, Plan
from kraft_wire.sim.runs.run import Failure
from kraft_wire.sim.setup import Setup
from kraft_wire.sim.workload import Workload

__all__ = ["Shrunk", "shrink"]

_RUNS_MAX: Final = 300
_EVENTS_MORE_MAX: Final = 50
_KEPT_SETTINGS: Final = ("voters", "is_dynamic", "combined", "brokers", "data")
_CLIENTS: Final = ("producers", "consumers", "members")


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The shortest plan that was found."""

    plan: Plan
    failure: Failure
    runs: int
    """How many plans were tried."""


class _Search:
    """The best plan so far, and how many runs are left."""

    def __init__(
        self, plan: Plan, failure: Failure, fails: Callable[[Plan], Failure | None], runs_max: int
    ) -> None:
        self.plan = plan
        self.failure = failure
        self.runs = 0
        self._fails = fails
        self._runs_max = runs_max

    def accepts(self, candidate: Plan) -> bool:
        """Run a candidate; keep it if it fails in the same way."""
        if self.runs >= self._runs_max:
            return False
        self.runs += 1
        failure = self._fails(candidate)
        if failure is None or failure.invariant != self.failure.invariant:
            return False
        if failure.events > 2 * self.failure.events + _EVENTS_MORE_MAX:
            return False  # simpler, but a longer story
        self.plan, self.failure = candidate, failure
        return True


def shrink(
    plan: Plan,
    failure: Failure,
    fails: Callable[[Plan], Failure | None],
    *,
    runs_max: int = _RUNS_MAX,
) -> Shrunk:
    """Return the shortest plan that breaks the same invariant; `fails` runs one."""
    search = _Search(plan, failure, fails, runs_max)
    _cut_end(search)
    _drop_faults(search)
    for candidate in _simpler_setups(search):
        search.accepts(candidate)
    for candidate in (*_fewer_clients(search), *_simpler_workloads(search)):
        search.accepts(candidate)
    for candidate in _simpler_habits(search):
        search.accepts(candidate)
    _drop_faults(search)
    _shorten_faults(search)
    _cut_end(search)
    return Shrunk(search.plan, search.failure, search.runs)


def _cut_end(search: _Search) -> None:
    """Leave out the time after the failure, or most of the first phase."""
    plan, failure = search.plan, search.failure
    early = tuple(fault for fault in plan.faults if fault.at_us <= failure.now_us)
    search.accepts(replace(plan, faults=early, events=min(plan.events, failure.events)))
    low, high = 0, search.plan.events
    while high - low > max(10, high // 20):
        middle = (low + high) // 2
        if search.accepts(replace(search.plan, events=middle)):
            high = middle
        else:
            low = middle


def _drop_faults(search: _Search) -> None:
    """Delta debugging: leave out ever smaller parts of the faults."""
    parts = 2
    while search.plan.faults and parts <= 2 * len(search.plan.faults):
        faults = search.plan.faults
        size = max(1, len(faults) // parts)
        dropped = False
        for at in range(0, len(faults), size):
            kept = _without(search.plan.faults, faults[at : at + size])
            if len(kept) < len(search.plan.faults):
                dropped |= search.accepts(replace(search.plan, faults=kept))
        if size == 1 and not dropped:
            return
        parts = parts if dropped else parts * 2


def _without(faults: Sequence[Fault], gone: Sequence[Fault]) -> tuple[Fault, ...]:
    left = list(gone)
    kept = []
    for fault in faults:
        if fault in left:
            left.remove(fault)
        else:
            kept.append(fault)
    return tuple(kept)


def _shorten_faults(search: _Search) -> None:
    """Shorten the durations of faults."""
    for at in range(len(search.plan.faults)):
        fault = search.plan.faults[at]
        if fault.span_us > 2_000:
            shorter = replace(fault, span_us=fault.span_us // 4)
            faults = (*search.plan.faults[:at], shorter, *search.plan.faults[at + 1 :])
            search.accepts(replace(search.plan, faults=faults))


def _simpler_setups(search: _Search) -> Iterator[Plan]:
    """Yield plans with fewer clients and observers, then with usual settings."""
    usual = Setup()
    for clients in (0, 1):
        if search.plan.setup.clients > clients:
            yield replace(search.plan, setup=replace(search.plan.setup, clients=clients))
    if search.plan.setup.observers:
        yield replace(search.plan, setup=replace(search.plan.setup, observers=()))
    if len(search.plan.setup.voters) > len(usual.voters):
        yield replace(search.plan, setup=replace(search.plan.setup, voters=usual.voters))
    for field in fields(Setup):
        value = getattr(usual, field.name)
        is_fixed = field.name in (*_KEPT_SETTINGS, "observers", "clients")
        if not is_fixed and getattr(search.plan.setup, field.name) != value:
            changes: dict[str, Any] = {field.name: value}
            yield replace(search.plan, setup=replace(search.plan.setup, **changes))


def _fewer_clients(search: _Search) -> Iterator[Plan]:
    """Yield plans without the clients of a kind, or with one of them."""
    for name in _CLIENTS:
        for count in (0, 1):
            if getattr(search.plan.setup.data, name) > count:
                yield _with_workload(search.plan, name, count)


def _simpler_workloads(search: _Search) -> Iterator[Plan]:
    """Yield plans with one topic, one partition, and usual settings of brokers."""
    for name in ("topics", "partitions"):
        if getattr(search.plan.setup.data, name) > 1:
            yield _with_workload(search.plan, name, 1)
    usual = Workload()
    for field in fields(Workload):
        is_fixed = field.name in (*_CLIENTS, "topics", "partitions", "replicas")
        value = getattr(usual, field.name)
        if not is_fixed and getattr(search.plan.setup.data, field.name) != value:
            yield _with_workload(search.plan, field.name, value)


def _with_workload(plan: Plan, name: str, value: Any) -> Plan:
    changes: dict[str, Any] = {name: value}
    return replace(plan, setup=replace(plan.setup, data=replace(plan.setup.data, **changes)))


def _simpler_habits(search: _Search) -> Iterator[Plan]:
    usual = Habits()
    for field in fields(Habits):
        value = getattr(usual, field.name)
        if getattr(search.plan.habits, field.name) != value:
            changes: dict[str, Any] = {field.name: value}
            yield replace(search.plan, habits=replace(search.plan.habits, **changes))
