"""DescribeProducers: what a partition remembers of its producers (KIP-664)."""

import pytest

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.handlers.describe_producers import handle
from kraft_wire.model import Offset
from kraft_wire.storage.producers.producer_state import ProducerState
from kraft_wire.wire.generated.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.small_broker import context, image_of, log_of, partition_image, small_broker


@pytest.fixture
def broker() -> Broker:
    return small_broker(
        image_of(
            {
                "a": [partition_image(0), partition_image(1, leader=2, replicas=(1, 2))],
                "far": [partition_image(0, leader=2, replicas=(2,))],
            }
        )
    )


def ask(broker: Broker, topic: str, index: int) -> PartitionResponse:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[index])])
    (answer,) = handle(broker, context(0), request).topics[0].partitions
    assert answer.partition_index == index
    return answer


def test_partition_without_producers_lists_none(broker: Broker) -> None:
    assert ask(broker, "a", 0).active_producers == []


def test_producer_is_listed_with_its_last_sequence(broker: Broker) -> None:
    batch = build_batch(
        [Record(offset=0, timestamp=500, key=None, value=b"v", headers=[])],
        producer_id=7,
        producer_epoch=2,
        base_sequence=3,
    )
    (parsed,) = parse_batches(memoryview(batch))
    log_of(broker, "a").producer_states.update(parsed)
    (state,) = ask(broker, "a", 0).active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 2, 3)
    assert (state.last_timestamp, state.coordinator_epoch) == (500, -1)
    assert state.current_txn_start_offset == -1


def test_open_transaction_is_told_by_its_first_offset(broker: Broker) -> None:
    states = log_of(broker, "a").producer_states
    states._states[9] = ProducerState(9, 1, coordinator_epoch=4, transaction_first_offset=None)
    states._states[8] = ProducerState(8, 1, transaction_first_offset=Offset(6))
    found = ask(broker, "a", 0).active_producers
    assert [(each.current_txn_start_offset, each.coordinator_epoch) for each in found] == [
        (-1, 4),
        (6, -1),
    ]
    assert found[0].last_sequence == -1


def test_followers_answer_too(broker: Broker) -> None:
    """TXN-ADMIN-03: `kafka-transactions describe-producers --broker-id` asks any replica."""
    log_of(broker, "a", 1).producer_states._states[9] = ProducerState(9, 1)
    (state,) = ask(broker, "a", 1).active_producers
    assert state.producer_id == 9


@pytest.mark.parametrize(
    ("topic", "index", "error"),
    [
        ("missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a", 5, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("far", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_partition_of_another_broker_is_refused(
    broker: Broker, topic: str, index: int, error: ErrorCode
) -> None:
    answer = ask(broker, topic, index)
    assert answer.error_code == error
    assert bool(answer.error_message) == (topic == "missing")
    assert answer.active_producers == []


def test_offline_partition_is_a_storage_error(broker: Broker) -> None:
    broker.partitions["a", 0].offline = True
    assert ask(broker, "a", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_errors_in_order(broker: Broker) -> None:
    assert ask(broker, "no/name", 9).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert ask(broker, "far", 9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.partitions["a", 1].offline = True
    assert ask(broker, "a", 1).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert ask(broker, "far", 0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
