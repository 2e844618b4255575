"""Streams over growing log directories: the end of each log, and the rows between two offsets.

Offsets are those of Spark's own connector, `{"orders": {"0": 23}}`, exclusive. A log ends at its
last whole batch with a right checksum; read_committed, where its oldest open transaction begins.
State of a log is kept between two calls only for speed: a new process can plan and read every
offset again.

Partitions that appear later begin at their earliest offset. A partition that is gone, whose
beginning was deleted before it was read, or whose end went back (a topic that was created again, a
new leader without the end of the old one's log), is data loss, which `failOnDataLoss` judges.

The first micro-batch of a query that begins at an end is empty, for the reasons of `wire_stream`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kraft_wire.columnar import PartitionFiles
from kraft_wire.model import TopicPartition
from kraft_wire.spark.failure import PipelineError, line_first
from kraft_wire.spark.kraftlog.offset_ranges import offset_range
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.planning import OffsetRange, plan_log_parts
from kraft_wire.spark.kraftlog.replicas import list_replicas, log_end, one_of_each
from kraft_wire.spark.kraftlog.tasks import ViewPartition
from kraft_wire.spark.kraftlog.transactions import CommittedLogs
from kraft_wire.spark.kraftlog.views import ViewTask, read_task
from kraft_wire.spark.kraftwire.offsets import LATEST, from_nested, to_nested
from kraft_wire.storage.os_files import OsFileSystem

__all__ = ["LogStreamReader", "limited"]

Nested = dict[str, dict[str, int]]
Offsets = dict[TopicPartition, int]
_GONE: Final = "set failOnDataLoss to false to continue without the lost records"


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches of the view `records`."""

    def __init__(self, options: LogOptions, schema: pa.Schema, parallelism: int) -> None:
        self.options = options
        self.schema = schema
        self.parallelism = parallelism
        self._target: Offsets | None = None
        """The end of a query with the trigger availableNow."""
        self._initial: Nested | None = None
        self._is_first = True
        """Whether no micro-batch was asked for yet."""
        self._committed = CommittedLogs(OsFileSystem())

    def initialOffset(self) -> Nested:
        """Return where a new query begins; an end is the same each time, though it has moved."""
        if self._initial is None or not self._wants_an_end:
            logs = self._logs()
            self._initial = to_nested({key: self._start(key, files) for key, files in logs.items()})
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of `maxOffsetsPerTrigger`."""
        most = self.options.offsets_per_trigger_max
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Nested, limit: ReadLimit) -> Nested:
        """Return where the next micro-batch ends; `start` without new offsets."""
        is_first, self._is_first = self._is_first, False
        if is_first and self._begins_at_an_end(start):
            return start
        began, logs = from_nested(start), self._logs()
        ends = self._ends(logs) if self._target is None else self._target
        for key, end in ends.items():
            if key not in began:
                began[key] = min(_earliest(logs[key], self.options), end) if key in logs else end
        reached = {key: ends.get(key, offset) for key, offset in began.items()}
        if self._target is not None and self._begins_at_an_end(start):
            reached = {key: max(offset, reached[key]) for key, offset in began.items()}
        if isinstance(limit, ReadMaxRows):
            reached = limited(began, reached, limit.max_rows)
        return to_nested(reached)

    def reportLatestOffset(self) -> Nested:
        """Return where the logs end, for the query's progress."""
        return to_nested(self._ends(self._logs()))

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of a query with the trigger availableNow."""
        self._target = self._ends(self._logs())

    def partitions(self, start: Nested, end: Nested) -> list[InputPartition]:
        """Return the tasks between two offsets."""
        began, ended, logs = from_nested(start), from_nested(end), self._logs()
        if self._is_first and self._begins_at_an_end(start):
            began = {key: min(at, ended[key]) for key, at in began.items() if key in ended}
        wanted: list[tuple[PartitionFiles, OffsetRange]] = []
        for key, stop in sorted(ended.items()):
            files = logs.get(key)
            if files is None:
                self._lose(f"{key} is no longer in {', '.join(self.options.paths)}")
                continue
            earliest = _earliest(files, self.options)
            first = began.get(key, min(earliest, stop))
            if stop < first:
                self._lose(f"{key} ended at {first} and now ends at {stop}")
            if first < earliest and first < stop:
                self._lose(f"{key}: offsets from {first} were deleted, it begins at {earliest}")
            if first < stop:
                wanted.append((files, OffsetRange(max(first, earliest), stop)))
        return self._planned(wanted)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one task."""
        assert isinstance(partition, ViewPartition), partition
        with line_first():
            yield from read_task(OsFileSystem(), partition.task, self.options, self.schema)

    def _planned(self, wanted: list[tuple[PartitionFiles, OffsetRange]]) -> list[InputPartition]:
        tasks = plan_log_parts(OsFileSystem(), wanted, self.options, self.parallelism)
        if self.options.read_committed:
            for files, _ in wanted:
                self._committed.end_offset(files)
            tasks = [tuple(self._committed.told(part) for part in task) for task in tasks]
        return [ViewPartition(ViewTask(parts=parts)) for parts in tasks]

    def _logs(self) -> dict[TopicPartition, PartitionFiles]:
        fs = OsFileSystem()
        return {each.key: each.files for each in one_of_each(fs, list_replicas(fs, self.options))}

    @property
    def _wants_an_end(self) -> bool:
        return LATEST in (self.options.starting_offsets or {}).values()

    def _begins_at_an_end(self, start: Nested) -> bool:
        """Whether a query begins here that begins at an end, which may have moved since."""
        return self._wants_an_end and start == self._initial

    def _start(self, key: TopicPartition, files: PartitionFiles) -> int:
        """Return where a query begins in a log, as it can be in a checkpoint."""
        if (self.options.starting_offsets or {}).get(key) == LATEST:
            start = self._ends({key: files})[key]
        else:
            start = offset_range(OsFileSystem(), files, self.options).start
        return max(start, _earliest(files, self.options))

    def _ends(self, logs: Mapping[TopicPartition, PartitionFiles]) -> Offsets:
        fs = OsFileSystem()
        if self.options.read_committed:
            return {key: self._committed.end_offset(files) for key, files in logs.items()}
        return {key: max(log_end(fs, files), 0) for key, files in logs.items()}

    def _lose(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise PipelineError(f"{what}; {_GONE}")


def _earliest(files: PartitionFiles, options: LogOptions) -> int:
    """Return the first offset of a log that a query may be given."""
    if options.starting == "physical":
        return files.segments[0].base_offset if files.segments else 0
    return files.earliest_offset


def limited(
    began: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int
) -> Offsets:
    """Return ends that are at most `most` offsets away, shared by each partition's backlog."""
    behind = {key: max(ends[key] - began[key], 0) for key in sorted(ends)}
    total = sum(behind.values())
    if total <= most:
        return dict(ends)
    reached: Offsets = {}
    left = most
    for key, count in behind.items():
        share = min(count, -(-count * most // total), left)
        left -= share
        reached[key] = min(began[key] + share, ends[key])
    return reached
