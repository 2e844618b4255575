"""Draws the transactional clients of a cluster, from separate random streams.

Setup, habits and faults of a seed stay the same; a seed without transactions keeps its trace. In
the others the new clients share network and brokers with the old ones.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from kraft_wire.sim.plans.plan import Plan, drawn_fault
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.workload import Workload

__all__ = ["with_transactions"]

_SHARE: Final = 0.5
"""Of the seeds that draw transactions."""
_AGED_SHARE: Final = 0.3
_AGED_US: Final = (1_500_000, 6_000_000)
_WEEK_MS: Final = 604_800_000


def with_transactions(plan: Plan, *, always: bool = False) -> Plan:
    """Return the plan with the transactions that its seed draws, or the plan itself.

    No transactions if elections may lose records: the promises of a transaction are lost with them.
    """
    random = stream(plan.seed, "transactions")
    is_drawn = random.random() < _SHARE or always
    data = replace(plan.setup.data, may_elect_uncleanly=False) if always else plan.setup.data
    if not is_drawn or data.may_elect_uncleanly:
        return plan
    setup = replace(plan.setup, data=_drawn_workload(random, data))
    faults = list(plan.faults)
    if random.random() < _AGED_SHARE:
        at_us = random.randrange(*_AGED_US)
        faults.append(drawn_fault(random, "aged-id", at_us))
        faults.sort(key=lambda fault: fault.at_us)
    return replace(plan, setup=setup, faults=tuple(faults))


def _drawn_workload(random: Random, data: Workload) -> Workload:
    transactors = random.choice((1, 2, 3, 4))
    return replace(
        data,
        transactors=transactors,
        twins=random.choice((0, 0, 1, transactors)),
        stable_readers=random.choice((1, 1, 2)),
        transaction_version=random.choice((2, 2, 2, 2, 2, 1, 0)),
        transaction_partitions=random.choice((1, 1, 2)),
        transaction_timeout_ms=random.choice((800, 2_000, 5_000)),
        id_expiration_ms=random.choice((_WEEK_MS, _WEEK_MS, 3_000)),
    )
