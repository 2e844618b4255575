"""Reading a partition of `__transaction_state` back: the newest record of each id counts.

Control batches are skipped: 4.3.1 can be made to write some here,
and its own load ends at them. A record that cannot be read hides no other; the id that it is about
is dropped, because an older state of it would be wrong.
"""

from collections.abc import Iterable

from kraft_wire.broker.transactions.records import read_key, read_value
from kraft_wire.broker.transactions.transactional_id import TransactionalId
from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.message import MalformedMessage
from kraft_wire.wire.records.corruption import (
    CorruptRecordBatch,
    DecompressedTooLarge,
    InvalidRecord,
)
from kraft_wire.wire.records.memory_records import AnyBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["Replay"]


class Replay:
    """One loading of one partition."""

    def __init__(self, ids: dict[str, TransactionalId]) -> None:
        """`ids` is filled."""
        self.ignored: dict[str, int] = {}
        """Reason to number of records that were left alone."""
        self._ids = ids

    def batch(self, batch: AnyBatch) -> None:
        """Take every record of a batch, in order."""
        if isinstance(batch, RecordBatch) and batch.is_control:
            self._ignore("control batch")
            return
        try:
            for record in _records(batch):
                self._record(record)
        except (CorruptRecordBatch, DecompressedTooLarge, InvalidRecord):
            self._ignore("batch that cannot be read")

    def _record(self, record: Record) -> None:
        if record.key is None:
            self._ignore("record without key")
            return
        try:
            name = read_key(record.key)
        except MalformedMessage as malformed:
            self._ignore(f"malformed {malformed.field}")
            return
        if isinstance(name, int):
            self._ignore(f"key of version {name}")
        elif record.value is None:
            self._ids.pop(name, None)
        else:
            self._value(name, record.value)

    def _value(self, name: str, value: bytes) -> None:
        try:
            metadata = read_value(value)
        except MalformedMessage as malformed:
            self._ids.pop(name, None)
            self._ignore(f"malformed {malformed.field}")
            return
        if isinstance(metadata, int):
            self._ignore(f"value of version {metadata}")
        else:
            self._ids[name] = TransactionalId(name, metadata)

    def _ignore(self, reason: str) -> None:
        self.ignored[reason] = self.ignored.get(reason, 0) + 1


def _records(batch: AnyBatch) -> Iterable[Record]:
    if isinstance(batch, RecordBatch):
        return batch.iter_records(STORED_LIMITS)
    return batch.records(STORED_LIMITS)
