"""Which of the acquired records belong to aborted transactions, batch by batch."""

from __future__ import annotations

import pytest

from kraft_wire.broker.share_fetch.aborted import without_aborted
from kraft_wire.broker.share_fetch.acquire import Fetched, acquire
from kraft_wire.broker.share_fetch.acquired import Acquired
from kraft_wire.broker.share_fetch.log_batches import LogBatch
from kraft_wire.broker.share_fetch.record_state import ACQUIRED, ARCHIVED
from kraft_wire.broker.share_fetch.share_partition import SharePartition
from tests.broker.share_fetch.test_memory import AT, loaded

Ranges = list[tuple[int, int, int]]


def data(first: int, last: int, producer: int = -1, *, open_: bool = True) -> LogBatch:
    return LogBatch(first, last, 70, producer, open_ and producer >= 0)


def marker(offset: int, producer: int, *, abort: bool = True) -> LogBatch:
    return LogBatch(offset, offset, 78, producer, True, abort)


def acquired(
    batches: list[LogBatch], aborted: list[tuple[int, int]], batch_size: int = 500
) -> tuple[SharePartition, Ranges, int]:
    share = loaded()
    fetched = Fetched("m", False, batch_size, 500, 0, batches, aborted)
    found = acquire(share, fetched, AT)
    return share, [tuple(each) for each in found.ranges], found.records_count


@pytest.mark.parametrize(
    ("batches", "aborted", "ranges"),
    [
        ([data(0, 9)], [], [(0, 9, 1)]),
        ([data(0, 3, 0), marker(4, 0)], [(0, 0)], [(4, 4, 1)]),
        ([data(0, 3, 0), marker(4, 0)], [(0, 4)], [(0, 4, 1)]),
        ([data(0, 3, 0), marker(4, 0)], [(0, 3)], [(4, 4, 1)]),
        ([data(0, 1), data(2, 3, 7), data(4, 5)], [(7, 2)], [(0, 1, 1), (4, 5, 1)]),
        ([data(0, 1, 7), data(2, 3, 8)], [(8, 2)], [(0, 1, 1)]),
        ([data(0, 1, 7, open_=False), data(2, 3, 7)], [(7, 0)], [(0, 1, 1)]),
        (
            [data(0, 1, 7), marker(2, 7), data(3, 4, 7), marker(5, 7, abort=False)],
            [(7, 0)],
            [(2, 5, 1)],
        ),
        (
            [data(0, 0, 7), data(1, 1, 8), marker(2, 8), data(3, 3, 8), data(4, 4, 7)],
            [(7, 0), (8, 1)],
            [(2, 3, 1)],
        ),
        ([data(0, 0, 7), data(1, 1, 7), data(2, 2, 7)], [(7, 1)], [(0, 0, 1)]),
        ([data(0, 1, 7), data(2, 3, 8), data(4, 5)], [(8, 2), (7, 0)], [(4, 5, 1)]),
    ],
)
def test_records_of_aborted_transactions_are_archived_and_the_others_given(
    batches: list[LogBatch], aborted: list[tuple[int, int]], ranges: Ranges
) -> None:
    """`maybeFilterAbortedTransactionalAcquiredRecords`: a transaction ends with its marker."""
    share, found, count = acquired(batches, aborted)
    assert (found, count) == (ranges, sum(last - first + 1 for first, last, _ in ranges))
    given = {offset for first, last, _ in ranges for offset in range(first, last + 1)}
    states = {
        offset: batch.state_at(offset).state
        for batch in share.in_flight
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    expected = {each: ACQUIRED if each in given else ARCHIVED for each in states}
    assert states == expected
    assert share.delivery_complete_count == len(states) - len(given)


def test_pieces_of_the_batch_size_are_cut_each() -> None:
    batches = [data(0, 2), data(3, 5, 7), data(6, 8)]
    _, found, count = acquired(batches, [(7, 3)], batch_size=3)
    assert (found, count) == ([(0, 2, 1), (6, 8, 1)], 6)


def test_nothing_acquired_is_nothing_to_archive() -> None:
    share, batches = loaded(), [data(0, 3, 7)]
    assert without_aborted(share, batches, [(7, 0)], Acquired()) == Acquired((), 0)
    assert share.delivery_complete_count == 0
