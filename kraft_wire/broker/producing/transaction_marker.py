"""The marker that ends a transaction on a partition (KIP-98): a control batch of one record."""

from struct import Struct
from typing import Final, NamedTuple

from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = ["TransactionMarker"]

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")
_VERSION: Final = 0
_ABORT, _COMMIT = 0, 1


class TransactionMarker(NamedTuple):
    """The end of a producer's transaction, as a transaction coordinator orders it."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int = 0
    """From 2 on the producer epoch is above that of the transaction (KIP-890, KIP-1228)."""

    def batch(self, wall_ms: int) -> bytearray:
        """Return the control batch, with a timestamp of the wall clock and without offsets."""
        key = _KEY.pack(_VERSION, _COMMIT if self.is_commit else _ABORT)
        value = _VALUE.pack(_VERSION, self.coordinator_epoch)
        return build_batch(
            [Record(key, value, timestamp=wall_ms)],
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            is_transactional=True,
            is_control=True,
        )
