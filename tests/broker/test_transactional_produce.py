"""Which partitions of a transactional request the coordinator is asked about, and when again."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import pytest

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.handlers import produce
from kraft_wire.broker.metadata.metadata_cache import ADMIN_CLIENT
from kraft_wire.broker.producing.transaction_verifier import offset_commit_error, produce_error
from kraft_wire.broker.producing.transactional_produce import (
    is_transactional,
    several_producers,
    transactional_batches,
)
from kraft_wire.model import ANONYMOUS, TopicPartition, Uuid
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.replication.leading import TOPIC, Waiting, batch
from tests.broker.small_broker import id_of
from tests.broker.transactional import (
    OFFSETS,
    PRODUCER,
    TRANSACTIONAL_ID,
    Transactional,
    errors_of,
)

PLAIN = bytes(batch())
TRANSACTION = bytes(
    batch(is_transactional=True, producer_id=PRODUCER, producer_epoch=0, base_sequence=0)
)
WITHOUT_ID = bytes(batch(is_transactional=True))
IDEMPOTENT = bytes(batch(producer_id=PRODUCER, producer_epoch=0, base_sequence=0))


def topic(name: str, *records: Any, first: int = 0, topic_id: Uuid | None = None) -> Any:
    data = [
        PartitionProduceData(index=index, records=each)
        for index, each in enumerate(records, start=first)
    ]
    return TopicProduceData(name=name, topic_id=topic_id or id_of(name), partition_data=data)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (None, False),
        (b"", False),
        (PLAIN, False),
        (IDEMPOTENT, False),
        (TRANSACTION, True),
        (WITHOUT_ID, True),
        (bytearray(TRANSACTION), True),
        (memoryview(TRANSACTION), True),
        (TRANSACTION[:22], False),
        (TRANSACTION[:23], True),
        (TRANSACTION[:16] + b"\1" + TRANSACTION[17:], False),
    ],
)
def test_first_header_says_whether_records_are_transactional(records: Any, expected: bool) -> None:
    for before in ((), (PLAIN,), (None, PLAIN)):
        assert is_transactional([topic("a", *before), topic("b", *before, records)]) is expected
        assert is_transactional([topic("a", *before, records), topic("b", PLAIN)]) is expected
    assert not is_transactional([])


def test_batches_of_partitions_that_may_be_added_are_found_whatever_is_before_them() -> None:
    broker = Transactional()
    rest = [None, TRANSACTION[:-1], PLAIN, IDEMPOTENT, WITHOUT_ID, TRANSACTION]
    broker.partitions = {
        number: broker.partitions[0]._replace(partition=number) for number in range(len(rest))
    }
    broker.publish()
    topics = [
        topic(OFFSETS, TRANSACTION),
        topic("unknown", TRANSACTION),
        topic(TOPIC, TRANSACTION, first=9),
        topic(TOPIC, *rest),
    ]
    name = TopicPartition(TOPIC, len(rest) - 1)
    for version, by_id in ((12, False), (13, True)):
        context = broker.context(version)
        found = transactional_batches(broker.broker, context, topics, by_id=by_id)
        assert {each: bytes(one.view) for each, one in found.items()} == {name: TRANSACTION}
    admin = RequestContext(1, 1, 12, 0, 0, ADMIN_CLIENT, "127.0.0.1", "PLAINTEXT", ANONYMOUS)
    found = transactional_batches(broker.broker, admin, topics, by_id=False)
    assert list(found) == [TopicPartition(OFFSETS, 0), name]


def test_producers_differ_by_id_or_epoch() -> None:
    def of(*producers: tuple[int, int]) -> Mapping[TopicPartition, Any]:
        return {
            TopicPartition(TOPIC, index): parse_batches(
                batch(producer_id=each[0], producer_epoch=each[1], base_sequence=index)
            )[0]
            for index, each in enumerate(producers)
        }

    assert [several_producers(of(*each)) for each in ([], [(1, 2)], [(1, 2), (1, 2)])] == [
        False
    ] * 3
    assert [several_producers(of((1, 2), each)) for each in ((1, 3), (2, 2))] == [True] * 2


def test_partitions_of_several_topics_are_asked_about_in_one_question() -> None:
    """Behind an internal topic, which is refused."""
    broker = Transactional()
    request = ProduceRequest(
        transactional_id=TRANSACTIONAL_ID,
        acks=-1,
        topic_data=[topic(OFFSETS, TRANSACTION), topic(TOPIC, TRANSACTION, TRANSACTION)],
    )
    context = broker.context(12)
    sent = Waiting(broker, context, produce.handle(broker.broker, context, request))
    (question,) = broker.answer()
    assert [(each.name, each.partitions) for each in question.topics] == [(TOPIC, [0, 1])]
    assert question.verify_only is False
    assert errors_of(sent) == [E.INVALID_TOPIC_EXCEPTION, E.NONE, E.NONE]


@pytest.mark.parametrize("version", [11, 12])
def test_question_is_repeated_for_newer_clients_up_to_the_longest_backoff(version: int) -> None:
    """`add.partitions.to.txn.retry.backoff.ms` and `.max.ms`, in the clock of the request."""
    broker = Transactional(
        add_partitions_to_txn_retry_backoff_ms=20, add_partitions_to_txn_retry_backoff_max_ms=100
    )
    sent = broker.send(version=version)
    attempts = 0
    while sent.is_parked:
        broker.answer(E.CONCURRENT_TRANSACTIONS)
        attempts += 1
        assert broker.questions() == []
        if sent.is_parked:
            broker.pass_time(19)
            assert broker.questions() == []
            broker.pass_time(1)
    expected = (6, E.CONCURRENT_TRANSACTIONS) if version >= 12 else (1, E.NOT_ENOUGH_REPLICAS)
    assert (attempts, errors_of(sent)) == (expected[0], [expected[1]])


UNVERIFIED = "Unable to verify the partition has been added to the transaction. Underlying error: "
NOT_ADDED = "Partition was not added to the transaction"


@pytest.mark.parametrize(
    ("error", "version", "expected"),
    [
        (E.NETWORK_EXCEPTION, 12, (E.NOT_ENOUGH_REPLICAS, UNVERIFIED + "NETWORK_EXCEPTION")),
        (E.NOT_COORDINATOR, 12, (E.NOT_ENOUGH_REPLICAS, UNVERIFIED + "NOT_COORDINATOR")),
        (
            E.COORDINATOR_NOT_AVAILABLE,
            3,
            (E.NOT_ENOUGH_REPLICAS, UNVERIFIED + "COORDINATOR_NOT_AVAILABLE"),
        ),
        (
            E.COORDINATOR_LOAD_IN_PROGRESS,
            3,
            (E.NOT_ENOUGH_REPLICAS, UNVERIFIED + "COORDINATOR_LOAD_IN_PROGRESS"),
        ),
        (
            E.CONCURRENT_TRANSACTIONS,
            11,
            (E.NOT_ENOUGH_REPLICAS, UNVERIFIED + "CONCURRENT_TRANSACTIONS"),
        ),
        (E.CONCURRENT_TRANSACTIONS, 12, (E.CONCURRENT_TRANSACTIONS, None)),
        (E.PRODUCER_FENCED, 12, (E.INVALID_PRODUCER_EPOCH, None)),
        (E.TRANSACTION_ABORTABLE, 10, (E.INVALID_TXN_STATE, NOT_ADDED)),
        (E.TRANSACTION_ABORTABLE, 11, (E.TRANSACTION_ABORTABLE, None)),
        (E.INVALID_TXN_STATE, 12, (E.INVALID_TXN_STATE, NOT_ADDED)),
        (E.INVALID_PRODUCER_ID_MAPPING, 3, (E.INVALID_PRODUCER_ID_MAPPING, None)),
    ],
)
def test_error_of_the_coordinator_in_a_produce_response(
    error: E, version: int, expected: tuple[E, str | None]
) -> None:
    """`ReplicaManager.handleProduceAppend` of 4.3.1."""
    assert produce_error(error, version) == expected


@pytest.mark.parametrize(
    ("error", "version", "expected"),
    [
        (E.NETWORK_EXCEPTION, 5, E.COORDINATOR_LOAD_IN_PROGRESS),
        (E.PRODUCER_FENCED, 5, E.INVALID_PRODUCER_EPOCH),
        (E.TRANSACTION_ABORTABLE, 3, E.INVALID_TXN_STATE),
        (E.TRANSACTION_ABORTABLE, 4, E.TRANSACTION_ABORTABLE),
        (E.CONCURRENT_TRANSACTIONS, 5, E.CONCURRENT_TRANSACTIONS),
        (E.NOT_COORDINATOR, 3, E.NOT_COORDINATOR),
    ],
)
def test_error_of_the_coordinator_in_an_offset_commit_response(
    error: E, version: int, expected: E
) -> None:
    assert offset_commit_error(error, version) is expected


def test_batch_of_the_lowest_producer_id_is_transactional() -> None:
    """The first id of a cluster is 0."""
    broker = Transactional()
    data = bytearray(TRANSACTION)
    struct.pack_into(">q", data, 43, 0)
    topics = [topic(TOPIC, bytes(data))]
    found = transactional_batches(broker.broker, broker.context(12), topics, by_id=False)
    assert [one.producer_id for one in found.values()] == [0]
