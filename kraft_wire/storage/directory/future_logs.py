"""The copy of a replica in another log directory, until it becomes the replica's log (KIP-113).

The copy is a complete log in `topic-partition.ID-future`. `promote` gives it the replica's place:

1. The copy is flushed, closed and marked as complete; the checkpoints of its directory get the
   replica's offsets.
2. The replica's log is renamed to `-delete`, durably.
3. The copy is renamed to the replica's name, durably.

A crash before step 2 leaves both, and the replica's log is still the current one. A crash between
2 and 3 leaves the copy alone, whose mark shows that it has every record: `adopt` completes the
promotion at the start. So there are never two directories of the replica's name. (Release 4.3.1
renames the copy first; `node.disks.future_opening` decides about two directories after its crash.)

Not here: copying records (`broker.replication.moving`), and the choice at a start.
"""

from contextlib import suppress
from typing import Final

from kraft_wire.model import LeaderEpoch, Offset, StorageError, TopicPartition, Uuid
from kraft_wire.storage.directory.log_directory import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    LogDirectory,
    partition_of_future,
    path_aside,
    stray_path,
)
from kraft_wire.storage.files import FileSystem, remove_tree, replace_file
from kraft_wire.storage.log import FIELDS, Log
from kraft_wire.storage.log_config import LogConfig

__all__ = [
    "NAME_LENGTH_MAX",
    "adopt",
    "create_future",
    "drop_future",
    "future_name",
    "is_complete",
    "promote",
    "set_future_aside",
    "unmark",
]

NAME_LENGTH_MAX: Final = 255
"""Characters of a directory's name."""

_COMPLETE: Final = "copy-is-complete"
"""The file that marks a copy which is about to replace its replica's log."""


def future_name(partition: TopicPartition, topic_id: Uuid) -> str:
    """Return the name of a copy's directory, which may be longer than `NAME_LENGTH_MAX`."""
    assert partition.partition >= 0, partition
    return f"{partition}.{topic_id.hex()}{FUTURE_SUFFIX}"


def create_future(
    directory: LogDirectory,
    partition: TopicPartition,
    topic_id: Uuid,
    config: LogConfig,
    wall_ms: int,
) -> Log:
    """Create the empty copy of a replica, durably. Errors: StorageError, which leaves no copy."""
    assert partition not in directory.logs, partition
    name = future_name(partition, topic_id)
    assert len(name) <= NAME_LENGTH_MAX, name
    return directory.create_log(partition, topic_id, config, wall_ms, future=name)


def drop_future(fs: FileSystem, directory: LogDirectory, partition: TopicPartition) -> str:
    """Rename a copy that is not wanted; return the directory to remove later.

    `settle` is due. StorageError: nothing changed.
    """
    if directory.offline is not None:
        raise directory.offline
    log = directory.futures[partition]
    doomed = path_aside(directory.path, partition, log.topic_id.hex(), DELETE_SUFFIX)
    remove_tree(fs, doomed)
    fs.rename(log.directory, doomed)
    _forget(directory, partition)
    return doomed


def set_future_aside(fs: FileSystem, directory: LogDirectory, name: str) -> str:
    """Rename a copy that must not be used, to keep it; return its new path.

    `name` is that of its directory. `settle` is due. StorageError: nothing changed.
    """
    moving = partition_of_future(name)
    assert moving is not None, name
    unique = name.removesuffix(FUTURE_SUFFIX).rpartition(".")[2]
    path = stray_path(fs, directory.path, moving, unique)
    fs.rename(f"{directory.path}/{name}", path)
    directory.refused_futures.pop(name, None)
    for partition, log in list(directory.futures.items()):
        if log.directory == f"{directory.path}/{name}":
            _forget(directory, partition)
    return path


def _forget(directory: LogDirectory, partition: TopicPartition) -> None:
    """Drop a copy from memory, and its offsets from the checkpoints of the next `settle`."""
    assert partition in directory.futures, partition
    del directory.futures[partition]
    if partition not in directory.logs:  # whose offsets they are, after a move that was undone
        directory.forget_log(partition)


def promote(
    fs: FileSystem,
    source: LogDirectory,
    target: LogDirectory,
    partition: TopicPartition,
    wall_ms: int,
) -> str:
    """Replace a replica's log by its copy, which has the same end; return the old log's directory.

    The object of the replica's log stays, and uses the copy's files from then on. The returned
    directory is removed later. Errors, each a StorageError of one disk: before the replica's log
    is renamed nothing has changed; after that `target` has the log, but cannot serve it. The
    caller then settles `source`.
    """
    log, copy = source.logs[partition], target.futures[partition]
    assert copy.log_end_offset == log.log_end_offset, (copy.log_end_offset, log.log_end_offset)
    assert copy.topic_id == log.topic_id, (copy.directory, log.directory)
    _prepare(fs, source, target, partition)
    try:
        doomed = source.delete_log(partition, durable=False)
    except StorageError:
        with suppress(StorageError):  # it may continue as a copy
            unmark(fs, copy)
        raise
    del target.futures[partition]
    target.logs[partition] = copy
    with suppress(StorageError):  # of the old disk, which is not needed; `settle` repeats it
        fs.sync_directory(source.path)
    promoted = _rename(fs, target, partition, copy, wall_ms)
    latest = log.epochs.latest
    if latest is not None and latest != promoted.epochs.latest:  # a leader's, without records
        promoted.epochs.announce(latest, promoted.log_end_offset)
    promoted.producer_states = log.producer_states
    promoted.update_high_watermark(log.high_watermark)
    _continue_in(log, promoted)
    target.logs[partition] = log
    return doomed


def _prepare(
    fs: FileSystem, source: LogDirectory, target: LogDirectory, partition: TopicPartition
) -> None:
    """Close the copy with all that the replica's log knows, and write its offsets, durably."""
    log, copy = source.logs[partition], target.futures[partition]
    copy.advance_log_start_offset(log.log_start_offset)
    copy.update_high_watermark(log.high_watermark)
    copy.epochs.restore(_epochs_of(log, copy))
    copy.epochs.save()
    copy.producer_states = log.producer_states
    copy.close()
    if partition in source.cleaner_offsets:
        cleaned = min(source.cleaner_offsets[partition], copy.active_segment.base_offset)
        target.cleaner_offsets[partition] = Offset(cleaned)
    if partition in source.unreadable:
        target.unreadable[partition] = source.unreadable[partition]
    target.checkpoint()
    replace_file(fs, f"{copy.directory}/{_COMPLETE}", b"1\n")
    assert copy.unflushed_records == 0, copy.directory


def _epochs_of(log: Log, copy: Log) -> list[tuple[LeaderEpoch, Offset]]:
    """Return the log's epochs with records, after those of older records that the copy still has.

    The copy may have records below the log's start, in segments that retention removes later; a
    start verifies them by their epochs.
    """
    known = [each for each in log.epochs.entries if each[1] < copy.log_end_offset]
    older = [each for each in copy.epochs.entries if not known or each[1] < known[0][1]]
    assert older == sorted(older), copy.directory
    if older and known and older[-1][0] >= known[0][0]:
        known = known[1:]  # it began earlier than the log's first record
    return older + known


def is_complete(fs: FileSystem, copy: Log) -> bool:
    """Return whether a copy has all records of its replica's log, if that is gone."""
    assert copy.directory.endswith(FUTURE_SUFFIX), copy.directory
    return fs.exists(f"{copy.directory}/{_COMPLETE}")


def unmark(fs: FileSystem, copy: Log) -> None:
    """Remove the mark of a copy, durably, before its replica's log may get more records."""
    assert copy.directory.endswith(FUTURE_SUFFIX), copy.directory
    if is_complete(fs, copy):
        fs.unlink(f"{copy.directory}/{_COMPLETE}")
        fs.sync_directory(copy.directory)


def adopt(fs: FileSystem, target: LogDirectory, partition: TopicPartition, wall_ms: int) -> Log:
    """Make a copy without a replica's log that log, durably: a promotion did not end."""
    copy = target.futures.pop(partition)
    assert partition not in target.logs, partition
    copy.close()
    target.logs[partition] = copy
    return _rename(fs, target, partition, copy, wall_ms)


def _rename(
    fs: FileSystem, target: LogDirectory, partition: TopicPartition, copy: Log, wall_ms: int
) -> Log:
    """Give a closed copy the replica's name, and open it again there."""
    fs.rename(copy.directory, f"{target.path}/{partition}")
    fs.sync_directory(target.path)
    fs.unlink(f"{target.path}/{partition}/{_COMPLETE}")  # it says nothing about a replica's log
    del target.logs[partition]
    try:
        log = target._load(partition, copy.config, wall_ms, is_clean=True)
    except BaseException:
        target.logs[partition] = copy  # it is this directory's, although it cannot be served
        raise
    target.logs[partition] = log
    assert log.log_end_offset == copy.log_end_offset, log.directory
    return log


def _continue_in(log: Log, copy: Log) -> None:
    """Make `log` use the files of the copy, for everything that holds the log.

    A flush in progress has the files of before, and does not cover it.
    """
    cuts_count = log._cuts_count + 1
    for name in FIELDS:
        setattr(log, name, getattr(copy, name))
    log._cuts_count = cuts_count
    assert log.directory == copy.directory, log.directory
