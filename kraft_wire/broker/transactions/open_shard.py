"""The parts of a shard of transactional ids that `fencing` and `expiry` use."""

from typing import Protocol

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback
from kraft_wire.broker.coordination.shard_log import ShardLog
from kraft_wire.broker.transactions.environment import TransactionEnvironment
from kraft_wire.broker.transactions.transactional_id import TransactionalId, TransactionMetadata

__all__ = ["OpenShard"]


class OpenShard(Protocol):
    """A shard whose log can be written: a `TransactionShard`, which documents the members."""

    env: TransactionEnvironment
    log: ShardLog
    ids: dict[str, TransactionalId]
    ongoing: dict[str, None]
    is_released: bool

    def write(
        self,
        entry: TransactionalId,
        target: TransactionMetadata,
        at: ClockReading,
        answer: CommitCallback,
    ) -> None:
        """Write a change; call `answer` once it is committed, or cannot be for now."""
        ...
