"""A Produce request with transactional batches: verified first, then appended (KIP-890).

Partitions on which the producer has its transaction open are appended to at once. Of the others the
transaction coordinator is asked in one question; older clients have added them before (verify
only), newer ones (version 12) leave it to this question. While the coordinator completes the former
transaction the question of a newer client is repeated here for a moment, which costs the client no
round trip.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from kraft_wire.broker.context import PARKED, RequestContext, Withheld
from kraft_wire.broker.metadata.metadata_cache import (
    ADMIN_CLIENT,
    INTERNAL_TOPICS,
    no_replica_error,
)
from kraft_wire.broker.partition import AppendResult
from kraft_wire.broker.producing.append_validation import AppendRejected
from kraft_wire.broker.producing.produced_batch import produced_batch
from kraft_wire.broker.producing.transaction_verifier import TransactionQuestion, produce_error
from kraft_wire.broker.producing.verification import (
    NOT_REQUIRED,
    FirstBatch,
    Verification,
    begin_verification,
)
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.produce import ProduceRequest, ProduceResponse, TopicProduceData
from kraft_wire.wire.records.record_batch import MAGIC, TRANSACTIONAL_BIT, RecordBatch

if TYPE_CHECKING:
    from kraft_wire.broker.broker import Broker

__all__ = [
    "TransactionalProduce",
    "Verified",
    "is_transactional",
    "several_producers",
    "transactional_batches",
]

Verified: TypeAlias = Mapping[tuple[str, int], Verification | AppendResult]
"""Per partition the verification for its append, or the answer of a refused one."""

_FIRST_IMPLICIT_VERSION: Final = 12
_UNKNOWN: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_MAGIC_AT: Final = 16
_ATTRIBUTES_AT: Final = 22
"""The low byte, which has every bit that is in use."""


def is_transactional(topics: Sequence[TopicProduceData]) -> bool:
    """Whether the header of a partition's first batch is marked transactional."""
    for topic in topics:
        for data in topic.partition_data:
            records = data.records
            if isinstance(records, bytes | bytearray | memoryview) and (
                len(records) > _ATTRIBUTES_AT
                and records[_MAGIC_AT] == MAGIC
                and records[_ATTRIBUTES_AT] & TRANSACTIONAL_BIT
            ):
                return True
    return False


def transactional_batches(
    broker: "Broker", context: RequestContext, topics: Sequence[TopicProduceData], *, by_id: bool
) -> dict[TopicPartition, RecordBatch]:
    """Return the transactional batches of existing partitions that a client may produce to.

    Other errors of a request or a batch are found at the append.
    """
    found: dict[TopicPartition, RecordBatch] = {}
    for topic in topics:
        name = broker.topic_name(topic.topic_id) if by_id else topic.name
        if name is None or (name in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT):
            continue
        for data in topic.partition_data:
            if no_replica_error(broker.image, name, data.index) is _UNKNOWN:
                continue
            try:
                batch = produced_batch(data.records, context.api_version)
            except AppendRejected:
                continue
            if batch.producer_id >= 0 and batch.attributes & TRANSACTIONAL_BIT:
                found[TopicPartition(name, data.index)] = batch
    return found


def several_producers(batches: Mapping[TopicPartition, RecordBatch]) -> bool:
    """Whether the batches are of more than one producer id and epoch."""
    return len({(each.producer_id, each.producer_epoch) for each in batches.values()}) > 1


class TransactionalProduce:
    """One request of a transactional producer, on its way to the append."""

    __slots__ = ("_append", "_batches", "_broker", "_context", "_is_implicit", "_transactional_id")

    def __init__(
        self,
        broker: "Broker",
        context: RequestContext,
        request: ProduceRequest,
        batches: Mapping[TopicPartition, RecordBatch],
        append: Callable[[RequestContext, Verified], ProduceResponse | Withheld],
    ) -> None:
        """`append` serves the request with the verified partitions, at the time of its context."""
        assert request.transactional_id is not None, "refused before"
        self._broker = broker
        self._context = context
        self._transactional_id = request.transactional_id
        self._batches = batches
        self._append = append
        self._is_implicit = context.api_version >= _FIRST_IMPLICIT_VERSION

    def serve(self) -> ProduceResponse | Withheld:
        """Append at once, or park the request until the coordinator has answered."""
        return self._attempt(self._context)

    def _attempt(self, context: RequestContext) -> ProduceResponse | Withheld:
        verified: dict[tuple[str, int], Verification | AppendResult] = {}
        asked: list[TopicPartition] = []
        settings = self._broker.settings
        is_enabled = settings.transaction_partition_verification_enable
        if not is_enabled and not self._is_implicit:
            return self._append(context, dict.fromkeys(self._batches, NOT_REQUIRED))
        for name, batch in self._batches.items():
            partition = self._broker.partition(*name)
            if partition is None:
                continue
            first = FirstBatch(
                batch.producer_id, batch.producer_epoch, batch.base_sequence, self._is_implicit
            )
            begun = begin_verification(
                partition, first, context.now_ms, settings.producer_id_expiration_ms
            )
            if isinstance(begun, Verification):
                verified[name] = begun
                asked.append(name)
            elif begun is not None:
                verified[name] = AppendResult(begun)
        if not asked:
            return self._append(context, verified)
        self._ask(context, asked, verified)
        return PARKED

    def _ask(
        self,
        context: RequestContext,
        asked: Sequence[TopicPartition],
        verified: dict[tuple[str, int], Verification | AppendResult],
    ) -> None:
        batch = self._batches[asked[0]]
        question = TransactionQuestion(
            self._transactional_id,
            batch.producer_id,
            batch.producer_epoch,
            not self._is_implicit,
            asked,
        )

        def answered(errors: Mapping[TopicPartition, ErrorCode], now_ms: int, wall_ms: int) -> None:
            then = context.at(max(now_ms, context.now_ms), wall_ms)
            if self._retries(errors, then):
                return
            for name, error in errors.items():
                if error is not ErrorCode.NONE:
                    refused, message = produce_error(error, context.api_version)
                    verified[name] = AppendResult(refused, error_message=message)
                elif not self._broker.settings.transaction_partition_verification_enable:
                    verified[name] = NOT_REQUIRED
            self._complete(self._append(then, verified))

        self._broker.transaction_verifier.ask(question, answered, context.now_ms, context.wall_ms)

    def _retries(self, errors: Mapping[TopicPartition, ErrorCode], now: RequestContext) -> bool:
        """Ask the coordinator again if it completes a transaction; return whether that happens."""
        settings = self._broker.settings
        waited_ms = now.now_ms - self._context.now_ms
        if (
            not self._is_implicit
            or ErrorCode.CONCURRENT_TRANSACTIONS not in errors.values()
            or waited_ms >= settings.add_partitions_to_txn_retry_backoff_max_ms
        ):
            return False
        due_ms = now.now_ms + settings.add_partitions_to_txn_retry_backoff_ms

        def retry(now_ms: int, wall_ms: int) -> None:
            self._complete(self._attempt(self._context.at(now_ms, wall_ms)))

        self._broker.transaction_verifier.retry_at(due_ms, retry)
        return True

    def _complete(self, answer: ProduceResponse | Withheld) -> None:
        if answer is not PARKED:
            self._broker.complete(self._context.reply_to, answer)
