"""InitProducerId, API key 22: ids of idempotent producers (KIP-98, KIP-360)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import new_producer as started
from kraft_wire.conformance.transactions import written_in
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_RECOVERS_SINCE: Final = 3
_FENCED_SINCE: Final = 4


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
    """Every producer gets a unique id.

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


def _start(
    broker: Subject, version: int, name: str, producer: tuple[int, int] = (-1, -1)
) -> InitProducerIdResponse:
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    if version >= _RECOVERS_SINCE:
        request.producer_id, request.producer_epoch = producer
    return broker.ask(request, version, InitProducerIdResponse)


@case("InitProducerId", "KIP-98, InitPidRequest", until=5)
def transactional_id_starts_again(broker: Subject, version: int) -> None:
    """A transactional id keeps its producer id, and its epoch increases with each start.

    Start a producer three times.
    """
    first = started(broker)
    for epoch in (first.epoch + 1, first.epoch + 2):
        answer = _start(broker, version, first.transactional_id)
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "producer_id", first.producer_id)
        expect.equal(answer, "producer_epoch", epoch)


@case("InitProducerId", "KIP-360", since=3, until=5)
def producer_recovers(broker: Subject, version: int) -> None:
    """A producer with its id and epoch gets the next epoch, also when it retries.

    Start a producer, recover with its epoch, then again with the one before.
    """
    first = started(broker)
    for _ in range(2):
        known = first.producer_id, first.epoch
        answer = _start(broker, version, first.transactional_id, known)
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "producer_id", first.producer_id)
        expect.equal(answer, "producer_epoch", first.epoch + 1)


@case("InitProducerId", "KIP-360", since=3, until=5)
def fenced_producer_recovers(broker: Subject, version: int) -> None:
    """A producer with an older epoch, or with another id, is refused.

    Start a producer three times, recover with the first epoch; with the next id.
    """
    first = started(broker)
    name = first.transactional_id
    for _ in range(2):
        started(broker, name)
    is_new = version >= _FENCED_SINCE
    code = ErrorCode.PRODUCER_FENCED if is_new else ErrorCode.INVALID_PRODUCER_EPOCH
    for known in ((first.producer_id, first.epoch), (first.producer_id + 1, first.epoch + 2)):
        answer = _start(broker, version, name, known)
        expect.error(answer, "error_code", code)
        expect.equal(answer, "producer_id", -1)
        expect.equal(answer, "producer_epoch", -1)


@case("InitProducerId", "KIP-98, InitPidRequest", until=5)
def open_transaction_is_aborted(broker: Subject, version: int) -> None:
    """A restart of a producer aborts its open transaction first, with a newer epoch.

    Begin a transaction, start again: CONCURRENT_TRANSACTIONS, or the newer epoch at once.
    """
    topic, producer = broker.topic(), started(broker)
    written_in(broker, producer, topic)
    answer = _start(broker, version, producer.transactional_id)
    if answer.error_code == ErrorCode.NONE:
        is_newer = answer.producer_epoch > producer.epoch
        is_other = answer.producer_id != producer.producer_id
        seen = answer.producer_epoch
        expect.true(is_newer or is_other, "a newer epoch", seen, "producer_epoch")
    at_once = int(ErrorCode.NONE)
    code = int(ErrorCode.CONCURRENT_TRANSACTIONS)
    expect.one_of(answer, "error_code", code, at_once)
    expect.as_release(answer.error_code == code, "CONCURRENT_TRANSACTIONS", "NONE", "error_code")


@case("InitProducerId", "kafka.coordinator.transaction.TransactionCoordinator", until=5)
def longest_transaction_timeout(broker: Subject, version: int) -> None:
    """A transaction timeout above the broker's limit is INVALID_TRANSACTION_TIMEOUT.

    Ask for a transactional id with the largest timeout.
    """
    request = InitProducerIdRequest(
        transactional_id=broker.transactional_id(), transaction_timeout_ms=(1 << 31) - 1
    )
    answer = broker.ask(request, version, InitProducerIdResponse)
    expect.error(answer, "error_code", ErrorCode.INVALID_TRANSACTION_TIMEOUT)
