"""DescribeTransactions: what an operator sees of transactional ids."""

from __future__ import annotations

from kraft_wire.wire.generated.describe_transactions import DescribeTransactionsRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.coordinating import TOPIC, Coordinating, Markers


def test_a_transaction_is_described_from_beginning_to_end(
    node: Coordinating, markers: Markers
) -> None:
    producer = node.producer()
    producer.init(timeout_ms=4_321)
    empty = node.describe("tid")
    assert (empty.transaction_state, empty.transaction_start_time_ms) == ("Empty", -1)
    producer.implicit(2, 0)
    ongoing = node.describe("tid")
    assert ongoing.error_code == E.NONE
    assert ongoing.transaction_state == "Ongoing"
    assert ongoing.transaction_timeout_ms == 4_321
    assert ongoing.transaction_start_time_ms == node.wall_ms
    assert (ongoing.producer_id, ongoing.producer_epoch) == (producer.id, producer.epoch)
    assert [(each.topic, each.partitions) for each in ongoing.topics] == [(TOPIC, [2, 0])]
    producer.commit()
    complete = node.describe("tid")
    assert complete.transaction_state == "CompleteCommit"
    assert complete.transaction_start_time_ms == ongoing.transaction_start_time_ms
    assert complete.producer_epoch == producer.epoch
    assert complete.topics == []


def test_an_id_that_is_named_twice_is_answered_twice(node: Coordinating) -> None:
    node.producer().init()
    request = DescribeTransactionsRequest(transactional_ids=["tid", "", "absent", "tid"])
    states = node.send(request, 0).response.transaction_states
    assert [each.transactional_id for each in states] == ["tid", "", "absent", "tid"]
    errors = [E.NONE, E.INVALID_REQUEST, E.TRANSACTIONAL_ID_NOT_FOUND, E.NONE]
    assert [each.error_code for each in states] == errors


def test_a_transaction_that_ends_shows_the_partitions_without_a_marker(
    node: Coordinating, markers: Markers
) -> None:
    producer = node.producer()
    producer.init()
    producer.implicit(0, 1, 3)
    markers.left_out = [each for each in node.entry("tid").metadata.partitions if each[1] == 1]
    producer.commit()
    ending = node.describe("tid")
    assert ending.transaction_state == "PrepareCommit"
    assert [(each.topic, each.partitions) for each in ending.topics] == [(TOPIC, [1])]
