"""Draws the new groups of a cluster, consumer, share and streams, from separate random streams.

Nodes, habits and faults of a seed stay the same, but for faults with which promises about groups
are lost. The new clients take the place of the consumers and of most classic members.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kraft_wire.sim.plans.plan import Plan
from kraft_wire.sim.scheduler import stream

__all__ = ["NEVER_WITH_GROUPS", "with_groups"]

NEVER_WITH_GROUPS: Final = ("elect-uncleanly", "delete-topic")
"""Faults with which the promises about a group's offsets and records are lost."""


def with_groups(plan: Plan) -> Plan:
    """Return the plan of a cluster with a consumer group, a share group, or both.

    Every third cluster has a streams group besides.
    """
    random = stream(plan.seed, "groups")
    kinds = random.choice(("consumer", "share", "both"))
    consumer_members, share_members = random.choice((1, 2, 3, 4)), random.choice((1, 2, 3))
    streams_members = stream(plan.seed, "streams group").choice((0, 0, 0, 0, 2, 3))
    data = replace(
        plan.setup.data,
        may_elect_uncleanly=False,
        consumers=0,
        members=1,
        consumer_members=0 if kinds == "share" else consumer_members,
        static_members=random.choice((0, 1, 2)),
        streams_members=streams_members,
        share_members=0 if kinds == "consumer" else share_members,
        delivery_limit=random.choice((2, 5, 5, 10)),
    )
    faults = tuple(each for each in plan.faults if each.kind not in NEVER_WITH_GROUPS)
    return replace(plan, setup=replace(plan.setup, data=data), faults=faults)
