"""AddPartitionsToTxn, API key 24, versions 0-5.

Behaviour:   up to v3 a client adds partitions to its transaction; from v4 on a broker adds or
             verifies partitions of several transactions, and each transaction has its own result ·
             one partition that does not exist fails its transaction, and none of its partitions is
             added · if all partitions have one error, a repeated partition has two results, as in
             Kafka
Versions:    v2 PRODUCER_FENCED (KIP-588) · v4 several transactions, VerifyOnly (KIP-890) · v5
             TRANSACTION_ABORTABLE, which is also sent to v4
Left out:    nothing
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.context import Parked, RequestContext
from kraft_wire.broker.coordination.clock_reading import arrival_of
from kraft_wire.broker.deferred_response import DeferredResponse
from kraft_wire.broker.metadata.metadata_cache import TRANSACTION_TOPIC, is_internal
from kraft_wire.broker.transactions.add_partitions import add_partitions, verify_partitions
from kraft_wire.broker.transactions.transition import V2
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.error_code import ErrorCode

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = ["handle", "topic_result"]

_BROKERS_FROM: Final = 4
_FENCED_ERROR_FROM: Final = 2

_Results = list[AddPartitionsToTxnTopicResult]
"""The answer for one transaction."""


def handle(
    broker: "Broker", context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Parked:
    """Add partitions to transactions, or verify that they are in them.

    Errors per transaction, first match wins: TOPIC_AUTHORIZATION_FAILED (internal topic, up to v3),
    INVALID_TOPIC_EXCEPTION (`__transaction_state`, from v4 on), UNKNOWN_TOPIC_OR_PARTITION, and
    OPERATION_NOT_ATTEMPTED for its other partitions; INVALID_REQUEST (empty transactional id),
    NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, then those of `transactions.add_partitions`.
    """
    deferred = DeferredResponse[AddPartitionsToTxnResponse](broker.complete, context.reply_to)
    transactions = request.transactions
    if context.api_version < _BROKERS_FROM:
        transactions = [_of_client(request)]
    answers = _Answers(context, transactions, deferred)
    for number, transaction in enumerate(transactions):
        _Question(broker, context, transaction, answers, number).ask()
    return deferred.result()


def _of_client(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


class _Answers:
    """The results of all transactions of a request; the response leaves with the last one."""

    def __init__(
        self,
        context: RequestContext,
        transactions: Sequence[AddPartitionsToTxnTransaction],
        deferred: DeferredResponse[AddPartitionsToTxnResponse],
    ) -> None:
        self._is_client = context.api_version < _BROKERS_FROM
        self._transactions = transactions
        self._deferred = deferred
        self._results: dict[int, _Results] = {}
        if not transactions:
            deferred.send(AddPartitionsToTxnResponse())

    def take(self, number: int, results: _Results) -> None:
        """Take the results of one transaction."""
        self._results[number] = results
        if len(self._results) == len(self._transactions):
            self._deferred.send(self._response())

    def _response(self) -> AddPartitionsToTxnResponse:
        results = [
            AddPartitionsToTxnResult(
                transactional_id=transaction.transactional_id, topic_results=self._results[number]
            )
            for number, transaction in enumerate(self._transactions)
        ]
        if self._is_client:
            (result,) = results
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
        return AddPartitionsToTxnResponse(results_by_transaction=results)


class _Question:
    """One transaction of a request."""

    def __init__(
        self,
        broker: "Broker",
        context: RequestContext,
        transaction: AddPartitionsToTxnTransaction,
        answers: _Answers,
        number: int,
    ) -> None:
        self._broker = broker
        self._context = context
        self._transaction = transaction
        self._answers = answers
        self._number = number
        self._partitions = {
            TopicPartition(topic.name, partition): None
            for topic in transaction.topics
            for partition in topic.partitions
        }

    def ask(self) -> None:
        """Have the partitions added or verified."""
        transaction, partitions = self._transaction, self._partitions
        refused = self._refused()
        if refused:
            rest = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
            self._answers.take(self._number, _results_of({**rest, **refused}))
            return
        name = transaction.transactional_id
        shard = self._broker.transactions.shard_of(name) if name else ErrorCode.INVALID_REQUEST
        producer = (transaction.producer_id, transaction.producer_epoch)
        if transaction.verify_only:
            # Unlike below, a topic without partitions has no result, whatever the error.
            errors = (
                dict.fromkeys(partitions, shard)
                if isinstance(shard, ErrorCode)
                else verify_partitions(shard, name, producer, partitions)
            )
            self._answers.take(self._number, _results_of(errors))
        elif isinstance(shard, ErrorCode):
            self._answer_all(shard)
        else:
            version = V2 if self._context.api_version >= _BROKERS_FROM else 0
            at = arrival_of(self._context)
            add_partitions(shard, name, producer, partitions, version, at, self._answer_all)

    def _refused(self) -> dict[TopicPartition, ErrorCode]:
        """Return the partitions that no transaction can have."""
        image, refused = self._broker.image, {}
        is_client = self._context.api_version < _BROKERS_FROM
        for each in self._partitions:
            topic = image.topic(each.topic)
            if is_client and is_internal(each.topic):
                refused[each] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif each.topic == TRANSACTION_TOPIC:
                refused[each] = ErrorCode.INVALID_TOPIC_EXCEPTION
            elif topic is None or each.partition not in topic.partitions:
                refused[each] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return refused

    def _answer_all(self, error: ErrorCode) -> None:
        if error is ErrorCode.PRODUCER_FENCED and self._context.api_version < _FENCED_ERROR_FROM:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        topics = self._transaction.topics
        results = [topic_result(topic.name, topic.partitions, error) for topic in topics]
        self._answers.take(self._number, results)


def _results_of(errors: Mapping[TopicPartition, ErrorCode]) -> _Results:
    """Return the content of a table of partitions, every topic and partition once."""
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (topic, partition), error in errors.items():
        (result,) = topic_result(topic, [partition], error).results_by_partition
        topics.setdefault(topic, topic_result(topic, [], error)).results_by_partition.append(result)
    return list(topics.values())


def topic_result(
    topic: str, partitions: Sequence[int], error: ErrorCode
) -> AddPartitionsToTxnTopicResult:
    """Return a topic's answer with one error for all of its partitions."""
    return AddPartitionsToTxnTopicResult(
        name=topic,
        results_by_partition=[
            AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=error)
            for each in partitions
        ],
    )
