"""Nodes that give each other responses which are odd in their shape, for a while.

Drawn from a separate random stream: setup, clients, habits and the other faults stay what the seed
draws.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kraft_wire.sim.plans.plan import Plan, drawn_fault, fault_times
from kraft_wire.sim.scheduler import stream

__all__ = ["with_odd_answers"]

_KIND: Final = "odd-answers"
_PER_SECOND: Final = (0.5, 1.5, 4)


def with_odd_answers(plan: Plan) -> Plan:
    """Return the plan of a quorum or a cluster, and times at which a node's responses are odd."""
    random = stream(plan.seed, _KIND)
    times = fault_times(random, random.choice(_PER_SECOND), from_us=0)
    odd = [drawn_fault(random, _KIND, at_us) for at_us in times]
    faults = sorted((*plan.faults, *odd), key=lambda fault: fault.at_us)
    return replace(plan, faults=tuple(faults))
