"""Give records of a share partition to a member: what a fetch read becomes what it acquired.

Records in flight that are available again come first, whole batches behind the end after them.
Records that were delivered often go in smaller parts, and a last time alone, so that one bad record
does not archive the others of its batch with it.

Not here: reading the log (`log_batches`), and aborted transactions (`aborted`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_fetch.aborted import without_aborted
from kraft_wire.broker.share_fetch.acquired import Acquired, AcquiredRange
from kraft_wire.broker.share_fetch.in_flight import InFlightBatch
from kraft_wire.broker.share_fetch.log_batches import LogBatch
from kraft_wire.broker.share_fetch.record_state import ACQUIRED, RecordState
from kraft_wire.broker.share_fetch.share_partition import Life, SharePartition

__all__ = ["Fetched", "acquire"]

_THROTTLE_LIMIT_MIN: Final = 2
"""With a smaller limit no record is delivered alone."""


class Fetched(NamedTuple):
    """What a fetch of one member may take, and what it read."""

    member_id: str
    is_record_limit: bool
    """Whether `max_records` is exact; otherwise whole log batches are acquired."""
    batch_size: int
    """How many records are acquired together, from one batch boundary of the log to another."""
    max_records: int
    fetch_offset: int
    batches: Sequence[LogBatch]
    """The whole batches that were read."""
    aborted: Sequence[tuple[int, int]] = ()
    """Producer id and first offset of aborted transactions, for `read_committed` only."""


def acquire(partition: SharePartition, fetched: Fetched, at: ClockReading) -> Acquired:
    """Lock what a member may have of the records that it read."""
    if partition.life is not Life.ACTIVE or fetched.max_records <= 0 or not fetched.batches:
        return Acquired()
    last_read = fetched.batches[-1].last_offset
    if last_read < partition.start_offset:
        return Acquired()
    last_offset, max_records = _bounds(partition, fetched, last_read)
    if max_records <= 0:
        return Acquired()
    partition.archive_compacted(fetched.fetch_offset, fetched.batches[0].base_offset)
    acquired = _Acquiring(partition, fetched, last_offset, max_records, at).run()
    return without_aborted(partition, fetched.batches, fetched.aborted, acquired)


def _bounds(partition: SharePartition, fetched: Fetched, last_read: int) -> tuple[int, int]:
    """Return the last offset to acquire and the number of records, by the room in flight."""
    limit = partition.settings.partition_max_record_locks
    max_records = min(fetched.max_records, limit - partition.in_flight_count)
    end_offset = partition.end_offset
    if max_records > 0 or fetched.fetch_offset > end_offset:
        return last_read, max_records
    # There is no room behind the end, but something between is available again.
    count = end_offset - fetched.fetch_offset + 1
    return min(last_read, end_offset), min(fetched.max_records, count)


class _Acquiring:
    """One fetch on its way through the records in flight."""

    __slots__ = (
        "at",
        "count",
        "fetched",
        "first_read",
        "last_offset",
        "max_records",
        "partition",
        "ranges",
    )

    def __init__(
        self,
        partition: SharePartition,
        fetched: Fetched,
        last_offset: int,
        max_records: int,
        at: ClockReading,
    ) -> None:
        self.partition = partition
        self.fetched = fetched
        self.first_read = fetched.batches[0].base_offset
        self.last_offset = last_offset
        self.max_records = max_records
        self.at = at
        self.ranges: list[AcquiredRange] = []
        self.count = 0

    def run(self) -> Acquired:
        partition = self.partition
        base_offset, floor = self.first_read, partition.in_flight.floor(self.first_read)
        if floor is None:
            # The stored start may be in the middle of a log batch.
            base_offset = max(base_offset, partition.start_offset)
        elif floor.last_offset >= base_offset:
            base_offset = floor.first_offset
        low = min(self.first_read, base_offset)
        if low > self.last_offset:
            return Acquired()  # the log has nothing any more where there was something to acquire
        batches = partition.in_flight.beginning_in(low, self.last_offset)
        if not batches:
            self._take_new(base_offset, self.last_offset)
            return Acquired(self.ranges, self.count)
        self._take_cached(batches, base_offset)
        last_cached = batches[-1].last_offset
        if self.count < self.max_records and last_cached < self.last_offset:
            self._take_new(last_cached + 1, self.last_offset)
        if self.ranges:
            partition.move_gap(self.ranges[-1].last_offset + 1)
        return Acquired(self.ranges, self.count)

    @property
    def _left(self) -> int:
        return self.max_records - self.count

    # -- records in flight -----------------------------------------------------------------------

    def _take_cached(self, batches: Sequence[InFlightBatch], base_offset: int) -> None:
        """Take what is available again, and what is in gaps before it."""
        gap_offset = base_offset
        for batch in batches:
            if self._left <= 0:
                return
            if self.partition.gap_offset is not None:
                if gap_offset < batch.first_offset:
                    self._take_new(gap_offset, batch.first_offset - 1)
                gap_offset = batch.last_offset + 1
                if self._left <= 0:
                    return
            is_throttled = self._is_throttled(batch)
            if is_throttled and self.count:
                self.max_records = 0  # alone, in the next fetch
                return
            taken = self._take_batch(batch, is_throttled)
            if is_throttled and taken:
                self.max_records = 0
                return

    def _take_batch(self, batch: InFlightBatch, is_throttled: bool) -> int:
        """Take a batch or records of it; return how many."""
        whole = batch.whole
        if whole is None:
            return self._take_records(batch)
        if not whole.is_available:
            return 0
        is_part = not batch.is_within(self.first_read, self.last_offset)
        is_more = self.fetched.is_record_limit and batch.count > self._left
        if is_part or is_more or is_throttled:
            batch.split()
            return self._take_records(batch)
        self._deliver(whole, batch, batch.first_offset, batch.last_offset)
        first, last = batch.first_offset, batch.last_offset
        self.ranges.append(AcquiredRange(first, last, whole.delivery_count))
        self.count += batch.count
        return batch.count

    def _take_records(self, batch: InFlightBatch) -> int:
        """Take the available records of a split batch, fewer the more often they were delivered."""
        limit = self.partition.settings.delivery_count_limit
        isolates = limit > _THROTTLE_LIMIT_MIN
        left = self._left if self.fetched.is_record_limit else batch.count
        count, together = 0, -1
        for offset, state in batch.states(self.first_read, self.last_offset):
            if not state.is_available:
                continue
            is_last_delivery = isolates and state.delivery_count == limit - 1
            if is_last_delivery and count:
                break
            surplus = state.delivery_count - throttle_limit(limit)
            if surplus >= 0 and together < 0:
                together = max(1, batch.count >> (surplus + 1))
            self._deliver(state, batch, offset, offset)
            self._add_record(offset, state.delivery_count, is_first=not count)
            count += 1
            if (isolates and state.delivery_count == limit) or count in (left, together):
                break
        self.count += count
        return count

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        """Whether an available record of a batch was delivered so often that few go together."""
        most = throttle_limit(self.partition.settings.delivery_count_limit)
        if batch.whole is not None:
            return batch.whole.is_available and batch.whole.delivery_count >= most
        return any(
            state.is_available and state.delivery_count >= most
            for _, state in batch.states(self.first_read, self.last_offset)
        )

    def _deliver(
        self, state: RecordState, batch: InFlightBatch, first_offset: int, last_offset: int
    ) -> None:
        limit = self.partition.settings.delivery_count_limit
        is_moved = state.move(ACQUIRED, self.fetched.member_id, limit, delivers=True)
        assert is_moved, "available records may be acquired"
        self.partition.lock(state, first_offset, last_offset, self.at)

    def _add_record(self, offset: int, delivery_count: int, *, is_first: bool) -> None:
        """List a record, together with the one before it where that is of the same batch."""
        if not is_first:
            before = self.ranges[-1]
            if before.last_offset + 1 == offset and before.delivery_count == delivery_count:
                self.ranges[-1] = AcquiredRange(before.first_offset, offset, delivery_count)
                return
        self.ranges.append(AcquiredRange(offset, offset, delivery_count))

    # -- records behind the end, and in gaps -------------------------------------------------------

    def _take_new(self, first_offset: int, last_offset: int) -> None:
        """Take log batches that are not in flight yet."""
        partition, left = self.partition, self._left
        if not partition.in_flight:
            first_offset = max(first_offset, partition.end_offset)
        last = last_offset
        if left < last - first_offset + 1:
            last = _batch_end(self.fetched.batches, first_offset + left - 1)
            if partition.gap_offset is not None:
                last = min(last, last_offset)
        if self.fetched.is_record_limit:
            self._add_limited(first_offset, last, left)
        else:
            self._add_pieces(first_offset, last)
        if partition.in_flight.first.first_offset == first_offset:
            partition.start_offset = first_offset
        partition.end_offset = max(partition.end_offset, last)
        last_acquired = self.ranges[-1].last_offset
        self.count += last_acquired - first_offset + 1
        partition.move_gap(last_acquired + 1)

    def _add_limited(self, first_offset: int, last_offset: int, left: int) -> None:
        """Put log batches in flight as one; acquire only as many records as are left."""
        batch = self._new_batch(first_offset, last_offset)
        if batch.count > left:
            last_offset = first_offset + left - 1
            batch.split_after(last_offset)
            for offset, state in batch.states(first_offset, last_offset):
                self.partition.lock(state, offset, offset, self.at)
            self.partition.find_next = True
        else:
            self._lock_whole(batch)
        self.ranges.append(AcquiredRange(first_offset, last_offset, 1))

    def _add_pieces(self, first_offset: int, last_offset: int) -> None:
        """Acquire log batches in pieces of at least the batch size, each with its own lock."""
        firsts, size = [first_offset], max(1, self.fetched.batch_size)
        if last_offset - first_offset + 1 > size:
            for batch in self.fetched.batches:
                if batch.base_offset > last_offset:
                    break
                if batch.base_offset - firsts[-1] >= size:
                    firsts.append(batch.base_offset)
        lasts = [*(first - 1 for first in firsts[1:]), last_offset]
        for first, last in zip(firsts, lasts, strict=True):
            self._lock_whole(self._new_batch(first, last))
            self.ranges.append(AcquiredRange(first, last, 1))

    def _new_batch(self, first_offset: int, last_offset: int) -> InFlightBatch:
        state = RecordState(ACQUIRED, 1, self.fetched.member_id)
        batch = InFlightBatch(first_offset, last_offset, state)
        self.partition.in_flight.add(batch)
        return batch

    def _lock_whole(self, batch: InFlightBatch) -> None:
        assert batch.whole is not None, "new batches are not split"
        self.partition.lock(batch.whole, batch.first_offset, batch.last_offset, self.at)


def throttle_limit(delivery_count_limit: int) -> int:
    """Return the number of deliveries from which on fewer records go together."""
    return max(_THROTTLE_LIMIT_MIN, -(-delivery_count_limit // 2))


def _batch_end(batches: Sequence[LogBatch], offset: int) -> int:
    """Return the last offset of the log batch that contains an offset, which may be in none."""
    found: LogBatch | None = None
    for batch in batches:
        if offset < batch.base_offset:
            break
        found = batch
    return found.last_offset if found is not None and offset <= found.last_offset else offset
