"""Which partition directories a read is about, and which of several replicas is read.

Views that name the node show all replicas. `records` and `metadata` do not, so there a partition is
read once, from the replica that an election would choose: the one with the newest leader epoch
and, among those, the longest log. Logs of different clusters are never taken for one another.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from kraft_wire.columnar import PartitionFiles, list_partitions, log_end_offset
from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.storage.directory.meta_properties import read_meta_properties
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.leader_epochs import LeaderEpochs

__all__ = [
    "METADATA_PARTITION",
    "ReplicaDirectory",
    "best_first",
    "list_replicas",
    "log_end",
    "one_of_each",
]

METADATA_PARTITION = TopicPartition("__cluster_metadata", 0)


@dataclass(frozen=True, slots=True)
class ReplicaDirectory:
    """One partition on one node."""

    files: PartitionFiles
    cluster_id: str
    """Of `meta.properties`; empty if the directory does not have it."""

    @property
    def key(self) -> TopicPartition:
        """Topic and partition."""
        return TopicPartition(self.files.topic, self.files.partition)


def list_replicas(fs: FileSystem, options: LogOptions) -> list[ReplicaDirectory]:
    """Return the replicas that the options choose, by topic, partition and node.

    Errors: PipelineError for a directory that cannot be read, and for a named topic or partition
    that does not exist.
    """
    found: list[ReplicaDirectory] = []
    for path in options.paths:
        found += _replicas_of(fs, path)
    found = _of_the_only_cluster(found)
    chosen = [replica for replica in found if _is_chosen(options, replica.key)]
    _refuse_missing(options, chosen, found)
    for column, values in options.pushed.chosen:
        chosen = [each for each in chosen if getattr(each.files, column) in values]
    return sorted(chosen, key=lambda each: (each.key, each.files.node, each.files.directory))


def one_of_each(fs: FileSystem, replicas: Iterable[ReplicaDirectory]) -> list[ReplicaDirectory]:
    """Return one replica of every partition, in the given order."""
    grouped: dict[tuple[str, TopicPartition], list[ReplicaDirectory]] = {}
    for replica in replicas:
        grouped.setdefault((replica.cluster_id, replica.key), []).append(replica)
    return [
        group[0] if len(group) == 1 else max(group, key=lambda each: _length(fs, each))
        for group in grouped.values()
    ]


def log_end(fs: FileSystem, files: PartitionFiles) -> int:
    """Return the offset after the last whole batch. Errors: PipelineError if it is unreadable."""
    try:
        return log_end_offset(fs, files)
    except StorageError as error:
        raise PipelineError(f"{files.directory} cannot be read: {error}") from None


def best_first(fs: FileSystem, replicas: Iterable[ReplicaDirectory]) -> list[ReplicaDirectory]:
    """Return the replicas of one partition, the one to read first at the head."""
    return sorted(replicas, key=lambda each: _length(fs, each), reverse=True)


def _replicas_of(fs: FileSystem, path: str) -> list[ReplicaDirectory]:
    try:
        meta = read_meta_properties(fs, path)
    except StorageError:
        meta = None
    if not fs.is_directory(path):
        there = "is not a directory" if fs.exists(path) else "does not exist"
        raise PipelineError(f"path {path} {there}: give log directories, as log.dirs has them")
    try:
        partitions = list_partitions(fs, path, with_ends=False)
    except StorageError as error:
        raise PipelineError(f"path {path} cannot be read: {error}") from None
    if not partitions and meta is None:
        raise PipelineError(
            f"path {path} is not a log directory: it has neither meta.properties nor partitions"
        )
    cluster_id = "" if meta is None else meta.cluster_id
    return [ReplicaDirectory(files, cluster_id) for files in partitions]


def _of_the_only_cluster(found: list[ReplicaDirectory]) -> list[ReplicaDirectory]:
    """Assign directories without a cluster id to the only cluster of the others."""
    known = {each.cluster_id for each in found if each.cluster_id}
    if len(known) != 1:
        return found
    (cluster_id,) = known
    return [ReplicaDirectory(each.files, cluster_id) for each in found]


def _is_chosen(options: LogOptions, key: TopicPartition) -> bool:
    if options.topics is not None:
        return key.topic in options.topics
    if options.topics_pattern is not None:
        return re.fullmatch(options.topics_pattern, key.topic) is not None
    return options.assign is None or key in options.assign


def _refuse_missing(
    options: LogOptions, chosen: Iterable[ReplicaDirectory], found: Iterable[ReplicaDirectory]
) -> None:
    keys = {replica.key for replica in chosen}
    topics = {key.topic for key in keys}
    named = [("topics", topic, topic in topics) for topic in options.topics or ()]
    named += [
        ("assign", f"{key.topic}-{key.partition}", key in keys) for key in options.assign or ()
    ]
    for name, offsets in (
        ("startingOffsets", options.starting_offsets),
        ("endingOffsets", options.ending_offsets),
    ):
        named += [(name, f"{key.topic}-{key.partition}", key in keys) for key in offsets or ()]
    for option, what, is_there in sorted(named):
        if not is_there:
            there = ", ".join(sorted({replica.files.topic for replica in found})) or "no topic"
            paths = ", ".join(options.paths)
            raise PipelineError(f"option {option}: {what} is not in {paths}; there is {there}")


def _length(fs: FileSystem, replica: ReplicaDirectory) -> tuple[int, int]:
    """Return the key by which an election compares two logs."""
    epochs = LeaderEpochs(fs, replica.files.directory)
    with suppress(StorageError):  # a damaged one counts as a log without an epoch
        epochs.load()
    latest = epochs.latest
    end = replica.files.log_end_offset
    if end < 0:
        end = log_end(fs, replica.files)
    return -1 if latest is None else int(latest), end
