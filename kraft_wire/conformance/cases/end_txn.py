"""EndTxn, API key 26: a producer commits or aborts (KIP-98, KIP-890)."""

import time
from dataclasses import replace
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.internal_topics import (
    BODY_AT,
    internal_topic,
    type_of,
    values_since,
)
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import (
    Producer,
    await_end,
    begun,
    ended,
    new_producer,
    written_in,
)
from kraft_wire.wire.generated.end_txn import EndTxnRequest, EndTxnResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.transaction_log_value import TransactionLogValue

_SOURCE: Final = "org.apache.kafka.coordinator.transaction.TransactionCoordinator, endTransaction"
_FENCED_SINCE: Final = 2
_PREPARED_COMMIT, _COMMITTED = 2, 4
_CLOCKS_DIFFER_MS: Final = 3_600_000
_ABORTED_WITHIN_S: Final = 15
"""Brokers look for transactions that are too old every ten seconds."""


def _end(
    broker: Subject, version: int, producer: Producer, *, committed: bool = True, epoch: int = 0
) -> EndTxnResponse:
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch + epoch,
        committed=committed,
    )
    return broker.ask(request, version, EndTxnResponse)


@case("EndTxn", _SOURCE)
def commit(broker: Subject, version: int) -> None:
    """A transaction with a record is committed; from version 5 on the epoch increases.

    Write a record in a transaction, commit.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    answer = _end(broker, version, producer)
    expect.error(answer, "error_code", ErrorCode.NONE)
    if version >= 5:
        expect.equal(answer, "producer_epoch", producer.epoch + 1)


@case("EndTxn", _SOURCE)
def abort(broker: Subject, version: int) -> None:
    """A transaction with a record is aborted.

    Write a record in a transaction, abort.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    answer = _end(broker, version, producer, committed=False)
    expect.error(answer, "error_code", ErrorCode.NONE)


@case("EndTxn", _SOURCE)
def nothing_to_commit(broker: Subject, version: int) -> None:
    """A commit without a transaction is refused with INVALID_TXN_STATE.

    Start a producer, commit.
    """
    answer = _end(broker, version, new_producer(broker))
    expect.error(answer, "error_code", ErrorCode.INVALID_TXN_STATE)


@case("EndTxn", _SOURCE)
def nothing_to_abort(broker: Subject, version: int) -> None:
    """An abort without a transaction is refused below version 5, and later increases the epoch.

    Start a producer, abort.
    """
    answer = _end(broker, version, new_producer(broker), committed=False)
    wanted = ErrorCode.NONE if version >= 5 else ErrorCode.INVALID_TXN_STATE
    expect.error(answer, "error_code", wanted)


@case("EndTxn", _SOURCE, until=4)
def committed_again(broker: Subject, version: int) -> None:
    """A repeated commit succeeds, and an abort after it is INVALID_TXN_STATE.

    Write a record in a transaction, commit, wait for the end, commit again, abort.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    ended(broker, producer, committed=True)
    expect.error(_end(broker, version, producer), "error_code", ErrorCode.NONE)
    answer = _end(broker, version, producer, committed=False)
    expect.error(answer, "error_code", ErrorCode.INVALID_TXN_STATE)


@case("EndTxn", _SOURCE, until=4)
def aborted_again(broker: Subject, version: int) -> None:
    """A repeated abort succeeds, and a commit after it is INVALID_TXN_STATE.

    Write a record in a transaction, abort, wait for the end, abort again, commit.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    ended(broker, producer, committed=False)
    answer = _end(broker, version, producer, committed=False)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.error(_end(broker, version, producer), "error_code", ErrorCode.INVALID_TXN_STATE)


@case("EndTxn", _SOURCE)
def older_epoch(broker: Subject, version: int) -> None:
    """An older epoch is PRODUCER_FENCED, below version 2 INVALID_PRODUCER_EPOCH.

    Start a producer twice, commit with the first epoch.
    """
    first = new_producer(broker)
    new_producer(broker, first.transactional_id)
    is_new = version >= _FENCED_SINCE
    wanted = ErrorCode.PRODUCER_FENCED if is_new else ErrorCode.INVALID_PRODUCER_EPOCH
    expect.error(_end(broker, version, first), "error_code", wanted)


@case("EndTxn", _SOURCE)
def newer_epoch(broker: Subject, version: int) -> None:
    """An unknown epoch is refused.

    Start a producer, commit with the next epoch.
    """
    answer = _end(broker, version, new_producer(broker), epoch=1)
    is_new = version >= _FENCED_SINCE
    wanted = ErrorCode.PRODUCER_FENCED if is_new else ErrorCode.INVALID_PRODUCER_EPOCH
    expect.error(answer, "error_code", wanted)


@case("EndTxn", _SOURCE)
def other_producer_id(broker: Subject, version: int) -> None:
    """A producer id of another transactional id is INVALID_PRODUCER_ID_MAPPING.

    Start a producer, commit with the next producer id.
    """
    own = new_producer(broker)
    other = Producer(own.transactional_id, own.producer_id + 1, own.epoch)
    expect.error(_end(broker, version, other), "error_code", ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@case("EndTxn", _SOURCE)
def unknown_transactional_id(broker: Subject, version: int) -> None:
    """A transactional id without a producer is INVALID_PRODUCER_ID_MAPPING.

    Commit under a new name.
    """
    new_producer(broker)
    unknown = Producer(broker.transactional_id(), 0, 0)
    expect.error(
        _end(broker, version, unknown), "error_code", ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )


@case("EndTxn", _SOURCE)
def empty_transactional_id(broker: Subject, version: int) -> None:
    """An empty transactional id is refused with INVALID_REQUEST.

    Commit under the name "".
    """
    expect.error(_end(broker, version, Producer("", 0, 0)), "error_code", ErrorCode.INVALID_REQUEST)


@case("EndTxn", "KIP-98, transaction.timeout.ms", since=5)
def transaction_that_times_out(broker: Subject, version: int) -> None:
    """A transaction that runs for longer than its timeout is aborted, and is over for its producer.

    Begin a transaction with a timeout of one second, wait until it is aborted, commit it.
    """
    name, topic = broker.transactional_id(), broker.topic()
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1_000)
    for _ in broker.attempts(f"a producer id for {name}"):
        given = broker.prepare(request, InitProducerIdResponse, until=5)
        if given.error_code == ErrorCode.NONE:
            break
    producer = Producer(name, given.producer_id, given.producer_epoch)
    begun(broker, producer, topic)
    await_end(broker, name, _ABORTED_WITHIN_S)
    answer = _end(broker, version, producer)
    expect.error(answer, "error_code", ErrorCode.INVALID_TXN_STATE)


@case("EndTxn", "KIP-890, Bumping Epoch on Each Transaction", since=5)
def epoch_of_an_older_transaction(broker: Subject, version: int) -> None:
    """A retry with the epoch of the last transaction succeeds, one before it is PRODUCER_FENCED.

    Commit two transactions, commit again with the epoch of the second, and with that of the first.
    """
    topic, first = broker.topic(), new_producer(broker)
    last = producer = first
    for _ in range(2):
        written_in(broker, producer, topic)
        answer = _end(broker, version, producer)
        expect.error(answer, "error_code", ErrorCode.NONE)
        await_end(broker, producer.transactional_id)
        last, producer = producer, replace(producer, epoch=answer.producer_epoch)
    expect.error(_end(broker, version, last), "error_code", ErrorCode.NONE)
    expect.error(_end(broker, version, first), "error_code", ErrorCode.PRODUCER_FENCED)


@case("EndTxn", "TransactionLogValue.json", since=4)
def record_of_a_committed_transaction(broker: Subject, version: int) -> None:
    """The log of transactions has the producer and the times of a committed transaction.

    Commit a transaction with a record, read what was written to __transaction_state.
    """
    topic, producer = broker.topic(), new_producer(broker)
    before_ms = int(time.time() * 1000) - _CLOCKS_DIFFER_MS
    written_in(broker, producer, topic)
    log = internal_topic(broker, "__transaction_state")
    expect.error(_end(broker, version, producer), "error_code", ErrorCode.NONE)
    await_end(broker, producer.transactional_id)
    name = producer.transactional_id.encode()
    states = [
        TransactionLogValue.decode(value, type_of(value), BODY_AT)[0]
        for key, value in values_since(broker, log)
        if key.endswith(name)
    ]
    seen = [each.transaction_status for each in states]
    expect.true(seen == [_PREPARED_COMMIT, _COMMITTED], "a prepared and a complete commit", seen)
    for each in states:
        expect.true(each.producer_id == producer.producer_id, str(producer.producer_id), each)
        times = each.transaction_start_timestamp_ms, each.transaction_last_update_timestamp_ms
        expect.true(before_ms < times[0] <= times[1], f"times after {before_ms}", times)
