"""Draws the upkeep of a cluster's logs: compaction, retention, DeleteRecords, full disks.

It uses separate random streams: setup, habits and faults of a seed stay the same, and a seed
without upkeep keeps its trace. In seeds with upkeep the new topics and clients share the network
and the brokers with the old ones, so their traces differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from kraft_wire.sim.plans.plan import Fault, Plan, drawn_fault, fault_times
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.upkeep_topics import KINDS
from kraft_wire.sim.workload import Workload

__all__ = ["UPKEEP_FAULT_KINDS", "with_log_upkeep"]

_TOPICS_BEGIN_US: Final = 1_300_000
_SHARE: Final = 0.65
"""Of the seeds that draw upkeep."""
_PER_SECOND: Final[Mapping[str, tuple[float, ...]]] = {
    "delete-records": (0, 0.5, 2),
    "full-disk": (0, 0, 0.3),
    "open-transaction": (0, 0.1, 0.3),
    "resize": (0, 0.3, 1),
}
UPKEEP_FAULT_KINDS: Final = tuple(_PER_SECOND)


def with_log_upkeep(plan: Plan) -> Plan:
    """Return the plan with the upkeep that its seed draws, or the plan itself."""
    random = stream(plan.seed, "upkeep")
    if random.random() >= _SHARE:
        return plan
    data = _drawn_workload(random, plan.setup.data)
    if data.members and not data.may_elect_uncleanly:  # which may bring a generation back
        data = replace(data, stale_members=stream(plan.seed, "stale members").choice((0, 1)))
    faults = list(plan.faults)
    for kind, rates in _PER_SECOND.items():
        rate = random.choice(rates)
        if rate:
            faults += _drawn_faults(stream(plan.seed, "upkeep faults", kind), kind, rate)
    faults.sort(key=lambda fault: fault.at_us)
    return replace(plan, setup=replace(plan.setup, data=data), faults=tuple(faults))


def _drawn_workload(random: Random, data: Workload) -> Workload:
    kinds = tuple(kind for kind in KINDS if random.random() < 0.5) or (random.choice(KINDS),)
    return replace(
        data,
        upkeep=kinds,
        segment_batches=random.choice((1, 1, 2, 3, 5)),
        segment_ms=random.choice((0, 0, 0, 200)),
        offsets_segment_batches=random.choice((2, 5, 20)),
        keys=random.choice((1, 2, 3, 8)),
        tombstone_ms=random.choice((0, 300, 3_000)),
        compaction_lag_ms=random.choice((0, 0, 0, 800)),
        compaction_lag_max_ms=random.choice((0, 0, 1, 900)),
        dirty_percent=random.choice((0, 0, 1, 50)),
        retention_bytes=random.choice((0, 90, 300, 1_000)),
        retention_ms=random.choice((0, 500, 1_500, 4_000)),
        careless=random.choice((0, 0, 1)),
        askers=random.choice((0, 1, 2)),
    )


def _drawn_faults(random: Random, kind: str, per_second: float) -> Iterator[Fault]:
    for at_us in fault_times(random, per_second, from_us=_TOPICS_BEGIN_US):
        yield drawn_fault(random, kind, at_us)
