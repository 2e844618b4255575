"""The batches of one part of a log, window by window, and the selection of a read.

Damage is judged here for all views: `fail` raises with file and position, `skip` skips it, `report`
skips it and reports it on standard error, which Spark keeps among a worker's logs. Bytes after the
last whole batch of a log are not damage: a crash left them, or an append is in progress. Damage
before the first or after the last requested offset is ignored.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from kraft_wire.columnar import BatchColumns, Status, Window, batch_columns, read_windows
from kraft_wire.columnar.arrays import Bools
from kraft_wire.model import StorageError
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.options import OnCorrupt
from kraft_wire.spark.kraftlog.planning import LogPart, OffsetRange, Stretch
from kraft_wire.storage.files import File, FileSystem, MissingFile

__all__ = ["LogWindow", "complain", "judge_damage", "walk"]

_WINDOW_BYTES: Final = 8 << 20
_WHAT: Final = {
    Status.CRC: "a batch with a wrong checksum",
    Status.TORN: "no batch",
    Status.GARBAGE: "no batch",
}


@dataclass(frozen=True, slots=True)
class LogWindow:
    """Some batches of one stretch."""

    part: LogPart
    stretch: Stretch
    window: Window
    columns: BatchColumns
    in_range: Bools
    """Rows that hold offsets that are asked for, and damage that may have."""

    @property
    def path(self) -> str:
        """The segment file."""
        return f"{self.part.directory}/{self.stretch.segment}"


def walk(
    fs: FileSystem, part: LogPart, *, fail_on_loss: bool = True, window_bytes: int = _WINDOW_BYTES
) -> Iterator[LogWindow]:
    """Yield the batches of a part, in order.

    The stretches decide where the range ends: no checksum covers the offset in a header, and a
    damaged one must not end a read. A file that is gone since the planning raises PipelineError, or
    is skipped.
    """
    for stretch in part.stretches:
        path = f"{part.directory}/{stretch.segment}"
        file = _opened(fs, path, fail_on_loss)
        if file is None:
            continue
        try:
            yield from _walk_stretch(file, part, stretch, window_bytes)
        except StorageError as error:
            raise PipelineError(f"{path} cannot be read: {error}") from None
        finally:
            file.close()


def _opened(fs: FileSystem, path: str, fail_on_loss: bool) -> File | None:
    try:
        return fs.open_for_reading(path)
    except MissingFile:
        if not fail_on_loss:
            return None
        raise PipelineError(
            f"{path} was deleted after the query was planned, and its records are lost; set "
            "failOnDataLoss to false to continue without them"
        ) from None
    except StorageError as error:
        raise PipelineError(f"{path} cannot be read: {error}") from None


def _walk_stretch(
    file: File, part: LogPart, stretch: Stretch, window_bytes: int
) -> Iterator[LogWindow]:
    bounds = stretch.end_position, stretch.start_position
    reached: int | None = None
    for window in read_windows(file, *bounds, window_bytes=window_bytes):
        if not stretch.is_file_end:  # a whole batch follows, which this stretch does not see
            window.status[window.status == Status.TORN] = Status.GARBAGE
        columns = batch_columns(window)
        yield LogWindow(part, stretch, window, columns, _in_range(columns, part.offsets, reached))
        valid = np.flatnonzero(columns.is_valid)
        reached = int(columns.last_offset[valid[-1]]) if len(valid) else reached


def _in_range(columns: BatchColumns, offsets: OffsetRange, reached: int | None) -> Bools:
    """Return which batches overlap the range, and which damage does not lie outside of it.

    Damage lies before the range where the next whole batch begins at or before its start, and
    behind it where the last one (`reached` before these) ended at or behind its end.
    """
    valid = columns.is_valid
    chosen: Bools = columns.last_offset >= offsets.start
    if offsets.end is not None:
        chosen &= columns.base_offset < offsets.end
    for row in np.flatnonzero(~valid).tolist():
        after = np.flatnonzero(valid[row:])
        before = np.flatnonzero(valid[:row])
        ended = int(columns.last_offset[before[-1]]) if len(before) else reached
        is_early = len(after) and columns.base_offset[row + after[0]] <= offsets.start
        is_late = offsets.end is not None and ended is not None and ended >= offsets.end - 1
        chosen[row] = not is_early and not is_late
    return chosen


def judge_damage(found: LogWindow, on_corrupt: OnCorrupt) -> None:
    """Apply `onCorrupt` to the damaged rows in the range."""
    damaged = found.in_range & ~found.columns.is_valid
    if not damaged.any():
        return
    for row in np.flatnonzero(damaged).tolist():
        status = Status(int(found.columns.status[row]))
        is_tail = found.part.holds_log_end and found.stretch is found.part.stretches[-1]
        if status is Status.TORN and is_tail:
            continue
        size = int(found.columns.size_bytes[row])
        complain(
            found, int(found.columns.position[row]), f"{size} bytes are {_WHAT[status]}", on_corrupt
        )


def complain(found: LogWindow, position: int, what: str, on_corrupt: OnCorrupt) -> None:
    """Raise, report or pass over one piece of damage."""
    part = found.part
    where = f"{found.path} position {position} (node {part.node or 'unknown'})"
    what = f"{_offsets_at(found, position)}{what}"
    if on_corrupt == "fail":
        raise PipelineError(
            f"{where}: {what}; set onCorrupt to skip or report to read the undamaged records"
        )
    if on_corrupt == "report":
        sys.stderr.write(f"kraftlog: {where}: {what}\n")


def _offsets_at(found: LogWindow, position: int) -> str:
    """Return the damaged offsets, by the batches around; empty if they do not show them.

    The header of a damaged batch may hold wrong offsets.
    """
    columns = found.columns
    whole = np.flatnonzero(columns.is_valid)
    places = columns.position[whole]
    if position in places:  # its records are damaged, and not its head
        row = int(whole[np.flatnonzero(places == position)[0]])
        return _said(int(columns.base_offset[row]), int(columns.last_offset[row]))
    before, after = whole[places < position], whole[places > position]
    first = int(columns.last_offset[before[-1]]) + 1 if len(before) else None
    if first is None and position == 0:
        first = int(Path(found.path).stem)
    return _said(first, int(columns.base_offset[after[0]]) - 1 if len(after) else None)


def _said(first: int | None, last: int | None) -> str:
    if first is not None and last is not None:
        return f"offset {first}: " if first >= last else f"offsets {first} to {last}: "
    if first is not None:
        return f"offsets from {first} on: "
    return "" if last is None else f"offsets up to {last}: "
