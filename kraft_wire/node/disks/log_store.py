"""The node's log directories as one store of partitions' logs, for the broker.

New partitions go to the directory with the fewest (KIP-112's rule), and to a cordoned one only if
no other is left (KIP-1066). Settings of a topic are its own values over the broker's, so a dynamic
change of a broker key reconfigures every log. The directories are the only source for which logs
exist.
"""

from collections.abc import Callable, Mapping, Sequence

from kraft_wire.broker.ports import LogDirectoryUsage, PartitionLog, TimestampAndOffsetView
from kraft_wire.model import DiskFull, Offset, ReportEvent, StorageError, TopicPartition, Uuid
from kraft_wire.node.disks.refused_appends import RefusedAppends, room
from kraft_wire.node.disks.torn_tails import report_torn_tail
from kraft_wire.node.event_log import Line
from kraft_wire.settings.cordoning import is_cordoned
from kraft_wire.settings.definition import ConfigValue
from kraft_wire.settings.node_settings import NodeSettings, topic_values
from kraft_wire.settings.values import format_value
from kraft_wire.storage.directory.future_logs import drop_future
from kraft_wire.storage.directory.log_directory import LogDirectory, log_bytes, note_compaction
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.segment import CorruptLog
from kraft_wire.storage.stored_records import UnreadableRecords
from kraft_wire.storage.timestamps import offset_for_timestamp, offset_of_max_timestamp

__all__ = ["NodeLogStore", "directory_of", "drop_copy", "repair_command"]


def repair_command(path: str, partition: TopicPartition) -> str:
    """Return the command that shows, and optionally cuts, a log's damage."""
    from shlex import quote  # only for damaged logs

    return f"kraft-wire repair {quote(path)} --partition {partition}"


class NodeLogStore:
    """Logs over one or more directories."""

    def __init__(
        self,
        fs: FileSystem,
        directories: list[LogDirectory],
        settings: NodeSettings,
        report: ReportEvent,
        went_offline: Callable[[LogDirectory], None],
        refused: RefusedAppends | None = None,
    ) -> None:
        """`report` takes the name and the fields of a log line.

        `went_offline` is called once for each directory that fails, whichever operation failed.
        """
        assert directories, "a node needs a log directory"
        self.log_directories = directories
        self.file_delete_delay_ms = settings.integer("log.segment.delete.delay.ms")
        self.producer_expiration_ms = settings.integer("producer.id.expiration.ms")
        self.doomed: list[tuple[LogDirectory, str]] = []
        """Directories of deleted logs; the node removes them after `file.delete.delay.ms`."""
        self._fs = fs
        self._settings = settings
        self._report = report
        self._went_offline = went_offline
        self._offline: dict[str, LogDirectory] = {}
        self._own: dict[str, Mapping[str, str]] = {}
        self._recent: tuple[Mapping[str, str], LogConfig] | None = None
        """The last requested topic's own settings, and the resulting configuration."""
        self.preferred: dict[TopicPartition, str] = {}
        """Directories that were asked for before their replicas exist, by path (KIP-113)."""
        self.unsettled: dict[str, LogDirectory] = {}
        """Directories, by path, for which `settle` is due."""
        self._full: dict[str, bool] = {}
        self.refused = refused or RefusedAppends(report)
        for directory in directories:
            directory.rolled = self._report_roll

    def usage(self) -> list[LogDirectoryUsage]:
        """Return the log directories in the order of `log.dirs`, failed ones included."""
        return [self._usage(directory) for directory in self.log_directories]

    def _usage(self, directory: LogDirectory) -> LogDirectoryUsage:
        try:
            if directory.offline is None:
                sizes = {name: log.size_bytes for name, log in directory.logs.items()}
                sizes |= {
                    name: log_bytes(self._fs, f"{directory.path}/{name}")
                    for name in directory.damaged
                }
                return LogDirectoryUsage(
                    path=directory.path,
                    total_bytes=self._fs.total_bytes(directory.path),
                    usable_bytes=self._fs.free_bytes(directory.path),
                    partition_bytes=sizes,
                    copies={
                        name: (log.size_bytes, log.log_end_offset)
                        for name, log in directory.futures.items()
                    },
                )
        except StorageError as error:
            self.directory_failed(directory, error)
        return LogDirectoryUsage(path=directory.path, is_offline=True)

    def config_for(self, topic: str) -> LogConfig:
        """Return a topic's settings in force; cached, as its partitions are asked for in a row."""
        own = self._own.get(topic, {})
        if self._recent is None or self._recent[0] != own:
            values = topic_values(own, self._settings)
            self._recent = (dict(own), LogConfig.from_mapping(_texts(values)))
        return self._recent[1]

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """Return a partition's log, None if it has none yet.

        Errors: StorageError for a log in a failed directory, and for a damaged log, which must not
        be replaced by an empty one.
        """
        directory = directory_of(self.log_directories, partition)
        if directory is None:
            return None
        if directory.offline is not None:
            raise directory.offline
        if partition in directory.damaged:
            raise directory.damaged[partition]
        return directory.logs[partition]

    def create(
        self, partition: TopicPartition, topic_id: Uuid, config: Mapping[str, str], wall_ms: int
    ) -> PartitionLog:
        """Create an empty log in the preferred directory, or in the one that has the fewest.

        If all directories are cordoned, the controller placed the replica here before it knew: the
        first one gets it. `settle` makes it durable.

        Errors: StorageError, also when every directory is offline.
        """
        self._own[partition.topic] = config
        online = [directory for directory in self.log_directories if directory.offline is None]
        if not online:
            offline = self.log_directories[0].offline
            assert offline is not None, self.log_directories
            raise offline
        wished = self.preferred.pop(partition, None)
        preferred = [each for each in online if each.path == wished]
        uncordoned = [each for each in online if not is_cordoned(self._settings, each.path)]
        chosen = min(preferred or uncordoned or online[:1], key=lambda each: len(each.logs))
        own = self.config_for(partition.topic)
        try:
            log = chosen.create_log(partition, topic_id, own, wall_ms, durable=False)
        except StorageError as error:
            self.directory_failed(chosen, error)
            raise
        self.unsettled[chosen.path] = chosen
        return log

    def configure(self, partition: TopicPartition, config: Mapping[str, str]) -> None:
        """Apply changed settings of a topic to a log."""
        self._own[partition.topic] = config
        for directory in self.log_directories:
            for log in (directory.logs.get(partition), directory.futures.get(partition)):
                if log is not None:
                    log.update_config(self.config_for(partition.topic))

    def configure_all(self, settings: NodeSettings) -> None:
        """Apply changed settings of the broker to every log."""
        self._settings, self._recent = settings, None
        self.file_delete_delay_ms = settings.integer("log.segment.delete.delay.ms")
        self.producer_expiration_ms = settings.integer("producer.id.expiration.ms")
        for directory in self.log_directories:
            for partition, log in (*directory.logs.items(), *directory.futures.items()):
                log.update_config(self.config_for(partition.topic))

    def delete(self, partition: TopicPartition) -> None:
        """Delete a log; its files are removed later. `settle` makes it durable.

        If a log cannot be deleted, its directory goes offline, so that nothing is created there
        before the next start, which sets the log aside. A copy in another directory goes too.
        """
        drop_copy(self, self._fs, partition)
        directory = directory_of(self.log_directories, partition)
        if directory is None:
            return
        try:
            self.doomed.append((directory, directory.delete_log(partition, durable=False)))
            self.unsettled[directory.path] = directory
        except StorageError as error:
            directory.forget_log(partition)
            self.directory_failed(
                directory, StorageError(error.operation, error.path, error.reason)
            )

    def expect_gaps(self, partition: TopicPartition) -> None:
        """Note that a log may have gaps, before its leader sends the first."""
        directory = directory_of(self.log_directories, partition)
        assert directory is not None, partition
        note_compaction(directory, partition, Offset(0))

    def settle(self) -> None:
        """Make creations and deletions since the last call durable, all at once.

        On a full disk another call completes this. Until then nothing may be appended to created
        logs: after a restart they would have the offsets of a previous log of the same name.
        """
        unsettled, self.unsettled = self.unsettled, {}
        for directory in unsettled.values():
            if directory.offline is None:
                try:
                    directory.settle()
                except StorageError as error:
                    self.directory_failed(directory, error)
                    if directory.offline is None:
                        self.unsettled[directory.path] = directory

    def directory_failed(self, directory: LogDirectory, error: StorageError) -> None:
        """Apply an error that is not about one log."""
        directory.note_error(None, error)
        self.look_at_directories()

    def look_at_directories(self) -> None:
        """Report directories that failed, ran full, or have room again."""
        for directory in self.log_directories:
            if directory.offline is not None and directory.path not in self._offline:
                self._offline[directory.path] = directory
                reason = Line(directory.offline)
                self._report("log_directory_offline", directory=directory.path, reason=reason)
                self._went_offline(directory)
            is_full = directory.space.is_full
            if is_full != (directory.path in self._full):
                name = "log_directory_full" if is_full else "log_directory_has_room"
                self._report(name, directory=directory.path, **room(directory))
                if is_full:
                    self._full[directory.path] = True
                else:
                    del self._full[directory.path]

    def failed(self, partition: TopicPartition, error: StorageError) -> list[TopicPartition]:
        """Apply a disk's error; return the partitions that go offline."""
        directory = directory_of(self.log_directories, partition)
        if directory is None:
            offline = [each for each in self.log_directories if each.offline is not None]
            return [partition, *(held for each in offline for held in each.logs)]
        held = list(directory.logs)
        if isinstance(error, UnreadableRecords):
            self._note_unreadable(directory, partition, error)
            return []
        was_offline, was_damaged = directory.offline is not None, partition in directory.damaged
        if not was_offline:
            directory.note_error(partition, error)
        self.look_at_directories()
        if isinstance(error, DiskFull):
            self.refused.note(directory, partition)
        if directory.offline is not None:
            # In a directory that failed before, the others are offline already, or not opened yet.
            return [partition] if was_offline else held
        if partition not in directory.damaged:
            return []
        if not was_damaged:
            self._tell_damaged(directory, partition, error)
        return [partition]

    def _note_unreadable(
        self, directory: LogDirectory, partition: TopicPartition, error: UnreadableRecords
    ) -> None:
        """Log once that a log is no longer compacted, although it is still served."""
        if partition not in directory.unreadable:
            directory.note_error(partition, error)
            reason = Line(error.reason)
            self._report("records_unreadable", partition=partition, file=error.path, reason=reason)

    def load(self, own: Mapping[str, Mapping[str, str]], wall_ms: int) -> None:
        """Open the logs of every directory; report damaged ones.

        `own` has the topics' own settings. Errors: StorageError for a directory that cannot be
        read: otherwise its replicas would be created again, empty, in another directory.
        """
        self._own.update(own)
        for directory in self.log_directories:
            if directory.offline is not None:
                raise directory.offline
            place = directory.path
            self._report("log_directory_loading", directory=place, was_clean=directory.was_clean)
            directory.load_logs(self.config_for, wall_ms)
            logs_count, damaged = len(directory.logs), len(directory.damaged)
            self._report("log_directory_loaded", directory=place, logs=logs_count, refused=damaged)
            for log in directory.logs.values():
                report_torn_tail(self._report, log)
            for partition, error in directory.damaged.items():
                self._tell_damaged(directory, partition, error)

    def _report_roll(self, log: Log) -> None:
        sealed, active = log.segments[-2:]
        self._report(
            "segment_rolled",
            partition=log.topic_partition,
            base_offset=active.base_offset,
            segments=len(log.segments),
            sealed_bytes=sealed.size_bytes,
        )

    def _tell_damaged(
        self, directory: LogDirectory, partition: TopicPartition, error: StorageError
    ) -> None:
        """Log the damage, with the command for the operator."""
        self._report(
            "log_refused",
            partition=partition,
            file=error.path,
            position=error.position if isinstance(error, CorruptLog) else 0,
            reason=Line(error.reason),
            repair=Line(repair_command(directory.path, partition)),
        )

    def offset_for_timestamp(
        self, log: PartitionLog, timestamp: int, *, upper_bound: Offset
    ) -> TimestampAndOffsetView | None:
        """Return the first record whose time is at or after `timestamp`."""
        assert isinstance(log, Log), log
        return offset_for_timestamp(log, timestamp, upper_bound=upper_bound)

    def offset_of_max_timestamp(
        self, log: PartitionLog, *, upper_bound: Offset
    ) -> TimestampAndOffsetView | None:
        """Return the record with the largest time."""
        assert isinstance(log, Log), log
        return offset_of_max_timestamp(log, upper_bound=upper_bound)


def directory_of(
    directories: Sequence[LogDirectory], partition: TopicPartition
) -> LogDirectory | None:
    """Return the directory with a replica's log, served or damaged."""
    for directory in directories:
        if partition in directory.logs or partition in directory.damaged:
            return directory
    return None


def drop_copy(store: NodeLogStore, fs: FileSystem, partition: TopicPartition) -> None:
    """Delete the copy of a moving replica, if there is one; its files are removed later."""
    for directory in store.log_directories:
        if partition in directory.futures and directory.offline is None:
            try:
                store.doomed.append((directory, drop_future(fs, directory, partition)))
                store.unsettled[directory.path] = directory
            except StorageError as error:
                store.directory_failed(directory, error)


def _texts(values: Mapping[str, ConfigValue]) -> dict[str, str]:
    texts = {name: format_value(value) for name, value in values.items()}
    return {name: text for name, text in texts.items() if text is not None}
