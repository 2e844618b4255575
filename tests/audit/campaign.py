"""One seed after the other: damage, audit, read, judge, undo.

Nothing but the damaged partition can change, so only that is audited and read anew; that the rest
is clean is shown once. What a clean directory tells (information, warnings of a crash) is not
counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from kraft_wire.audit import Finding
from kraft_wire.audit.collector import AuditPlan, plan_audit, run_audit
from tests.audit.faults import METADATA, Damage, Replicas, damaged
from tests.audit.reading import misread


class Verdict(Enum):
    """What became of one fault."""

    NAMED = "named once"
    MISSED = "missed"
    REPEATED = "repeated"
    MISNAMED = "misnamed"
    MISREAD = "misread"
    """Named once, but `skip` or `report` did not read what is whole."""
    UNLIKE = "unlike"
    """Spark's audit and the plain one differ."""


class Judged(NamedTuple):
    """One seed."""

    seed: int
    damage: Damage
    verdict: Verdict
    findings: list[Finding]
    reason: str = ""
    """What was misread, or unlike."""


class Campaign:
    """Clean directories of several nodes that are damaged again and again."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._paths = [str(directory) for directory in directories]
        plan = plan_audit(self._paths)
        compacted = frozenset(task.source.topic for task in plan.tasks if task.is_compacted)
        self.replicas = Replicas.of(directories, compacted)
        self.before = run_audit(plan, processes=1).findings
        assert not any(each.severity == "error" for each in self.before), self.before

    def run(self, seed: int) -> Judged:
        """Live through one seed."""
        with self.damaged(seed) as damage:
            findings = run_audit(self.plan_for(damage), processes=1).findings
            reason = misread(self.replicas, damage)
        return self.judge(seed, damage, findings, reason)

    @contextmanager
    def damaged(self, seed: int) -> Iterator[Damage]:
        """Have the damage of a seed for a while."""
        damage = damaged(self.replicas, seed)
        try:
            yield damage
        finally:
            damage.undo()

    def plan_for(self, damage: Damage) -> AuditPlan:
        """What there is to audit of the damaged partition now."""
        plan = plan_audit(self._paths)
        place = (damage.topic, damage.partition)
        tasks = [task for task in plan.tasks if (task.source.topic, task.source.partition) == place]
        copies = plan.snapshot_copies if damage.topic == METADATA else []
        return replace(plan, tasks=tasks, snapshot_copies=copies)

    def judge(
        self, seed: int, damage: Damage, findings: Sequence[Finding], reason: str | None
    ) -> Judged:
        """Say what became of a fault: what was found, and what was misread if anything was."""
        found = [each for each in findings if each not in self.before]
        verdict = _verdict(damage, found)
        if verdict is Verdict.NAMED and reason:
            verdict = Verdict.MISREAD
        return Judged(seed, damage, verdict, found, reason or "")


def _verdict(damage: Damage, found: list[Finding]) -> Verdict:
    if not found:
        return Verdict.MISSED
    if len(found) > 1:
        return Verdict.REPEATED
    (finding,) = found
    named = (finding.node, finding.topic, finding.partition)
    is_right = named == (damage.node, damage.topic, damage.partition)
    return Verdict.NAMED if is_right and finding.check in damage.checks else Verdict.MISNAMED
