"""Records of aborted transactions: a `read_committed` share group never gets them (KIP-932).

They are archived as soon as they are acquired, so that they do not hold up the start.
"""

from collections.abc import Iterator, Sequence

from kraft_wire.broker.share_fetch.acquired import Acquired, AcquiredRange
from kraft_wire.broker.share_fetch.log_batches import LogBatch
from kraft_wire.broker.share_fetch.record_state import ACQUIRED
from kraft_wire.broker.share_fetch.window import Window

__all__ = ["without_aborted"]


def without_aborted(
    partition: Window,
    batches: Sequence[LogBatch],
    aborted: Sequence[tuple[int, int]],
    acquired: Acquired,
) -> Acquired:
    """Archive the acquired records of aborted transactions; return the others."""
    if not aborted or not acquired.ranges:
        return acquired
    ranges = list(acquired.ranges)
    for batch in _aborted_batches(batches, aborted):
        first, last = batch.base_offset, batch.last_offset
        floor = partition.in_flight.floor(first)
        low = first if floor is None else floor.first_offset
        in_flight = partition.in_flight.beginning_in(low, last)
        partition.delivery_complete_count += partition.archive(in_flight, first, last, ACQUIRED)
        ranges = [part for each in ranges for part in _outside(each, first, last)]
    count = sum(each.last_offset - each.first_offset + 1 for each in ranges)
    return acquired._replace(ranges=ranges, records_count=count)


def _aborted_batches(
    batches: Sequence[LogBatch], aborted: Sequence[tuple[int, int]]
) -> Iterator[LogBatch]:
    """Return the batches of aborted transactions; a transaction ends with its marker."""
    waiting = sorted(aborted, key=lambda each: each[1], reverse=True)
    open_ids: dict[int, None] = {}
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1][1] <= batch.last_offset:
            open_ids[waiting.pop()[0]] = None
        if batch.is_abort_marker:
            open_ids.pop(batch.producer_id, None)
        elif batch.is_transactional and batch.producer_id in open_ids:
            yield batch


def _outside(
    acquired: AcquiredRange, first_offset: int, last_offset: int
) -> Iterator[AcquiredRange]:
    """Return the parts of a range that are before and behind another."""
    if acquired.last_offset < first_offset or acquired.first_offset > last_offset:
        yield acquired
        return
    if acquired.first_offset < first_offset:
        yield acquired._replace(last_offset=first_offset - 1)
    if acquired.last_offset > last_offset:
        yield acquired._replace(first_offset=last_offset + 1)
