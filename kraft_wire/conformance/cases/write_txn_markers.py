"""WriteTxnMarkers, API key 27: a coordinator has partitions end a transaction (KIP-98)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import LATEST, list_offsets
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import new_producer, written_in
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_SOURCE: Final = "kafka.server.KafkaApis, handleWriteTxnMarkersRequest"
_CODE: Final = "markers[0].topics[0].partitions[0].error_code"
_NEWEST: Final = 11


def _write(
    broker: Subject, version: int, producer: tuple[int, int], topic: str, *partitions: int
) -> WriteTxnMarkersResponse:
    marker = WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(partitions or (0,)))],
        coordinator_epoch=0,
    )
    return broker.ask(WriteTxnMarkersRequest(markers=[marker]), version, WriteTxnMarkersResponse)


@case("WriteTxnMarkers", _SOURCE)
def marker_of_an_open_transaction(broker: Subject, version: int) -> None:
    """A marker ends a partition's transaction, and has an offset.

    Write a record in a transaction, write its marker, ask for the latest offsets.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    answer = _write(broker, version, (producer.producer_id, producer.epoch), topic.name)
    expect.error(answer, _CODE, ErrorCode.NONE)
    for isolation in (0, 1):
        request = list_offsets(topic, LATEST, isolation_level=isolation)
        found = broker.prepare(request, ListOffsetsResponse, until=_NEWEST)
        expect.equal(found, "topics[0].partitions[0].offset", 2)


@case("WriteTxnMarkers", _SOURCE)
def marker_without_a_transaction(broker: Subject, version: int) -> None:
    """A marker of a producer without records is appended.

    Write a marker, ask for the latest offset.
    """
    topic, producer = broker.topic(), new_producer(broker)
    answer = _write(broker, version, (producer.producer_id, producer.epoch), topic.name)
    expect.error(answer, _CODE, ErrorCode.NONE)
    found = broker.prepare(list_offsets(topic, LATEST), ListOffsetsResponse, until=_NEWEST)
    expect.equal(found, "topics[0].partitions[0].offset", 1)


@case("WriteTxnMarkers", _SOURCE)
def older_epoch(broker: Subject, version: int) -> None:
    """A marker of an older epoch than the partition's is INVALID_PRODUCER_EPOCH.

    Write a record with epoch 1 in a transaction, write a marker of epoch 0.
    """
    topic, first = broker.topic(), new_producer(broker)
    second = new_producer(broker, first.transactional_id)
    written_in(broker, second, topic)
    answer = _write(broker, version, (first.producer_id, second.epoch - 1), topic.name)
    expect.error(answer, _CODE, ErrorCode.INVALID_PRODUCER_EPOCH)


@case("WriteTxnMarkers", _SOURCE)
def unknown_partitions(broker: Subject, version: int) -> None:
    """Partitions that do not exist are UNKNOWN_TOPIC_OR_PARTITION.

    Write markers to a partition that a topic does not have, and to a topic that does not exist.
    """
    topic, producer = broker.topic(), new_producer(broker)
    for name, partition in ((topic.name, 4), (broker.name(), 0)):
        answer = _write(broker, version, (producer.producer_id, producer.epoch), name, partition)
        expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("WriteTxnMarkers", _SOURCE)
def nothing_to_write(broker: Subject, version: int) -> None:
    """A request without markers has a response without markers.

    Send no marker.
    """
    answer = broker.ask(WriteTxnMarkersRequest(markers=[]), version, WriteTxnMarkersResponse)
    expect.equal(answer, "markers", [])
