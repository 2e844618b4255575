"""The pieces of an audit: plain values that are sent to a worker, and their results.

The worker may be a process of the pool or a task of Spark. A partition is judged by the worker that
read all its replicas. Several workers read a large partition segment by segment, and the process
that gathers the batches judges it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kraft_wire.audit.collector.metadata import MetadataLog, audit_snapshots
from kraft_wire.audit.collector.reading import (
    read_acknowledged,
    read_indexes,
    read_replica,
    read_segment,
    read_transaction_files,
)
from kraft_wire.audit.collector.sources import PartitionReplicas
from kraft_wire.audit.fault import Fault, explains
from kraft_wire.audit.finding import CHECKS, NO_OFFSET, NOWHERE, Finding
from kraft_wire.audit.index_checks import check_index
from kraft_wire.audit.layout import Layout
from kraft_wire.audit.ledger import Acknowledged, check_acknowledged
from kraft_wire.audit.partition_audit import PartitionFacts, PartitionJudgement, judge_partition
from kraft_wire.audit.replica import Batches
from kraft_wire.audit.transaction_checks import OpenTransaction, check_transactions
from kraft_wire.columnar import PartitionFiles, SegmentFile
from kraft_wire.model import uuid_to_text
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.partition_metadata import read_topic_id
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.os_files import OsFileSystem

__all__ = [
    "Extent",
    "PartitionTask",
    "ReadSegment",
    "TaskResult",
    "judge_task",
    "run_segment",
    "run_snapshots",
    "run_tasks",
]

_DAMAGE = ("crc", "log-matching", "divergence")
_LOSS = ("gap", "below-high-watermark")


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """One partition with all facts besides its files."""

    source: PartitionReplicas
    facts: PartitionFacts
    is_compacted: bool = False
    ledger: Acknowledged | None = None


@dataclass(frozen=True, slots=True)
class ReadSegment:
    """One segment of one replica."""

    files: PartitionFiles
    segment: SegmentFile


@dataclass(frozen=True, slots=True)
class Extent:
    """The offsets of one replica, for the map of a report."""

    node: str
    topic: str
    partition: int
    first_offset: int
    log_start_offset: int
    log_end_offset: int
    size_bytes: int
    segments: tuple[int, ...]
    """Their first offsets."""
    segment_bytes: tuple[int, ...] = ()


@dataclass(slots=True)
class TaskResult:
    """The findings, and the amount that was read."""

    findings: list[Finding] = field(default_factory=list)
    extents: list[Extent] = field(default_factory=list)
    batches: int = 0
    size_bytes: int = 0
    open_transactions: list[OpenTransaction] = field(default_factory=list)

    def add(self, other: "TaskResult") -> None:
        """Take another outcome in."""
        self.findings += other.findings
        self.extents += other.extents
        self.batches += other.batches
        self.size_bytes += other.size_bytes
        self.open_transactions += other.open_transactions


def run_tasks(
    tasks: Sequence[PartitionTask], checks: Collection[str] = CHECKS, fs: FileSystem | None = None
) -> TaskResult:
    """Read and judge some partitions."""
    outcome = TaskResult()
    for task in tasks:
        outcome.add(judge_task(fs or OsFileSystem(), task, checks))
    return outcome


def run_segment(work: ReadSegment) -> Batches:
    """Read the batches of one segment."""
    return read_segment(OsFileSystem(), work.files, work.segment)


def run_snapshots(copies: Sequence[PartitionFiles]) -> TaskResult:
    """Judge the metadata snapshots of all nodes."""
    fs = OsFileSystem()
    return TaskResult(audit_snapshots(fs, MetadataLog(fs, copies)))


def judge_task(
    fs: FileSystem,
    task: PartitionTask,
    checks: Collection[str] = CHECKS,
    read: Sequence[Sequence[Batches]] | None = None,
) -> TaskResult:
    """Judge one partition; `read` are the batches by replica and segment, if read already."""
    listed = task.source.replicas
    batches_of_replicas: Sequence[Sequence[Batches] | None] = (
        [None] * len(listed) if read is None else read
    )
    found = [
        (own, replica)
        for own, batches in zip(listed, batches_of_replicas, strict=True)
        if (replica := read_replica(fs, own, task.is_compacted, batches)) is not None
    ]
    judgement = judge_partition([replica for _, replica in found], task.facts)
    strangers = _strangers(fs, task, [own for own, _ in found]) if judgement.faults else []
    if strangers:
        nodes = {each.node for each in strangers}
        found = [(own, replica) for own, replica in found if own.node not in nodes]
        judgement = judge_partition([replica for _, replica in found], task.facts)
    files = [own for own, _ in found]
    faults = _with_ledger(fs, task, judgement) if "acknowledged" in checks else judgement.faults
    findings = [*strangers, *(fault.finding for fault in faults)]
    if "index" in checks:
        for own, layout in zip(files, judgement.layouts, strict=True):
            findings += _index_findings(fs, own, layout, faults)
    outcome = TaskResult([each for each in findings if each.check in checks])
    odd = {node for each in findings if each.severity == "error" for node in each.nodes}
    for own, layout in zip(files, judgement.layouts, strict=True):
        if own.node not in odd:  # damage moves transactions, and is reported already
            told, opened = check_transactions(layout, read_transaction_files(fs, own), checks)
            outcome.findings += told
            outcome.open_transactions += opened
    for own, layout in zip(files, judgement.layouts, strict=True):
        batches = layout.replica.batches
        outcome.batches += int(batches.is_batch.sum())
        outcome.size_bytes += int(batches.size_bytes.sum())
        outcome.extents.append(_extent(own, layout))
    return outcome


def _strangers(
    fs: FileSystem, task: PartitionTask, files: Sequence[PartitionFiles]
) -> list[Finding]:
    """Return a note of each directory of a topic that was deleted and created again while a node
    was down.

    The node sets it aside when it starts (KIP-516), so it is not a replica. An in-sync node was not
    down: there it is a fault.
    """
    notes: list[Finding] = []
    for own in files:
        if own.node in (task.facts.isr or ()):
            continue
        try:
            topic_id = read_topic_id(fs, own.directory)
        except CorruptCheckpoint:
            continue
        if topic_id is None or task.facts.topic_id in (None, topic_id):
            continue
        detail = f"the directory is of an earlier topic of this name, {uuid_to_text(topic_id)}"
        place = (own.node, own.topic, own.partition, NO_OFFSET, "partition.metadata", NOWHERE)
        notes.append(Finding("divergence", "info", *place, detail))
    return notes


def _index_findings(
    fs: FileSystem, files: PartitionFiles, layout: Layout, faults: Sequence[Fault]
) -> list[Finding]:
    own = [fault for fault in faults if files.node in fault.finding.nodes]
    return [
        finding
        for segment in files.segments
        for finding in check_index(layout, read_indexes(fs, files, segment), own)
    ]


def _with_ledger(fs: FileSystem, task: PartitionTask, judged: PartitionJudgement) -> list[Fault]:
    """Add lost acknowledged records, which describe a loss better than its gap does.

    Damage and differences in the leader's log are already reported.
    """
    if task.ledger is None or not judged.layouts:
        return judged.faults
    leader = _leader(task.facts, judged)
    node = leader.replica.node
    files = next(each for each in task.source.replicas if each.node == node)
    found = read_acknowledged(fs, files, leader, task.ledger)
    damage = [fault for fault in judged.faults if fault.finding.check in _DAMAGE]
    lost = [
        Fault(finding, finding.offset)
        for finding in check_acknowledged(leader, task.ledger, *found)
        if not explains(damage, node, finding.offset)
    ]
    return [fault for fault in judged.faults if not _is_explained_by(fault, node, lost)] + lost


def _is_explained_by(fault: Fault, node: str, lost: Sequence[Fault]) -> bool:
    if fault.finding.check not in _LOSS or node not in fault.finding.nodes:
        return False
    return any(fault.first_offset <= each.first_offset < fault.end_offset for each in lost)


def _leader(facts: PartitionFacts, judged: PartitionJudgement) -> Layout:
    """Return the leader's log, or the longest if the leader is unknown or its log is not here."""
    if facts.leader is not None:
        known = judged.layout(facts.leader)
        if known is not None:
            return known
    return max(judged.layouts, key=lambda layout: layout.log_end_offset)


def _extent(files: PartitionFiles, layout: Layout) -> Extent:
    batches = layout.replica.batches
    first = int(batches.base_offset[layout.rows[0]]) if len(layout.rows) else files.earliest_offset
    return Extent(
        files.node,
        files.topic,
        files.partition,
        first,
        files.earliest_offset,
        layout.log_end_offset,
        sum(segment.size_bytes for segment in files.segments),
        tuple(segment.base_offset for segment in files.segments),
        tuple(segment.size_bytes for segment in files.segments),
    )
