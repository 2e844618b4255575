"""One entry of `log.dirs`: its lock and identity, its logs, and the checkpoints that they share.

Order of calls: `LogDirectory.open` locks the directory and reads the identity. The node then gets
the topics' settings (from the metadata log, which `open_metadata_log` opens) and calls `load_logs`.
`checkpoint` runs by timer; `close` writes the clean-shutdown marker. A damaged log is set aside
under its name in `damaged`, the others are served; a disk error takes the whole directory
`offline`.

A `-future` directory has the copy of a replica that moves here from another directory (KIP-113). It
is opened into `futures`, and shares the checkpoints. Not here: its creation and its promotion to
the replica's log (`future_logs`).
"""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from kraft_wire.foreign_text import json_value
from kraft_wire.model import DiskFull, Offset, StorageError, TopicPartition, Uuid
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    read_offsets,
    write_offsets,
)
from kraft_wire.storage.directory.meta_properties import MetaProperties, read_meta_properties
from kraft_wire.storage.directory.partition_metadata import read_topic_id, write_topic_id
from kraft_wire.storage.files import FileSystem, MissingFile, remove_tree, replace_file
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.opening import open_log
from kraft_wire.storage.segment import LOG_SUFFIX, CorruptLog
from kraft_wire.storage.space import DiskSpace
from kraft_wire.storage.stored_records import UnreadableRecords

__all__ = [
    "CLEAN_SHUTDOWN",
    "DELETE_SUFFIX",
    "FUTURE_SUFFIX",
    "LOCK",
    "METADATA_PARTITION",
    "LogDirectory",
    "log_bytes",
    "note_compaction",
    "partition_of_directory",
    "partition_of_future",
    "path_aside",
    "set_damaged_aside",
    "set_stray_aside",
    "stray_path",
]

METADATA_PARTITION = TopicPartition("__cluster_metadata", 0)
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
DELETE_SUFFIX = "-delete"
_STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
_NAME_BYTES_MAX = 255


class LogDirectory:
    """A locked log directory and its logs."""

    def __init__(self, fs: FileSystem, path: str, space: DiskSpace) -> None:
        assert path, "a log directory needs a path"
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        self.damaged: dict[TopicPartition, StorageError] = {}
        self.futures: dict[TopicPartition, Log] = {}
        """Copies of replicas that move here; one whose log is here too is dropped by the start."""
        self.refused_futures: dict[str, StorageError] = {}
        """Copies that are not usable, by the name of their directory."""
        self.unreadable: dict[TopicPartition, UnreadableRecords] = {}
        """Logs that are served, but not compacted: they have a batch that cannot be decoded."""
        self.offline: StorageError | None = None
        self.meta: MetaProperties | None = None
        self.was_clean = False
        self.previous_broker_epoch = -1
        self.cleaner_offsets: dict[TopicPartition, Offset] = {}
        self.space = space
        self.rolled: Callable[[Log], None] = lambda _: None
        """Called after each roll of one of its logs, except the metadata log."""
        self._has_forgotten = False
        self._is_loaded = False
        self._fs = fs
        self._lock = fs.lock(f"{path}/{LOCK}")
        self._recovery_points: dict[TopicPartition, Offset] = {}
        self._log_start_offsets: dict[TopicPartition, Offset] = {}
        self._high_watermarks: dict[TopicPartition, Offset] = {}

    @classmethod
    def open(
        cls, fs: FileSystem, path: str, *, ballast_bytes: int = 0, reserve_bytes: int = 0
    ) -> "LogDirectory":
        """Lock the directory, create it if missing, and read its identity.

        Errors: LockHeld; CorruptCheckpoint for a damaged identity or log-start checkpoint, which
        cannot be restored; StorageError.
        """
        fs.make_directory(path)
        space = DiskSpace(fs, path, ballast_bytes=ballast_bytes, reserve_bytes=reserve_bytes)
        directory = cls(fs, path, space)
        try:
            directory.meta = read_meta_properties(fs, path)
            directory._take_clean_marker()
            directory._log_start_offsets = read_offsets(fs, f"{path}/{LOG_START_OFFSETS}")
            directory._recovery_points = directory._derived(RECOVERY_POINTS)
            directory._high_watermarks = directory._derived(HIGH_WATERMARKS)
            directory.cleaner_offsets = directory._derived(CLEANER_OFFSETS)
            space.refresh()
        except BaseException:
            directory.release()
            raise
        assert not directory.logs, path
        return directory

    def _derived(self, name: str) -> dict[TopicPartition, Offset]:
        """Read a checkpoint that can be rebuilt: a damaged one counts as empty.

        Recovery then verifies from the first segment on, and compaction starts over.
        """
        assert name != LOG_START_OFFSETS, name
        try:
            return read_offsets(self._fs, f"{self.path}/{name}")
        except CorruptCheckpoint:
            return {}

    def _take_clean_marker(self) -> None:
        """Read the clean-shutdown marker and remove it, durably, before anything can change."""
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        try:
            text = self._fs.read(path)
        except MissingFile:
            self._keep_names()
            return
        self.was_clean = True
        with suppress(ValueError):
            fields = json_value(text)
            if isinstance(fields, dict) and isinstance(fields.get("brokerEpoch"), int):
                self.previous_broker_epoch = fields["brokerEpoch"]
        self._fs.unlink(path)
        self._fs.sync_directory(self.path)
        assert not self._fs.exists(path), path

    def _keep_names(self) -> None:
        """Sync the directory: a killed process may have created logs in it just before.

        They are visible, and records in them would be acknowledged before their names are durable.
        """
        self._fs.sync_directory(self.path)
        assert not self.was_clean, self.path

    # -- logs ------------------------------------------------------------------------------------

    def load_logs(self, config_for: Callable[[str], LogConfig], wall_ms: int) -> None:
        """Open every partition's log; set damaged ones aside, which `repair` can truncate.

        Leftovers of deleted topics are removed. Errors: StorageError other than damage,
        FsyncFailed.
        """
        assert self.offline is None, self.offline
        assert not self.logs, self.path
        for name in self._fs.names(self.path):
            if not self._fs.is_directory(f"{self.path}/{name}"):
                continue
            if name.endswith(DELETE_SUFFIX):
                if partition_aside(name, DELETE_SUFFIX) is not None:
                    remove_tree(self._fs, f"{self.path}/{name}")
                continue
            if name.endswith(FUTURE_SUFFIX):
                self._load_future(name, config_for, wall_ms)
                continue
            partition = partition_of_directory(name)
            if partition is None or partition == METADATA_PARTITION:
                continue
            try:
                config = config_for(partition.topic)
                self.logs[partition] = self._load(partition, config, wall_ms)
            except (CorruptLog, CorruptCheckpoint) as error:
                self.damaged[partition] = error
        self._forget_unknown()
        self._is_loaded = True

    def _load_future(self, name: str, config_for: Callable[[str], LogConfig], wall_ms: int) -> None:
        """Open the copy of a replica that was moving here at the stop."""
        partition = partition_of_future(name)
        if partition is None:
            return
        path = f"{self.path}/{name}"
        if partition in self.futures:
            self.refused_futures[name] = StorageError("open", path, "a second copy of its replica")
            return
        try:
            config = config_for(partition.topic)
            self.futures[partition] = self._load(partition, config, wall_ms, future=name)
        except (CorruptLog, CorruptCheckpoint) as error:
            self.refused_futures[name] = error

    def _forget_unknown(self) -> None:
        """Drop the offsets of deleted partitions, before one of that name is created again.

        A crash of a deletion before its checkpoint leaves them; a new log would apply them.
        """
        known = self.logs.keys() | self.damaged.keys() | self.futures.keys()
        has_unknown = False
        for offsets in self._all_offsets():
            for partition in [partition for partition in offsets if partition not in known]:
                del offsets[partition]
                has_unknown = True
        if has_unknown:
            self.checkpoint()
        assert self._log_start_offsets.keys() <= known, self.path

    def _all_offsets(self) -> list[dict[TopicPartition, Offset]]:
        return [
            self._recovery_points,
            self._log_start_offsets,
            self._high_watermarks,
            self.cleaner_offsets,
        ]

    def _load(
        self,
        partition: TopicPartition,
        config: LogConfig,
        wall_ms: int,
        *,
        future: str = "",
        is_clean: bool = False,
    ) -> Log:
        """Open a log that exists; `future` is the name of a copy's directory.

        `is_clean`: it was closed a moment ago.
        """
        assert future or partition not in self.logs, partition
        directory = f"{self.path}/{future or partition}"
        topic_id = read_topic_id(self._fs, directory)
        log = open_log(
            self._fs,
            directory,
            partition,
            topic_id if topic_id is not None else Uuid(bytes(16)),
            config,
            wall_ms=wall_ms,
            is_clean=is_clean or self.was_clean,
            recovery_point=self._recovery_points.get(partition, Offset(0)),
            log_start_offset=self._log_start_offsets.get(partition, Offset(0)),
            persist_recovery_point=self._write_recovery_points,
            lower_cleaner_offset=partial(self._lower_cleaner_offset, partition),
            space=self.space,
            was_compacted=bool(future) or partition in self.cleaner_offsets,
        )
        # Recovery or `repair` may have truncated the log below the end of the last pass.
        self._lower_cleaner_offset(partition, log.active_segment.base_offset)
        log.update_high_watermark(self._high_watermarks.get(partition, Offset(0)))
        log.rolled = self._log_rolled
        assert log.topic_partition == partition, partition
        return log

    def create_log(
        self,
        partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        wall_ms: int,
        *,
        durable: bool = True,
        future: str = "",
    ) -> Log:
        """Create the directory and the empty log of a new partition.

        Without `durable`, `settle` must follow before a record of it is acknowledged, and the topic
        id is saved with the first record: a thousand partitions would be a thousand fsyncs.
        `future` is the name of the directory of a moving replica's copy.

        Errors: StorageError, which leaves no directory. The next start would find it beside the log
        that another log directory has got meanwhile, or continue a move that was refused.
        """
        assert partition not in self.logs, partition
        assert self.offline is None, self.offline
        directory = f"{self.path}/{future or partition}"
        is_new = not self._fs.exists(directory)
        try:
            log = self._created(
                partition, topic_id, config, wall_ms, directory, durable=durable, is_new=is_new
            )
        except StorageError:
            if is_new:
                with suppress(StorageError):  # the disk may refuse this, too
                    remove_tree(self._fs, directory)
                    self._fs.sync_directory(self.path)
            raise
        (self.futures if future else self.logs)[partition] = log
        return log

    def _created(
        self,
        partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        wall_ms: int,
        directory: str,
        *,
        durable: bool,
        is_new: bool,
    ) -> Log:
        self._fs.make_directory(directory)
        if durable:
            write_topic_id(self._fs, directory, topic_id)
        assert partition not in self.futures, partition
        assert not any(partition in offsets for offsets in self._all_offsets()), partition
        log = open_log(
            self._fs,
            directory,
            partition,
            topic_id,
            config,
            wall_ms=wall_ms,
            is_clean=is_new and not durable,
            persist_recovery_point=self._write_recovery_points,
            lower_cleaner_offset=partial(self._lower_cleaner_offset, partition),
            space=self.space,
        )
        log.topic_id_is_saved = durable
        log.rolled = self._log_rolled
        if durable:
            self._fs.sync_directory(self.path)
        return log

    def _log_rolled(self, log: Log) -> None:
        self.rolled(log)

    def assign_topic_id(self, partition: TopicPartition, topic_id: Uuid) -> None:
        """Complete a log whose creation was interrupted before its `partition.metadata`."""
        log = self.logs[partition]
        assert not any(log.topic_id), partition
        write_topic_id(self._fs, log.directory, topic_id)
        log.topic_id = topic_id

    def open_metadata_log(self, config: LogConfig, wall_ms: int) -> Log:
        """Open `__cluster_metadata-0`: always verified whole, and in none of the checkpoints."""
        path = f"{self.path}/{METADATA_PARTITION}"
        topic_id = Uuid(bytes(15) + b"\x01")
        is_new = not self._fs.exists(path)
        log = open_log(self._fs, path, METADATA_PARTITION, topic_id, config, wall_ms=wall_ms)
        if read_topic_id(self._fs, path) is None:
            write_topic_id(self._fs, path, topic_id)
        if is_new:
            self._fs.sync_directory(self.path)
        assert log.topic_id == topic_id, path
        return log

    def delete_log(self, partition: TopicPartition, *, durable: bool = True) -> str:
        """Delete the partition's log; return the directory to remove later.

        Its files are removed by `remove_deleted`, or by the next start. Without `durable`, `settle`
        is due. StorageError, with an unchanged log, in an offline directory.
        """
        if self.offline is not None:
            raise self.offline
        assert partition in self.logs or partition in self.damaged, partition
        log = self.logs.get(partition)
        unique = log.topic_id.hex() if log is not None else "0" * 32
        doomed = path_aside(self.path, partition, unique, DELETE_SUFFIX)
        remove_tree(self._fs, doomed)
        self._fs.rename(f"{self.path}/{partition}", doomed)
        self.forget_log(partition)
        if durable:
            self.settle()
        return doomed

    def forget_log(self, partition: TopicPartition) -> None:
        """Drop a log from memory; its files stay."""
        self.logs.pop(partition, None)
        self.damaged.pop(partition, None)
        self.unreadable.pop(partition, None)
        for offsets in self._all_offsets():
            offsets.pop(partition, None)
        self._has_forgotten = True
        assert partition not in self.logs, partition

    def settle(self) -> None:
        """Make creations and deletions of logs durable; drop the entries of deleted logs."""
        self._fs.sync_directory(self.path)
        if self._has_forgotten:
            self.checkpoint()
            self._has_forgotten = False

    def remove_deleted(self, doomed: str) -> None:
        """Remove the files of a deleted log; readers that hold them open are not disturbed."""
        assert doomed.endswith(DELETE_SUFFIX), doomed
        remove_tree(self._fs, doomed)

    def note_error(self, partition: TopicPartition | None, error: StorageError) -> None:
        """Apply an error: wait for space, exclude or set aside one log, or go offline."""
        if isinstance(error, DiskFull):
            try:
                self.space.note_full()
            except StorageError as worse:
                self.offline = worse
        elif partition is not None and isinstance(error, CorruptLog | CorruptCheckpoint):
            self.damaged[partition] = error
            self.logs.pop(partition, None)
        elif partition is not None and isinstance(error, UnreadableRecords):
            self.unreadable[partition] = error
        elif self.offline is None:
            self.offline = error
        known = self.damaged.keys() | self.unreadable.keys()
        assert self.offline or self.space.is_full or partition in known, error

    # -- checkpoints -----------------------------------------------------------------------------

    def checkpoint(self, *, high_watermarks_only: bool = False) -> None:
        """Write the four checkpoints; damaged logs keep their previous offsets.

        High watermarks are only written if one has moved, and a crash may undo them.
        """
        assert self.offline is None, self.offline
        if high_watermarks_only:
            self._write_high_watermarks()
            return
        self._write_recovery_points()
        for partition, log in self._all_logs():
            self._high_watermarks[partition] = log.high_watermark
            if log.log_start_offset > log.segments[0].base_offset:
                self._log_start_offsets[partition] = log.log_start_offset
            else:
                self._log_start_offsets.pop(partition, None)
        self._write(LOG_START_OFFSETS, self._log_start_offsets)
        self._write(HIGH_WATERMARKS, self._high_watermarks)
        self._write(CLEANER_OFFSETS, self.cleaner_offsets)

    def _write_high_watermarks(self) -> None:
        before = dict(self._high_watermarks)
        for partition, log in self._all_logs():
            self._high_watermarks[partition] = log.high_watermark
        if self._high_watermarks != before:
            path = f"{self.path}/{HIGH_WATERMARKS}"
            write_offsets(self._fs, path, self._high_watermarks, durable=False)

    def _all_logs(self) -> list[tuple[TopicPartition, Log]]:
        """Return the logs with their partitions, copies of moving replicas included."""
        assert self.path, "closed"
        alone = [each for each in self.futures.items() if each[0] not in self.logs]
        return [*self.logs.items(), *alone]

    def _write_recovery_points(self) -> None:
        for partition, log in self._all_logs():
            self._recovery_points[partition] = log.recovery_point
        self._write(RECOVERY_POINTS, self._recovery_points)
        assert len(self._recovery_points) >= len(self.logs), self.path

    def _lower_cleaner_offset(self, partition: TopicPartition, offset: Offset) -> None:
        """Make `offset` the first dirty one, durably, before a log is truncated there.

        Otherwise a tombstone that is appended later would be removed before the values that it
        deletes. A log that was never compacted gets no entry, which would permit gaps in it.
        StorageError: nothing changed.
        """
        assert offset >= 0, offset
        before = self.cleaner_offsets.get(partition, Offset(0))
        if before <= offset:
            return
        self.cleaner_offsets[partition] = offset
        try:
            self._write(CLEANER_OFFSETS, self.cleaner_offsets)
        except StorageError:
            self.cleaner_offsets[partition] = before  # the next attempt must write it
            raise

    def _write(self, name: str, offsets: dict[TopicPartition, Offset]) -> None:
        assert "/" not in name, name
        write_offsets(self._fs, f"{self.path}/{name}", offsets)

    def close(self, *, broker_epoch: int = -1) -> None:
        """Stop cleanly: close every log, write the checkpoints, then the marker; unlock.

        Offline directories are only unlocked, and a damaged log withholds the marker: what could
        not be written or was wrong must be verified again. So must logs that were never opened,
        unless they were clean before (KAFKA-10471).
        """
        if self.offline is None:
            assert all(log.segments for log in self.logs.values()), self.path
            for _, log in self._all_logs():
                log.close()
            self.checkpoint()
            if not self.damaged and (self._is_loaded or self.was_clean):
                fields = {"version": 0, "brokerEpoch": broker_epoch}
                marker = json.dumps(fields, separators=(",", ":")).encode("ascii")
                replace_file(self._fs, f"{self.path}/{CLEAN_SHUTDOWN}", marker)
        self.release()
        assert self.path, "closed"

    def release(self) -> None:
        """Release the lock without any further write, as a crash would."""
        assert self._lock is not None, self.path
        self._lock.release()


def set_stray_aside(fs: FileSystem, directory: LogDirectory, partition: TopicPartition) -> str:
    """Close a log that is not this node's and rename it, to keep it; return its new path.

    `settle` is due. StorageError if the rename fails; the log is closed then.
    """
    log = directory.logs[partition]
    log.close()
    assert partition != METADATA_PARTITION, partition
    path = stray_path(fs, directory.path, partition, log.topic_id.hex())
    fs.rename(log.directory, path)
    directory.forget_log(partition)
    return path


def set_damaged_aside(fs: FileSystem, directory: LogDirectory, partition: TopicPartition) -> str:
    """Rename a damaged log, to keep it; return its new path. `settle` is due."""
    assert partition in directory.damaged, partition
    path = stray_path(fs, directory.path, partition, "0" * 32)
    fs.rename(f"{directory.path}/{partition}", path)
    directory.forget_log(partition)
    return path


def stray_path(fs: FileSystem, parent: str, partition: TopicPartition, unique: str) -> str:
    """Return a path for something that is kept aside, which no earlier stray has."""
    path, again = path_aside(parent, partition, unique, _STRAY_SUFFIX), 0
    while fs.exists(path):
        again += 1
        path = path_aside(parent, partition, f"{unique}{again}", _STRAY_SUFFIX)
    return path


def path_aside(parent: str, partition: TopicPartition, unique: str, suffix: str) -> str:
    """Return a path beside the logs, with a name of permitted length."""
    end = f"-{partition.partition}.{unique}{suffix}"
    assert len(end) < _NAME_BYTES_MAX, end
    return f"{parent}/{partition.topic[: _NAME_BYTES_MAX - len(end)]}{end}"


def note_compaction(directory: LogDirectory, partition: TopicPartition, dirty_from: Offset) -> None:
    """Record in the checkpoint, durably, that a log may have gaps, before its first compaction."""
    assert partition in directory.logs, partition
    if partition not in directory.cleaner_offsets:
        directory.cleaner_offsets[partition] = dirty_from
        try:
            directory.checkpoint()
        except StorageError:
            del directory.cleaner_offsets[partition]  # not durable: the next call writes it
            raise


def log_bytes(fs: FileSystem, directory: str) -> int:
    """Return the size of a log that is not open because it is damaged."""
    assert directory, "a log needs a directory"
    total = 0
    for name in fs.names(directory):
        if name.endswith(LOG_SUFFIX):
            file = fs.open_for_reading(f"{directory}/{name}")
            total += file.size_bytes()
            file.close()
    return total


def partition_of_future(name: str) -> TopicPartition | None:
    """Return the partition of a directory `topic-partition.ID-future`, None for another name."""
    return partition_aside(name, FUTURE_SUFFIX)


def partition_aside(name: str, suffix: str) -> TopicPartition | None:
    """Return the partition of a directory `topic-partition.ID` with a suffix, or None."""
    assert "/" not in name, name
    log_name, dot, unique = name.removesuffix(suffix).rpartition(".")
    if not (name.endswith(suffix) and dot and unique):
        return None
    return partition_of_directory(log_name)


def partition_of_directory(name: str) -> TopicPartition | None:
    """Return the partition whose directory has this name, or None."""
    assert "/" not in name, name
    topic, dash, partition = name.rpartition("-")
    if not (topic and dash and partition.isascii() and partition.isdigit()):
        return None
    found = TopicPartition(topic, int(partition))
    return found if str(found) == name else None  # such as `topic-00`
