"""Which node directories are audited, and the partitions that they hold.

A directory is one entry of a node's `log.dirs`; several of one node belong together. Any other
directory, or one that cannot be read, stops the audit before it begins.

The nodes may run. High watermarks are read before any log is listed, so that a log is never
compared with a high watermark that was written after its files were listed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from kraft_wire.columnar import PartitionFiles, list_partitions
from kraft_wire.columnar.segments import NO_OFFSET
from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.meta_properties import META_PROPERTIES, read_meta_properties
from kraft_wire.storage.files import FileSystem

__all__ = [
    "CannotAudit",
    "PartitionReplicas",
    "cluster_id_of",
    "list_sources",
    "node_directories",
]


class CannotAudit(Exception):
    """Why the audit cannot do its work, as one line."""


@dataclass(frozen=True, slots=True)
class PartitionReplicas:
    """One partition with the files of all its replicas, by node."""

    topic: str
    partition: int
    replicas: tuple[PartitionFiles, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments of all replicas."""
        return sum(segment.size_bytes for each in self.replicas for segment in each.segments)


def node_directories(fs: FileSystem, paths: Sequence[str]) -> list[str]:
    """Return the directories of one cluster. Errors: CannotAudit names a bad one."""
    if not paths:
        raise CannotAudit("no directory is given")
    found: dict[str, str] = {}
    for path in paths:
        directory = path.rstrip("/") or "/"
        if directory in found:
            raise CannotAudit(f"{path}: given twice")
        if not fs.exists(directory):
            raise CannotAudit(f"{directory}: no such directory")
        if not fs.is_directory(directory):
            raise CannotAudit(f"{directory}: not a directory")
        cluster_id = _cluster_of(fs, directory)
        for other, known in found.items():
            if known and cluster_id and known != cluster_id:
                raise CannotAudit(
                    f"{directory} is of cluster {cluster_id}, {other} of {known}: audit one cluster"
                )
        found[directory] = cluster_id
    return [*found]


def cluster_id_of(fs: FileSystem, directories: Sequence[str]) -> str:
    """Return the cluster's id, empty if no directory has it. Errors: CannotAudit as above."""
    return next(filter(None, (_cluster_of(fs, each) for each in directories)), "")


def _cluster_of(fs: FileSystem, directory: str) -> str:
    """Return the cluster's id, empty if the directory does not have it."""
    try:
        meta = read_meta_properties(fs, directory)
    except CorruptCheckpoint:
        return ""
    except StorageError as error:
        raise CannotAudit(str(error)) from error
    return "" if meta is None else meta.cluster_id


def list_sources(
    fs: FileSystem, watermarks: Mapping[str, Mapping[TopicPartition, int]]
) -> list[PartitionReplicas]:
    """Return the files of directories, by topic and partition; CannotAudit names a bad one.

    `watermarks` are the high watermarks by directory, as they were checkpointed before.
    """
    found: dict[tuple[str, int], list[PartitionFiles]] = {}
    for directory, known in watermarks.items():
        for files in _partitions_of(fs, directory):
            key = TopicPartition(files.topic, files.partition)
            files.high_watermark = known.get(key, NO_OFFSET)
            found.setdefault(key, []).append(files)
    return [
        PartitionReplicas(topic, partition, tuple(_one_a_node(replicas)))
        for (topic, partition), replicas in sorted(found.items())
    ]


def _partitions_of(fs: FileSystem, directory: str) -> Iterable[PartitionFiles]:
    try:
        partitions = list_partitions(fs, directory, with_ends=False)
    except StorageError as error:
        raise CannotAudit(str(error)) from error
    if not partitions and not fs.exists(f"{directory}/{META_PROPERTIES}"):
        raise CannotAudit(
            f"{directory}: not a log directory: it has neither {META_PROPERTIES} nor partitions"
        )
    name = directory.rpartition("/")[2]
    return [replace(each, node=each.node or name) for each in partitions]


def _one_a_node(replicas: list[PartitionFiles]) -> list[PartitionFiles]:
    """Refuse two directories with one partition under one node id: which is right is unknown."""
    ordered = sorted(replicas, key=lambda each: (len(each.node), each.node, each.directory))
    for before, after in pairwise(ordered):
        if before.node == after.node:
            raise CannotAudit(
                f"{after.directory}: node {after.node} has this partition in {before.directory} too"
            )
    return ordered
