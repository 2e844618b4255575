"""Brokers with several log directories, between which an operator moves replicas (KIP-113).

Drawn from separate random streams: nodes, clients, habits and the other faults stay what the seed
draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from kraft_wire.sim.plans.plan import Fault, Plan, drawn_fault, fault_times
from kraft_wire.sim.scheduler import stream

__all__ = ["with_directories"]

_PER_SECOND: Final[Mapping[str, tuple[float, ...]]] = {
    "alter-log-dirs": (2, 6, 15),
    "slow-moves": (0, 0.5, 2),
    "disk-error": (0, 0.5, 1),
}
_LATER_PER_SECOND: Final[Mapping[str, tuple[float, ...]]] = {
    "undo-move": (0, 1, 3),
    "cordon": (0, 0.5, 1),
}
_KEPT: Final = frozenset({126})
"""Seeds that failed before these faults existed: their runs must stay the same."""
_WAYS: Final = ("", "", "", "", "dies", "dies", "back", "back", "all", "absent", "unknown")
"""What an operator asks for: see `faults.directory_faults`."""
_FIRST_US: Final = 800_000
"""The first topic is there by then, mostly."""


def with_directories(plan: Plan) -> Plan:
    """Return the plan of a cluster whose brokers have two or three log directories."""
    assert plan.setup.brokers, "a quorum alone has no replicas"
    random = stream(plan.seed, "directories")
    data = replace(plan.setup.data, directories=random.choice((2, 2, 3)))
    faults = [*plan.faults]
    later = {} if plan.seed in _KEPT else _LATER_PER_SECOND
    for kind, rates in {**_PER_SECOND, **later}.items():
        rate = random.choice(rates)
        if rate:
            faults += _drawn_faults(stream(plan.seed, "directories", kind), kind, rate)
    faults.sort(key=lambda fault: fault.at_us)
    return replace(plan, setup=replace(plan.setup, data=data), faults=tuple(faults))


def _drawn_faults(random: Random, kind: str, per_second: float) -> Iterator[Fault]:
    for at_us in fault_times(random, per_second, from_us=_FIRST_US):
        fault = drawn_fault(random, kind, at_us)
        aim = random.choice(("leads", "broker", "broker"))
        fault = replace(fault, target=f"{aim}:{random.randrange(60)}")
        if kind == "alter-log-dirs":
            way, is_hard = random.choice(_WAYS), random.random() < 0.5
            fault = replace(fault, other=way, is_hard=is_hard)
        elif kind == "cordon":
            fault = replace(fault, is_hard=random.random() < 0.5)
        elif kind == "slow-moves":
            fault = replace(fault, amount=random.choice((0, 1_000, 1_000, 3_000, 10_000)))
        yield fault
