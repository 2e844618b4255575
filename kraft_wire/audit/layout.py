"""Locates the batches of one replica, and decides which of them are sound: `crc` and `gap`.

One pass over a replica's batches gives its faults and the sound rows, in the order of offsets. A
fault explains a stretch of offsets: offsets in damaged bytes are not a gap, and lost offsets are
not compared with other replicas. For a batch with a wrong base offset only that is reported:
neither its own gap nor that of the next batch.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kraft_wire.audit.fault import END_OF_LOG, Fault
from kraft_wire.audit.finding import NO_OFFSET, Finding, Severity
from kraft_wire.audit.replica import Batches, Replica, segment_file
from kraft_wire.audit.walk import Walk
from kraft_wire.columnar.arrays import Bools, Int64s
from kraft_wire.columnar.log_windows import Status

__all__ = ["Layout", "layout_of"]

_DAMAGE: Final = {
    Status.CRC: "wrong checksum of the batch",
    Status.GARBAGE: "{size} bytes between batches are not a batch",
    Status.TORN: "{size} bytes after the last complete batch are not a batch",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """A replica with the faults in the places of its batches."""

    replica: Replica
    rows: Int64s
    """Rows of batches to trust, in the order of offsets."""
    faults: list[Fault]
    log_end_offset: int
    torn_row: int | None
    """Row of the bytes after the last whole batch of the last segment, which a crash leaves."""
    misplaced: frozenset[int]
    """Segments, by name, whose offsets do not match their names."""

    @property
    def torn_fault(self) -> Fault | None:
        """The warning about `torn_row`."""
        if self.torn_row is None:
            return None
        position = int(self.replica.batches.position[self.torn_row])
        last = self.replica.batches.file(self.torn_row)
        for fault in self.faults:
            if (fault.finding.file, fault.finding.position) == (last, position):
                return fault
        return None


def layout_of(replica: Replica) -> Layout:
    """Judge the places of all batches of a replica."""
    batches = replica.batches
    valid = np.flatnonzero(batches.is_valid)
    torn = _torn_row(replica)
    rows, faults, misplaced = _segments_in_order(replica, valid)
    walk = Walk(replica, rows)
    faults += _damage(replica, torn)
    for step in walk.steps:
        is_deleted = step.end <= replica.log_start_offset  # no consumer may read it any more
        severity: Severity = "warn" if is_deleted else "error"
        finding = finding_at(replica, "gap", severity, step.row, step.detail)
        faults.append(Fault(finding, step.first, step.end))
    return Layout(replica, walk.sound, faults, walk.log_end_offset, torn, misplaced)


def finding_at(replica: Replica, check: str, severity: Severity, row: int, detail: str) -> Finding:
    """Return a finding about one row."""
    batches = replica.batches
    return Finding(
        check,
        severity,
        replica.node,
        replica.topic,
        replica.partition,
        int(batches.base_offset[row]) if batches.is_batch[row] else NO_OFFSET,
        batches.file(row),
        int(batches.position[row]),
        detail,
    )


def _torn_row(replica: Replica) -> int | None:
    batches = replica.batches
    if not len(batches) or batches.status[-1] != Status.TORN:
        return None
    is_last = int(batches.segment[-1]) == max(replica.segments, default=int(batches.segment[-1]))
    return len(batches) - 1 if is_last else None


def _damage(replica: Replica, torn_row: int | None) -> list[Fault]:
    """`crc`: every byte belongs to a whole batch with a right checksum.

    A torn end of the last segment is a warning: a crash leaves it, and recovery truncates it.
    """
    batches = replica.batches
    valid = np.flatnonzero(batches.is_valid)
    faults = []
    for row in np.flatnonzero(~batches.is_valid & ~_is_rest(batches)).tolist():
        after = int(np.searchsorted(valid, row))
        begin = (
            int(batches.last_offset[valid[after - 1]]) + 1 if after else replica.log_start_offset
        )
        end = int(batches.base_offset[valid[after]]) if after < len(valid) else END_OF_LOG
        detail = _DAMAGE[Status(int(batches.status[row]))].format(size=batches.size_bytes[row])
        severity: Severity = "warn" if row == torn_row else "error"
        finding = finding_at(replica, "crc", severity, row, detail)
        if not batches.is_batch[row]:
            finding = replace(finding, offset=begin)
        faults.append(Fault(finding, begin, end))
    return faults


def _is_rest(batches: Batches) -> Bools:
    """Return the rows that are remains of the previous batch, after a wrong length."""
    rest = np.zeros(len(batches), np.bool_)
    follows = (batches.status[1:] >= Status.TORN) & (batches.status[:-1] == Status.CRC)
    rest[1:] = follows & (batches.segment[1:] == batches.segment[:-1])
    return rest


def _segments_in_order(
    replica: Replica, valid: Int64s
) -> tuple[Int64s, list[Fault], frozenset[int]]:
    """Return the valid rows by offset, where segments are under each other's names."""
    batches = replica.batches
    names = np.unique(np.array([*replica.segments, *np.unique(batches.segment)], np.int64))
    own = batches.segment[valid]
    misnamed = _misnamed(replica, valid)
    if misnamed:
        faults = [Fault(_exchange(replica, [name]).finding, 0, 0) for name in misnamed]
        return valid, faults, frozenset(misnamed)
    place = np.searchsorted(names, batches.base_offset[valid], side="right") - 1
    is_outside: Bools = names[np.maximum(place, 0)] != own
    if not is_outside.any():
        return valid, [], frozenset()
    homes: dict[int, int] = {}  # the base offset by most of a segment's batches
    for name in np.unique(own[is_outside]).tolist():
        inside = own == name
        if 2 * np.count_nonzero(is_outside & inside) > np.count_nonzero(inside):
            found, counts = np.unique(place[inside], return_counts=True)
            at = int(found[np.argmax(counts)])
            homes[name] = int(names[at]) if at >= 0 else NO_OFFSET
    exchanged = {name: home for name, home in homes.items() if home in homes}
    strange = sorted(homes.keys() - exchanged.keys())
    faults = [_exchange(replica, group) for group in _groups(exchanged)]
    for name in strange:
        after = names[names > name]
        end = int(after[0]) if len(after) else END_OF_LOG
        faults.append(Fault(_exchange(replica, [name]).finding, name, end))
    moved = np.array([exchanged.get(name, name) for name in own.tolist()], np.int64)
    order = np.lexsort((batches.position[valid], moved))
    rows = valid[order][~np.isin(own[order], strange)]
    return rows, faults, frozenset(homes)


def _misnamed(replica: Replica, valid: Int64s) -> list[int]:
    """Return the segments that continue where the one before ended, under the name of another
    offset.

    Compaction may remove the first offset, which is in the name.
    """
    batches = replica.batches
    if replica.is_compacted or not len(valid):
        return []
    before, first = valid[:-1], valid[1:]
    begins = batches.segment[first] != batches.segment[before]
    begins &= batches.base_offset[first] == batches.last_offset[before] + 1
    begins &= batches.base_offset[first] != batches.segment[first]
    names: list[int] = batches.segment[first[begins]].tolist()
    return names


def _groups(homes: dict[int, int]) -> list[list[int]]:
    """Return the circles of names that were exchanged."""
    groups: list[list[int]] = []
    left = dict(sorted(homes.items()))
    while left:
        name, home = next(iter(left.items()))
        group = [name]
        del left[name]
        while home in left:
            group.append(home)
            home = left.pop(home)
        groups.append(sorted(group))
    return groups


def _exchange(replica: Replica, names: list[int]) -> Fault:
    batches = replica.batches
    first = int(np.flatnonzero(batches.is_valid & (batches.segment == names[0]))[0])
    others = ", ".join(segment_file(name) for name in names[1:])
    detail = f"the file has the batches from {batches.base_offset[first]} on"
    if others:
        detail += f": its content is swapped with that of {others}"
    # the batches are all there: the exchange explains no offset
    return Fault(finding_at(replica, "gap", "error", first, detail), 0, 0)
