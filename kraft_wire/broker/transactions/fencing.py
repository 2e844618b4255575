"""Aborting an open transaction without its producer: InitProducerId and the timeout (KIP-98).

The abort raises the epoch, so that late data and a late EndTxn of the producer fail (KIP-360). It
follows the finalized `transaction.version`, not the version of the producer's requests.
"""

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback
from kraft_wire.broker.transactions.open_shard import OpenShard
from kraft_wire.broker.transactions.states import TransactionEvent
from kraft_wire.broker.transactions.transactional_id import NO_PRODUCER_ID, TransactionalId
from kraft_wire.broker.transactions.transition import needs_producer_id, next_metadata
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["abort_open_transaction"]


def abort_open_transaction(
    shard: OpenShard, entry: TransactionalId, at: ClockReading, answer: CommitCallback
) -> None:
    """Write the abort of an open transaction, with the next epoch.

    Errors: COORDINATOR_LOAD_IN_PROGRESS without a producer id for exhausted epochs, those of the
    append.
    """
    version = shard.env.transaction_version()
    producer_id: int | None = NO_PRODUCER_ID
    if needs_producer_id(entry.metadata, TransactionEvent.FENCED, version):
        producer_id = shard.env.take_producer_id(at.now_ms)
    if producer_id is None:
        answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, at)
        return
    target = next_metadata(
        entry.metadata,
        TransactionEvent.FENCED,
        version,
        at.wall_ms,
        new_producer_id=producer_id,
    )
    shard.write(entry, target, at, answer)
