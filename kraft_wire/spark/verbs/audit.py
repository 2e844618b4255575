"""`kraft-wire spark audit`: the audit of `kraft_wire.audit`, read and judged by Spark's workers.

It has the same plan, the same pure checks and so the same findings; only the readers differ. A task
is some partitions with all their replicas, so every worker must see all directories. A partition
that is larger than a task is read by segments, whose batch headers are judged here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from kraft_wire.audit.collector import (
    AuditPlan,
    AuditResult,
    CannotAudit,
    PartitionTask,
    TaskResult,
    checks_of,
    plan_audit,
    read_high_watermarks,
    read_ledger_file,
    run_snapshots,
    run_tasks,
)
from kraft_wire.audit.collector.tasks import ReadSegment, judge_task, run_segment
from kraft_wire.audit.replica import Batches
from kraft_wire.audit.report import refuse_place, write_report
from kraft_wire.columnar import PartitionFiles
from kraft_wire.model import StorageError
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.registration import parallelism_of
from kraft_wire.spark.workers import Amount, Tell, run_on_workers, silent
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["PreparedAudit", "audit_directories", "prepare_audit", "run_prepared"]

_TASK_BYTES_MIN: Final = 16 << 20
_TASK_BYTES_MAX: Final = 256 << 20
_TASKS_PER_CORE: Final = 4


@dataclass(frozen=True, slots=True)
class PreparedAudit:
    """The input and the checks of an audit."""

    plan: AuditPlan
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Share:
    """The work of one task: partitions, a segment of a large one, or all snapshots."""

    partitions: tuple[PartitionTask, ...] = ()
    segment: ReadSegment | None = None
    place: tuple[int, int, int] = (-1, -1, -1)
    """Of a segment: which large partition, replica and segment it is."""
    snapshots: tuple[PartitionFiles, ...] = ()


@dataclass(slots=True)
class _Gathering:
    """The batches of a large partition's segments, by replica."""

    task: PartitionTask
    read: list[list[Batches]] = field(default_factory=list)


def prepare_audit(
    node_dirs: Sequence[str],
    *,
    checks: str | None = None,
    acks: Path | None = None,
    high_watermark: Path | None = None,
    output: str | None = None,
) -> PreparedAudit:
    """List the directories and read the files of --acks and --high-watermark."""
    try:
        if output is not None:
            refuse_place(Path(output), node_dirs)
        ledger = None if acks is None else read_ledger_file(acks)
        reported = None if high_watermark is None else read_high_watermarks(high_watermark)
        plan = plan_audit(node_dirs, ledger=ledger, high_watermarks=reported)
        return PreparedAudit(plan, tuple(checks_of(checks)))
    except CannotAudit as error:
        raise PipelineError(str(error)) from error


def audit_directories(
    spark: SparkSession,
    node_dirs: Sequence[str],
    output: str | None = None,
    *,
    checks: str | None = None,
    acks: Path | None = None,
    high_watermark: Path | None = None,
    tell: Tell = silent,
) -> AuditResult:
    """Audit directories; findings.parquet and report.html go to `output`.

    Errors: PipelineError if the audit cannot run; findings are in the result.
    """
    prepared = prepare_audit(
        node_dirs, checks=checks, acks=acks, high_watermark=high_watermark, output=output
    )
    return run_prepared(spark, prepared, output, tell=tell)


def run_prepared(
    spark: SparkSession, prepared: PreparedAudit, output: str | None = None, *, tell: Tell = silent
) -> AuditResult:
    """Run the prepared audit."""
    plan = prepared.plan
    cores = parallelism_of(spark)
    size = plan.size_bytes // (cores * _TASKS_PER_CORE)
    size = min(max(size, _TASK_BYTES_MIN), _TASK_BYTES_MAX)
    large = [_Gathering(task) for task in plan.tasks if _is_large(task, size)]
    shares = _shares(prepared, large, size)
    checks = prepared.checks
    outcome = TaskResult(plan.known_findings(checks))
    done = run_on_workers(
        spark, shares, lambda share: _run(share, checks), amount_of=_amount_of, tell=tell
    )
    for share, result in zip(shares, done, strict=True):
        if isinstance(result, TaskResult):
            outcome.add(result)
        else:
            large[share.place[0]].read[share.place[1]].append(result)
    for gathering in large:
        outcome.add(_judged(gathering, checks))
    outcome.findings += plan.hanging_findings(outcome, checks)
    nodes = sorted({each.node for task in plan.tasks for each in task.source.replicas})
    found = AuditResult(outcome, nodes, len(plan.tasks), plan.cluster_id)
    if output is not None:
        write_report(found, Path(output))
    return found


def _is_large(task: PartitionTask, task_bytes: int) -> bool:
    segments = sum(len(files.segments) for files in task.source.replicas)
    return task.source.size_bytes > task_bytes and segments > 1


def _shares(prepared: PreparedAudit, large: Sequence[_Gathering], task_bytes: int) -> list[_Share]:
    """Return the work of each task, the largest first."""
    shares: list[_Share] = []
    for number, gathering in enumerate(large):
        for replica, files in enumerate(gathering.task.source.replicas):
            gathering.read.append([])
            shares += [
                _Share(segment=ReadSegment(files, segment), place=(number, replica, at))
                for at, segment in enumerate(files.segments)
            ]
    apart = {id(gathering.task) for gathering in large}
    rest = AuditPlan([task for task in prepared.plan.tasks if id(task) not in apart], [], [])
    shares += [_Share(partitions=tuple(pack)) for pack in rest.packs(task_bytes)]
    copies = tuple(prepared.plan.snapshot_copies)
    if "snapshot" in prepared.checks and copies:
        shares.append(_Share(snapshots=copies))
    return shares


def _judged(gathering: _Gathering, checks: Collection[str]) -> TaskResult:
    try:
        return judge_task(OsFileSystem(), gathering.task, checks, gathering.read)
    except StorageError as error:
        raise PipelineError(str(error)) from None


def _run(share: _Share, checks: Collection[str]) -> TaskResult | Batches:
    """Do one task's share on a worker."""
    try:
        if share.segment is not None:
            return run_segment(share.segment)
        if share.snapshots:
            return run_snapshots(share.snapshots)
        return run_tasks(share.partitions, checks)
    except StorageError as error:
        raise PipelineError(str(error)) from None


def _amount_of(share: _Share, result: TaskResult | Batches) -> Amount:
    if isinstance(result, TaskResult):
        files = sum(
            len(each.segments) for task in share.partitions for each in task.source.replicas
        )
        return Amount(files, result.size_bytes)
    return Amount(1, int(result.size_bytes.sum()))
