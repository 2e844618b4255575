"""Which logs are current at a start, after a stop in the middle of a move between directories.

A copy whose replica has its log elsewhere stays, and the move continues. A copy alone becomes the
log if it is marked as complete: the promotion was interrupted between its two renames
(`storage.directory.future_logs`). So it does if the metadata has the replica in its directory, as
in Kafka. Any other copy is kept aside, as a stray. Two directories of one replica's name, as
release 4.3.1 may leave them, are decided by the metadata, too: that release assigns the new
directory before it renames the copy.

Not here: copies and logs of other nodes' partitions, which `opening` has set aside before.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from kraft_wire.metadata.directory_ids import MIGRATING_DIRECTORY
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import ReportEvent, StorageError, TopicPartition, Uuid
from kraft_wire.storage.directory.future_logs import (
    adopt,
    drop_future,
    is_complete,
    set_future_aside,
    unmark,
)
from kraft_wire.storage.directory.log_directory import (
    LogDirectory,
    set_damaged_aside,
    set_stray_aside,
)
from kraft_wire.storage.files import FileSystem

__all__ = ["Place", "place_in", "resolve_copies"]

Place: TypeAlias = Callable[[TopicPartition, Uuid], Uuid | None]
"""Returns the directory that the metadata has for a replica of this node with this topic id.

None: there is no such replica here. `MIGRATING_DIRECTORY`: the metadata has no directories.
"""


def place_in(image: MetadataImage, node_id: int) -> Place:
    """Return the directories of a node's replicas in an image."""

    def place(partition: TopicPartition, topic_id: Uuid) -> Uuid | None:
        topic = image.topic(partition.topic)
        view = None if topic is None else topic.partitions.get(partition.partition)
        if topic is None or view is None or node_id not in view.replicas:
            return None
        if any(topic_id) and topic_id != topic.topic_id:
            return None
        if not view.directories:
            return MIGRATING_DIRECTORY
        return view.directories[view.replicas.index(node_id)]

    return place


def resolve_copies(
    fs: FileSystem,
    directories: Sequence[LogDirectory],
    place: Place,
    wall_ms: int,
    report: ReportEvent = lambda name, **fields: None,
) -> list[tuple[LogDirectory, str]]:
    """Leave one log of each replica, and at most one copy; return the directories to remove later.

    A directory whose disk refuses the change goes offline. StorageError if two directories have a
    replica's log and the metadata has neither of them.
    """
    doomed: list[tuple[LogDirectory, str]] = []
    _resolve_duplicates(fs, directories, place, report)
    for directory in directories:
        if directory.offline is not None:
            continue
        try:
            for name, error in list(directory.refused_futures.items()):
                path = set_future_aside(fs, directory, name)
                report("replica_copy_set_aside", path=path, reason=error.reason)
            for partition in list(directory.futures):
                doomed += _resolve(fs, directories, directory, partition, place, wall_ms, report)
            directory.settle()
        except StorageError as error:
            directory.note_error(None, error)
    return doomed


def _resolve(
    fs: FileSystem,
    directories: Sequence[LogDirectory],
    directory: LogDirectory,
    partition: TopicPartition,
    place: Place,
    wall_ms: int,
    report: ReportEvent,
) -> list[tuple[LogDirectory, str]]:
    """Keep a copy, make it the log, set it aside, or drop it, which returns its directory."""
    copy = directory.futures[partition]
    assigned = place(partition, copy.topic_id)
    holders = _holders(directories, partition)
    first = next(each for each in directories if partition in each.futures)
    if assigned is None:
        reason = "not a replica of this node"
    elif directory in holders or first is not directory or not any(copy.topic_id):
        return [(directory, drop_future(fs, directory, partition))]
    elif holders:
        unmark(fs, copy)
        return []
    elif is_complete(fs, copy) or assigned in (_id_of(directory), MIGRATING_DIRECTORY):
        adopt(fs, directory, partition, wall_ms)
        report("replica_moved", partition=partition, directory=directory.path)
        return []
    else:
        reason = "its replica's log is gone, and the metadata has another directory"
    name = copy.directory.rpartition("/")[2]
    copy.close()
    report("replica_copy_set_aside", path=set_future_aside(fs, directory, name), reason=reason)
    return []


def _resolve_duplicates(
    fs: FileSystem, directories: Sequence[LogDirectory], place: Place, report: ReportEvent
) -> None:
    """Set aside all logs of a replica but the one in the directory of the metadata."""
    known: dict[TopicPartition, None] = {}
    for directory in directories:
        for partition in (*directory.logs, *directory.damaged):
            if partition in known:
                _keep_one(fs, directories, partition, place, report)
            known[partition] = None


def _keep_one(
    fs: FileSystem,
    directories: Sequence[LogDirectory],
    partition: TopicPartition,
    place: Place,
    report: ReportEvent,
) -> None:
    holders = _holders(directories, partition)
    known = [each.logs[partition] for each in holders if partition in each.logs]
    assigned = place(partition, known[0].topic_id if known else Uuid(bytes(16)))
    if all(_id_of(each) != assigned for each in holders):
        paths = " and ".join(f"{each.path}/{partition}" for each in holders)
        reason = f"two logs of one replica: {paths}; remove the one from the disk that has failed"
        raise StorageError("open", f"{holders[-1].path}/{partition}", reason)
    for directory in holders:
        if _id_of(directory) == assigned:
            continue
        if partition in directory.logs:
            path = set_stray_aside(fs, directory, partition)
        else:
            path = set_damaged_aside(fs, directory, partition)
        directory.settle()
        report("replica_copy_set_aside", path=path, reason="the metadata has the other directory")


def _holders(directories: Sequence[LogDirectory], partition: TopicPartition) -> list[LogDirectory]:
    """Return the directories with a log of the replica, served or damaged."""
    return [each for each in directories if partition in each.logs or partition in each.damaged]


def _id_of(directory: LogDirectory) -> Uuid | None:
    assert directory.meta is not None, directory.path
    return directory.meta.directory_id
