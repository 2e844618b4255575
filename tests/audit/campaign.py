"""One seed after the other: damage, audit, judge, undo.

Nothing but the damaged partition can change, so only that is audited anew; that the rest is clean
is shown once. What a clean directory tells (information, warnings of a crash) is not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from kraft_wire.audit import CHECKS, Finding
from kraft_wire.audit.collector import AuditPlan, Outcome, plan_audit, run_snapshots, run_tasks
from tests.audit.faults import METADATA, Damage, Replicas, damaged


class Verdict(Enum):
    """What became of one fault."""

    NAMED = "named once"
    MISSED = "missed"
    REPEATED = "repeated"
    MISNAMED = "misnamed"


class Campaign:
    """Clean directories of several nodes that are damaged again and again."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._paths = [str(directory) for directory in directories]
        plan = self.plan()
        compacted = frozenset(task.source.topic for task in plan.tasks if task.is_compacted)
        self.replicas = Replicas.of(directories, compacted)
        self.before = _audit(plan, None)
        assert not any(each.severity == "error" for each in self.before), self.before

    def plan(self) -> AuditPlan:
        """What there is to audit now."""
        return plan_audit(self._paths)

    def run(self, seed: int) -> tuple[Damage, Verdict, list[Finding]]:
        """Live through one seed."""
        damage = damaged(self.replicas, seed)
        try:
            found = _audit(self.plan(), damage)
        finally:
            damage.undo()
        found = [each for each in found if each not in self.before]
        return damage, _judge(damage, found), found


def _audit(plan: AuditPlan, damage: Damage | None) -> list[Finding]:
    outcome = Outcome()
    tasks = [
        task
        for task in plan.tasks
        if damage is None
        or (task.source.topic, task.source.partition) == (damage.topic, damage.partition)
    ]
    outcome.add(run_tasks(tasks, CHECKS))
    if damage is None or damage.topic == METADATA:
        outcome.add(run_snapshots(plan.snapshot_copies))
    return outcome.findings


def _judge(damage: Damage, found: list[Finding]) -> Verdict:
    if not found:
        return Verdict.MISSED
    if len(found) > 1:
        return Verdict.REPEATED
    (finding,) = found
    named = (finding.node, finding.topic, finding.partition)
    is_right = named == (damage.node, damage.topic, damage.partition)
    return Verdict.NAMED if is_right and finding.check in damage.checks else Verdict.MISNAMED
