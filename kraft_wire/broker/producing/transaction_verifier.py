"""AddPartitionsToTxn from this broker to transaction coordinators (KIP-890).

A question is about one transactional id: whether these partitions are in its open transaction, or,
for newer clients, to add them. Each coordinator gets one request at a time, with all waiting
questions; an id has one question in a request. Errors are those of the coordinator, by partition;
the caller translates them for clients (`produce_error`, `offset_commit_error`).

Kafka's `AddPartitionsToTxnManager`. Not here: the purpose of a question (`verification`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kraft_wire.broker.coordination.topic import key_partition
from kraft_wire.broker.deadlines import Deadlines
from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.broker.metadata.metadata_cache import TRANSACTION_TOPIC
from kraft_wire.frozen import frozen
from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import TopicPartition
from kraft_wire.wire.error_names import error_of
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = [
    "TransactionQuestion",
    "TransactionVerifier",
    "offset_commit_error",
    "produce_error",
]

_RETRIED: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""A later attempt may succeed. Producers retry NOT_ENOUGH_REPLICAS, and look up no coordinator."""

_TOP_LEVEL_ERRORS: Final = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,
    ErrorCode.UNSUPPORTED_VERSION: ErrorCode.NETWORK_EXCEPTION,
}
"""Error of a whole response to the error of each partition.

A coordinator without version 4 may be upgraded soon, so that the client retries. 4.3.1 appends such
batches without verification.
"""

_Answered: TypeAlias = Callable[[Mapping[TopicPartition, ErrorCode], int, int], None]
"""Called once with an error for each partition, and the monotonic and the wall time."""


@frozen
class TransactionQuestion:
    """Partitions of one transaction that a coordinator is to confirm or to add."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_verify_only: bool
    """Whether partitions that are not in the transaction are refused, not added."""
    partitions: Sequence[TopicPartition]

    def transaction(self) -> AddPartitionsToTxnTransaction:
        """Return the question as a part of a request."""
        topics: dict[str, list[int]] = {}
        for topic, partition in self.partitions:
            topics.setdefault(topic, []).append(partition)
        return AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            verify_only=self.is_verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )


@dataclass(slots=True, eq=False)
class _Waiting:
    """A question that is not answered yet."""

    question: TransactionQuestion
    answered: _Answered

    def fail(self, error: ErrorCode, now_ms: int, wall_ms: int) -> None:
        self.answered(dict.fromkeys(self.question.partitions, error), now_ms, wall_ms)


class _Coordinator:
    """The questions to one broker: a `BrokerRequests`."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._in_flight: dict[str, _Waiting] = {}

    def ask(self, waiting: _Waiting, now_ms: int, wall_ms: int) -> None:
        """Queue a question; of two for one id the one with the newer epoch stays."""
        transactional_id = waiting.question.transactional_id
        other = self._waiting.get(transactional_id)
        if other is None:
            self._waiting[transactional_id] = waiting
            return
        epoch, other_epoch = waiting.question.producer_epoch, other.question.producer_epoch
        if epoch < other_epoch:
            waiting.fail(ErrorCode.INVALID_PRODUCER_EPOCH, now_ms, wall_ms)
            return
        self._waiting[transactional_id] = waiting
        is_same = epoch == other_epoch
        error = ErrorCode.NETWORK_EXCEPTION if is_same else ErrorCode.INVALID_PRODUCER_EPOCH
        other.fail(error, now_ms, wall_ms)

    def request(self, broker_epoch: int, now_ms: int) -> Message | None:
        """Return a request with everything that waits."""
        if self._in_flight or not self._waiting:
            return None
        self._in_flight, self._waiting = self._waiting, {}
        return AddPartitionsToTxnRequest(
            transactions=[each.question.transaction() for each in self._in_flight.values()]
        )

    def answered(self, response: Message, now_ms: int, wall_ms: int) -> None:
        """Return the errors of each partition to the caller."""
        assert isinstance(response, AddPartitionsToTxnResponse), response
        top_level = error_of(response.error_code)
        top_level = _TOP_LEVEL_ERRORS.get(top_level, top_level)
        found: dict[str, dict[TopicPartition, ErrorCode]] = {}
        for result in response.results_by_transaction:
            found[result.transactional_id] = {
                TopicPartition(topic.name, each.partition_index): error_of(
                    each.partition_error_code
                )
                for topic in result.topic_results
                for each in topic.results_by_partition
            }
        in_flight, self._in_flight = self._in_flight, {}
        for transactional_id, waiting in in_flight.items():
            if top_level is not ErrorCode.NONE:
                waiting.fail(top_level, now_ms, wall_ms)
                continue
            errors = found.get(transactional_id, {})
            missing = ErrorCode.NETWORK_EXCEPTION  # 4.3.1 takes such a partition as verified
            waiting.answered(
                {each: errors.get(each, missing) for each in waiting.question.partitions},
                now_ms,
                wall_ms,
            )

    def failed(self, now_ms: int, wall_ms: int) -> None:
        """Fail the questions in flight; they are not repeated here, as clients retry."""
        in_flight, self._in_flight = self._in_flight, {}
        for waiting in in_flight.values():
            waiting.fail(ErrorCode.NETWORK_EXCEPTION, now_ms, wall_ms)

    def deadline_ms(self) -> int | None:
        """Return None: nothing depends on time here."""
        return None


class TransactionVerifier:
    """Sends questions to the coordinators of transactional ids."""

    def __init__(self, node_id: int, image: Callable[[], MetadataImage]) -> None:
        self._node_id = node_id
        self._image = image
        self._coordinators: dict[int, _Coordinator] = {}
        self._retries: Deadlines[Callable[[int, int], None]] = Deadlines(lambda retry: True)
        """When to run the callbacks that wait for a pause."""

    def client(self, request_timeout_ms: int) -> InterBrokerClient:
        """Return the clients that send the questions."""
        return InterBrokerClient(
            f"AddPartitionsManager-client-{self._node_id}",
            request_timeout_ms,
            lambda: self._coordinators,
        )

    def ask(
        self, question: TransactionQuestion, answered: _Answered, now_ms: int, wall_ms: int
    ) -> None:
        """Ask the coordinator of the id; `answered` may run before this returns.

        Errors besides those of the coordinator: COORDINATOR_NOT_AVAILABLE if no live broker leads
        the id's partition, NETWORK_EXCEPTION.
        """
        waiting = _Waiting(question, answered)
        broker_id = self._coordinator_of(question.transactional_id)
        if broker_id is None:
            waiting.fail(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms, wall_ms)
            return
        coordinator = self._coordinators.get(broker_id)
        if coordinator is None:
            coordinator = self._coordinators[broker_id] = _Coordinator()
        coordinator.ask(waiting, now_ms, wall_ms)

    def retry_at(self, due_ms: int, retry: Callable[[int, int], None]) -> None:
        """Call `retry` with both times once the monotonic time is there."""
        self._retries.add(due_ms, retry, len(self._retries) + 1)

    # -- a `MetadataFollower` --------------------------------------------------------------------

    def published(self, delta: MetadataDelta, now_ms: int) -> None:
        """Follow nothing: each question looks up its coordinator."""

    def stop(self) -> None:
        """Drop the waiting questions with their connections."""

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Run the retries that are due."""
        for retry in list(self._retries.due(now_ms)):
            retry(now_ms, wall_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        return self._retries.next_ms()

    def _coordinator_of(self, transactional_id: str) -> int | None:
        """Return the broker that leads the id's partition and is alive."""
        image = self._image()
        topic = image.topic(TRANSACTION_TOPIC)
        if topic is None or not topic.partitions:
            return None
        partition = topic.partitions.get(key_partition(transactional_id, len(topic.partitions)))
        broker = None if partition is None else image.brokers.get(partition.leader)
        return None if broker is None or broker.fenced else broker.broker_id


def produce_error(error: ErrorCode, version: int) -> tuple[ErrorCode, str | None]:
    """Return the error of a Produce request in a version, and its message.

    Clients retry NOT_ENOUGH_REPLICAS; clients before version 11 do not know TRANSACTION_ABORTABLE.
    """
    if error in _RETRIED or (error is ErrorCode.CONCURRENT_TRANSACTIONS and version < 12):
        message = (
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {error.name}"
        )
        return ErrorCode.NOT_ENOUGH_REPLICAS, message
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH, None
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < 11:
        error = ErrorCode.INVALID_TXN_STATE
    if error is ErrorCode.INVALID_TXN_STATE:
        return error, "Partition was not added to the transaction"
    return error, None


def offset_commit_error(error: ErrorCode, version: int) -> ErrorCode:
    """Return the error of a TxnOffsetCommit request in a version."""
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and version < 4:
        return ErrorCode.INVALID_TXN_STATE
    return error
