"""Periodic tasks of a node: retention, compaction, checkpoints, flushes, removal of old files.

Each task has Kafka's interval key. A task's error takes the log directory offline or, for a failed
fsync, ends the process; it never stops the other tasks.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.frozen import slotted
from kraft_wire.model import ReportEvent, StorageError, TopicPartition
from kraft_wire.node.disks.compaction import LogCleaner
from kraft_wire.node.disks.log_store import NodeLogStore
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.storage.cleaning.retention import apply_retention
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.files import FileSystem

__all__ = ["Maintenance"]

_COMPACTION_REST_MS_MIN: Final = 1_000
"""Pause between passes, because a pass blocks everything else."""

_PAUSE_MS_MIN: Final = 10
"""Pause between two runs of any task, because each goes over all logs.

Kafka's scheduler runs a task without a positive interval once.
"""

_REMOVED_AT_ONCE: Final = 100
"""Deleted logs whose files one pass removes: it blocks everything else."""


@slotted
class _Task:
    """A periodic task."""

    run: Callable[[int, int], None]
    """`run(now_ms, wall_ms)`."""
    interval_ms: int
    due_ms: int


class Maintenance:
    """The periodic tasks of one node."""

    def __init__(
        self,
        fs: FileSystem,
        store: NodeLogStore,
        settings: NodeSettings,
        now_ms: int,
        disk_failed: Callable[[TopicPartition, StorageError], None],
        has_replicated: Callable[[], bool],
        report: ReportEvent = lambda name, **fields: None,
    ) -> None:
        """`disk_failed` applies an error, also to the broker's partitions.

        `has_replicated` returns whether high watermarks can differ from the ends of logs.
        """
        self._disk_failed, self._report = disk_failed, report
        self._has_replicated = has_replicated
        self._fs = fs
        self._store = store
        self._cleans = settings.boolean("log.cleaner.enable")
        self._cleaner = LogCleaner(fs, disk_failed)
        self._doomed: list[tuple[int, LogDirectory, str]] = []
        self._tasks = [
            _Task(run, interval, now_ms + interval) for run, interval in self._plan(settings)
        ]

    def _plan(self, settings: NodeSettings) -> list[tuple[Callable[[int, int], None], int]]:
        """Return each task with its interval; settings may ask for none between two runs."""
        number = settings.integer
        tasks = (
            (self._apply_retention, number("log.retention.check.interval.ms")),
            (self._compact, max(_COMPACTION_REST_MS_MIN, number("log.cleaner.backoff.ms"))),
            (self._checkpoint, number("log.flush.offset.checkpoint.interval.ms")),
            (
                self._checkpoint_high_watermarks,
                number("replica.high.watermark.checkpoint.interval.ms"),
            ),
            (self._flush_by_time, _flush_check_ms(settings)),
            (self._look_for_space, 1_000),
            (self._remove_deleted, 1_000),
            (self._expire_producers, number("producer.id.expiration.check.interval.ms")),
        )
        return [(run, max(_PAUSE_MS_MIN, interval_ms)) for run, interval_ms in tasks]

    def configure(self, settings: NodeSettings) -> None:
        """Apply changed intervals, counted from the last run of each task.

        Only `log.cleaner.backoff.ms` and `log.flush.interval.ms` can change.
        """
        for task, (_, interval_ms) in zip(self._tasks, self._plan(settings), strict=True):
            task.due_ms += interval_ms - task.interval_ms
            task.interval_ms = interval_ms

    def deadline_ms(self) -> int:
        """Return when the next task is due."""
        return min(task.due_ms for task in self._tasks)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Run the tasks that are due."""
        for task in self._tasks:
            if task.due_ms <= now_ms:
                task.due_ms = now_ms + task.interval_ms
                task.run(now_ms, wall_ms)

    def _online(self) -> list[LogDirectory]:
        return [each for each in self._store.log_directories if each.offline is None]

    def _directory_failed(self, directory: LogDirectory, error: StorageError) -> None:
        """Handle an error that is not about one partition."""
        any_log = next(iter(directory.logs), None)
        if any_log is None:
            self._store.directory_failed(directory, error)
        else:
            self._disk_failed(any_log, error)

    def _apply_retention(self, now_ms: int, wall_ms: int) -> None:
        """Remove old segments, but as in Kafka not of a replica that moves to another directory."""
        moving = {partition: None for each in self._online() for partition in each.futures}
        for directory in self._online():
            for partition, log in list(directory.logs.items()):
                if partition in moving:
                    continue
                try:
                    removed = apply_retention(log, wall_ms)
                    if removed > 0:
                        self._report(
                            "segments_deleted",
                            partition=partition,
                            count=removed,
                            log_start_offset=log.log_start_offset,
                        )
                except StorageError as error:
                    self._disk_failed(partition, error)

    def _compact(self, now_ms: int, wall_ms: int) -> None:
        """Compact at most one log: a pass blocks everything else."""
        if self._cleans:
            self._cleaner.run(self._online(), wall_ms)

    def _checkpoint(self, now_ms: int, wall_ms: int) -> None:
        for directory in self._online():
            try:
                directory.checkpoint()
                directory.space.refresh()
            except StorageError as error:
                self._directory_failed(directory, error)

    def _checkpoint_high_watermarks(self, now_ms: int, wall_ms: int) -> None:
        if not self._has_replicated():
            return
        for directory in self._online():
            try:
                directory.checkpoint(high_watermarks_only=True)
            except StorageError as error:
                self._directory_failed(directory, error)

    def _look_for_space(self, now_ms: int, wall_ms: int) -> None:
        """Resume appends once a full disk has room again, also for writes that are still due."""
        self._store.settle()
        for directory in self._online():
            if directory.space.is_full and directory.path not in self._store.unsettled:
                try:
                    directory.space.refresh()
                except StorageError as error:
                    self._directory_failed(directory, error)
        self._store.look_at_directories()

    def _flush_by_time(self, now_ms: int, wall_ms: int) -> None:
        for directory in self._online():
            for log in list(directory.logs.values()):
                first = log.first_unflushed_ms
                if first is None or now_ms - first < log.config.flush_ms:
                    continue
                try:
                    log.flush()
                except StorageError as error:
                    self._disk_failed(log.topic_partition, error)

    def _expire_producers(self, now_ms: int, wall_ms: int) -> None:
        for directory in self._online():
            for log in directory.logs.values():
                log.producer_states.expire(wall_ms, self._store.producer_expiration_ms)

    def _remove_deleted(self, now_ms: int, wall_ms: int) -> None:
        fresh, self._store.doomed = self._store.doomed, []
        delay_ms = self._store.file_delete_delay_ms
        self._doomed += [(now_ms + delay_ms, directory, path) for directory, path in fresh]
        due = [each for each in self._doomed if each[0] <= now_ms][:_REMOVED_AT_ONCE]
        self._doomed = [each for each in self._doomed if each not in due]
        for _, directory, path in due:
            try:
                directory.remove_deleted(path)
            except StorageError as error:
                self._directory_failed(directory, error)


def _flush_check_ms(settings: NodeSettings) -> int:
    """Return the interval of checks for unflushed logs; Kafka's default is never."""
    own = settings.value("log.flush.interval.ms")
    scheduled = settings.integer("log.flush.scheduler.interval.ms")
    return min(scheduled, own) if isinstance(own, int) else scheduled
