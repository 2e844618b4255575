"""InitProducerId of a transactional id: a new producer fences the one before it (KIP-98, KIP-360).

A producer that names its own id and epoch raises the epoch without fencing itself; the same
request again gets the same answer.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.transactions.fencing import abort_open_transaction
from kraft_wire.broker.transactions.shard import TransactionShard
from kraft_wire.broker.transactions.states import PREPARED, TransactionEvent, TransactionState
from kraft_wire.broker.transactions.transactional_id import (
    LAST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    TransactionalId,
    TransactionMetadata,
)
from kraft_wire.broker.transactions.transition import needs_producer_id, next_metadata
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["ProducerIdentity", "init_producer_id"]


class ProducerIdentity(NamedTuple):
    """The producer id and epoch for a client, or the error."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


def init_producer_id(
    shard: TransactionShard,
    name: str,
    timeout_ms: int,
    expected: tuple[int, int],
    at: ClockReading,
    answer: Callable[[ProducerIdentity], None],
) -> None:
    """Give the producer of a transactional id its id and epoch.

    `expected` is the producer id and epoch that the client has, -1 and -1 for none. Errors, first
    match wins: COORDINATOR_LOAD_IN_PROGRESS (no producer id), CONCURRENT_TRANSACTIONS (a change is
    in progress), PRODUCER_FENCED (other producer), CONCURRENT_TRANSACTIONS (a transaction was open
    and is aborted now, or ends), PRODUCER_FENCED (other epoch), UNKNOWN_SERVER_ERROR (other epoch,
    exhausted), those of the append.
    """
    entry = shard.ids.get(name)
    if entry is None:
        producer_id = shard.env.take_producer_id(at.now_ms)
        if producer_id is None:
            answer(ProducerIdentity(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        entry = _new_entry(name, producer_id, timeout_ms)
        shard.ids[name] = entry
    error = _refusal(entry, expected)
    if error is not ErrorCode.NONE:
        answer(ProducerIdentity(error))
    elif entry.metadata.state is TransactionState.ONGOING:
        abort_open_transaction(
            shard, entry, at, lambda error, then: answer(ProducerIdentity(_after_abort(error)))
        )
    else:
        _initialize(shard, entry, timeout_ms, expected[1], at, answer)


def _new_entry(name: str, producer_id: int, timeout_ms: int) -> TransactionalId:
    """Return an id that has no epoch yet, and no record."""
    assert producer_id > NO_PRODUCER_ID, (name, producer_id)
    metadata = TransactionMetadata(
        producer_id=producer_id,
        producer_epoch=NO_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
    )
    return TransactionalId(name, metadata)


def _refusal(entry: TransactionalId, expected: tuple[int, int]) -> ErrorCode:
    """Return why a producer gets no epoch now."""
    metadata = entry.metadata
    expected_id, expected_epoch = expected
    if entry.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_own = metadata.producer_epoch == NO_EPOCH or expected_id in (
        NO_PRODUCER_ID,
        metadata.producer_id,
    )
    is_former = expected_id == metadata.previous_producer_id and expected_epoch >= LAST_EPOCH
    if not is_own and not is_former:
        return ErrorCode.PRODUCER_FENCED
    assert metadata.state not in PREPARED, "pending until it is complete"
    if metadata.state is TransactionState.ONGOING or metadata.producer_epoch == NO_EPOCH:
        return ErrorCode.NONE
    if metadata.is_exhausted:
        is_known = expected_epoch in (NO_EPOCH, metadata.producer_epoch)
        return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_SERVER_ERROR
    is_known = expected_epoch in (
        NO_EPOCH,
        metadata.producer_epoch,
        metadata.last_producer_epoch,
    )
    return ErrorCode.NONE if is_known else ErrorCode.PRODUCER_FENCED


def _after_abort(error: ErrorCode) -> ErrorCode:
    """Have the client ask again once the transaction is aborted."""
    return ErrorCode.CONCURRENT_TRANSACTIONS if error is ErrorCode.NONE else error


def _initialize(
    shard: TransactionShard,
    entry: TransactionalId,
    timeout_ms: int,
    expected_epoch: int,
    at: ClockReading,
    answer: Callable[[ProducerIdentity], None],
) -> None:
    """Write the producer's next epoch, and answer it once it is committed."""
    now, event = entry.metadata, TransactionEvent.INITIALIZED
    version = shard.env.transaction_version()
    producer_id: int | None = NO_PRODUCER_ID
    if needs_producer_id(now, event, version):
        producer_id = shard.env.take_producer_id(at.now_ms)
    if producer_id is None:
        answer(ProducerIdentity(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        return
    target = next_metadata(
        now, event, version, at.wall_ms, new_producer_id=producer_id, timeout_ms=timeout_ms
    )
    if expected_epoch == NO_EPOCH:
        target = replace(target, last_producer_epoch=NO_EPOCH)
    elif expected_epoch != now.producer_epoch and expected_epoch == now.last_producer_epoch:
        # The answer to the first copy was lost.
        target = replace(
            target,
            producer_epoch=now.producer_epoch,
            last_producer_epoch=now.last_producer_epoch,
        )

    assert target.producer_id > NO_PRODUCER_ID, target
    assert target.producer_epoch > NO_EPOCH, target

    def committed(error: ErrorCode, then: ClockReading) -> None:
        if error is ErrorCode.NONE:
            answer(ProducerIdentity(error, target.producer_id, target.producer_epoch))
            return
        if entry.pending is None and entry.metadata.producer_epoch == NO_EPOCH:
            del shard.ids[entry.name]  # it has no record
        answer(ProducerIdentity(error))

    shard.write(entry, target, at, committed)
