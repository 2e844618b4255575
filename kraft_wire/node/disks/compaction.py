"""Which log is compacted next, over all log directories of a node.

Each call runs one pass, over the log with the largest share of cleanable bytes, as Kafka's
`LogCleanerManager` chooses. A pass that fails does not use up the call: the next dirtiest log
follows. A log whose pass failed then rests, so that the others of its directory get their turn.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.frozen import frozen
from kraft_wire.model import DiskFull, Offset, StorageError, TopicPartition
from kraft_wire.storage.cleaning.cleanable import Cleanable, cleanable_part
from kraft_wire.storage.directory.log_directory import LogDirectory, note_compaction
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.log import Log

__all__ = ["LogCleaner"]

_MAP_ENTRIES_MAX: Final = 100_000
"""Keys of one compaction pass: bounds its memory, and its time, in which the node is blocked."""


@frozen
class _DueLog:
    """A log that is due for a pass."""

    directory: LogDirectory
    log: Log
    part: Cleanable

    @property
    def key(self) -> tuple[str, TopicPartition]:
        """The path of the directory and the partition."""
        return self.directory.path, self.log.topic_partition


class LogCleaner:
    """Chooses logs and compacts them."""

    def __init__(
        self, fs: FileSystem, disk_failed: Callable[[TopicPartition, StorageError], None]
    ) -> None:
        """`disk_failed` handles the error of a pass, for the broker's partitions too."""
        self._fs = fs
        self._disk_failed = disk_failed
        self._calls_count = 0
        self._rest_until: dict[tuple[str, TopicPartition], int] = {}
        """Logs whose last pass failed, with the number of the call that may choose them again."""

    def run(self, directories: list[LogDirectory], wall_ms: int) -> bool:
        """Run one pass over the dirtiest log that is due; return whether a log was compacted.

        A full directory is left for the next call, because each attempt costs as much as a pass.
        """
        self._calls_count += 1
        self._rest_until = {
            key: until for key, until in self._rest_until.items() if until > self._calls_count
        }
        due = self._due(directories, wall_ms)
        full: list[LogDirectory] = []
        for chosen in sorted(due, key=lambda each: each.part.dirty_ratio, reverse=True):
            directory = chosen.directory
            if directory.offline is not None or directory in full:
                continue
            if chosen.key in self._rest_until:
                continue
            try:
                self._compact(chosen, wall_ms)
            except StorageError as error:
                beside = sum(1 for each in due if each.directory is directory)
                self._rest_until[chosen.key] = self._calls_count + beside
                if isinstance(error, DiskFull):
                    full.append(directory)
                self._disk_failed(chosen.log.topic_partition, error)
            else:
                return True
        return False

    def _due(self, directories: list[LogDirectory], wall_ms: int) -> list[_DueLog]:
        """Return the logs for which a pass is due, except those with unreadable records.

        A replica that moves to another directory waits: its copy has been read from the old log.
        """
        due = []
        moving = {partition: None for each in directories for partition in each.futures}
        for directory in directories:
            for partition, log in list(directory.logs.items()):
                if not log.config.is_compacted or partition in directory.unreadable:
                    continue
                if partition in moving:
                    continue
                if directory.offline is not None:
                    break  # an index of a previous log could not be read
                try:
                    checkpoint = directory.cleaner_offsets.get(partition, Offset(0))
                    part = cleanable_part(log, checkpoint, wall_ms)
                except StorageError as error:
                    self._disk_failed(partition, error)
                    continue
                if part.is_due(log.config.min_cleanable_dirty_ratio):
                    due.append(_DueLog(directory, log, part))
        return due

    def _compact(self, chosen: _DueLog, wall_ms: int) -> None:
        """Run one pass and write its end into the cleaner checkpoint."""
        # Imported on first use: imports are most of the time of a start.
        from kraft_wire.storage.cleaning.cleaner import compact

        directory, log = chosen.directory, chosen.log
        dirty = chosen.part.first_dirty_offset
        note_compaction(directory, log.topic_partition, dirty)
        done = compact(self._fs, log, dirty, wall_ms, map_entries_max=_MAP_ENTRIES_MAX)
        assert done.next_dirty_offset > dirty, (log.topic_partition, done)
        directory.cleaner_offsets[log.topic_partition] = done.next_dirty_offset
