"""From replicas and options to tasks: which bytes of which files one task reads.

A task costs Spark 25 to 30 ms, so small segments share one, and large ones are divided where the
offset index points to a batch. An index is not trusted: its entry is used only if it points at a
whole batch with a right checksum that ends at the entry's offset. Sizes are those of Spark's file
sources: `max(openCost, min(maxPartitionBytes, total / parallelism))`.

The range of a read is given as offsets; positions only narrow down the search.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

import numpy as np

from kraft_wire.columnar import (
    AbortedRange,
    PartitionFiles,
    SegmentFile,
    batch_columns,
    index_entries,
    read_windows,
)
from kraft_wire.model import Offset, StorageError
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.producers.snapshots import snapshot_path
from kraft_wire.storage.segment import LOG_SUFFIX

__all__ = [
    "EVERYTHING",
    "LogPart",
    "OffsetRange",
    "Stretch",
    "pack",
    "plan_log_parts",
    "producers_before",
    "task_bytes",
    "whole_log",
]

_PROBE_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets from `start` up to but not including `end`; None is the end of the log."""

    start: int
    end: int | None = None


EVERYTHING: Final = OffsetRange(-(1 << 63))
"""All content of the files, even with invalid offsets."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of one segment file, which begins where a batch does."""

    segment: str
    start_position: int
    end_position: int
    is_file_end: bool
    """Whether no byte of the file follows."""

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return self.end_position - self.start_position


@dataclass(frozen=True, slots=True)
class LogPart:
    """Consecutive stretches of one log, for one task."""

    node: str
    topic: str
    partition: int
    directory: str
    offsets: OffsetRange
    stretches: tuple[Stretch, ...]
    holds_log_end: bool
    """Whether the last stretch is the end of the log, where a torn batch is not damage."""
    history: tuple[Stretch, ...] = ()
    """The whole log, for readers that need its aborted transactions."""
    aborted: tuple[AbortedRange, ...] | None = None
    """The aborted transactions, if they are known already."""

    @property
    def size_bytes(self) -> int:
        """How many bytes it has."""
        return sum(stretch.size_bytes for stretch in self.stretches)


def task_bytes(options: LogOptions, total_bytes: int, files: int, parallelism: int) -> int:
    """Return how much one task is to read, as Spark's file sources reckon."""
    assert parallelism > 0, parallelism
    total = total_bytes + files * options.open_cost_bytes
    tasks = max(parallelism, options.partitions_min or 1)
    return max(options.open_cost_bytes, min(options.partition_bytes_max, total // tasks), 1)


def plan_log_parts(
    fs: FileSystem,
    logs: Sequence[tuple[PartitionFiles, OffsetRange]],
    options: LogOptions,
    parallelism: int,
) -> list[tuple[LogPart, ...]]:
    """Return the parts of each task, those of one log in the order of its offsets.

    A log that is read for committed records is divided only where a producer snapshot has the open
    transactions; elsewhere a task would have to read everything before.
    """
    chosen = [(files, offsets, _segments_in(files, offsets)) for files, offsets in logs]
    sizes = [segment.size_bytes for _, _, segments in chosen for segment in segments]
    wanted = task_bytes(options, sum(sizes), len(sizes), parallelism)
    parts: list[LogPart] = []
    for files, offsets, segments in chosen:
        stretches = [
            stretch
            for segment in segments
            for stretch in _stretches(fs, files, segment, offsets, wanted)
        ]
        if options.read_committed:
            whole = whole_log(files).stretches
            for run in _by_snapshot(fs, files.directory, stretches):
                parts.append(_part(files, offsets, run, whole))
        else:
            parts += [_part(files, offsets, [stretch]) for stretch in stretches]
    return pack(parts, wanted, options.open_cost_bytes)


def _by_snapshot(
    fs: FileSystem, directory: str, stretches: Iterable[Stretch]
) -> list[list[Stretch]]:
    """Divide stretches at the segments that have a producer snapshot."""
    runs: list[list[Stretch]] = []
    for stretch in stretches:
        is_seam = not runs or stretch.segment != runs[-1][-1].segment
        if not runs or (is_seam and fs.exists(producers_before(directory, stretch.segment))):
            runs.append([])
        runs[-1].append(stretch)
    return runs


def producers_before(directory: str, segment: str) -> str:
    """Return the path of the producer snapshot taken where a segment file begins."""
    return snapshot_path(directory, Offset(int(segment.removesuffix(LOG_SUFFIX))))


def whole_log(files: PartitionFiles) -> LogPart:
    """Return all of a log as one part, its torn end included."""
    return LogPart(
        files.node,
        files.topic,
        files.partition,
        files.directory,
        EVERYTHING,
        tuple(Stretch(each.file, 0, each.size_bytes, True) for each in files.segments),
        holds_log_end=True,
    )


def pack(
    parts: Iterable[LogPart], wanted_bytes: int, open_cost_bytes: int
) -> list[tuple[LogPart, ...]]:
    """Put parts together, in order, until a task has as many bytes as wanted.

    Opening a file counts as `open_cost_bytes`. Neighbours in one log become one part.
    """
    tasks: list[list[LogPart]] = []
    filled = 0
    for part in parts:
        cost = part.size_bytes + open_cost_bytes * len(part.stretches)
        if not tasks or filled + cost > wanted_bytes + open_cost_bytes:
            tasks.append([])
            filled = 0
        filled += cost
        task = tasks[-1]
        if task and task[-1].directory == part.directory:
            task[-1] = replace(
                task[-1],
                stretches=task[-1].stretches + part.stretches,
                holds_log_end=part.holds_log_end,
            )
        else:
            task.append(part)
    return [tuple(task) for task in tasks]


def _part(
    files: PartitionFiles,
    offsets: OffsetRange,
    stretches: list[Stretch],
    history: tuple[Stretch, ...] = (),
) -> LogPart:
    last = stretches[-1]
    return LogPart(
        files.node,
        files.topic,
        files.partition,
        files.directory,
        offsets,
        tuple(stretches),
        last.is_file_end and last.segment == files.segments[-1].file,
        history,
    )


def _segments_in(files: PartitionFiles, offsets: OffsetRange) -> list[SegmentFile]:
    """Return the segments that may hold offsets of the range."""
    if offsets.end is not None and offsets.end <= offsets.start:
        return []
    nexts: list[int | None] = [each.base_offset for each in files.segments[1:]]
    return [
        segment
        for segment, after in zip_longest(files.segments, nexts)
        if segment.size_bytes
        and (after is None or after > offsets.start)
        and (offsets.end is None or segment.base_offset < offsets.end)
    ]


def _stretches(
    fs: FileSystem,
    files: PartitionFiles,
    segment: SegmentFile,
    offsets: OffsetRange,
    wanted_bytes: int,
) -> Iterator[Stretch]:
    """Divide one segment into stretches of about the wanted size."""
    size = segment.size_bytes
    is_whole = segment.base_offset >= offsets.start and offsets.end is None
    if is_whole and size <= wanted_bytes:
        yield Stretch(segment.file, 0, size, True)
        return
    cuts = _Cuts(fs, files.directory, segment)
    start = cuts.before_offset(offsets.start)
    end = size if offsets.end is None else max(cuts.behind_offset(offsets.end), start)
    count = max(1, -(-(end - start) // wanted_bytes))
    step = -(-(end - start) // count)
    for _ in range(1, count):
        cut = cuts.near_position(start + step)
        if not start < cut < end:
            break  # a second call would give the same
        yield Stretch(segment.file, start, cut, False)
        start = cut
    if start < end:
        yield Stretch(segment.file, start, end, end == size)


class _Cuts:
    """The places where a segment may be cut, by its index."""

    def __init__(self, fs: FileSystem, directory: str, segment: SegmentFile) -> None:
        self._fs = fs
        self._path = f"{directory}/{segment.file}"
        self._segment = segment
        relative_offsets, self._positions = index_entries(fs, self._path, segment.size_bytes)
        self._offsets = relative_offsets + segment.base_offset
        grows = np.all(np.diff(self._positions) > 0) and np.all(np.diff(self._offsets) > 0)
        if not grows:  # the file is damaged: none of its entries is used
            self._positions = self._offsets = np.zeros(0, np.int64)

    def before_offset(self, offset: int) -> int:
        """Return a position before which all offsets are smaller than `offset`; else 0."""
        found = int(np.searchsorted(self._offsets, offset, side="right")) - 1
        return self._proved(found) if found >= 0 else 0

    def behind_offset(self, offset: int) -> int:
        """Return a position behind which all offsets are at least `offset`; else the end."""
        found = int(np.searchsorted(self._offsets, offset - 1)) + 1
        position = self._proved(found) if found < len(self._positions) else 0
        return position or self._segment.size_bytes

    def near_position(self, position: int) -> int:
        """Return the first cut at or behind `position`, 0 without one."""
        found = int(np.searchsorted(self._positions, position))
        return self._proved(found) if found < len(self._positions) else 0

    def _proved(self, entry: int) -> int:
        """Return an entry's position if a whole batch there ends at the entry's offset."""
        position, offset = int(self._positions[entry]), int(self._offsets[entry])
        try:
            file = self._fs.open_for_reading(self._path)
        except StorageError:
            return 0
        size = self._segment.size_bytes
        window = next(read_windows(file, size, position, window_bytes=_PROBE_BYTES), None)
        file.close()
        if window is None:
            return 0
        columns = batch_columns(window)
        fits = columns.is_valid[0] and columns.last_offset[0] == offset
        return position if fits else 0
