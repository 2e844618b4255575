"""`index`: the entries of `.index` and `.timeindex` match the log beside them.

An offset entry points at the beginning of a batch that begins at the entry's offset or before it;
a time entry names a batch with that maximal timestamp. Both only grow. Index files carry no
checksum, so a wrong entry makes a reader start in the wrong place. Entries beyond damage of the log
itself are not judged: that damage is reported already.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from kraft_wire.audit.fault import Fault
from kraft_wire.audit.finding import NO_OFFSET, Finding
from kraft_wire.audit.layout import Layout
from kraft_wire.audit.replica import Batches, Replica, segment_file
from kraft_wire.columnar.arrays import Bools, Int64s
from kraft_wire.columnar.log_windows import Status

__all__ = ["OFFSET_ENTRY", "TIME_ENTRY", "SegmentIndexEntries", "check_index"]

OFFSET_ENTRY: Final = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])
TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("relative_offset", ">i4")])
_NO_LIMIT: Final = int(np.iinfo(np.int64).max)
_Reasons: TypeAlias = list[tuple[str, Bools]]


@dataclass(frozen=True, slots=True)
class SegmentIndexEntries:
    """The entries of the two indexes of a segment, without the zeros of a preallocated end."""

    segment: int
    """Base offset in the name."""
    log_bytes: int
    """The length of the log file after they were read, -1 if it was gone."""
    relative_offsets: Int64s
    positions: Int64s
    timestamps: Int64s
    time_relative_offsets: Int64s
    odd_bytes: tuple[int, int] = (0, 0)
    """Bytes behind the last whole entry of either file."""


@dataclass(frozen=True, slots=True)
class _Segment:
    """The batches of one segment up to where it can be judged."""

    positions: Int64s
    base_offsets: Int64s
    last_offsets: Int64s
    max_timestamps: Int64s
    end_position: int
    """Entries that point behind this are not judged."""
    end_offset: int


def check_index(
    layout: Layout, indexes: SegmentIndexEntries, faults: Iterable[Fault]
) -> Iterator[Finding]:
    """Judge the indexes of one segment, one finding a file; `faults` are those of the replica.

    Its owner may have appended to the log since it was read, or replaced it by a compacted one.
    """
    batches = layout.replica.batches
    read_bytes = int(batches.size_bytes[batches.segment == indexes.segment].sum())
    if indexes.segment in layout.misplaced or indexes.log_bytes < read_bytes:
        return
    segment = _judged(layout, indexes.segment, faults)
    if indexes.log_bytes > read_bytes:
        segment = _as_far_as_read(segment)
    replica = layout.replica
    offset_fault = _offset_fault(segment, indexes)
    if offset_fault is not None:
        yield _finding(replica, indexes.segment, ".index", OFFSET_ENTRY.itemsize, *offset_fault)
    time_fault = _time_fault(segment, indexes)
    if time_fault is not None:
        yield _finding(replica, indexes.segment, ".timeindex", TIME_ENTRY.itemsize, *time_fault)


def _judged(layout: Layout, base_offset: int, faults: Iterable[Fault]) -> _Segment:
    """Return the part of a segment before the first fault that moved its batches."""
    batches = layout.replica.batches
    after = [each for each in layout.replica.segments if each > base_offset]
    own = layout.rows[batches.segment[layout.rows] == base_offset]
    end_position, end_offset = _NO_LIMIT, _NO_LIMIT
    for fault in faults:
        begin = fault.first_offset
        is_here = base_offset <= begin < min(after, default=_NO_LIMIT)
        if begin < base_offset < fault.end_offset and not _leaves_places(batches, fault):
            end_position, end_offset = 0, base_offset
        elif is_here and not _leaves_places(batches, fault):
            before = own[batches.last_offset[own] < begin]
            ends = batches.position[before] + batches.size_bytes[before]
            end_position = min(end_position, int(ends.max(initial=0)))
            end_offset = min(end_offset, begin)
    rows = np.flatnonzero((batches.segment == base_offset) & batches.is_batch)
    rows = rows[batches.position[rows] < end_position]
    is_valid = batches.is_valid[rows]
    return _Segment(
        batches.position[rows],
        np.where(is_valid, batches.base_offset[rows], NO_OFFSET),
        np.where(is_valid, batches.last_offset[rows], NO_OFFSET),
        batches.max_timestamp[rows],
        end_position,
        end_offset,
    )


def _as_far_as_read(segment: _Segment) -> _Segment:
    """Return a segment that ends at its last read batch: more may be appended since."""
    last = segment.positions.max(initial=-1) + 1
    end_offset = segment.last_offsets.max(initial=-1) + 1
    return replace(
        segment,
        end_position=min(segment.end_position, int(last)),
        end_offset=min(segment.end_offset, int(end_offset)),
    )


def _leaves_places(batches: Batches, fault: Fault) -> bool:
    """Whether a fault leaves batches at the positions where they were written."""
    if fault.finding.check in ("epoch", "producer"):
        return True
    if fault.finding.check != "crc":
        return False
    rows = np.flatnonzero(batches.position == fault.finding.position)
    return any(
        batches.file(row) == fault.finding.file
        and batches.status[row] == Status.CRC
        and not _has_rest(batches, row)
        for row in rows.tolist()
    )


def _has_rest(batches: Batches, row: int) -> bool:
    """Whether no batch begins at the declared end of this one."""
    after = row + 1
    is_there = after < len(batches) and batches.segment[after] == batches.segment[row]
    return bool(is_there and batches.status[after] >= Status.TORN)


def _offset_fault(segment: _Segment, indexes: SegmentIndexEntries) -> tuple[int, int, str] | None:
    """Return entry, offset and reason of the first entry of `.index` that is wrong."""
    judged = indexes.positions < segment.end_position
    positions = indexes.positions[judged]
    offsets = indexes.relative_offsets[judged] + indexes.segment
    reasons: _Reasons = [
        ("does not increase", _stays(positions) | (positions < 0)),
        ("does not increase", _stays(offsets) | (offsets < indexes.segment)),
    ]
    if len(segment.positions):
        held = np.searchsorted(segment.positions, positions)
        held = np.minimum(held, len(segment.positions) - 1)
        reasons.append(("does not point at a batch", segment.positions[held] != positions))
        reasons.append(("is before its batch", segment.base_offsets[held] > offsets))
        if segment.end_position == _NO_LIMIT and segment.last_offsets.min() >= 0:
            edges = np.concatenate((segment.last_offsets, segment.base_offsets))
            reasons.append(("is not the end of a batch", ~np.isin(offsets, edges)))
    else:
        reasons.append(("does not point at a batch", np.ones(len(positions), np.bool_)))
    fault = _first(reasons, lambda at: f"entry for offset {offsets[at]} at {positions[at]}")
    if fault is not None:
        return fault[0], int(offsets[fault[0]]), fault[1]
    return _odd_end(segment, len(positions), indexes.odd_bytes[0])


def _time_fault(segment: _Segment, indexes: SegmentIndexEntries) -> tuple[int, int, str] | None:
    """Return entry, offset and reason of the first entry of `.timeindex` that is wrong."""
    offsets = indexes.time_relative_offsets + indexes.segment
    judged = offsets < segment.end_offset
    offsets, stamps = offsets[judged], indexes.timestamps[judged]
    reasons: _Reasons = [
        ("does not increase", _stays(stamps)),
        ("does not increase", offsets < np.maximum.accumulate(offsets)),
    ]
    if (segment.last_offsets < 0).any():
        pass  # an entry may point at a damaged batch
    elif len(segment.last_offsets):
        place = np.searchsorted(segment.last_offsets, offsets)
        held = np.minimum(place, len(segment.last_offsets) - 1)
        differs = segment.max_timestamps[held] != stamps
        reasons.append(("is above the end", place >= len(segment.last_offsets)))
        reasons.append(("differs from the time of its batch", differs))
    else:
        reasons.append(("is above the end", np.ones(len(offsets), np.bool_)))
    fault = _first(reasons, lambda at: f"entry for time {stamps[at]} at offset {offsets[at]}")
    if fault is not None:
        return fault[0], int(offsets[fault[0]]), fault[1]
    return _odd_end(segment, len(offsets), indexes.odd_bytes[1])


def _stays(values: Int64s) -> Bools:
    """Return which values are not above the one before."""
    return np.concatenate(([False], values[1:] <= values[:-1]))[: len(values)]


def _odd_end(segment: _Segment, entries: int, odd_bytes: int) -> tuple[int, int, str] | None:
    if not odd_bytes or segment.end_position != _NO_LIMIT:
        return None
    return entries, NO_OFFSET, f"{odd_bytes} bytes at the end are not a complete entry"


def _first(reasons: _Reasons, name: Callable[[int], str]) -> tuple[int, str] | None:
    """Return the first wrong entry, and the reason."""
    found = [(int(np.argmax(wrong)), reason) for reason, wrong in reasons if wrong.any()]
    if not found:
        return None
    at, reason = min(found, key=lambda each: each[0])
    return at, f"{name(at)} {reason}"


def _finding(
    replica: Replica, segment: int, suffix: str, entry_bytes: int, entry: int, offset: int, why: str
) -> Finding:
    return Finding(
        *("index", "error", replica.node, replica.topic, replica.partition, offset),
        *(segment_file(segment).replace(".log", suffix), entry * entry_bytes, why),
    )
