"""WriteTxnMarkers: which markers are appended, what is answered, and when.

Ids are those of docs/KIPS.md.
"""

import pytest

from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersResponse,
)
from tests.broker.replication.leading import TOPIC
from tests.broker.small_broker import partition_image
from tests.broker.transactional import PRODUCER, Transactional, marked


@pytest.fixture
def broker() -> Transactional:
    return Transactional()


def error_of(waiting: object) -> E:
    (result,) = marked(waiting)  # type: ignore[arg-type]  # a `Waiting`
    return result[3]


def test_the_results_of_one_producer_are_merged(broker: Transactional) -> None:
    markers = [
        WritableTxnMarker(
            producer_id=producer_id,
            transaction_result=True,
            topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[number])],
        )
        for producer_id, number in ((PRODUCER, 0), (11, 0), (PRODUCER, 1))
    ]
    assert marked(broker.write_markers(*markers)) == [
        (PRODUCER, TOPIC, 0, E.NONE),
        (PRODUCER, TOPIC, 1, E.NONE),
        (11, TOPIC, 0, E.NONE),
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_nothing_to_mark_is_answered(broker: Transactional, version: int) -> None:
    """TXN-MARK-14."""
    assert broker.write_markers(version=version).answer == WriteTxnMarkersResponse()
    without = WritableTxnMarker(producer_id=PRODUCER, transaction_result=True)
    assert broker.write_markers(without, version=version).answer == WriteTxnMarkersResponse()


def test_partitions_of_others_are_refused_each(broker: Transactional) -> None:
    """TXN-MARK-08."""
    broker = Transactional(
        partition_image(0),
        partition_image(1, leader=2, replicas=(2, 1)),
        partition_image(2, leader=2, replicas=(2,)),
    )
    assert marked(broker.mark(0, 1, 2, 3)) == [
        (PRODUCER, TOPIC, 0, E.NONE),
        (PRODUCER, TOPIC, 1, E.NOT_LEADER_OR_FOLLOWER),
        (PRODUCER, TOPIC, 2, E.UNKNOWN_TOPIC_OR_PARTITION),
        (PRODUCER, TOPIC, 3, E.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_markers_are_answered_when_the_isr_has_them() -> None:
    """TXN-MARK-07: below the minimum they are not appended."""
    broker = Transactional(
        partition_image(0, replicas=(1, 2, 3), isr=(1, 2)), config={"min.insync.replicas": "2"}
    )
    marker = broker.mark()
    assert marker.is_parked
    assert broker.partition().log_end_offset == 1
    broker.fetch(1)
    assert error_of(marker) is E.NONE
    broker.change(isr=(1,))
    assert error_of(broker.mark()) is E.NOT_ENOUGH_REPLICAS
    assert broker.partition().log_end_offset == 1


def test_markers_that_the_isr_does_not_get_time_out() -> None:
    """TXN-MARK-07, TXN-MARK-10: with an error that the coordinator retries."""
    broker = Transactional(partition_image(0, replicas=(1, 2)), partition_image(1))
    marker = broker.mark(0, 1)
    broker.pass_time(29_999)
    assert marker.is_parked
    broker.pass_time(1)
    assert [each[2:] for each in marked(marker)] == [(0, E.REQUEST_TIMED_OUT), (1, E.NONE)]
    lost = broker.mark(0)
    broker.change(leader=2, leader_epoch=1)
    assert error_of(lost) is E.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("version", "error"), [(-1, E.UNKNOWN_SERVER_ERROR), (0, E.NONE), (2, E.NONE), (7, E.NONE)]
)
def test_transaction_versions_below_zero_do_not_exist(
    broker: Transactional, version: int, error: E
) -> None:
    """TXN-FEAT-09: what is above 2 counts as 2."""
    assert error_of(broker.mark(epoch=1, transaction_version=version)) is error


def test_version_1_of_the_request_means_transaction_version_0(broker: Transactional) -> None:
    """TXN-FEAT-09: the epoch of the data ends the transaction."""
    broker.begin()
    marker = WritableTxnMarker(
        producer_id=PRODUCER,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
    )
    assert error_of(broker.write_markers(marker, version=1)) is E.NONE
