"""Adds tools to a cluster from a separate random stream, and groups unless it has transactions.

Faults with which promises about a group's offsets are lost are left out.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_wire.sim.plans.group_plan import NEVER_WITH_GROUPS, with_groups
from kraft_wire.sim.plans.plan import Plan
from kraft_wire.sim.scheduler import stream

__all__ = ["with_tools"]


def with_tools(plan: Plan) -> Plan:
    """Return the plan of a cluster whose offsets are also kept by tools."""
    random = stream(plan.seed, "tools")
    if not plan.setup.data.transactors:
        plan = with_groups(plan)
    data = replace(plan.setup.data, may_elect_uncleanly=False, tools=random.choice((1, 2, 2, 3)))
    faults = tuple(each for each in plan.faults if each.kind not in NEVER_WITH_GROUPS)
    return replace(plan, setup=replace(plan.setup, data=data), faults=faults)
