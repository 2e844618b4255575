"""All checks of one partition that need only its batches; each fault is reported once.

A fault may break several: a batch whose epoch was hit is also missing from where others have it, a
log that was cut ends below the high watermark and cannot hold what was acknowledged. The most
specific check reports it; later checks leave out its offsets.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kraft_wire.audit.comparison import disagreements
from kraft_wire.audit.fault import END_OF_LOG, Fault, explains
from kraft_wire.audit.finding import CHECKS, NO_OFFSET, Finding
from kraft_wire.audit.layout import Layout, layout_of
from kraft_wire.audit.replica import Replica
from kraft_wire.audit.replica_checks import check_producer, epoch_faults
from kraft_wire.audit.replica_set_checks import (
    beginning_faults,
    disagreement_fault,
    highest_watermark,
    loss_faults,
)
from kraft_wire.model import Uuid

__all__ = ["PartitionFacts", "PartitionJudgement", "audit_partition", "judge_partition"]

METADATA_TOPIC: Final = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The facts about a partition besides its replicas' files."""

    isr: frozenset[str] | None = None
    """Nodes, as text, that are in sync, or eligible (KIP-966); None if no metadata log has it."""
    leader: str | None = None
    high_watermark: int = NO_OFFSET
    """From another source than the replicas."""
    topic_id: Uuid | None = None


@dataclass(frozen=True, slots=True)
class PartitionJudgement:
    """The result of a partition's batches: layouts by node, and the faults."""

    layouts: list[Layout]
    faults: list[Fault]

    def layout(self, node: str) -> Layout | None:
        """Return the layout of a node's replica."""
        return next((each for each in self.layouts if each.replica.node == node), None)

    def findings(self, checks: Collection[str] = CHECKS) -> list[Finding]:
        """Return the findings of the given checks."""
        return [fault.finding for fault in self.faults if fault.finding.check in checks]


def audit_partition(
    replicas: Sequence[Replica], facts: PartitionFacts, checks: Collection[str] = CHECKS
) -> list[Finding]:
    """Return the findings that batches alone decide: all but acknowledged, snapshot and index."""
    return judge_partition(replicas, facts).findings(checks)


def judge_partition(
    replicas: Sequence[Replica], facts: PartitionFacts, reported: Iterable[Fault] = ()
) -> PartitionJudgement:
    """Judge all replicas of a partition, in the order from the most specific check on.

    `reported` are faults that were found before and explain offsets already.
    """
    layouts = [layout_of(replica) for replica in replicas]
    by_node = {layout.replica.node: layout for layout in layouts}
    faults = [fault for layout in layouts for fault in layout.faults]
    epochs = {layout.replica.node: epoch_faults(layout.replica, layout.rows) for layout in layouts}
    high_watermark = highest_watermark(replicas, facts.high_watermark)
    disagreeing = [
        disagreement_fault(each, by_node[each.odd[0]], high_watermark)
        for each in disagreements(layouts, {node: rows for node, (_, rows) in epochs.items()})
    ]
    faults = _with_disagreements(faults, disagreeing)
    faults += [
        fault
        for own, _ in epochs.values()
        for fault in own
        if not explains(disagreeing, fault.finding.node, fault.first_offset)
    ]
    faults += beginning_faults(layouts)
    faults = _with_losses(faults, layouts, facts, [*reported])
    for layout in layouts:
        node = layout.replica.node
        if not any(node in fault.finding.nodes for fault in faults):
            faults += [Fault(each, each.offset) for each in check_producer(layout.replica)]
    return PartitionJudgement(layouts, faults)


def _with_disagreements(faults: list[Fault], disagreeing: list[Fault]) -> list[Fault]:
    """Add differences of replicas; the gaps around replaced batches are already reported."""
    for at, fault in enumerate(disagreeing):
        while gap := next((each for each in faults if _touches(each, fault)), None):
            faults = [each for each in faults if each is not gap]
            first = min(fault.first_offset, gap.first_offset)
            end = max(fault.end_offset, gap.end_offset)
            disagreeing[at] = fault = replace(fault, first_offset=first, end_offset=end)
    return faults + disagreeing


def _touches(gap: Fault, fault: Fault) -> bool:
    is_gap = gap.finding.check == "gap" and gap.end_offset > gap.first_offset
    is_graver = fault.finding.severity == "error"
    is_near = gap.first_offset <= fault.end_offset and gap.end_offset >= fault.first_offset
    return is_gap and is_graver and is_near and gap.finding.node in fault.finding.nodes


def _with_losses(
    faults: list[Fault], layouts: Sequence[Layout], facts: PartitionFacts, reported: list[Fault]
) -> list[Fault]:
    """Add losses at the end of logs, unless another fault explains them."""
    torn = [fault for layout in layouts if (fault := layout.torn_fault) is not None]
    others = [fault for fault in [*faults, *reported] if fault not in torn]
    for loss in loss_faults(layouts, facts.isr, facts.high_watermark):
        nodes = loss.finding.nodes
        ending = [each for each in others if each.end_offset == END_OF_LOG]
        if all(explains(ending, node, loss.first_offset) for node in nodes):
            continue
        faults = [each for each in faults if each not in torn or each.finding.node not in nodes]
        faults.append(loss)
    return faults
