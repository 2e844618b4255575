"""The records of a share partition that were acquired and are not behind its start yet.

A batch keeps one state for all its records, and one for each record as soon as their states
differ. Batches do not overlap; between them may be offsets without records.

Memory: a record with a state and a lock of its own takes less than 900 bytes, its batch and the
entry among the deadlines included (`tests/broker/share_fetch/test_memory.py`); a batch in one
state takes that once. The number of records is at most `share.partition.max.record.locks` and one
log batch.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kraft_wire.broker.share_fetch.record_state import ACQUIRED, AVAILABLE, RecordState

__all__ = ["InFlight", "InFlightBatch"]


class InFlightBatch:
    """Neighbouring records; both offsets belong to it."""

    __slots__ = ("each", "first_offset", "last_offset", "whole")

    def __init__(self, first_offset: int, last_offset: int, whole: RecordState) -> None:
        assert first_offset <= last_offset, (first_offset, last_offset)
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.whole: RecordState | None = whole
        """The state of all records, None once each has its own."""
        self.each: list[RecordState] = []
        """The states of the records in the order of their offsets, empty before `split`."""

    @property
    def count(self) -> int:
        """The number of offsets."""
        return self.last_offset - self.first_offset + 1

    def is_within(self, first_offset: int, last_offset: int) -> bool:
        """Whether a range contains the whole batch."""
        return first_offset <= self.first_offset and self.last_offset <= last_offset

    def state_at(self, offset: int) -> RecordState:
        """Return the state of one record."""
        assert self.first_offset <= offset <= self.last_offset, offset
        return self.each[offset - self.first_offset] if self.whole is None else self.whole

    def states(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, RecordState]]:
        """Return the records of a split batch in a range, with their offsets."""
        assert self.whole is None, "split before"
        base = self.first_offset
        first, last = max(first_offset, base), min(last_offset, self.last_offset)
        for offset in range(first, last + 1):
            yield offset, self.each[offset - base]

    def split(self) -> None:
        """Give each record its own state, and its own lock with the same deadline."""
        whole = self.whole
        if whole is None:
            return
        lock = whole.lock if whole.state is ACQUIRED else None
        for offset in range(self.first_offset, self.last_offset + 1):
            state = RecordState(whole.state, whole.delivery_count, whole.member_id)
            if lock is not None:
                state.lock = lock.locks.set(lock.ended, offset, offset, lock.deadline_ms)
            self.each.append(state)
        whole.unlock()
        self.whole = None

    def split_after(self, last_acquired: int) -> None:
        """Split a batch that was just acquired: what is behind an offset was not delivered."""
        whole = self.whole
        assert whole is not None, "a new batch"
        assert whole.lock is None, "a new batch"
        for offset in range(self.first_offset, self.last_offset + 1):
            if offset <= last_acquired:
                state = RecordState(whole.state, whole.delivery_count, whole.member_id)
            else:
                state = RecordState(AVAILABLE, whole.delivery_count - 1)
            self.each.append(state)
        self.whole = None


class InFlight:
    """The batches in the order of their offsets."""

    __slots__ = ("_batches", "_firsts")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        """The batch with the smallest offsets."""
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        """The batch with the largest offsets."""
        return self._batches[-1]

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at or below an offset."""
        at = bisect_right(self._firsts, offset)
        return self._batches[at - 1] if at else None

    def above(self, offset: int) -> InFlightBatch | None:
        """Return the first batch that begins above an offset."""
        at = bisect_right(self._firsts, offset)
        return self._batches[at] if at < len(self._batches) else None

    def beginning_in(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches whose first offset is in a range, both ends included."""
        low = bisect_left(self._firsts, first_offset)
        return self._batches[low : bisect_right(self._firsts, last_offset)]

    def add(self, batch: InFlightBatch) -> None:
        """Put in a batch, which overlaps no other."""
        at = bisect_left(self._firsts, batch.first_offset)
        self._firsts.insert(at, batch.first_offset)
        self._batches.insert(at, batch)

    def remove_below(self, offset: int) -> None:
        """Remove the batches that begin below an offset."""
        at = bisect_left(self._firsts, offset)
        del self._firsts[:at], self._batches[:at]

    def clear(self) -> None:
        """Remove all batches."""
        self._firsts.clear()
        self._batches.clear()
