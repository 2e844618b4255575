"""A transactional producer, driven request by request, for the transaction cases."""

from dataclasses import dataclass
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.requests import batch, produce, produce_partition
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kraft_wire.wire.generated.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kraft_wire.wire.generated.end_txn import EndTxnRequest, EndTxnResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.produce import ProduceResponse

__all__ = [
    "TIMEOUT_MS",
    "Producer",
    "await_end",
    "begun",
    "ended",
    "new_producer",
    "written_in",
]

TIMEOUT_MS: Final = 60_000

_OPEN, _ENDING = "Ongoing", "Prepare"
_OLD_PRODUCE: Final = 11
"""The last version of Produce in which a producer adds its partitions itself (KIP-890)."""
_OLD_ADDITION: Final = 3
_OLD_END: Final = 4
_OLD_INIT: Final = 5


@dataclass(frozen=True, slots=True)
class Producer:
    """A transactional id with the producer id and epoch that it was given."""

    transactional_id: str
    producer_id: int
    epoch: int


def new_producer(broker: Subject, transactional_id: str = "") -> Producer:
    """Start a producer under a new transactional id, or under one that exists."""
    name = transactional_id or broker.transactional_id()
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
    for _ in broker.attempts(f"a producer id for {name}"):
        answer = broker.prepare(request, InitProducerIdResponse, until=_OLD_INIT)
        if answer.error_code == ErrorCode.NONE:
            return Producer(name, answer.producer_id, answer.producer_epoch)
    raise AssertionError("attempts end in an exception")


def begun(broker: Subject, producer: Producer, topic: Topic, *partitions: int) -> None:
    """Add partitions of a topic to the producer's transaction."""
    topics = [AddPartitionsToTxnTopic(name=topic.name, partitions=list(partitions or (0,)))]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=producer.transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=topics,
    )
    answer = broker.prepare(request, AddPartitionsToTxnResponse, until=_OLD_ADDITION)
    path = "results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code"
    expect.error(answer, path, ErrorCode.NONE)


def written_in(broker: Subject, producer: Producer, topic: Topic, value: bytes = b"a") -> None:
    """Begin a transaction with one record."""
    begun(broker, producer, topic)
    records = batch(
        value,
        producer=(producer.producer_id, producer.epoch),
        base_sequence=0,
        is_transactional=True,
    )
    request = produce(topic, _OLD_PRODUCE, records, transactional_id=producer.transactional_id)
    answer = broker.prepare(request, ProduceResponse, until=_OLD_PRODUCE)
    expect.error(answer, produce_partition("error_code"), ErrorCode.NONE)


def ended(broker: Subject, producer: Producer, *, committed: bool) -> None:
    """End the producer's transaction, and wait until its markers are written."""
    request = EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=committed,
    )
    answer = broker.prepare(request, EndTxnResponse, until=_OLD_END)
    expect.error(answer, "error_code", ErrorCode.NONE)
    await_end(broker, producer.transactional_id)


def await_end(broker: Subject, transactional_id: str, seconds: float = 0.0) -> None:
    """Wait until no transaction is open or ending, whatever the broker calls that state.

    The limit is `seconds` above that of the run. Errors: Mismatch.
    """
    asked = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    for _ in broker.attempts(f"the end of the transaction of {transactional_id}", seconds):
        found = broker.prepare(asked, DescribeTransactionsResponse)
        state = found.transaction_states[0].transaction_state
        if state != _OPEN and not state.startswith(_ENDING):
            return
