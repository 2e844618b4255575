"""`below-high-watermark` at its worst: a replica of which not even the directory is left.

The metadata log says in which log directory a replica is kept (KIP-858). Only where that very
directory was given can a replica be missed: of a node with several, some may not be here. A
partition without anything below its high watermark may not have been made yet.
"""

from collections.abc import Mapping, Sequence

from kraft_wire.audit.collector.sources import PartitionReplicas
from kraft_wire.audit.finding import NOWHERE, Finding, Severity
from kraft_wire.audit.metadata_facts import Assignment, ClusterFacts
from kraft_wire.model import Uuid
from kraft_wire.storage.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.meta_properties import read_meta_properties

__all__ = ["directory_ids", "missing_replicas"]


def directory_ids(fs: FileSystem, paths: Sequence[str]) -> dict[Uuid, str]:
    """Return the node of each directory that has an id."""
    found: dict[Uuid, str] = {}
    for path in paths:
        try:
            meta = read_meta_properties(fs, path.rstrip("/") or "/")
        except CorruptCheckpoint:
            continue
        if meta is not None and meta.directory_id is not None:
            found[meta.directory_id] = str(meta.node_id)
    return found


def missing_replicas(
    facts: ClusterFacts, sources: Sequence[PartitionReplicas], directories: Mapping[Uuid, str]
) -> list[Finding]:
    """Return one finding for each replica that should be in one of the directories and is not."""
    findings: list[Finding] = []
    for source in sources:
        assignment = facts.assignments.get((source.topic, source.partition))
        high_watermark = max((each.high_watermark for each in source.replicas), default=0)
        if assignment is not None and high_watermark > 0:
            held = {each.node for each in source.replicas}
            for node in _expected(assignment, directories):
                if node not in held:
                    findings.append(_finding(source, node, assignment, high_watermark))
    return findings


def _expected(assignment: Assignment, directories: Mapping[Uuid, str]) -> list[str]:
    """Return the nodes of which one of the given directories should hold a replica."""
    places = zip(assignment.replicas, assignment.directories, strict=False)
    return [str(node) for node, place in places if directories.get(place) == str(node)]


def _finding(
    source: PartitionReplicas, node: str, assignment: Assignment, high_watermark: int
) -> Finding:
    is_in_sync = node in map(str, assignment.isr)
    severity: Severity = "error" if is_in_sync else "warn"
    return Finding(
        *("below-high-watermark", severity, node, source.topic, source.partition, 0, "", NOWHERE),
        f"the replica's directory is gone, the high watermark is {high_watermark}",
    )
