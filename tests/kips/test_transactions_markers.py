"""Markers and what they do to a partition (KIP-98, KIP-890, KIP-1228); ids as in docs/KIPS.md."""

import pytest

from kraft_wire.broker.handlers import describe_producers
from kraft_wire.model import Offset
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.describe_producers import DescribeProducersRequest, TopicRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches
from tests.broker.transactional import PRODUCER, Transactional, errors_of, marked

EPOCH_MAX = 32_767


@pytest.fixture
def broker() -> Transactional:
    return Transactional()


def log_of(broker: Transactional) -> Log:
    log = broker.partition().log
    assert isinstance(log, Log)
    return log


def batches(broker: Transactional) -> list[RecordBatch]:
    """Every batch in the log of partition 0."""
    log = log_of(broker)
    read = log.read(
        log.log_start_offset, 1 << 20, upper_bound=log.log_end_offset, min_one_batch=True
    )
    data = read.records if isinstance(read.records, bytes) else read.records.read()
    return list(parse_batches(memoryview(data)))


def mark_error(broker: Transactional, **marker: int | bool) -> E:
    (result,) = marked(broker.mark(**marker))  # type: ignore[arg-type]  # fields of a marker
    return result[3]


@pytest.mark.parametrize(("is_commit", "kind"), [(False, "00000000"), (True, "00000001")])
def test_a_marker_is_a_control_batch_of_78_bytes(
    broker: Transactional, is_commit: bool, kind: str
) -> None:
    """TXN-MARK-01: the bytes that 4.3.1 writes."""
    broker.mark(epoch=4, coordinator_epoch=9, is_commit=is_commit)
    (marker,) = batches(broker)
    (record,) = marker.records()
    assert len(marker.view) == 78
    assert marker.attributes == 0x30
    assert (marker.producer_id, marker.producer_epoch, marker.base_sequence) == (PRODUCER, 4, -1)
    assert record.key is not None
    assert record.key.hex() == kind
    assert record.value is not None
    assert record.value.hex() == "000000000009"
    assert marker.crc_is_valid()


def test_a_topic_s_codec_does_not_touch_markers() -> None:
    """TXN-MARK-01: control records stay as they are, and control records."""
    broker = Transactional(config={"compression.type": "gzip"})
    broker.mark()
    (marker,) = batches(broker)
    assert marker.attributes == 0x30


def test_a_marker_of_version_2_ends_the_transaction_with_a_higher_epoch(
    broker: Transactional,
) -> None:
    """TXN-MARK-02, TXN-PART-08: the next sequence is 0."""
    broker.begin()
    broker.send(sequence=1)
    assert mark_error(broker, epoch=1, transaction_version=2) is E.NONE
    assert broker.partition().last_stable_offset == 3
    broker.begin(epoch=1, sequence=0)


def test_a_marker_of_an_equal_epoch_keeps_the_sequences(broker: Transactional) -> None:
    """TXN-PART-08: the next sequence follows."""
    broker.begin()
    mark_error(broker)
    sent = broker.send(sequence=1, version=11)
    broker.answer()
    assert errors_of(sent) == [E.NONE]


@pytest.mark.parametrize(
    ("epoch", "version", "error"),
    [
        (5, 2, E.INVALID_PRODUCER_EPOCH),
        (6, 2, E.NONE),
        (4, 2, E.INVALID_PRODUCER_EPOCH),
        (5, 7, E.INVALID_PRODUCER_EPOCH),
        (5, 1, E.NONE),
        (5, 0, E.NONE),
        (4, 0, E.INVALID_PRODUCER_EPOCH),
    ],
)
def test_the_epoch_rule_of_an_open_transaction(
    broker: Transactional, epoch: int, version: int, error: E
) -> None:
    """TXN-MARK-03, TXN-MARK-04, TXN-FENCE-02."""
    broker.begin(epoch=5)
    assert mark_error(broker, epoch=epoch, transaction_version=version) is error
    is_open = broker.partition().last_stable_offset == 0
    assert is_open is (error is not E.NONE)


def test_a_repeated_marker_is_written_again(broker: Transactional) -> None:
    """TXN-MARK-03: its epoch equals the partition's, and nothing is open."""
    broker.begin()
    for _ in range(2):
        assert mark_error(broker, epoch=1, transaction_version=2) is E.NONE
    assert [each.is_control for each in batches(broker)] == [False, True, True]


def test_the_largest_epoch_may_be_that_of_the_transaction(broker: Transactional) -> None:
    """TXN-MARK-03: KAFKA-20090."""
    broker.begin(epoch=EPOCH_MAX)
    assert mark_error(broker, epoch=EPOCH_MAX, transaction_version=2) is E.NONE


@pytest.mark.parametrize("is_open", [False, True])
def test_an_earlier_coordinator_is_fenced(broker: Transactional, is_open: bool) -> None:
    """TXN-MARK-05."""
    mark_error(broker, coordinator_epoch=7)
    if is_open:
        broker.begin()
    assert mark_error(broker, coordinator_epoch=6) is E.TRANSACTION_COORDINATOR_FENCED
    assert mark_error(broker, coordinator_epoch=7) is E.NONE


def test_a_marker_of_an_unknown_producer_is_remembered(broker: Transactional) -> None:
    """TXN-MARK-06, TXN-PART-03."""
    mark_error(broker, epoch=2, coordinator_epoch=3)
    (known,) = log_of(broker).producer_states.active_producers()
    assert (known.producer_id, known.producer_epoch, known.coordinator_epoch) == (PRODUCER, 2, 3)
    assert log_of(broker).aborted_transactions(Offset(0), Offset(1)) == []


def test_an_abort_enters_the_index_only_with_data(broker: Transactional) -> None:
    """TXN-PART-02, TXN-PART-03: entries of a story that 4.3.1 was seen to write."""
    for producer_id in (10, 11, 12):
        broker.begin(producer_id=producer_id)
    broker.mark(producer_id=11, is_commit=False, epoch=1, transaction_version=2)
    broker.mark(producer_id=13, is_commit=False)
    broker.mark(producer_id=10, is_commit=False, epoch=1, transaction_version=2)
    broker.mark(producer_id=12, is_commit=False, epoch=1, transaction_version=2)
    assert log_of(broker).aborted_transactions(Offset(0), Offset(9)) == [
        (11, 1, 3, 0),
        (10, 0, 5, 2),
        (12, 2, 6, 7),
    ]


def test_an_operator_finds_and_aborts_a_hanging_transaction(broker: Transactional) -> None:
    """TXN-ADMIN-04: `kafka-transactions abort`: the entry's epochs, transaction version 0."""
    broker.begin(epoch=4)
    topics = [TopicRequest(name="t", partition_indexes=[0])]
    request = DescribeProducersRequest(topics=topics)
    answer = describe_producers.handle(broker.broker, broker.context(0), request)
    (found,) = answer.topics[0].partitions[0].active_producers
    assert (found.current_txn_start_offset, found.coordinator_epoch) == (0, -1)
    error = mark_error(
        broker,
        is_commit=False,
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        coordinator_epoch=max(0, found.coordinator_epoch),
    )
    assert error is E.NONE
    assert broker.partition().last_stable_offset == 2
