"""Copies of replicas in other log directories, for the broker's moves (`broker.ports`).

A disk that fails takes its directory offline. A failed target ends the move, and its copy waits on
the disk for the next start; a failed source takes the replica offline, as without a move. A damaged
copy is dropped: the replica's own log has all that it had.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kraft_wire.broker.ports import PartitionLog
from kraft_wire.model import ReportEvent, StorageError, TopicPartition
from kraft_wire.node.disks.log_store import NodeLogStore, directory_of, drop_copy
from kraft_wire.node.event_log import Line
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.future_logs import create_future, promote
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.segment import CorruptLog

__all__ = ["NodeReplicaCopies"]

_PREFERRED_MAX: Final = 10_000
"""Replicas that may never be created: of more, the first are forgotten."""


class NodeReplicaCopies:
    """The copies of one node (`broker.ports.ReplicaCopies`)."""

    def __init__(
        self,
        fs: FileSystem,
        store: NodeLogStore,
        disk_failed: Callable[[TopicPartition, StorageError], None],
        report: ReportEvent,
    ) -> None:
        """`disk_failed` applies an error at a replica's log, also to the broker's partition."""
        self._fs = fs
        self._store = store
        self._disk_failed = disk_failed
        self._report = report

    def directories(self) -> Mapping[str, bool]:
        """Return the log directories, with whether each one is online."""
        return {each.path: each.offline is None for each in self._store.log_directories}

    def directory_of(self, partition: TopicPartition) -> str | None:
        """Return the directory of a replica's log, None without one."""
        directory = directory_of(self._store.log_directories, partition)
        return None if directory is None else directory.path

    def all(self) -> Mapping[TopicPartition, str]:
        """Return all copies with their directories, but none of a failed directory."""
        return {
            partition: each.path
            for each in self._store.log_directories
            if each.offline is None
            for partition in each.futures
        }

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the copy of a replica, None without one or if its directory has failed."""
        target = self._target_of(partition)
        return None if target is None else target.futures[partition]

    def create(self, partition: TopicPartition, path: str, wall_ms: int) -> PartitionLog:
        """Create an empty copy of a replica. Errors: StorageError, which the store has recorded."""
        source = directory_of(self._store.log_directories, partition)
        assert source is not None, partition
        target = next(each for each in self._store.log_directories if each.path == path)
        log, config = source.logs[partition], self._store.config_for(partition.topic)
        try:
            return create_future(target, partition, log.topic_id, config, wall_ms)
        except StorageError as error:
            self._store.directory_failed(target, error)
            raise

    def drop(self, partition: TopicPartition) -> None:
        """Delete the copy of a replica, if there is one."""
        drop_copy(self._store, self._fs, partition)
        self._store.settle()

    def promote(self, partition: TopicPartition, wall_ms: int) -> bool:
        """Replace a replica's log by its copy; False if a disk failed, which is recorded."""
        store = self._store
        source = directory_of(store.log_directories, partition)
        target = self._target_of(partition)
        assert source is not None, partition
        assert target is not None, partition
        try:
            doomed = promote(self._fs, source, target, partition, wall_ms)
        except StorageError as error:
            if partition in source.logs and self._is_of(error, target):
                store.directory_failed(target, error)
            else:
                self._disk_failed(partition, error)
            return False
        store.doomed.append((source, doomed))
        store.unsettled[source.path] = source
        store.settle()
        return True

    def _is_of(self, error: StorageError, directory: LogDirectory) -> bool:
        """Return whether an error's path is in this directory, which may be in another one."""
        parents = [
            each.path
            for each in self._store.log_directories
            if f"{error.path}/".startswith(f"{each.path}/")
        ]
        return bool(parents) and max(parents, key=len) == directory.path

    def failed(self, partition: TopicPartition, error: StorageError) -> None:
        """Take note of a disk's error at a copy; a damaged copy is dropped."""
        target = self._target_of(partition)
        if target is None:
            return
        if isinstance(error, CorruptLog | CorruptCheckpoint):
            reason = Line(error.reason)
            self._report("replica_copy_dropped", partition=partition, reason=reason)
            self.drop(partition)
        else:
            self._store.directory_failed(target, error)

    def prefer(self, partition: TopicPartition, path: str) -> None:
        """Create the log of a replica in this directory, if it is created later."""
        preferred = self._store.preferred
        preferred[partition] = path
        if len(preferred) > _PREFERRED_MAX:
            del preferred[next(iter(preferred))]

    def _target_of(self, partition: TopicPartition) -> LogDirectory | None:
        for directory in self._store.log_directories:
            if directory.offline is None and partition in directory.futures:
                return directory
        return None
