"""DescribeTransactions, API key 65: the state of transactional ids (KIP-664)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import (
    TIMEOUT_MS,
    begun,
    ended,
    new_producer,
    written_in,
)
from kraft_wire.wire.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_STATE: Final = "transaction_states[0]"


def _describe(broker: Subject, version: int, *names: str) -> DescribeTransactionsResponse:
    request = DescribeTransactionsRequest(transactional_ids=list(names))
    return broker.ask(request, version, DescribeTransactionsResponse)


@case("DescribeTransactions", "KIP-664")
def producer_without_a_transaction(broker: Subject, version: int) -> None:
    """A producer without a transaction is Empty.

    Start a producer, describe it.
    """
    producer = new_producer(broker)
    answer = _describe(broker, version, producer.transactional_id)
    expect.error(answer, f"{_STATE}.error_code", ErrorCode.NONE)
    expect.equal(answer, f"{_STATE}.transaction_state", "Empty")
    expect.equal(answer, f"{_STATE}.producer_id", producer.producer_id)
    expect.equal(answer, f"{_STATE}.producer_epoch", producer.epoch)
    expect.equal(answer, f"{_STATE}.transaction_timeout_ms", TIMEOUT_MS)
    expect.equal(answer, f"{_STATE}.transaction_start_time_ms", -1)
    expect.equal(answer, f"{_STATE}.topics", [])


@case("DescribeTransactions", "KIP-664")
def open_transaction(broker: Subject, version: int) -> None:
    """An open transaction is Ongoing, and has its partitions and its start time.

    Begin a transaction with a partition, describe it.
    """
    topic, producer = broker.topic(), new_producer(broker)
    begun(broker, producer, topic)
    answer = _describe(broker, version, producer.transactional_id)
    expect.equal(answer, f"{_STATE}.transaction_state", "Ongoing")
    expect.equal(answer, f"{_STATE}.topics[0].topic", topic.name)
    expect.equal(answer, f"{_STATE}.topics[0].partitions", [0])
    started = answer.transaction_states[0].transaction_start_time_ms
    path = f"{_STATE}.transaction_start_time_ms"
    expect.true(started > 0, "a time", started, path)


@case("DescribeTransactions", "KIP-664")
def ended_transactions(broker: Subject, version: int) -> None:
    """Ended transactions are CompleteCommit or CompleteAbort, and have no partitions.

    Commit one transaction and abort another, describe both.
    """
    topic, first, second = broker.topic(), new_producer(broker), new_producer(broker)
    for producer, committed in ((first, True), (second, False)):
        written_in(broker, producer, topic)
        ended(broker, producer, committed=committed)
        answer = _describe(broker, version, producer.transactional_id)
        wanted = "CompleteCommit" if committed else "CompleteAbort"
        expect.equal(answer, f"{_STATE}.transaction_state", wanted)
        expect.equal(answer, f"{_STATE}.topics", [])


@case("DescribeTransactions", "KIP-664")
def unknown_transactional_id(broker: Subject, version: int) -> None:
    """A transactional id without a producer is TRANSACTIONAL_ID_NOT_FOUND.

    Describe a new name.
    """
    new_producer(broker)
    answer = _describe(broker, version, broker.transactional_id())
    expect.error(answer, f"{_STATE}.error_code", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


@case("DescribeTransactions", "kafka.server.KafkaApis, handleDescribeTransactionsRequest")
def empty_transactional_id(broker: Subject, version: int) -> None:
    """An empty transactional id is refused with INVALID_REQUEST.

    Describe the name "".
    """
    new_producer(broker)
    answer = _describe(broker, version, "")
    expect.error(answer, f"{_STATE}.error_code", ErrorCode.INVALID_REQUEST)


@case("DescribeTransactions", "KIP-664")
def several_transactional_ids(broker: Subject, version: int) -> None:
    """Transactional ids are described in the order of the request, each on its own.

    Describe an id that does not exist, and one that does.
    """
    absent, producer = broker.transactional_id(), new_producer(broker)
    names = [absent, producer.transactional_id]
    answer = _describe(broker, version, *names)
    found = [(each.transactional_id, each.error_code) for each in answer.transaction_states]
    wanted = [(absent, int(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)), (names[1], 0)]
    expect.true(found == wanted, str(wanted), found, "transaction_states")
