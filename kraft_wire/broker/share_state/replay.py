"""Reading a partition of `__share_group_state` back.

A record that cannot be read ends the state of no other share partition; it is counted and left
alone.
"""

from collections.abc import Iterable

from kraft_wire.broker.share_state.records import read_record
from kraft_wire.broker.share_state.state_table import StateTable
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

    __slots__ = ("_table", "ignored")

    def __init__(self, table: StateTable) -> None:
        """`table` is filled."""
        self.ignored: dict[str, int] = {}
        """Reason to number of records that were left alone."""
        self._table = table

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
            found = read_record(record.key, record.value)
        except MalformedMessage as malformed:
            self._ignore(f"malformed {malformed.field}")
            return
        if isinstance(found, str):
            self._ignore(found)
        else:
            self._table.apply(*found, record.offset)

    def _ignore(self, reason: str) -> None:
        self.ignored[reason] = self.ignored.get(reason, 0) + 1


def _records(batch: AnyBatch) -> Iterable[Record]:
    if isinstance(batch, RecordBatch):
        return batch.iter_records(STORED_LIMITS)
    return batch.records(STORED_LIMITS)
