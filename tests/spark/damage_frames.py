"""Damage after damage, audited and read by Spark: the same findings, and the rows that are whole.

A job of Spark's takes a quarter of a second, a frame of the directories of one seed half a second.
So each seed is audited while it is there, every fourth one by segments as a large partition is, and
copies of its replicas are kept under a topic of its own: the frames read those of many seeds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa
from pyarrow import compute as pc

from kraft_wire.audit import CHECKS
from kraft_wire.audit.collector import AuditPlan, AuditResult, run_audit
from kraft_wire.spark.verbs import audit as spark_audit
from kraft_wire.spark.verbs.audit import PreparedAudit, run_prepared
from tests.audit.campaign import Campaign, Judged, Verdict
from tests.audit.faults import LOG_STARTS, Damage, Replicas, checkpointed
from tests.audit.reading import MODES, differing, rows_of_table
from tests.audit.whole import chosen_rows, whole_log
from tests.columnar.by_wire import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS_PER_FRAME = 100
BY_SEGMENTS = 4
"""Every so many seeds a partition counts as large."""
SETS = ("alone", "together")
"""The damaged replica without the others, and all of them."""


@dataclass(frozen=True)
class Wanted:
    """One seed that was audited and waits for the frames."""

    judged: Judged
    topic: str
    rows: dict[str, list[Row]]
    """What is whole, by set of copies."""


def run_by_spark(
    spark: SparkSession, campaign: Campaign, seeds: Iterable[int], scratch: Path
) -> Iterator[Judged]:
    """Live through seeds, and yield them judged, some at a time; `scratch` is on the same disk."""
    left = list(seeds)
    while left:
        now, left = left[:SEEDS_PER_FRAME], left[SEEDS_PER_FRAME:]
        copies = Copies(scratch / f"copies-{now[0]}")
        yield from copies.read(spark, [_audited(spark, campaign, seed, copies) for seed in now])
        shutil.rmtree(copies.directory)


def _audited(spark: SparkSession, campaign: Campaign, seed: int, copies: Copies) -> Wanted:
    with campaign.damaged(seed) as damage:
        plan = campaign.plan_for(damage)
        plain = run_audit(plan, processes=1)
        own = _audit(spark, plan, by_segments=seed % BY_SEGMENTS == 0)
        topic = copies.add(seed, damage, campaign.replicas)
        directory = campaign.replicas.nodes[damage.node] / f"{damage.topic}-{damage.partition}"
        rows = {
            "alone": whole_log(directory, damage).rows,
            "together": chosen_rows(campaign.replicas, damage),
        }
    judged = campaign.judge(seed, damage, own.findings, None)
    if (own.findings, own.summary()) != (plain.findings, plain.summary()):
        reason = f"the plain audit says {plain.summary()} {plain.findings}"
        judged = judged._replace(verdict=Verdict.UNLIKE, reason=reason)
    return Wanted(judged, topic, rows)


def _audit(spark: SparkSession, plan: AuditPlan, *, by_segments: bool) -> AuditResult:
    small = patch.multiple(spark_audit, _TASK_BYTES_MIN=1, _TASK_BYTES_MAX=1)
    with small if by_segments else nullcontext():
        return run_prepared(spark, PreparedAudit(plan, CHECKS))


class Copies:
    """Damaged replicas of many seeds, each under a topic of its own; files are hard links."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._starts: dict[Path, dict[str, int]] = {}

    def add(self, seed: int, damage: Damage, replicas: Replicas) -> str:
        """Take what a seed left of its partition; return the topic of the copies."""
        topic = f"{seed}.{damage.topic}"
        for node, path in replicas.nodes.items():
            for name in SETS:
                if name == "together" or node == damage.node:
                    self._copy(path, self.directory / name / node, topic, damage)
        return topic

    def read(self, spark: SparkSession, wanted: list[Wanted]) -> Iterator[Judged]:
        """Read the copies in both modes, and say of each seed what became of it."""
        self._write_starts()
        frames = {(name, mode): self._frame(spark, name, mode) for name in SETS for mode in MODES}
        for each in wanted:
            judged = each.judged
            for (name, mode), frame in frames.items():
                rows = rows_of_table(frame.filter(pc.field("topic") == each.topic))
                wrong = differing(rows, each.rows[name])
                if wrong and judged.verdict is Verdict.NAMED:
                    reason = f"{mode} of replicas {name}: {wrong}"
                    judged = judged._replace(verdict=Verdict.MISREAD, reason=reason)
            yield judged

    def _copy(self, node: Path, to: Path, topic: str, damage: Damage) -> None:
        if to not in self._starts:
            to.mkdir(parents=True)
            shutil.copy(node / "meta.properties", to)
        place = (damage.topic, damage.partition)
        starts = checkpointed(node / LOG_STARTS)
        own = self._starts.setdefault(to, {})
        source = node / f"{damage.topic}-{damage.partition}"
        if source.is_dir():
            shutil.copytree(source, to / f"{topic}-{damage.partition}", copy_function=os.link)
            if place in starts:
                own[f"{topic} {damage.partition}"] = starts[place]

    def _write_starts(self) -> None:
        for node, starts in self._starts.items():
            lines = [f"{place} {offset}" for place, offset in sorted(starts.items())]
            (node / LOG_STARTS).write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")

    def _frame(self, spark: SparkSession, name: str, mode: str) -> pa.Table:
        """All rows of a set of copies."""
        nodes = sorted(str(node) for node in (self.directory / name).iterdir())
        reader = spark.read.format("kraftlog").options(onCorrupt=mode, includeHeaders="true")
        return reader.load(nodes).toArrow()
