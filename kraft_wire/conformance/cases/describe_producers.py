"""DescribeProducers, API key 61: the producers that a partition remembers (KIP-664)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.requests import TIMESTAMP_MS, batch, written
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import ended, new_producer, written_in
from kraft_wire.wire.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "KIP-664, DescribeProducers"
_PARTITION: Final = "topics[0].partitions[0]"


def _describe(
    broker: Subject, version: int, topic: str, *partitions: int
) -> DescribeProducersResponse:
    topics = [TopicRequest(name=topic, partition_indexes=list(partitions or (0,)))]
    request = DescribeProducersRequest(topics=topics)
    return broker.ask(request, version, DescribeProducersResponse)


@case("DescribeProducers", _SOURCE)
def idempotent_producer(broker: Subject, version: int) -> None:
    """An idempotent producer is shown with its last sequence and time, and no transaction.

    Write two batches of an idempotent producer, describe.
    """
    topic, (producer_id, epoch) = broker.topic(), broker.producer()
    producer = producer_id, epoch
    first = batch(b"a", b"b", producer=producer, base_sequence=0)
    second = batch(b"c", b"d", b"e", producer=producer, base_sequence=2)
    written(broker, topic, first, second)
    answer = _describe(broker, version, topic.name)
    expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.NONE)
    state = f"{_PARTITION}.active_producers[0]"
    expect.equal(answer, f"{state}.producer_id", producer_id)
    expect.equal(answer, f"{state}.producer_epoch", epoch)
    expect.equal(answer, f"{state}.last_sequence", 4)
    expect.equal(answer, f"{state}.last_timestamp", TIMESTAMP_MS + 2000)
    expect.equal(answer, f"{state}.coordinator_epoch", -1)
    expect.equal(answer, f"{state}.current_txn_start_offset", -1)


@case("DescribeProducers", _SOURCE)
def open_transaction(broker: Subject, version: int) -> None:
    """An open transaction has its first offset.

    Write a record, and one in a transaction; describe.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written(broker, topic, batch(b"a"))
    written_in(broker, producer, topic)
    answer = _describe(broker, version, topic.name)
    state = f"{_PARTITION}.active_producers[0]"
    expect.equal(answer, f"{state}.producer_id", producer.producer_id)
    expect.equal(answer, f"{state}.current_txn_start_offset", 1)


@case("DescribeProducers", _SOURCE)
def ended_transaction(broker: Subject, version: int) -> None:
    """An ended transaction has no first offset, and has the epoch of the coordinator.

    Commit a transaction with a record, describe.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    ended(broker, producer, committed=True)
    answer = _describe(broker, version, topic.name)
    state = f"{_PARTITION}.active_producers[0]"
    expect.equal(answer, f"{state}.current_txn_start_offset", -1)
    found = answer.topics[0].partitions[0].active_producers[0].coordinator_epoch
    expect.true(found >= 0, "an epoch", found, f"{state}.coordinator_epoch")


@case("DescribeProducers", _SOURCE)
def no_producers(broker: Subject, version: int) -> None:
    """Batches without a producer id create no producer state.

    Write a batch without a producer id, describe.
    """
    topic = broker.topic()
    written(broker, topic, batch(b"a"))
    answer = _describe(broker, version, topic.name)
    expect.equal(answer, f"{_PARTITION}.active_producers", [])


@case("DescribeProducers", "kafka.server.KafkaApis, handleDescribeProducersRequest")
def unknown_partitions(broker: Subject, version: int) -> None:
    """Partitions that do not exist are UNKNOWN_TOPIC_OR_PARTITION.

    Describe a partition that a topic does not have, and one of a topic that does not exist.
    """
    for name, partition in ((broker.topic().name, 4), (broker.name(), 0)):
        answer = _describe(broker, version, name, partition)
        expect.error(answer, f"{_PARTITION}.error_code", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("DescribeProducers", "kafka.server.KafkaApis, handleDescribeProducersRequest")
def invalid_topic_name(broker: Subject, version: int) -> None:
    """An invalid topic name is refused.

    Describe the topic "a b".
    """
    answer = _describe(broker, version, "a b")
    found = answer.topics[0].partitions[0].error_code
    expect.true(found != ErrorCode.NONE, "an error", found, f"{_PARTITION}.error_code")


@case("DescribeProducers", _SOURCE)
def sequence_of_a_transaction(broker: Subject, version: int) -> None:
    """A transactional producer is shown with its epoch, its sequence and its time.

    Write a record in a transaction, describe.
    """
    topic, producer = broker.topic(), new_producer(broker)
    written_in(broker, producer, topic)
    answer = _describe(broker, version, topic.name)
    state = f"{_PARTITION}.active_producers[0]"
    expect.equal(answer, f"{state}.producer_epoch", producer.epoch)
    expect.equal(answer, f"{state}.last_sequence", 0)
    expect.equal(answer, f"{state}.last_timestamp", TIMESTAMP_MS)
