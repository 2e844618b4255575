"""Eligible leader replicas in a cluster: its nodes, clients and faults stay what its seed draws."""

from __future__ import annotations

from dataclasses import replace

from kraft_wire.metadata.features import ELR_VERSION, METADATA_VERSION, missing_dependency
from kraft_wire.sim.plans.plan import Plan

__all__ = ["with_elr"]


def with_elr(plan: Plan) -> Plan:
    """Return the plan of a cluster that keeps eligible leader replicas from its start on (KIP-966).

    Where its metadata.version is too low for them, it has the newest.
    """
    setup = plan.setup
    assert setup.brokers or setup.combined, "a quorum alone has no replicas"
    levels = {METADATA_VERSION: setup.metadata_version}
    is_too_low = setup.metadata_version and missing_dependency(ELR_VERSION, 1, levels)
    level = 0 if is_too_low else setup.metadata_version
    return replace(plan, setup=replace(setup, metadata_version=level, keeps_elr=True))
