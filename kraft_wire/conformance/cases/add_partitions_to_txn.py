"""AddPartitionsToTxn, API key 24: partitions join a transaction, or are verified (KIP-890)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.transactions import Producer, begun, new_producer
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = "kafka.server.KafkaApis, handleAddPartitionsToTxnRequest"
_BATCHED_SINCE: Final = 4
_FENCED_SINCE: Final = 2


def _add(
    broker: Subject,
    version: int,
    producer: Producer,
    topic: str,
    *partitions: int,
    verify_only: bool = False,
) -> AddPartitionsToTxnResponse:
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or (0,)))]
    if version < _BATCHED_SINCE:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )
    else:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=topics,
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
    return broker.ask(request, version, AddPartitionsToTxnResponse)


def _code(version: int) -> str:
    is_batched = version >= _BATCHED_SINCE
    topic = (
        "results_by_transaction[0].topic_results[0]"
        if is_batched
        else "results_by_topic_v3_and_below[0]"
    )
    return f"{topic}.results_by_partition[0].partition_error_code"


def _codes(answer: AddPartitionsToTxnResponse, version: int) -> dict[int, int]:
    """Return the error of each partition; their order means nothing."""
    if version < _BATCHED_SINCE:
        (topic,) = answer.results_by_topic_v3_and_below
    else:
        (topic,) = answer.results_by_transaction[0].topic_results
    return {each.partition_index: each.partition_error_code for each in topic.results_by_partition}


def _refused(broker: Subject, version: int, producer: Producer, code: ErrorCode) -> None:
    topic = broker.topic()
    expect.error(_add(broker, version, producer, topic.name), _code(version), code)


@case("AddPartitionsToTxn", "KIP-98, AddPartitionsToTxnRequest")
def two_partitions(broker: Subject, version: int) -> None:
    """Partitions are added, and can be added again.

    Add two partitions of a topic, add them again.
    """
    topic, producer = broker.topic(partitions=2), new_producer(broker)
    for _ in range(2):
        answer = _add(broker, version, producer, topic.name, 0, 1)
        codes = _codes(answer, version)
        expect.true(codes == {0: 0, 1: 0}, "no error", codes)


@case("AddPartitionsToTxn", _SOURCE)
def unknown_partition(broker: Subject, version: int) -> None:
    """An unknown partition fails, and the other partitions are not attempted.

    Add partition 0, and partition 5 that the topic does not have.
    """
    topic, producer = broker.topic(), new_producer(broker)
    answer = _add(broker, version, producer, topic.name, 0, 5)
    codes = _codes(answer, version)
    wanted = {
        0: int(ErrorCode.OPERATION_NOT_ATTEMPTED),
        5: int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    }
    expect.true(codes == wanted, str(wanted), codes)


@case("AddPartitionsToTxn", _SOURCE)
def unknown_topic(broker: Subject, version: int) -> None:
    """A topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION.

    Add a partition of a new name.
    """
    answer = _add(broker, version, new_producer(broker), broker.name())
    expect.error(answer, _code(version), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("AddPartitionsToTxn", _SOURCE)
def older_epoch(broker: Subject, version: int) -> None:
    """An older epoch is PRODUCER_FENCED, below version 2 INVALID_PRODUCER_EPOCH.

    Start a producer twice, add a partition with the first epoch.
    """
    first = new_producer(broker)
    new_producer(broker, first.transactional_id)
    is_new = version >= _FENCED_SINCE
    code = ErrorCode.PRODUCER_FENCED if is_new else ErrorCode.INVALID_PRODUCER_EPOCH
    _refused(broker, version, first, code)


@case("AddPartitionsToTxn", _SOURCE)
def other_producer_id(broker: Subject, version: int) -> None:
    """A producer id of another transactional id is INVALID_PRODUCER_ID_MAPPING.

    Start a producer, add a partition with the next producer id.
    """
    own = new_producer(broker)
    other = Producer(own.transactional_id, own.producer_id + 1, own.epoch)
    _refused(broker, version, other, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@case("AddPartitionsToTxn", _SOURCE)
def unknown_transactional_id(broker: Subject, version: int) -> None:
    """A transactional id without a producer is INVALID_PRODUCER_ID_MAPPING.

    Add a partition under a new name.
    """
    new_producer(broker)
    unknown = Producer(broker.transactional_id(), 0, 0)
    _refused(broker, version, unknown, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@case("AddPartitionsToTxn", _SOURCE)
def empty_transactional_id(broker: Subject, version: int) -> None:
    """An empty transactional id is refused with INVALID_REQUEST.

    Add a partition under the name "".
    """
    _refused(broker, version, Producer("", 0, 0), ErrorCode.INVALID_REQUEST)


@case("AddPartitionsToTxn", "KIP-890, verification", since=_BATCHED_SINCE)
def verified_partition(broker: Subject, version: int) -> None:
    """A partition of the transaction is verified, another partition is refused.

    Add partition 0, verify partitions 0 and 1.
    """
    topic, producer = broker.topic(partitions=2), new_producer(broker)
    begun(broker, producer, topic)
    answer = _add(broker, version, producer, topic.name, 0, 1, verify_only=True)
    codes = _codes(answer, version)
    expect.true(codes[0] == 0 != codes[1], "an error for partition 1 alone", codes)


@case("AddPartitionsToTxn", "KIP-890, verification", since=_BATCHED_SINCE)
def verified_without_a_transaction(broker: Subject, version: int) -> None:
    """A verification without a transaction is refused.

    Start a producer, verify a partition.
    """
    topic = broker.topic()
    answer = _add(broker, version, new_producer(broker), topic.name, verify_only=True)
    expect.true(expect.at(answer, _code(version)) != ErrorCode.NONE, "an error", 0, _code(version))


@case("AddPartitionsToTxn", "KIP-890, AddPartitionsToTxnRequest", since=_BATCHED_SINCE)
def two_transactions(broker: Subject, version: int) -> None:
    """Each transaction of a request has its own result.

    Add a partition for a valid producer, and for one with an unknown epoch.
    """
    topic, first, second = broker.topic(), new_producer(broker), new_producer(broker)
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                producer_epoch=epoch,
                topics=[AddPartitionsToTxnTopic(name=topic.name, partitions=[0])],
            )
            for each, epoch in ((first, 0), (second, 7))
        ]
    )
    answer = broker.ask(request, version, AddPartitionsToTxnResponse)
    codes = {
        each.transactional_id: each.topic_results[0].results_by_partition[0].partition_error_code
        for each in answer.results_by_transaction
    }
    wanted = {
        first.transactional_id: int(ErrorCode.NONE),
        second.transactional_id: int(ErrorCode.PRODUCER_FENCED),
    }
    expect.true(codes == wanted, str(wanted), codes, "results_by_transaction")


@case("AddPartitionsToTxn", _SOURCE, until=_BATCHED_SINCE - 1)
def internal_topics(broker: Subject, version: int) -> None:
    """A client adds no internal topic to a transaction: TOPIC_AUTHORIZATION_FAILED.

    Add partition 0 of __consumer_offsets.
    """
    name = broker.offsets_topic().name
    answer = _add(broker, version, new_producer(broker), name)
    expect.error(answer, _code(version), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
