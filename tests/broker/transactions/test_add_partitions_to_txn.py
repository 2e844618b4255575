"""AddPartitionsToTxn: what clients add, what brokers add and verify, and what is refused."""

from __future__ import annotations

import pytest

from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.coordinating import STATE_TOPIC, TOPIC, Coordinating, Markers


def partitions_of(node: Coordinating, name: str = "tid") -> list[int]:
    return [partition for _, partition in node.entry(name).metadata.partitions]


@pytest.mark.parametrize("version", range(4))
def test_a_client_adds_partitions(node: Coordinating, version: int) -> None:
    producer = node.producer()
    producer.init()
    assert producer.add(2, 0, version=version) == [E.NONE] * 2
    begun = node.entry("tid").metadata
    assert (begun.state.value, begun.start_ms, begun.client_version) == ("Ongoing", node.wall_ms, 0)
    node.advance(5)
    assert producer.add(0, 1, version=version) == [E.NONE] * 2
    assert partitions_of(node) == [2, 0, 1]
    assert node.entry("tid").metadata.start_ms == begun.start_ms
    records = len(node.records("tid"))
    for again in ((1, 2), (0, 1, 2)):
        assert producer.add(*again, version=version) == [E.NONE] * len(again)
        assert len(node.records("tid")) == records, "all are there"


@pytest.mark.parametrize("version", [4, 5])
def test_a_broker_adds_and_verifies_partitions(node: Coordinating, version: int) -> None:
    producer = node.producer()
    producer.init()
    assert producer.implicit(1, version=version, verify_only=True) == [E.TRANSACTION_ABORTABLE]
    assert node.states("tid") == ["Empty"]
    assert producer.implicit(1, version=version) == [E.NONE]
    assert node.entry("tid").metadata.client_version == 2
    answers = producer.implicit(1, 2, version=version, verify_only=True)
    assert answers == [E.NONE, E.TRANSACTION_ABORTABLE]
    assert partitions_of(node) == [1]


@pytest.mark.parametrize(("verify_only", "topics"), [(True, []), (False, ["empty"])])
def test_a_topic_without_partitions_is_in_the_answer_unless_it_is_verified(
    node: Coordinating, verify_only: bool, topics: list[str]
) -> None:
    """4.3.1's `handleVerifyPartitionsInTransaction` answers from the map of partitions."""
    transaction = AddPartitionsToTxnTransaction(
        transactional_id="", verify_only=verify_only, topics=[AddPartitionsToTxnTopic(name="empty")]
    )
    response = node.send(AddPartitionsToTxnRequest(transactions=[transaction]), 5).response
    (result,) = response.results_by_transaction
    assert [each.name for each in result.topic_results] == topics


def test_one_request_has_a_verdict_for_each_transaction(node: Coordinating) -> None:
    first, second = node.producer("a"), node.producer("b")
    first.init()
    second.init()
    second.epoch += 1
    unknown = node.producer("c").transaction(0)
    empty = AddPartitionsToTxnTransaction(
        transactional_id="", topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])]
    )
    request = AddPartitionsToTxnRequest(
        transactions=[first.transaction(0, 1), second.transaction(0), unknown, empty]
    )
    response = node.send(request, 5).response
    found = [
        [
            each.partition_error_code
            for topic in result.topic_results
            for each in topic.results_by_partition
        ]
        for result in response.results_by_transaction
    ]
    assert found == [
        [E.NONE, E.NONE],
        [E.PRODUCER_FENCED],
        [E.INVALID_PRODUCER_ID_MAPPING],
        [E.INVALID_REQUEST],
    ]


def test_a_request_without_transactions_is_answered(node: Coordinating) -> None:
    """4.3.1 never answers it."""
    response = node.send(AddPartitionsToTxnRequest(), 5).response
    assert (response.error_code, response.results_by_transaction) == (E.NONE, [])


@pytest.mark.parametrize("version", range(4))
def test_one_bad_partition_fails_all_of_a_client(node: Coordinating, version: int) -> None:
    producer = node.producer()
    producer.init()
    unknown = [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.add(0, 9, version=version) == unknown
    assert producer.add(0, topic="absent", version=version) == unknown[1:]
    refused = [E.TOPIC_AUTHORIZATION_FAILED]
    assert producer.add(0, topic="__consumer_offsets", version=version) == refused
    assert node.states("tid") == ["Empty"]


def test_one_bad_partition_fails_the_transaction_of_a_broker(node: Coordinating) -> None:
    producer = node.producer()
    producer.init()
    unknown = [E.OPERATION_NOT_ATTEMPTED, E.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.implicit(0, 9) == unknown
    assert producer.implicit(0, 9, verify_only=True) == unknown
    assert producer.implicit(0, topic=STATE_TOPIC) == [E.INVALID_TOPIC_EXCEPTION]
    assert producer.implicit(0, topic="__consumer_offsets") == [E.NONE]


def test_a_partition_named_twice_is_answered_twice_where_all_have_one_error(
    node: Coordinating,
) -> None:
    """4.3.1 answers one error as it was asked, and a table of errors once for each partition."""
    producer = node.producer()
    producer.init()
    assert producer.add(1, 1) == [E.NONE] * 2
    assert producer.implicit(2, 2) == [E.NONE] * 2
    assert producer.add(9, 9) == [E.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.implicit(0, 0, 2, verify_only=True) == [E.TRANSACTION_ABORTABLE, E.NONE]
    producer.epoch += 1
    assert producer.add(1, 1) == [E.PRODUCER_FENCED] * 2


@pytest.mark.parametrize("version", range(6))
def test_errors_in_order(node: Coordinating, markers: Markers, version: int) -> None:
    def answer(producer_id: int, epoch: int, name: str = "tid") -> E:
        asking = node.producer(name)
        asking.id, asking.epoch = producer_id, epoch
        add = asking.add if version < 4 else asking.implicit
        (error,) = add(1, version=version)
        return error

    producer = node.producer()
    producer.init()
    producer.implicit(0)
    assert answer(producer.id, 0, "") == E.INVALID_REQUEST
    assert answer(producer.id, 0, "absent") == E.INVALID_PRODUCER_ID_MAPPING
    assert answer(producer.id + 1, 7) == E.INVALID_PRODUCER_ID_MAPPING
    fenced = E.PRODUCER_FENCED if version >= 2 else E.INVALID_PRODUCER_EPOCH
    assert answer(producer.id, 7) == fenced
    markers.keeps_back = True
    producer.commit()
    assert answer(producer.id + 1, 7) == E.CONCURRENT_TRANSACTIONS


def test_a_verification_looks_at_the_identity_before_the_end(
    node: Coordinating, markers: Markers
) -> None:
    producer = node.producer()
    producer.init()
    producer.implicit(0)
    markers.keeps_back = True
    old = producer.epoch
    producer.commit()
    assert producer.implicit(0, verify_only=True) == [E.CONCURRENT_TRANSACTIONS]
    producer.epoch = old
    assert producer.implicit(0, verify_only=True) == [E.PRODUCER_FENCED]
    producer.id += 1
    assert producer.implicit(0, verify_only=True) == [E.INVALID_PRODUCER_ID_MAPPING]


def test_a_client_that_names_no_partition_begins_a_transaction(node: Coordinating) -> None:
    producer = node.producer()
    producer.init()
    assert producer.add(version=3) == []
    assert node.states("tid") == ["Empty", "Ongoing"]
    assert producer.commit(version=4) == E.NONE
    assert node.states("tid")[2:] == ["PrepareCommit", "CompleteCommit"]


def test_rules_that_the_log_cannot_hold_change_nothing(markers: Markers) -> None:
    node = Coordinating(version=0)
    producer = node.producer()
    producer.init()
    assert producer.implicit(0) == [E.UNSUPPORTED_VERSION]
    assert producer.add(0) == [E.NONE]
    assert producer.implicit(0, verify_only=True) == [E.NONE]
    other = Coordinating(version=1).producer()
    other.init()
    assert other.implicit(0) == [E.NONE], "records of level 1 say by which rules it ends"
