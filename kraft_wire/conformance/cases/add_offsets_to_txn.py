"""AddOffsetsToTxn, API key 25: a group's offsets join a transaction (KIP-98)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import Producer, new_producer
from kraft_wire.wire.generated.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "kafka.server.KafkaApis, handleAddOffsetsToTxnRequest"
_FENCED_SINCE: Final = 2


def _answered(broker: Subject, version: int, producer: Producer, code: ErrorCode) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        group_id=broker.group(),
    )
    answer = broker.ask(request, version, AddOffsetsToTxnResponse)
    expect.error(answer, "error_code", code)


@case("AddOffsetsToTxn", "KIP-98, AddOffsetsToTxnRequest")
def new_group(broker: Subject, version: int) -> None:
    """A group that does not exist yet is added.

    Start a producer, add a new group.
    """
    _answered(broker, version, new_producer(broker), ErrorCode.NONE)


@case("AddOffsetsToTxn", _SOURCE)
def older_epoch(broker: Subject, version: int) -> None:
    """An older epoch is PRODUCER_FENCED, below version 2 INVALID_PRODUCER_EPOCH.

    Start a producer twice, add a group with the first epoch.
    """
    first = new_producer(broker)
    new_producer(broker, first.transactional_id)
    is_new = version >= _FENCED_SINCE
    code = ErrorCode.PRODUCER_FENCED if is_new else ErrorCode.INVALID_PRODUCER_EPOCH
    _answered(broker, version, first, code)


@case("AddOffsetsToTxn", _SOURCE)
def other_producer_id(broker: Subject, version: int) -> None:
    """A producer id of another transactional id is INVALID_PRODUCER_ID_MAPPING.

    Start a producer, add a group with the next producer id.
    """
    own = new_producer(broker)
    other = Producer(own.transactional_id, own.producer_id + 1, own.epoch)
    _answered(broker, version, other, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@case("AddOffsetsToTxn", _SOURCE)
def unknown_transactional_id(broker: Subject, version: int) -> None:
    """A transactional id without a producer is INVALID_PRODUCER_ID_MAPPING.

    Add a group under a new name.
    """
    new_producer(broker)
    unknown = Producer(broker.transactional_id(), 0, 0)
    _answered(broker, version, unknown, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@case("AddOffsetsToTxn", _SOURCE)
def empty_transactional_id(broker: Subject, version: int) -> None:
    """An empty transactional id is refused with INVALID_REQUEST.

    Add a group under the name "".
    """
    _answered(broker, version, Producer("", 0, 0), ErrorCode.INVALID_REQUEST)
