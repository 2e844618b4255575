"""An audit from directories to findings: planned, spread over all cores, and added up.

Partitions are packed by bytes, so that each process gets a fair share; one that is larger than that
is read by segments. Workers are new processes, never forks, and few tasks are in progress at once,
so memory stays bounded. A small audit stays in this process.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from typing import Any, Final

from kraft_wire.audit.collector.checkpoints import (
    checkpointed_watermarks,
    cleaned_partitions,
    damaged_checkpoints,
    highest_watermarks,
)
from kraft_wire.audit.collector.metadata import MetadataLog, cluster_facts, quorum_high_watermark
from kraft_wire.audit.collector.missing_replicas import MissingReplicas, directory_ids
from kraft_wire.audit.collector.sources import (
    CannotAudit,
    cluster_id_of,
    list_sources,
    node_directories,
)
from kraft_wire.audit.collector.tasks import (
    PartitionTask,
    ReadSegment,
    TaskResult,
    judge_task,
    run_segment,
    run_snapshots,
    run_tasks,
)
from kraft_wire.audit.collector.transaction_states import hanging_findings
from kraft_wire.audit.finding import CHECKS, NO_OFFSET, Finding
from kraft_wire.audit.ledger import Acknowledged
from kraft_wire.audit.partition_audit import METADATA_TOPIC
from kraft_wire.audit.replica import Batches
from kraft_wire.columnar import PartitionFiles
from kraft_wire.model import StorageError
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["AuditPlan", "AuditResult", "plan_audit", "run_audit"]

_PACK_BYTES_MIN: Final = 8 << 20
_PACK_BYTES_MAX: Final = 256 << 20
_PACK_PARTITIONS_MAX: Final = 512
_PACKS_PER_PROCESS: Final = 8
_OPEN_COST_BYTES: Final = 64 << 10
_SMALL_BYTES: Final = 96 << 20
"""Below this a pool takes longer to start than the work takes."""

_UNDER_WAY_PER_PROCESS: Final = 2


@dataclass(slots=True)
class AuditPlan:
    """The plan, as values that can be sent to any worker."""

    tasks: list[PartitionTask]
    snapshot_copies: list[PartitionFiles]
    """The copies of the metadata log, whose directories hold the snapshots."""

    findings: list[Finding]
    """Findings before a log is read: missing directories, damaged checkpoints."""
    cluster_id: str = ""
    """Empty if no directory has it."""

    def known_findings(self, checks: Collection[str]) -> list[Finding]:
        """Return the findings of the given checks; `acknowledged` names a loss better."""
        chosen = [each for each in self.findings if each.check in checks]
        reported = {(each.topic, each.partition) for each in chosen if each.check == "acknowledged"}
        return [
            each
            for each in chosen
            if each.check == "acknowledged" or (each.topic, each.partition) not in reported
        ]

    def hanging_findings(
        self, outcome: TaskResult, checks: Collection[str], wall_ms: int | None = None
    ) -> list[Finding]:
        """Judge the open transactions at the ends of all logs, overdue ones by the clock."""
        if "hanging" not in checks:
            return []
        wall_ms = int(time.time() * 1000) if wall_ms is None else wall_ms
        sources = [task.source for task in self.tasks]
        return [*hanging_findings(OsFileSystem(), sources, outcome.open_transactions, wall_ms)]

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return sum(task.source.size_bytes for task in self.tasks)

    def packs(self, pack_bytes: int) -> Iterator[list[PartitionTask]]:
        """Yield partitions in groups of some bytes each, the large ones first and alone."""
        pack: list[PartitionTask] = []
        size = 0
        for task in sorted(self.tasks, key=lambda each: -each.source.size_bytes):
            own = task.source.size_bytes + _OPEN_COST_BYTES * len(task.source.replicas)
            if pack and (size + own > pack_bytes or len(pack) >= _PACK_PARTITIONS_MAX):
                yield pack
                pack, size = [], 0
            pack.append(task)
            size += own
        if pack:
            yield pack


@dataclass(slots=True)
class AuditResult:
    """Everything that an audit found."""

    outcome: TaskResult
    nodes: list[str]
    partitions: int
    cluster_id: str = ""

    @property
    def findings(self) -> list[Finding]:
        """The findings, by topic, partition, offset, node."""
        return sorted(
            self.outcome.findings,
            key=lambda each: (each.topic, each.partition, each.offset, each.node, each.check),
        )

    def count(self, severity: str) -> int:
        """Return how many findings are of a severity."""
        return sum(each.severity == severity for each in self.outcome.findings)

    def summary(self) -> dict[str, int]:
        """Return the amount that was read, and the errors."""
        return {
            "nodes": len(self.nodes),
            "partitions": self.partitions,
            "batches": self.outcome.batches,
            "bytes": self.outcome.size_bytes,
            "errors": self.count("error"),
        }


def plan_audit(
    paths: Sequence[str],
    *,
    ledger: dict[tuple[str, int], Acknowledged] | None = None,
    high_watermarks: dict[tuple[str, int], int] | None = None,
    fs: FileSystem | None = None,
) -> AuditPlan:
    """List the directories and read the metadata log's end. Errors: CannotAudit."""
    fs = fs or OsFileSystem()
    directories = node_directories(fs, paths)
    try:
        checkpointed = checkpointed_watermarks(fs, directories)
    except StorageError as error:
        raise CannotAudit(str(error)) from error
    sources = list_sources(fs, checkpointed)
    reported, lines = high_watermarks or {}, ledger or {}
    copies = [
        files for source in sources if source.topic == METADATA_TOPIC for files in source.replicas
    ]
    try:
        log = MetadataLog(fs, copies)
        facts = cluster_facts(fs, log)
        quorum = quorum_high_watermark(fs, log)
        missing_replicas = MissingReplicas(facts, sources, directory_ids(fs, directories))
        cleaned = cleaned_partitions(fs, directories)
        seen = highest_watermarks(checkpointed.values(), reported)
        known_findings = missing_replicas.findings(seen, lines)
        known_findings += damaged_checkpoints(fs, directories)
    except StorageError as error:
        raise CannotAudit(str(error)) from error
    known = {(source.topic, source.partition) for source in sources}
    for what, named in (("the ledger", lines), ("the high watermarks", reported)):
        for topic, partition in named:
            if (topic, partition) not in known and (topic, partition) not in missing_replicas:
                raise CannotAudit(f"{what}: no directory holds {topic}-{partition}")
    tasks = []
    for source in sources:
        key = (source.topic, source.partition)
        watermark = reported.get(key, quorum if source.topic == METADATA_TOPIC else NO_OFFSET)
        tasks.append(
            PartitionTask(
                source,
                facts.of(*key, watermark),
                facts.is_compacted(source.topic) or key in cleaned,
                lines.get(key),
            )
        )
    return AuditPlan(tasks, copies, known_findings, cluster_id_of(fs, directories))


def run_audit(
    plan: AuditPlan,
    checks: Collection[str] = CHECKS,
    *,
    processes: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> AuditResult:
    """Carry out the plan; `progress` gets the number of bytes read since its last call."""
    count = processes or _cores()
    snapshots = plan.snapshot_copies if "snapshot" in checks else []
    try:
        if count == 1 or plan.size_bytes < _SMALL_BYTES:
            outcome = _run_here(plan, snapshots, checks, progress)
        else:
            outcome = _Pool(plan, checks, count, progress).run(snapshots)
    except StorageError as error:
        raise CannotAudit(str(error)) from error
    except BrokenExecutor as error:
        raise CannotAudit("a worker process exited without a result: is memory short?") from error
    outcome.findings += plan.known_findings(checks)
    outcome.findings += plan.hanging_findings(outcome, checks)
    nodes = sorted({each.node for task in plan.tasks for each in task.source.replicas})
    return AuditResult(outcome, nodes, len(plan.tasks), plan.cluster_id)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_here(
    plan: AuditPlan,
    snapshots: Sequence[PartitionFiles],
    checks: Collection[str],
    progress: Callable[[int], None],
) -> TaskResult:
    outcome = run_snapshots(snapshots) if snapshots else TaskResult()
    for task in plan.tasks:
        done = run_tasks([task], checks)
        progress(done.size_bytes)
        outcome.add(done)
    return outcome


@dataclass(slots=True)
class _Gathering:
    """A large partition whose segments are being read."""

    task: PartitionTask
    read: list[list[Batches | None]] = field(default_factory=list)
    left: int = 0


def _pack_bytes(size_bytes: int, processes: int) -> int:
    """Return how much one task is to read: a share of all, neither too small nor too large."""
    share = size_bytes // (processes * _PACKS_PER_PROCESS)
    return min(max(share, _PACK_BYTES_MIN), _PACK_BYTES_MAX)


class _Pool:
    """The processes and their tasks in progress."""

    def __init__(
        self,
        plan: AuditPlan,
        checks: Collection[str],
        processes: int,
        progress: Callable[[int], None],
    ) -> None:
        self._plan = plan
        self._checks = tuple(checks)
        self._processes = processes
        self._progress = progress
        self._pack_bytes = _pack_bytes(plan.size_bytes, processes)
        self._outcome = TaskResult()
        self._under_way: dict[Future[Any], Callable[[Any], None]] = {}

    def run(self, snapshots: Sequence[PartitionFiles]) -> TaskResult:
        """Run everything and return the sum."""
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(
            self._processes, mp_context=context, initializer=_leave_interrupts
        ) as pool:
            try:
                if snapshots:
                    self._submit(pool.submit(run_snapshots, snapshots), self._add)
                for pack in self._plan.packs(self._pack_bytes):
                    self._submit_pack(pool, pack)
                while self._under_way:
                    self._collect(0)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return self._outcome

    def _submit_pack(self, pool: ProcessPoolExecutor, pack: list[PartitionTask]) -> None:
        is_large = pack[0].source.size_bytes > self._pack_bytes
        if is_large and len(pack) == 1 and _segment_count(pack[0]) > 1:
            self._submit_segments(pool, pack[0])
        else:
            self._submit(pool.submit(run_tasks, pack, self._checks), self._add_pack)

    def _submit_segments(self, pool: ProcessPoolExecutor, task: PartitionTask) -> None:
        gathering = _Gathering(task, left=_segment_count(task))
        for index, files in enumerate(task.source.replicas):
            gathering.read.append([None] * len(files.segments))
            for place, segment in enumerate(files.segments):

                def take(batches: Batches, index: int = index, place: int = place) -> None:
                    self._gather(gathering, index, place, batches)

                self._submit(pool.submit(run_segment, ReadSegment(files, segment)), take)

    def _gather(self, gathering: _Gathering, index: int, place: int, batches: Batches) -> None:
        gathering.read[index][place] = batches
        gathering.left -= 1
        self._progress(int(batches.size_bytes.sum()))
        if gathering.left == 0:
            read = [[part for part in own if part is not None] for own in gathering.read]
            self._outcome.add(judge_task(OsFileSystem(), gathering.task, self._checks, read))

    def _submit(self, future: "Future[Any]", then: Callable[[Any], None]) -> None:
        self._under_way[future] = then
        self._collect(self._processes * _UNDER_WAY_PER_PROCESS)

    def _collect(self, keep: int) -> None:
        """Wait until no more than `keep` tasks are in progress, or one of them is done."""
        while len(self._under_way) > keep:
            done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=id):
                self._under_way.pop(future)(future.result())
            if not keep:
                return

    def _add(self, outcome: TaskResult) -> None:
        self._outcome.add(outcome)

    def _add_pack(self, outcome: TaskResult) -> None:
        self._progress(outcome.size_bytes)
        self._outcome.add(outcome)


def _leave_interrupts() -> None:
    """Let the parent alone answer Ctrl-C: it ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _segment_count(task: PartitionTask) -> int:
    return sum(len(files.segments) for files in task.source.replicas)
