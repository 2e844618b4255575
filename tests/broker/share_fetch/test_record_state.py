"""What may become of one record, as Apache's `InFlightState` and `RecordState` decide."""

from __future__ import annotations

from itertools import product

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_fetch.acquire import Fetched, acquire, throttle_limit
from kraft_wire.broker.share_fetch.log_batches import LogBatch
from kraft_wire.broker.share_fetch.record_state import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    FINAL_STATES,
    TRANSITIONS,
    DeliveryState,
    RecordState,
)
from tests.broker.share_fetch.test_memory import loaded

LIMIT = 5
ALLOWED = {
    (AVAILABLE, ACQUIRED),
    (ACQUIRED, AVAILABLE),
    (ACQUIRED, ACKNOWLEDGED),
    (ACQUIRED, ARCHIVED),
}
"""`RecordState.validateTransition`; records are archived from AVAILABLE by `archive` alone."""
PAIRS = [pair for pair in product(DeliveryState, repeat=2) if pair != (AVAILABLE, ARCHIVED)]


@pytest.mark.parametrize(("state", "to"), PAIRS)
def test_state_changes_as_the_table_allows_or_not_at_all(
    state: DeliveryState, to: DeliveryState
) -> None:
    record = RecordState(state, 2, "m")
    assert record.move(to, "n", LIMIT) is ((state, to) in ALLOWED)
    after = (to, "n") if (state, to) in ALLOWED else (state, "m")
    assert (record.state, record.member_id, record.delivery_count) == (*after, 2)
    record = RecordState(state, 2, "m")
    assert record.begin(to, LIMIT) is ((state, to) in ALLOWED)
    assert record.is_changing is ((state, to) in ALLOWED)
    record.finish(is_written=False)
    assert (record.state, record.member_id) == (state, "m")


def test_table_has_what_is_allowed_and_what_archives() -> None:
    steps = {(state, to) for state, after in TRANSITIONS.items() for to in after}
    assert steps == ALLOWED | {(AVAILABLE, ARCHIVED)}
    assert {ACKNOWLEDGED, ARCHIVED} == FINAL_STATES


@pytest.mark.parametrize("to", DeliveryState)
def test_nothing_changes_while_a_write_is_not_confirmed(to: DeliveryState) -> None:
    """`tryUpdateState`: a member may send several requests about the same records."""
    record = RecordState(ACQUIRED, 2, "m")
    assert record.begin(AVAILABLE, LIMIT)
    assert not record.is_available
    assert not record.move(to, "n", LIMIT)
    assert not record.begin(to, LIMIT)
    assert (record.state, record.member_id, record.delivery_count) == (AVAILABLE, "", 2)
    record.finish(is_written=True)
    assert record.is_available


@pytest.mark.parametrize(
    ("count", "state"), [(LIMIT - 1, AVAILABLE), (LIMIT, ARCHIVED), (LIMIT + 1, ARCHIVED)]
)
def test_record_at_the_limit_of_deliveries_is_archived(count: int, state: DeliveryState) -> None:
    record = RecordState(ACQUIRED, count, "m")
    assert record.move(AVAILABLE, "", LIMIT)
    assert record.state is state


@pytest.mark.parametrize(
    ("limit", "deliveries"),
    [(1, 2), (2, 2), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4), (9, 5), (10, 5)],
)
def test_fewer_go_together_from_half_of_the_deliveries_on(limit: int, deliveries: int) -> None:
    """`throttleRecordsDeliveryLimit`: half of the limit rounded up, at least 2."""
    assert throttle_limit(limit) == deliveries


def test_what_was_read_below_the_start_is_not_acquired() -> None:
    """`SharePartition.acquire`: the start moved while the log was read."""
    share = loaded()
    share.move_log_start(4)
    at = ClockReading(1_000, 0)
    below = Fetched("m", False, 500, 500, 0, [LogBatch(0, 1, 70), LogBatch(2, 3, 70)])
    assert list(acquire(share, below, at).ranges) == []
    assert share.in_flight_count == 0
    around = Fetched("m", False, 500, 500, 0, [LogBatch(2, 4, 70)])
    (found,) = acquire(share, around, at).ranges
    assert (found.first_offset, found.last_offset) == (4, 4)
