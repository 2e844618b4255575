"""`below-high-watermark` for missing replicas: not even the directory is left.

The metadata log names the log directory of a replica (KIP-858). A replica can be missing only if
that directory was given: of a node with several, some may not be. A partition without records below
its high watermark may not have been created yet; the checkpoint of any directory has the high
watermark, even of the one that the replica is missing from. The acknowledged records of a partition
that is missing on all nodes are one `acknowledged`.
"""

from collections.abc import Mapping, Sequence

from kraft_wire.audit.collector.sources import PartitionReplicas
from kraft_wire.audit.finding import NOWHERE, Finding, Severity
from kraft_wire.audit.ledger import Acknowledged
from kraft_wire.audit.metadata_facts import Assignment, MetadataFacts
from kraft_wire.model import Uuid
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.meta_properties import read_meta_properties
from kraft_wire.storage.files import FileSystem

__all__ = ["MissingReplicas", "directory_ids"]

Watermarks = Mapping[tuple[str, int], int]


def directory_ids(fs: FileSystem, directories: Sequence[str]) -> dict[Uuid, str]:
    """Return the node of each directory that has an id."""
    found: dict[Uuid, str] = {}
    for directory in directories:
        try:
            meta = read_meta_properties(fs, directory)
        except CorruptCheckpoint:
            continue
        if meta is not None and meta.directory_id is not None:
            found[meta.directory_id] = str(meta.node_id)
    return found


class MissingReplicas:
    """The replicas that should be in one of the directories and are not, by partition."""

    def __init__(
        self,
        facts: MetadataFacts,
        sources: Sequence[PartitionReplicas],
        directories: Mapping[Uuid, str],
    ) -> None:
        self._facts = facts
        self._held = {
            (source.topic, source.partition): {each.node for each in source.replicas}
            for source in sources
        }
        self._missing: dict[tuple[str, int], list[str]] = {}
        for key, assignment in facts.assignments.items():
            held = self._held.get(key, set())
            missing = [node for node in _expected(assignment, directories) if node not in held]
            if missing:
                self._missing[key] = missing

    def __contains__(self, key: tuple[str, int]) -> bool:
        return key in self._missing

    def findings(
        self, high_watermarks: Watermarks, ledger: Mapping[tuple[str, int], Acknowledged]
    ) -> list[Finding]:
        """Return one finding for each replica, and one for the ledger's records of a partition."""
        found: list[Finding] = []
        for (topic, partition), nodes in self._missing.items():
            high_watermark = high_watermarks.get((topic, partition), 0)
            assignment = self._facts.assignments[topic, partition]
            if high_watermark > 0:
                found += [
                    _gone(topic, partition, each, assignment, high_watermark) for each in nodes
                ]
            lines = ledger.get((topic, partition))
            is_here = (topic, partition) in self._held
            if lines is not None and not is_here and not self._facts.is_compacted(topic):
                found.append(_lost(topic, partition, nodes, lines))
        return found


def _expected(assignment: Assignment, directories: Mapping[Uuid, str]) -> list[str]:
    """Return the nodes of which one of the given directories should hold a replica."""
    places = zip(assignment.replicas, assignment.directories, strict=False)
    return [str(node) for node, place in places if directories.get(place) == str(node)]


def _gone(
    topic: str, partition: int, node: str, assignment: Assignment, high_watermark: int
) -> Finding:
    is_in_sync = node in map(str, assignment.complete)
    severity: Severity = "error" if is_in_sync else "warn"
    return Finding(
        *("below-high-watermark", severity, node, topic, partition, 0, "", NOWHERE),
        f"the replica's directory is missing, the high watermark is {high_watermark}",
    )


def _lost(topic: str, partition: int, nodes: Sequence[str], lines: Acknowledged) -> Finding:
    return Finding(
        *("acknowledged", "error", ",".join(sorted(nodes)), topic, partition),
        *(int(lines.offsets[0]), "", NOWHERE),
        f"{len(lines.offsets)} acknowledged records are lost with the partition's directory",
    )
