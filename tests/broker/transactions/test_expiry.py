"""What time alone does to transactional ids, to the millisecond; batches of their tombstones.

As `TransactionStateManager`: `timedOutTransactions` ends what began more than its timeout ago, and
`shouldExpire` forgets what has not changed for `transactional.id.expiration.ms`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.transactions.expiry import abort_timed_out, remove_expired
from kraft_wire.broker.transactions.shard import TransactionShard
from kraft_wire.broker.transactions.states import TransactionState
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.coordinating import Coordinating, Markers
from tests.broker.transactions.scripted import Scripted

TIMEOUT_MS = 30_000
EXPIRATION_MS = 604_800_000
NEVER_MS = (1 << 31) - 1


def open_shard(node: Coordinating, name: str = "tid") -> TransactionShard:
    found = node.node.broker.transactions.shard_of(name)
    assert isinstance(found, TransactionShard)
    return found


def test_transaction_is_aborted_when_it_is_older_than_its_timeout(
    node: Coordinating, markers: Markers
) -> None:
    producer = node.producer()
    assert producer.init(timeout_ms=TIMEOUT_MS) == E.NONE
    assert producer.add(0) == [E.NONE]
    entry = node.entry("tid")
    start_ms = entry.metadata.start_ms
    node.advance(10_000)
    assert producer.add(1) == [E.NONE]
    assert entry.metadata.last_update_ms == start_ms + 10_000, "which does not count"
    for age_ms in (0, TIMEOUT_MS - 1, TIMEOUT_MS):
        abort_timed_out(open_shard(node), ClockReading(node.now_ms, start_ms + age_ms))
        assert (entry.metadata.state, entry.pending) == (TransactionState.ONGOING, None), age_ms
    abort_timed_out(open_shard(node), ClockReading(node.now_ms, start_ms + TIMEOUT_MS + 1))
    node.settle()
    assert node.states("tid")[-1].endswith("Abort")


@pytest.mark.parametrize(("timeout_ms", "is_aborted"), [(NEVER_MS, False), (NEVER_MS - 1, True)])
def test_transaction_without_a_timeout_is_never_aborted(timeout_ms: int, is_aborted: bool) -> None:
    """KIP-939: that of a two-phase commit, which another release may have logged, is 2^31-1 ms."""
    node = Scripted()
    node.begin()
    entry = node.shard.ids["tid"]
    entry.metadata = replace(entry.metadata, timeout_ms=timeout_ms)
    abort_timed_out(node.shard, ClockReading(0, 10 * NEVER_MS))
    assert (entry.metadata.state is not TransactionState.ONGOING) == is_aborted
    assert node.lines == ["transaction_timed_out"] * is_aborted


def test_open_transactions_are_looked_at_once_an_interval_while_there_are_any() -> None:
    """`transaction.abort.timed.out.transaction.cleanup.interval.ms`, from the last look on."""
    node = Scripted()
    node.init()
    assert node.shard.timers.deadline_ms() is None
    producer = (node.last.producer_id, node.last.producer_epoch)
    node.add(producer)
    entry = node.shard.ids["tid"]
    entry.metadata = replace(entry.metadata, timeout_ms=NEVER_MS)
    for node.now_ms in (0, 10_000, 1_000_005):
        node.shard.tick(node.at)
        assert node.shard.timers.deadline_ms() == node.now_ms + 10_000
    node.end(producer)
    assert node.shard.timers.deadline_ms() is None
    assert node.shard.ongoing == {}


@pytest.mark.parametrize("pending", list(TransactionState))
@pytest.mark.parametrize("is_open", [False, True])
def test_id_that_is_being_changed_neither_times_out_nor_is_forgotten(
    pending: TransactionState, is_open: bool
) -> None:
    """`shouldExpire` and `timedOutTransactions`: not while a transition is pending."""
    node = Scripted()
    if is_open:
        node.begin()
    else:
        node.init()
    entry, written = node.shard.ids["tid"], len(node.log.records)
    entry.pending = pending
    late = ClockReading(0, 10 * EXPIRATION_MS)
    abort_timed_out(node.shard, late)
    remove_expired(node.shard, late)
    assert (len(node.log.records), entry.pending) == (written, pending)
    entry.pending = None
    (abort_timed_out if is_open else remove_expired)(node.shard, late)
    assert len(node.log.records) > written


@pytest.mark.parametrize("error", [E.REQUEST_TIMED_OUT, E.NONE, E.NOT_COORDINATOR])
def test_id_is_forgotten_when_its_tombstone_is_committed_however_late(error: E) -> None:
    node = Scripted()
    node.init()
    node.log.waits = True
    remove_expired(node.shard, ClockReading(0, EXPIRATION_MS))
    node.log.end_wait(E.REQUEST_TIMED_OUT)
    assert node.shard.ids["tid"].pending is TransactionState.DEAD, "the record is in the log"
    if error is E.REQUEST_TIMED_OUT:
        node.log.watermark = len(node.log.records)
    node.log.end_wait(error)
    assert ("tid" in node.shard.ids) == (error is E.NOT_COORDINATOR)
    assert node.log.waiting == []


def test_refused_tombstone_is_written_at_the_next_clean_up() -> None:
    node = Scripted()
    node.init()
    late = ClockReading(0, EXPIRATION_MS)
    node.log.refusals = [E.NOT_ENOUGH_REPLICAS]
    remove_expired(node.shard, late)
    assert node.shard.ids["tid"].pending is None
    remove_expired(node.shard, late)
    assert node.shard.ids == {}


def test_id_is_forgotten_as_soon_as_it_is_idle_for_long_enough(node: Coordinating) -> None:
    node.producer().init()
    changed_ms = node.entry("tid").metadata.last_update_ms
    shard = open_shard(node)
    remove_expired(shard, ClockReading(node.now_ms, changed_ms + EXPIRATION_MS - 1))
    assert node.states("tid") == ["Empty"]
    remove_expired(shard, ClockReading(node.now_ms, changed_ms + EXPIRATION_MS))
    assert node.states("tid") == ["Empty", "-"]
    assert "tid" not in shard.ids


def test_tombstones_are_written_once_each_in_batches_of_64_kib() -> None:
    """Three keys of 20,000 bytes fit a batch."""
    node = Coordinating(transaction_state_log_num_partitions="1")
    names = [f"{number}-{'x' * 20_000}" for number in range(7)]
    for name in names:
        assert node.producer(name).init() == E.NONE
    shard = open_shard(node, names[0])
    before = len(list(node.batches()))
    remove_expired(shard, ClockReading(node.now_ms, node.wall_ms + EXPIRATION_MS))
    written = list(node.batches())[before:]
    assert [batch.records_count for batch in written] == [3, 3, 1]
    assert [node.states(name) for name in names] == [["Empty", "-"]] * 7
    assert shard.ids == {}


def test_id_whose_tombstone_is_not_committed_yet_may_not_be_used() -> None:
    node = Coordinating(log_flush_interval_messages="1")
    producer = node.producer()
    producer.init()
    node.keeps_flushes_back = True
    shard = open_shard(node)
    remove_expired(shard, ClockReading(node.now_ms, node.wall_ms + EXPIRATION_MS))
    for _ in range(8):
        node.advance(10_000)  # beyond the time that an append waits
    assert node.entry("tid").pending is TransactionState.DEAD
    assert producer.add(0) == [E.CONCURRENT_TRANSACTIONS]
    assert node.listed().transaction_states == []
    assert node.describe("tid").error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    node.keeps_flushes_back = False
    node.flush()
    node.settle()
    assert "tid" not in shard.ids
