"""Draws upkeep of the metadata, and operators' work on it, for half of the seeds.

Snapshots by time, small segments, older releases that are upgraded, controllers that move to other
hosts, metadata transactions. All of it is drawn from separate random streams. The other half of the
seeds stay as `drawn_plan` and `drawn_cluster_plan` made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from kraft_wire.sim.plans.plan import Fault, Plan, drawn_fault, fault_times
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import Setup

__all__ = ["UPKEEP_KINDS", "with_metadata_upkeep"]

_PER_SECOND: Final[Mapping[str, tuple[float, ...]]] = {
    "move": (0, 0.5, 1.5),
    "transaction": (0, 0.3, 1, 2),
    "upgrade": (0, 0.5, 1),
    "disk-full": (0, 0, 0.2, 0.6),
    "foreign": (0, 0.5, 2),
}
UPKEEP_KINDS: Final = tuple(_PER_SECOND)
_NEWEST: Final = 30
_KEPT: Final = frozenset(
    {
        3,
        5,
        9,
        13,
        14,
        53,
        60,
        63,
        108,
        333,
        349,
        386,
        387,
        776,
        817,
        975,
        1174,
        1503,
        1505,
        1513,
        1805,
        2311,
        2816,
        3743,
        4288,
        4955,
        10657,
        12395,
        12775,
        27868,
        30048,
        30885,
        34875,
        7000101,
    }
)
"""Seeds that failed before upkeep existed: their runs must stay the same."""
_FIRST_US: Final = 600_000
"""A cluster's first leader is there by then, mostly."""


def with_metadata_upkeep(plan: Plan) -> Plan:
    """Return the plan, or in half of the seeds the plan and more."""
    random = stream(plan.seed, "upkeep")
    if plan.seed in _KEPT or random.random() < 0.5:
        return plan
    setup = _drawn_setup(random, plan.setup)
    faults = [*plan.faults]
    for kind, rates in _PER_SECOND.items():
        rate = random.choice(rates)
        if rate and (setup.is_dynamic or kind != "move"):
            faults += _drawn_faults(stream(plan.seed, "upkeep", kind), kind, rate, setup)
    faults.sort(key=lambda fault: fault.at_us)
    return replace(plan, setup=setup, faults=tuple(faults))


def _drawn_setup(random: Random, setup: Setup) -> Setup:
    administrators, paper = random.choice((0, 1, 2, 3)), random.choice((0, 2, 3, 4))
    is_cluster = bool(setup.brokers or setup.combined)
    return replace(
        setup,
        administrators=0 if is_cluster else administrators,
        paper_brokers=0 if is_cluster else paper,
        snapshot_every_ms=random.choice((0, 400, 1_000, 3_000, 3_600_000)),
        snapshot_every_bytes=random.choice((setup.snapshot_every_bytes, 200, 700, 20_971_520)),
        segment_bytes=random.choice((setup.segment_bytes, 300)),
        metadata_version=random.choice((0, 0, 0, random.randrange(15, _NEWEST + 1))),
    )


def _drawn_faults(random: Random, kind: str, per_second: float, setup: Setup) -> Iterator[Fault]:
    for at_us in fault_times(random, per_second, from_us=_FIRST_US):
        fault = drawn_fault(random, kind, at_us)
        if kind == "upgrade":
            is_quorum = not setup.is_dynamic and random.random() < 0.7
            feature, newest = ("kraft.version", 1) if is_quorum else ("metadata.version", _NEWEST)
            level = newest if random.random() < 0.7 else random.randrange(1, newest + 1)
            fault = replace(fault, other=feature, amount=level)
        elif kind == "disk-full":
            fault = replace(fault, amount=random.choice((0, 100, 1_000, 5_000, 100_000)))
        elif kind == "move":
            fault = replace(fault, span_us=random.choice((1_000, 50_000, fault.span_us)))
        yield fault
