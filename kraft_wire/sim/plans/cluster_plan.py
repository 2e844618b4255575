"""Draws a run of a whole cluster: one to three controllers, two to four brokers, clients, faults.

As `plan` does for quorums, but from separate random streams: the seeds of quorums keep their
meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from kraft_wire.sim.plans.log_upkeep_plan import with_log_upkeep
from kraft_wire.sim.plans.plan import Fault, Habits, Plan, drawn_fault, drawn_habits, fault_times
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import Setup
from kraft_wire.sim.workload import Workload

__all__ = ["CLUSTER_FAULT_KINDS", "drawn_cluster_plan"]

_FIRST_BROKER: Final = 11
_BROKERS_BEGIN_US: Final = 600_000
"""Nothing happens until then."""

_PER_SECOND: Final[Mapping[str, tuple[float, ...]]] = {
    "crash": (0, 0.3, 1, 2),
    "stop": (0, 0, 0.1, 0.5),
    "pause": (0, 0, 0.5, 1.5),
    "cut": (0, 0.5, 1, 3),
    "flap": (0, 0, 0, 0.3),
    "slow": (0, 0, 0.5),
    "slow-disk": (0, 0, 0.5),
    "reset": (0, 0, 1, 5),
    "clock-rate": (0, 0, 0.3),
    "wall-jump": (0, 0, 0.5),
    "disk-error": (0, 0, 0.4),
    "wipe": (0, 0.2),
    "replay": (0, 0, 2),
    "garble": (0, 0, 1),
    "reassign": (0, 0.5, 1),
    "elect-preferred": (0, 0.3, 1),
    "elect-uncleanly": (0, 1, 3),
    "delete-topic": (0, 0, 0.2),
}
CLUSTER_FAULT_KINDS: Final = tuple(_PER_SECOND)
_ELSEWHERE: Final = ("leads", "leads", "broker", "broker", "broker")
"""The targets of most faults; the others are drawn as a quorum's."""


def drawn_cluster_plan(
    seed: int,
    *,
    nodes: int | None = None,
    brokers: int | None = None,
    events: int = 2_000,
    has_upkeep: bool = True,
) -> Plan:
    """Draw a run with brokers; numbers of nodes that are not given come from the seed.

    `has_upkeep`: whether the seed may also draw topics with compaction or retention.
    """
    random = stream(seed, "cluster plan")
    setup = _drawn_setup(random, nodes, brokers)
    faults: list[Fault] = []
    for kind, rates in _PER_SECOND.items():
        rate = random.choice(rates)
        if rate:
            faults += _drawn_faults(stream(seed, "cluster faults", kind), kind, rate)
    faults.sort(key=lambda fault: fault.at_us)
    habits = _gentle(drawn_habits(random))
    plan = Plan(seed=seed, setup=setup, habits=habits, faults=tuple(faults), events=events)
    return with_log_upkeep(plan) if has_upkeep else plan


def _drawn_setup(random: Random, nodes: int | None, brokers: int | None) -> Setup:
    drawn_nodes = random.choice((1, 1, 3, 3, 2))
    controllers = tuple(range(1, 1 + (nodes or drawn_nodes)))
    drawn_count = random.choice((2, 3, 3, 3, 4))
    count = brokers or drawn_count  # as many as were drawn make the same run
    return Setup(
        voters=controllers,
        is_dynamic=random.random() < 0.5,
        election_timeout_ms=random.choice((300, 1_000)),
        fetch_timeout_ms=random.choice((1_200, 2_000)),
        election_backoff_max_ms=random.choice((20, 100)),
        request_timeout_ms=random.choice((1_000, 2_000)),
        retry_backoff_ms=random.choice((20, 50)),
        snapshot_every_bytes=random.choice((5_000, 20_000, 20_971_520)),
        retention_bytes=random.choice((5_000, 104_857_600)),
        idle_interval_ms=random.choice((0, 500)),
        segment_bytes=random.choice((5_000, 1_073_741_824)),
        clients=random.choice((0, 0, 1)),
        brokers=tuple(range(_FIRST_BROKER, _FIRST_BROKER + count)),
        data=_drawn_workload(random, count),
    )


def _drawn_workload(random: Random, brokers: int) -> Workload:
    replicas = min(brokers, random.choice((2, 3, 3)))
    return Workload(
        topics=random.choice((1, 2, 2)),
        partitions=random.choice((1, 2, 3)),
        replicas=replicas,
        min_isr=random.choice((1, 1, 2, 2)),
        flushes=random.random() < 0.5,
        may_elect_uncleanly=random.random() < 0.15,
        session_ms=random.choice((1_000, 2_000, 3_000)),
        lag_ms=random.choice((500, 1_000, 3_000)),
        fetch_wait_ms=random.choice((50, 200, 500)),
        fetch_backoff_ms=random.choice((20, 100)),
        fetch_max_bytes=random.choice((100, 1_000, 1_048_576)),
        sessions=random.choice((8, 1_000)),
        rebalance_seconds=random.choice((1, 5, 300)),
        producers=random.choice((1, 2, 4)),
        consumers=random.choice((0, 1, 2)),
        members=random.choice((0, 1, 2, 3)),
    )


def _gentle(habits: Habits) -> Habits:
    """Keep wires fast enough for sessions of a second: slow ones are a fault."""
    return replace(habits, delay_most_us=min(habits.delay_most_us, 5_000))


def _drawn_faults(random: Random, kind: str, per_second: float) -> Iterator[Fault]:
    for at_us in fault_times(random, per_second, from_us=_BROKERS_BEGIN_US):
        fault = drawn_fault(random, kind, at_us)
        aim = random.choice(("", *_ELSEWHERE))
        yield replace(fault, target=f"{aim}:{random.randrange(60)}") if aim else fault
