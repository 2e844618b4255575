"""The order of the offsets of one replica: each batch begins where the one before ended.

Holds from the first file on, at the seams of segments too. Compacted logs may have holes by design:
there offsets only grow. Each fault is reported once: a batch whose base offset does not fit its
neighbours, a gap, batches that go back. Batches that fill a gap that was just reported belong to
its fault.
"""

from typing import NamedTuple

import numpy as np

from kraft_wire.audit.fault import END_OF_LOG
from kraft_wire.audit.replica import Replica
from kraft_wire.columnar.arrays import Bools, Int64s
from kraft_wire.columnar.log_windows import Status

__all__ = ["Step", "Walk"]


class Step(NamedTuple):
    """A place where the offsets do not continue as they should."""

    row: int
    first: int
    end: int
    """The offsets [first, end) are explained by it."""
    detail: str


class Walk:
    """One pass over rows of valid batches."""

    def __init__(self, replica: Replica, rows: Int64s) -> None:
        batches = replica.batches
        self._replica = replica
        self._rows = rows
        self._base = batches.base_offset[rows]
        self._last = batches.last_offset[rows]
        self._is_sound = np.ones(len(rows), np.bool_)
        self._is_blind: Bools = np.diff(rows, prepend=-1) > 1
        """Whether damage lies before a row, so that any later offset may follow."""
        self.steps: list[Step] = []
        self._holes: list[tuple[int, int]] = []
        segments = replica.segments or np.unique(batches.segment).tolist()
        self._start = min(segments, default=replica.log_start_offset)
        """Where the files begin: consumers may begin later."""
        self._end = max(replica.log_start_offset, *segments, self._start)
        """Where the last batch so far ends."""
        if not len(rows):
            if not replica.is_compacted:  # the content of all files but the last is gone too
                self._end = max(replica.log_start_offset, self._start)
            return
        first = int(np.argmax(self._last >= self._start))
        if self._is_odd(first).any():
            self._follow(first)
        else:
            self._end = int(self._last[-1]) + 1
        if self._end < replica.log_start_offset and not self.steps:
            self._judge_deleted()

    @property
    def sound(self) -> Int64s:
        """The rows whose offsets can be trusted, in the order of these."""
        rows = self._rows[self._is_sound]
        if self.steps:
            rows = rows[np.argsort(self._base[self._is_sound], kind="stable")]
        return rows

    @property
    def log_end_offset(self) -> int:
        """Where the log ends, by its sound batches."""
        return self._end

    def _judge_deleted(self) -> None:
        """Check a log that ends before its log start without damage.

        If the last batch follows the one before it, the log's end is lost.
        """
        start = self._replica.log_start_offset
        is_whole = len(self._rows) == len(self._replica.batches)
        if is_whole and len(self._rows) > 1 and self._base[-1] > self._last[-2]:
            return
        if is_whole:
            self._is_sound[-1] = False
            detail = f"batch begins at {self._base[-1]}, but the log starts at {start}"
            self.steps.append(Step(int(self._rows[-1]), start, END_OF_LOG, detail))
        self._end = start

    def _is_odd(self, first: int) -> Bools:
        """Return, for all rows from `first` on at once, which a closer look is needed for."""
        base = self._base[first:]
        expected = np.concatenate(([self._start], self._last[first:-1] + 1))
        may_jump = self._is_blind[first:] | self._replica.is_compacted
        odd: Bools = np.where(may_jump, base < expected, base != expected)
        odd[0] = base[0] > self._start and not may_jump[0]
        return odd

    def _follow(self, first: int) -> None:
        """Check one row after the other."""
        self._end = self._start
        index, count = first, len(self._rows)
        while index < count:
            base, end = int(self._base[index]), int(self._last[index]) + 1
            may_jump = self._replica.is_compacted or bool(self._is_blind[index])
            is_first = index == first and base <= self._start
            if base == self._end or is_first or (may_jump and base > self._end):
                if may_jump and self._stands_alone(index):
                    self._misplaced(index, int(self._base[index + 1]))
                else:
                    self._end = end
            elif self._is_misplaced(index):
                self._misplaced(index, self._end + end - base)
            elif base > self._end:
                self._hole(index)
            else:
                index = self._back(index)
            index += 1

    def _next_base(self, index: int) -> int | None:
        if index + 1 < len(self._rows) and not self._is_blind[index + 1]:
            return int(self._base[index + 1])
        return None

    def _is_misplaced(self, index: int) -> bool:
        """Whether the next batch begins where this one would end at its right offset."""
        width = int(self._last[index]) - int(self._base[index]) + 1
        return self._next_base(index) == self._end + width

    def _stands_alone(self, index: int) -> bool:
        """Whether, where offsets may jump, the row is beyond those that follow it."""
        after, last = self._next_base(index), int(self._last[index])
        if after is None or not self._end <= after <= last:
            return False
        beyond = self._next_base(index + 1)
        return beyond is None or beyond <= last

    def _misplaced(self, index: int, end: int) -> None:
        """Record a batch that should fill the rest up to `end`.

        After bytes that are not a batch, it is the same fault: they have changed its offset.
        """
        self._is_sound[index] = False
        row, base = int(self._rows[index]), int(self._base[index])
        if row and self._replica.batches.status[row - 1] == Status.GARBAGE:
            self._end = end
            return
        detail = f"batch begins at {base}, expected {self._end}"
        self.steps.append(Step(row, self._end, end, detail))
        self._end = end

    def _hole(self, index: int) -> None:
        base = int(self._base[index])
        self._holes.append((self._end, base))
        detail = f"batch begins at {base}, the previous one ends before {self._end}"
        self.steps.append(Step(int(self._rows[index]), self._end, base, detail))
        self._end = int(self._last[index]) + 1

    def _back(self, index: int) -> int:
        """Skip batches that go back, and return the index of the last one."""
        first, until = index, self._end
        while index < len(self._rows) and int(self._base[index]) < until:
            index += 1
        after = max(index, first + 1)
        self._end = max(until, int(self._last[after - 1]) + 1)
        low = int(self._base[first:after].min())
        high = int(self._last[first:after].max()) + 1
        if any(begin <= low and high <= end for begin, end in self._holes):
            return after - 1
        self._is_sound[first:after] = False
        explained = END_OF_LOG
        if after < len(self._rows):  # the batches that these replaced are no separate fault
            self._end = explained = max(self._end, int(self._base[after]))
        detail = f"batch begins at {self._base[first]}, the previous one ends before {until}"
        self.steps.append(Step(int(self._rows[first]), low, explained, detail))
        return after - 1
