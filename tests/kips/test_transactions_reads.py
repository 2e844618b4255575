"""What readers of transactions see (KIP-98): LSO, aborted lists, offsets.

Ids are those of docs/KIPS.md.
"""

import pytest

from kraft_wire.model import FileSlice
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import FetchResponse, PartitionData
from tests.broker.replication.leading import batch
from tests.broker.small_broker import partition_image
from tests.broker.transactional import Transactional, aborted_in, batches_in, offsets_in

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


@pytest.fixture
def broker() -> Transactional:
    return Transactional()


def plain(broker: Transactional) -> None:
    broker.send_batches({0: batch()}, transactional_id=None, acks=1)


def test_readers_of_what_is_committed_stop_at_the_oldest_open_transaction(
    broker: Transactional,
) -> None:
    """TXN-FETCH-01, TXN-FETCH-04, TXN-PART-01."""
    plain(broker)
    broker.begin(producer_id=10)
    broker.begin(producer_id=11)
    plain(broker)
    committed, everything = broker.read().fetched, broker.read(isolation_level=0).fetched
    assert offsets_in(committed) == [0]
    assert offsets_in(everything) == [0, 1, 2, 3]
    for data in (committed, everything):
        assert (data.last_stable_offset, data.high_watermark) == (1, 4)
    assert isinstance(committed.records, FileSlice), "still sent from the file, without a copy"
    broker.mark(producer_id=10)
    assert broker.partition().last_stable_offset == 2
    broker.mark(producer_id=11)
    assert broker.partition().last_stable_offset == 6
    assert offsets_in(broker.read().fetched) == [0, 1, 2, 3, 4, 5]


def test_a_marker_counts_once_it_is_committed() -> None:
    """TXN-PART-01, TXN-FETCH-05: the HW that covers it wakes what waits."""
    broker = Transactional(partition_image(0, replicas=(1, 2)))
    sent = broker.send()
    broker.answer()
    broker.fetch(1)
    assert not sent.is_parked
    reader = broker.read(0, max_wait_ms=500)
    marker = broker.mark()
    assert broker.partition().last_stable_offset == 0
    assert reader.is_parked
    assert marker.is_parked
    broker.fetch(2)
    assert broker.partition().last_stable_offset == 2
    assert offsets_in(reader.fetched) == [0, 1]
    assert not marker.is_parked


def test_of_several_unreplicated_markers_the_oldest_transaction_counts() -> None:
    """TXN-PART-01: ended ones leave in the order of their markers."""
    broker = Transactional(partition_image(0, replicas=(1, 2)))
    for number, producer_id in enumerate((10, 11)):
        broker.send(producer_id=producer_id)
        broker.answer()
        broker.fetch(number + 1)
    broker.mark(producer_id=11)
    broker.mark(producer_id=10)
    broker.fetch(3)
    assert broker.partition().last_stable_offset == 0
    broker.fetch(4)
    assert broker.partition().last_stable_offset == 4


def test_a_position_between_lso_and_hw_is_empty_and_no_error(broker: Transactional) -> None:
    """TXN-FETCH-06."""
    broker.begin()
    plain(broker)
    data = broker.read(1).fetched
    assert (data.error_code, offsets_in(data), aborted_in(data)) == (E.NONE, [], [])


def test_the_aborted_list_names_what_touches_the_range(broker: Transactional) -> None:
    """TXN-FETCH-02: producer id and first offset, in the order of the markers."""
    broker.begin(producer_id=10)
    broker.begin(producer_id=11)
    broker.mark(producer_id=11, is_commit=False)
    broker.mark(producer_id=10, is_commit=False)
    broker.begin(producer_id=12)
    broker.mark(producer_id=12, is_commit=True)
    assert aborted_in(broker.read().fetched) == [(11, 1), (10, 0)]
    assert aborted_in(broker.read(3).fetched) == [(10, 0)]
    assert aborted_in(broker.read(4).fetched) == []


def test_an_open_transaction_does_not_end_the_aborted_list(broker: Transactional) -> None:
    """TXN-FETCH-02: the list ends behind a marker at which nothing older was open, not before."""
    broker.begin(producer_id=10)
    broker.begin(producer_id=11)
    for epoch in range(3):
        broker.mark(producer_id=11, is_commit=False, epoch=epoch + 1, transaction_version=2)
        broker.begin(producer_id=11, epoch=epoch + 1)
    broker.mark(producer_id=10, is_commit=False)
    assert aborted_in(broker.read(0, max_bytes=1).fetched) == [
        *((11, 1), (11, 3), (11, 5)),
        (10, 0),
    ]


@pytest.mark.parametrize("index_interval_bytes", [1, 4_096])
def test_a_client_s_filter_over_any_answer_gives_what_the_log_has(
    index_interval_bytes: int,
) -> None:
    """TXN-FETCH-02: whatever the size of the answer, and wherever it begins (T06)."""
    broker = Transactional(config={"index.interval.bytes": str(index_interval_bytes)})
    kept = []
    for number in range(12):
        producer_id = 10 + number % 3
        broker.begin(producer_id=producer_id, epoch=number)
        is_commit = number % 2 == 0
        if is_commit:
            kept.append(broker.partition().log_end_offset - 1)
        broker.mark(
            producer_id=producer_id,
            epoch=number + 1,
            is_commit=is_commit,
            transaction_version=2,
        )
    for start in range(24):
        for max_bytes in (1, 200, 500, 1 << 20):
            data = broker.read(start, max_bytes=max_bytes).fetched
            sent = offsets_in(data)
            assert sent[0] == start
            assert _filtered(data) == [each for each in kept if each in sent]


def _filtered(data: PartitionData) -> list[int]:
    """The base offsets of data that a client shows: Kafka's consumer, in a few lines."""
    waiting = sorted(aborted_in(data) or [], key=lambda each: each[1])
    inside: set[int] = set()
    shown = []
    for each in batches_in(data):
        while waiting and waiting[0][1] <= each.last_offset:
            inside.add(waiting.pop(0)[0])
        if each.is_control:
            inside.discard(each.producer_id)
        elif each.producer_id not in inside:
            shown.append(each.base_offset)
    return shown


def test_who_reads_everything_gets_no_list(broker: Transactional) -> None:
    """TXN-FETCH-03: READ_UNCOMMITTED, followers, errors."""
    broker = Transactional(partition_image(0, replicas=(1, 2)))
    broker.send()
    broker.answer()
    broker.mark(is_commit=False)
    follower = broker.fetch(0)
    assert aborted_in(follower.fetched) is None
    assert offsets_in(follower.fetched) == [0, 1]
    broker.fetch(2)
    assert aborted_in(broker.read(isolation_level=READ_UNCOMMITTED).fetched) is None
    out_of_range = broker.read(9).fetched
    assert out_of_range.error_code == E.OFFSET_OUT_OF_RANGE
    assert aborted_in(out_of_range) is None
    assert aborted_in(broker.read().fetched) == [(10, 0)]


def test_isolation_levels_that_do_not_exist(broker: Transactional) -> None:
    """TXN-FETCH-07."""
    answer = broker.read(isolation_level=2).answer
    assert isinstance(answer, FetchResponse)
    assert answer.error_code == E.UNKNOWN_SERVER_ERROR
    assert broker.offset_of(-1, isolation_level=2).error_code == E.UNKNOWN_SERVER_ERROR


def test_offsets_of_what_is_committed(broker: Transactional) -> None:
    """TXN-FETCH-08: latest is the LSO; what is found above it is not there."""
    broker.send_batches({0: batch(time_ms=100)}, transactional_id=None, acks=1)
    broker.begin()
    broker.send_batches({0: batch(time_ms=200)}, transactional_id=None, acks=1)
    assert broker.offset_of(-1).offset == 1
    assert broker.offset_of(-1, isolation_level=READ_UNCOMMITTED).offset == 3
    assert broker.offset_of(-2).offset == 0
    assert broker.offset_of(50).offset == 0
    for timestamp in (150, -3):
        found = broker.offset_of(timestamp)
        assert (found.error_code, found.offset, found.timestamp) == (E.NONE, -1, -1)
        assert broker.offset_of(timestamp, isolation_level=READ_UNCOMMITTED).offset == 2


def test_deleted_records_of_an_open_transaction(broker: Transactional) -> None:
    """TXN-PART-14: the LSO follows the log's start; 4.3.1 shows that of the first batch."""
    broker.begin(count=3)
    plain(broker)
    broker.delete_records(2)
    assert broker.partition().last_stable_offset == 2
    broker.delete_records(4)
    assert broker.partition().last_stable_offset == 4
    broker.mark(is_commit=False)
    assert broker.partition().last_stable_offset == 5
    assert aborted_in(broker.read(4).fetched) == [(10, 0)], "the entry keeps the first offset"
