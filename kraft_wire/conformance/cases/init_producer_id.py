"""InitProducerId, API key 22: ids of idempotent producers (KIP-98, KIP-360)."""

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


def _request() -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


@case("InitProducerId", "KIP-98, InitPidRequest", until=5)
def new_producer(broker: Subject, version: int) -> None:
    """An idempotent producer gets an id and epoch 0.

    Ask without a transactional id.
    """
    broker.producer()
    answer = broker.ask(_request(), version, InitProducerIdResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.true(answer.producer_id >= 0, "an id", answer.producer_id, "producer_id")
    expect.equal(answer, "producer_epoch", 0)


@case("InitProducerId", "KIP-98, InitPidRequest", until=5)
def ids_are_unique(broker: Subject, version: int) -> None:
    """Every producer gets an id of its own.

    Ask three times.
    """
    broker.producer()
    answers = [broker.ask(_request(), version, InitProducerIdResponse) for _ in range(3)]
    ids = {each.producer_id for each in answers}
    expect.true(len(ids) == 3, "three ids", ids, "producer_id")


@case("InitProducerId", "kafka.coordinator.transaction.TransactionCoordinator", until=5)
def empty_transactional_id(broker: Subject, version: int) -> None:
    """An empty transactional id is refused with INVALID_REQUEST.

    Ask with the transactional id "".
    """
    request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000)
    answer = broker.ask(request, version, InitProducerIdResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("InitProducerId", "KIP-360", since=3, until=5)
def epoch_without_id(broker: Subject, version: int) -> None:
    """A producer epoch without a producer id is refused with INVALID_REQUEST.

    Ask with producer id -1 and epoch 3.
    """
    request = _request()
    request.producer_epoch = 3
    answer = broker.ask(request, version, InitProducerIdResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_REQUEST)


@case("InitProducerId", "KIP-98, InitPidRequest", until=5)
def transaction_timeout(broker: Subject, version: int) -> None:
    """A transaction timeout that is not positive is refused with INVALID_TRANSACTION_TIMEOUT.

    Ask for a transactional id with a timeout of 0.
    """
    request = InitProducerIdRequest(
        transactional_id=broker.name("transaction"), transaction_timeout_ms=0
    )
    answer = broker.ask(request, version, InitProducerIdResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_TRANSACTION_TIMEOUT)
