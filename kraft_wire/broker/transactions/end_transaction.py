"""EndTxn decides a transaction; the decision counts when its Prepare record is committed (KIP-98).

Up to version 4 the epoch stays, and a repeated EndTxn cannot be distinguished from one for the next
transaction. From version 5 on the epoch is raised, so that it can (KIP-890).
"""

from collections.abc import Callable

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.transactions.init_producer_id import ProducerIdentity
from kraft_wire.broker.transactions.shard import TransactionShard
from kraft_wire.broker.transactions.states import (
    CAN_EXPIRE,
    LEGACY_END_ANSWERS,
    V2_RETRIES,
    TransactionEvent,
    TransactionState,
)
from kraft_wire.broker.transactions.transactional_id import (
    LAST_EPOCH,
    NO_PRODUCER_ID,
    TransactionalId,
    TransactionMetadata,
)
from kraft_wire.broker.transactions.transition import V2, needs_producer_id, next_metadata
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["end_transaction"]


def end_transaction(
    shard: TransactionShard,
    name: str,
    producer: tuple[int, int],
    event: TransactionEvent,
    version: int,
    at: ClockReading,
    answer: Callable[[ProducerIdentity], None],
) -> None:
    """Commit or abort the transaction of a producer (id, epoch) under the rules of a version.

    The answer has the identity for the next transaction. Errors, first match wins:
    INVALID_PRODUCER_ID_MAPPING (unknown id), those of `_legacy_error` or `_error`,
    COORDINATOR_LOAD_IN_PROGRESS (no producer id for exhausted epochs), those of the append.
    """
    entry = shard.ids.get(name)
    if entry is None:
        answer(ProducerIdentity(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        return
    if version < V2:
        error = _legacy_error(entry, producer, event)
    elif shard.env.transaction_version() == 0:
        error = ErrorCode.UNSUPPORTED_VERSION
    else:
        error = _error(entry, producer, event)
    if error is not None:
        answer(ProducerIdentity(error) if error else _identity(entry.metadata))
        return
    new_id: int | None = NO_PRODUCER_ID
    if needs_producer_id(entry.metadata, event, version):
        new_id = shard.env.take_producer_id(at.now_ms)
    if new_id is None:
        answer(ProducerIdentity(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    target = next_metadata(entry.metadata, event, version, at.wall_ms, new_producer_id=new_id)

    def committed(error: ErrorCode, then: ClockReading) -> None:
        answer(ProducerIdentity(error) if error else _identity(target))

    shard.write(entry, target, at, committed)


def _legacy_error(
    entry: TransactionalId, producer: tuple[int, int], event: TransactionEvent
) -> ErrorCode | None:
    """Return the answer to a request up to version 4 that ends no transaction, else None.

    First match wins: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS (a
    change is in progress), NONE (a retry), INVALID_TXN_STATE.
    """
    metadata = entry.metadata
    producer_id, producer_epoch = producer
    if producer_id != metadata.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if producer_epoch != metadata.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if entry.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is TransactionState.ONGOING:
        return None
    return LEGACY_END_ANSWERS.get((metadata.state, event), ErrorCode.INVALID_TXN_STATE)


def _error(
    entry: TransactionalId, producer: tuple[int, int], event: TransactionEvent
) -> ErrorCode | None:
    """Return the answer to a request of version 5 that ends no transaction, else None.

    First match wins: CONCURRENT_TRANSACTIONS (a change is in progress),
    INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, NONE (a retry), INVALID_TXN_STATE.
    """
    metadata = entry.metadata
    producer_id, producer_epoch = producer
    if entry.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_before_rotation = (
        producer_id == metadata.previous_producer_id
        and producer_epoch == LAST_EPOCH
        and metadata.producer_epoch == 0
    )
    if producer_id != metadata.producer_id and not is_before_rotation:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert metadata.state is TransactionState.ONGOING or metadata.state in CAN_EXPIRE, metadata
    if producer_id == metadata.producer_id and producer_epoch == metadata.producer_epoch:
        is_open = metadata.state is TransactionState.ONGOING
        is_ended = is_open or event is TransactionEvent.ABORTED
        return None if is_ended else ErrorCode.INVALID_TXN_STATE
    is_complete = metadata.state not in (TransactionState.ONGOING, TransactionState.EMPTY)
    is_former = is_before_rotation or producer_epoch == metadata.producer_epoch - 1
    # Only these rules raise an epoch as they end a transaction. If it was ended under the others,
    # the epoch before belongs to a producer that was fenced, and the answer to somebody else.
    is_ended_here = metadata.client_version >= V2
    if not (is_complete and is_former and is_ended_here):
        return ErrorCode.PRODUCER_FENCED
    is_retry = (metadata.state, event) in V2_RETRIES
    return ErrorCode.NONE if is_retry else ErrorCode.INVALID_TXN_STATE


def _identity(metadata: TransactionMetadata) -> ProducerIdentity:
    """Return the producer's next identity, after the completion if that changes the id."""
    if metadata.next_producer_id != NO_PRODUCER_ID:
        return ProducerIdentity(ErrorCode.NONE, metadata.next_producer_id, 0)
    return ProducerIdentity(ErrorCode.NONE, metadata.producer_id, metadata.producer_epoch)
