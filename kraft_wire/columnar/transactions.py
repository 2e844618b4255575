"""Which batches a read_committed reader sees (KIP-98).

There are two sources of aborted transactions. A log file holds its own markers: `TransactionScan`
takes batch headers of a partition in order and returns the aborted ranges and the last stable
offset; a caller that starts in the middle must give the open transactions there, because no batch
has them. A fetch response lists the aborted transactions that its records belong to:
`fetched_ranges` finds where each ends. `committed_rows` then selects.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from kraft_wire.columnar.arrays import Bools
from kraft_wire.columnar.batch_columns import BatchColumns
from kraft_wire.wire.records.control_records import ControlRecordType

__all__ = ["AbortedRange", "TransactionScan", "committed_rows", "fetched_ranges"]

_MARKERS = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
_NOTHING: Final[Mapping[int, int]] = MappingProxyType({})


class AbortedRange(NamedTuple):
    """Aborted records of one producer: offsets from its first record up to the marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    """Offset of the marker, inclusive; without a marker, that of the last record."""


class TransactionScan:
    """The transactions of one partition, from its batches in order.

    `opened` are the open transactions before the first of them: producer ids with first offsets.
    """

    def __init__(self, opened: Mapping[int, int] = _NOTHING) -> None:
        self.aborted: list[AbortedRange] = []
        self._open = dict(opened)
        self._end_offset = 0

    def add(self, columns: BatchColumns) -> None:
        """Add the next batches; those without a right checksum do not count."""
        valid = columns.is_valid
        if valid.any():
            self._end_offset = int(columns.last_offset[valid].max()) + 1
        for row in np.flatnonzero(valid & columns.is_transactional).tolist():
            producer = int(columns.producer_id[row])
            if not columns.is_control[row]:
                self._open.setdefault(producer, int(columns.base_offset[row]))
            elif columns.control_type[row] in _MARKERS:
                first = self._open.pop(producer, None)
                if first is not None and columns.control_type[row] == ControlRecordType.ABORT:
                    marker = int(columns.base_offset[row])
                    self.aborted.append(AbortedRange(producer, first, marker))

    def settle(self, opened: Mapping[int, int]) -> None:
        """Take the open transactions of another source; the others have ended by an unseen marker.

        Compaction removes the marker of a transaction with the last of its records, and damage can
        remove any marker: in neither case can a record be returned. The first records may be gone
        too, so an open transaction is the same one if it began at or before the first record seen
        here.
        """
        for producer, first in self._open.items():
            if opened.get(producer, first + 1) > first:
                self.aborted.append(AbortedRange(producer, first, max(self._end_offset - 1, first)))
        self._open = dict(opened)

    @property
    def opened(self) -> dict[int, int]:
        """Return the transactions without a marker so far: producer ids with first offsets."""
        return dict(self._open)

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest open transaction begins, else the end of the added batches."""
        return min(self._open.values(), default=self._end_offset)


def fetched_ranges(columns: BatchColumns, aborted: Iterable[tuple[int, int]]) -> list[AbortedRange]:
    """Return the ranges of (producer id, first offset) pairs, the list of a fetch response.

    A range ends at the next ABORT marker of its producer among the fetched batches, or with them.
    """
    valid = columns.is_valid
    marking = valid & columns.is_control & (columns.control_type == ControlRecordType.ABORT)
    markers: dict[int, list[int]] = {}
    for row in np.flatnonzero(marking).tolist():
        markers.setdefault(int(columns.producer_id[row]), []).append(int(columns.base_offset[row]))
    end = int(columns.last_offset[valid].max()) if valid.any() else -1
    ranges: list[AbortedRange] = []
    for producer_id, first_offset in aborted:
        own = markers.get(producer_id, [])
        after = bisect_right(own, first_offset)
        last = own[after] if after < len(own) else max(end, first_offset)
        ranges.append(AbortedRange(producer_id, first_offset, last))
    return ranges


def committed_rows(
    columns: BatchColumns, aborted: Iterable[AbortedRange], last_stable_offset: int | None = None
) -> Bools:
    """Return which batches are neither aborted nor at or after the last stable offset, if given."""
    chosen = np.ones(len(columns), np.bool_)
    if last_stable_offset is not None:
        chosen &= columns.base_offset < last_stable_offset
    ranges: dict[int, list[AbortedRange]] = {}
    for each in sorted(aborted):
        ranges.setdefault(each.producer_id, []).append(each)
    transactional = columns.is_valid & columns.is_transactional & ~columns.is_control
    for row in np.flatnonzero(transactional).tolist():
        own = ranges.get(int(columns.producer_id[row]), [])
        offset = int(columns.base_offset[row])
        before = bisect_right(own, offset, key=lambda each: each.first_offset) - 1
        if before >= 0 and offset <= own[before].last_offset:
            chosen[row] = False
    return chosen
