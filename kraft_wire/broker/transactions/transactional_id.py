"""One transactional id: the values of its newest record, and its change in flight."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from kraft_wire.broker.transactions.states import TransactionState
from kraft_wire.frozen import frozen, slotted
from kraft_wire.model import TopicPartition

__all__ = [
    "LAST_EPOCH",
    "NO_EPOCH",
    "NO_PARTITIONS",
    "NO_PRODUCER_ID",
    "NO_TIMESTAMP",
    "TransactionMetadata",
    "TransactionalId",
]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
LAST_EPOCH: Final = 32_766
"""The highest epoch that a client ever gets; 32,767 is for the coordinator's last marker."""
NO_PARTITIONS: Final[Mapping[TopicPartition, None]] = {}


@frozen(kw_only=True)
class TransactionMetadata:
    """The logged state of an id; every transition makes a new one."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """Takes the place of `producer_id` when the transaction completes."""
    last_producer_epoch: int = NO_EPOCH
    """The epoch before the last raise, which identifies a retry; not logged."""
    partitions: Mapping[TopicPartition, None] = field(default_factory=dict)
    start_ms: int = NO_TIMESTAMP
    """Wall time at which the first partition was added."""
    last_update_ms: int = NO_TIMESTAMP
    """Wall time of the newest transition."""
    client_version: int = 0
    """The rules by which the transaction ends: 2 for those of `transaction.version` 2, else 0."""

    @property
    def is_exhausted(self) -> bool:
        """Whether no client may get a higher epoch of this producer id."""
        return self.producer_epoch >= LAST_EPOCH


@slotted(eq=False)
class TransactionalId:
    """A transactional id in memory."""

    name: str
    metadata: TransactionMetadata
    pending: TransactionState | None = None
    """The state that a record which is not committed yet leads to, or that markers lead to.

    While there is one, other changes are refused with CONCURRENT_TRANSACTIONS.
    """
    unmarked: dict[TopicPartition, None] = field(default_factory=dict)
    """Partitions that wait for their marker."""
