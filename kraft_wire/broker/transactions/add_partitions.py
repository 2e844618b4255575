"""Partitions that join a transaction, or are verified to be in it (KIP-98, KIP-890).

Clients up to `transaction.version` 1 add partitions themselves; from 2 on the leader of a partition
adds it with the first batch. For older clients a leader verifies that the client did.
"""

from collections.abc import Callable, Mapping

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.transactions.shard import TransactionShard
from kraft_wire.broker.transactions.states import PREPARED, TransactionEvent, TransactionState
from kraft_wire.broker.transactions.transactional_id import TransactionalId
from kraft_wire.broker.transactions.transition import next_metadata
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["add_partitions", "verify_partitions"]


def add_partitions(
    shard: TransactionShard,
    name: str,
    producer: tuple[int, int],
    partitions: Mapping[TopicPartition, None],
    version: int,
    at: ClockReading,
    answer: Callable[[ErrorCode], None],
) -> None:
    """Add partitions to the transaction of a producer (id, epoch); the first ones begin it.

    `version` is that of the rules by which the transaction ends: 0 for a client's request, 2 for a
    broker's. Errors, first match wins: INVALID_PRODUCER_ID_MAPPING (unknown id),
    CONCURRENT_TRANSACTIONS (a change is in progress), INVALID_PRODUCER_ID_MAPPING (other producer
    id), PRODUCER_FENCED (other epoch), UNSUPPORTED_VERSION (rules that the log cannot hold), those
    of the append.
    """
    entry = shard.ids.get(name)
    if entry is None:
        answer(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return
    error = _refusal(shard, entry, producer, version)
    if error is not ErrorCode.NONE or _has_all(entry, partitions):
        answer(error)
        return
    assert entry.metadata.state not in PREPARED, "pending until it is complete"
    target = next_metadata(
        entry.metadata,
        TransactionEvent.PARTITIONS_ADDED,
        version,
        at.wall_ms,
        partitions=partitions,
    )
    shard.write(entry, target, at, lambda error, then: answer(error))


def verify_partitions(
    shard: TransactionShard,
    name: str,
    producer: tuple[int, int],
    partitions: Mapping[TopicPartition, None],
) -> Mapping[TopicPartition, ErrorCode]:
    """Return NONE for each partition that is in the transaction, else TRANSACTION_ABORTABLE.

    Errors of all partitions, first match wins: INVALID_PRODUCER_ID_MAPPING (unknown id, other
    producer id), PRODUCER_FENCED (other epoch), CONCURRENT_TRANSACTIONS (the transaction ends). A
    change in progress is ignored.
    """
    entry = shard.ids.get(name)
    if entry is None:
        return dict.fromkeys(partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    error = _producer_error(entry, producer)
    if error is ErrorCode.NONE and entry.metadata.state in PREPARED:
        error = ErrorCode.CONCURRENT_TRANSACTIONS
    if error is not ErrorCode.NONE:
        return dict.fromkeys(partitions, error)
    added = entry.metadata.partitions
    return {
        each: ErrorCode.NONE if each in added else ErrorCode.TRANSACTION_ABORTABLE
        for each in partitions
    }


def _refusal(
    shard: TransactionShard, entry: TransactionalId, producer: tuple[int, int], version: int
) -> ErrorCode:
    """Return why nothing can be added now."""
    if entry.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    error = _producer_error(entry, producer)
    if error is ErrorCode.NONE and version > 0 and shard.env.transaction_version() == 0:
        return ErrorCode.UNSUPPORTED_VERSION
    return error


def _has_all(entry: TransactionalId, partitions: Mapping[TopicPartition, None]) -> bool:
    """Whether a transaction is open that has all these partitions."""
    metadata = entry.metadata
    is_open = metadata.state is TransactionState.ONGOING
    return is_open and partitions.keys() <= metadata.partitions.keys()


def _producer_error(entry: TransactionalId, producer: tuple[int, int]) -> ErrorCode:
    """Return whether a producer id or epoch differs from that of the transactional id."""
    producer_id, producer_epoch = producer
    if producer_id != entry.metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer_epoch != entry.metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE
