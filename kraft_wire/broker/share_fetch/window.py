"""The offsets of a share partition: its start, its end, and what is in flight between (KIP-932).

The start moves over records that are final. A record below the log's start, or compacted away, is
archived. After a load there may be gaps: offsets that were acquired and have no stored state.

Not here: loading, locks and writes (`share_partition`).
"""

from collections.abc import Iterable, Sequence

from kraft_wire.broker.share_fetch.in_flight import InFlight, InFlightBatch
from kraft_wire.broker.share_fetch.record_state import (
    AVAILABLE,
    FINAL_STATES,
    DeliveryState,
    RecordState,
)
from kraft_wire.broker.share_persister import DeliveryStateBatch
from kraft_wire.frozen import slotted

__all__ = ["Window"]


@slotted(eq=False)
class _Gap:
    """Offsets between stored batches, which were acquired before the load, not acknowledged."""

    first_offset: int
    end_offset: int
    """The end of the share partition at the load; once that grows, all gaps have been fetched."""


class Window:
    """The records of a share partition that are not behind its start."""

    __slots__ = (
        "_gap",
        "delivery_complete_count",
        "end_offset",
        "find_next",
        "in_flight",
        "start_offset",
    )

    def __init__(self) -> None:
        self.start_offset = 0
        """The first offset that is not final: the SPSO."""
        self.end_offset = 0
        """The last offset that was acquired; the next to acquire while nothing is in flight."""
        self.in_flight = InFlight()
        self.delivery_complete_count = 0
        """The final records at or above the start."""
        self.find_next = False
        """Whether a record in flight may be available."""
        self._gap: _Gap | None = None

    def take_stored(self, start_offset: int, batches: Sequence[DeliveryStateBatch]) -> None:
        """Put stored batches in flight, and note the first gap before or between them."""
        self.start_offset = start_offset
        next_offset, gap_offset = self.start_offset, -1
        for stored in batches:
            if gap_offset < 0 and stored.first_offset > next_offset:
                gap_offset = next_offset
            next_offset = stored.last_offset + 1
            state = RecordState(DeliveryState(stored.delivery_state), stored.delivery_count)
            batch = InFlightBatch(stored.first_offset, stored.last_offset, state)
            self.in_flight.add(batch)
            if state.is_final:
                self.delivery_complete_count += batch.count
        if not batches:
            self.end_offset = self.start_offset
            return
        self.find_next = True
        self.end_offset = self.in_flight.last.last_offset
        if gap_offset >= 0:
            self._gap = _Gap(gap_offset, self.end_offset)
        self.advance_start()

    @property
    def in_flight_count(self) -> int:
        """The offsets in flight, those without records included."""
        return self.end_offset - self.start_offset + 1 if self.in_flight else 0

    def next_fetch_offset(self) -> int:
        """Return the first offset that is available or in a gap, else the one behind the end."""
        in_flight = self.in_flight
        is_fresh = not in_flight or self.start_offset > in_flight.last.last_offset
        if is_fresh or not self.find_next:
            self.find_next = False
            return self.end_offset if is_fresh else self.end_offset + 1
        found = self._first_available()
        if found is None:
            self.find_next = False
            return self.end_offset + 1
        return found

    def _first_available(self) -> int | None:
        gap_offset = self.gap_offset
        for batch in self.in_flight:
            if gap_offset is not None:
                if batch.first_offset > gap_offset:
                    return gap_offset
                gap_offset = max(batch.last_offset + 1, gap_offset)
            if batch.whole is not None:
                if batch.whole.is_available:
                    return batch.first_offset
                continue
            for at, state in enumerate(batch.each):
                if state.is_available:
                    return batch.first_offset + at
        return None

    @property
    def gap_offset(self) -> int | None:
        """The first offset of the gap that is fetched next, None if there is no gap left."""
        gap = self._gap
        return None if gap is None or gap.end_offset != self.end_offset else gap.first_offset

    def move_gap(self, offset: int) -> None:
        """Note that everything below an offset was looked at."""
        gap = self._gap
        if gap is None:
            return
        if gap.end_offset == self.end_offset and offset <= gap.end_offset:
            gap.first_offset = offset
        else:
            self._gap = None

    def count_in_flight(self, first_offset: int, last_offset: int) -> int:
        """Return how many offsets of a range are not behind the start."""
        return max(0, last_offset - max(self.start_offset, first_offset) + 1)

    def advance_start(self) -> bool:
        """Move the start over the final records before it; return whether it could."""
        if not self._can_advance():
            return False
        last_final, count = self._final_prefix()
        if last_final is None:
            return False
        in_flight = self.in_flight
        if last_final == in_flight.last.last_offset:
            self.start_offset = self.end_offset = last_final + 1
            in_flight.clear()
            self.delivery_complete_count = 0
            return True
        batch = in_flight.floor(last_final)
        assert batch is not None, last_final
        if last_final == batch.last_offset:
            after = in_flight.above(last_final)
            assert after is not None, "the last batch is not final"
            self.start_offset = max(self.start_offset, after.first_offset)
            if self.gap_offset is not None:
                self.start_offset = min(self.gap_offset, self.start_offset)
            in_flight.remove_below(last_final + 1)
        else:
            self.start_offset = max(self.start_offset, last_final + 1)
            in_flight.remove_below(batch.first_offset)
        self.delivery_complete_count -= count
        return True

    def _can_advance(self) -> bool:
        batch = self.in_flight.floor(self.start_offset)
        if batch is None:
            return False  # a gap begins at the start
        return batch.state_at(min(self.start_offset, batch.last_offset)).is_final

    def _final_prefix(self) -> tuple[int | None, int]:
        """Return the last final offset before the first other one, and the final ones in flight."""
        last: int | None = None
        count, gap_offset = 0, self.gap_offset
        for batch in self.in_flight:
            if gap_offset is not None and batch.last_offset >= gap_offset:
                return last, count
            if batch.whole is not None:
                if not batch.whole.is_final:
                    return last, count
                last = batch.last_offset
                count += self.count_in_flight(batch.first_offset, last)
                continue
            for offset, state in batch.states(batch.first_offset, batch.last_offset):
                if not state.is_final:
                    return last, count
                last = offset
                count += offset >= self.start_offset
        return last, count

    def move_log_start(self, log_start_offset: int) -> None:
        """Follow the log's start: available records below it are archived, without a write.

        Acquired ones stay with their owner until their lock ends.
        """
        if log_start_offset <= self.start_offset:
            return
        removed_count = self._final_count_below(log_start_offset)
        self.archive(self.in_flight, self.start_offset, log_start_offset - 1, AVAILABLE)
        self.start_offset = log_start_offset
        self.delivery_complete_count -= removed_count
        self.end_offset = max(self.end_offset, self.start_offset)

    def _final_count_below(self, end_offset: int) -> int:
        """Return how many final records in flight are below an offset."""
        count = 0
        for batch in self.in_flight.beginning_in(0, end_offset - 1):
            first = max(self.start_offset, batch.first_offset)
            last = min(end_offset - 1, batch.last_offset)
            if batch.whole is None:
                states = batch.states(first, last)
                count += sum(state.state in FINAL_STATES for _, state in states)
            elif batch.whole.state in FINAL_STATES:
                count += max(0, last - first + 1)
        return count

    def archive_compacted(self, fetch_offset: int, base_offset: int) -> None:
        """Archive the available records between a fetch's offset and the first batch it found."""
        if fetch_offset >= base_offset or not self.in_flight:
            return
        first, floor = fetch_offset, self.in_flight.floor(fetch_offset)
        if floor is not None and floor.last_offset >= fetch_offset:
            first = floor.first_offset
        batches = self.in_flight.beginning_in(first, base_offset - 1)
        archived = self.archive(batches, fetch_offset, base_offset - 1, AVAILABLE)
        self.delivery_complete_count += archived

    def archive(
        self,
        batches: Iterable[InFlightBatch],
        first_offset: int,
        last_offset: int,
        state: DeliveryState,
    ) -> int:
        """Archive the records of a range that are in a state; return how many."""
        count = 0
        for batch in batches:
            if batch.first_offset > last_offset:
                break
            whole = batch.whole
            if whole is not None and whole.state is not state:
                continue
            if whole is not None and batch.is_within(first_offset, last_offset):
                whole.archive()
                count += batch.count
                continue
            batch.split()
            for _, each in batch.states(first_offset, last_offset):
                if each.state is state:
                    each.archive()
                    count += 1
        return count
