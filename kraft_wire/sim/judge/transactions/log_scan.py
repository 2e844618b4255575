"""The transactions of one log, read from its batches alone.

It decides the records of a read_committed reader: the transaction of each batch, where and how it
ended, and which one is still open. The scan continues where it stopped, and begins again when the
log was truncated or rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Final

from kraft_wire.sim.judge.log_watch import SeenBatch

__all__ = ["BatchHead", "LogScan", "LoggedTransaction", "head_of"]

_HEAD: Final = Struct(">hiqqqhi")
_HEAD_AT: Final = 21
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_ABORT_KEY: Final = b"\x00\x00\x00\x00"
_RECORDS_AT: Final = 61
_VARINTS_TO_KEY: Final = 3
"""Timestamp delta, offset delta and length of the key; compaction makes the first one long, because
it writes the delete horizon over the base timestamp (KIP-534)."""
_FOREIGN_PRODUCER: Final = 1 << 40
"""Producer ids from here on belong to transactions that a fault wrote."""


@dataclass(frozen=True, slots=True)
class BatchHead:
    """The producer's fields of a batch."""

    producer_id: int
    epoch: int
    sequence: int
    is_transactional: bool
    is_marker: bool
    is_commit: bool
    """Of a marker."""
    coordinator_epoch: int
    """Of a marker, else -1."""

    @property
    def is_foreign(self) -> bool:
        """Whether no coordinator knows the producer."""
        return self.producer_id >= _FOREIGN_PRODUCER


def head_of(batch: SeenBatch) -> BatchHead:
    """Read the fields of a batch's producer, and a marker's verdict."""
    attributes, _, _, _, producer_id, epoch, sequence = _HEAD.unpack_from(batch.data, _HEAD_AT)
    is_marker = bool(attributes & _CONTROL) and producer_id >= 0
    is_commit, coordinator_epoch = False, -1
    if is_marker and len(batch.data) > _RECORDS_AT:
        key_at = _key_at(batch.data)
        is_commit = batch.data[key_at : key_at + 4] != _ABORT_KEY
        value_at = key_at + 5
        coordinator_epoch = int.from_bytes(
            batch.data[value_at + 2 : value_at + 6], "big", signed=True
        )
    is_transactional = bool(attributes & _TRANSACTIONAL)
    return BatchHead(
        producer_id, epoch, sequence, is_transactional, is_marker, is_commit, coordinator_epoch
    )


def _key_at(data: bytes) -> int:
    """Return where the key of a batch's first record begins, behind its length and attributes."""
    at = _behind_varint(data, _RECORDS_AT) + 1
    for _ in range(_VARINTS_TO_KEY):
        at = _behind_varint(data, at)
    return at


def _behind_varint(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1


@dataclass(slots=True, eq=False)
class LoggedTransaction:
    """Data of one producer up to its marker."""

    producer_id: int
    epoch: int
    first_offset: int
    batches: list[SeenBatch] = field(default_factory=list)
    marker_offset: int | None = None
    marker_leader_epoch: int = -1
    is_commit: bool = False
    stable_offset: int = -1
    """The index's last stable offset: the oldest open transaction, or the marker's end."""


@dataclass(slots=True)
class LogScan:
    """The transactions of one log."""

    open: dict[int, LoggedTransaction] = field(default_factory=dict)
    """By producer id."""
    ended: list[LoggedTransaction] = field(default_factory=list)
    """In the order of their markers."""
    of_batch: dict[int, LoggedTransaction] = field(default_factory=dict)
    """By base offset."""
    epochs: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Producer id -> newest epoch, and coordinator epoch of its newest marker."""
    _seen: list[SeenBatch] = field(default_factory=list)

    def follow(self, batches: Sequence[SeenBatch]) -> None:
        """Read the new batches; all batches, if those already read have changed."""
        count = len(self._seen)
        is_same = len(batches) >= count and (
            count == 0
            or (batches[0] is self._seen[0] and batches[count - 1] is self._seen[count - 1])
        )
        if not is_same:
            self.open, self.ended, self.of_batch, self.epochs, self._seen = {}, [], {}, {}, []
            count = 0
        for batch in batches[count:]:
            self._seen.append(batch)
            self.add(batch)

    def add(self, batch: SeenBatch) -> LoggedTransaction | None:
        """Take the next batch; return the transaction that it belongs to or ends."""
        head = head_of(batch)
        if head.producer_id < 0 or not (head.is_transactional or head.is_marker):
            if head.producer_id >= 0:
                self._note_epoch(head)
            return None
        self._note_epoch(head)
        if head.is_marker:
            return self._end(batch, head)
        found = self.open.get(head.producer_id)
        if found is None:
            found = LoggedTransaction(head.producer_id, head.epoch, batch.base_offset)
            self.open[head.producer_id] = found
        found.batches.append(batch)
        self.of_batch[batch.base_offset] = found
        return found

    def _note_epoch(self, head: BatchHead) -> None:
        _, coordinator_epoch = self.epochs.get(head.producer_id, (-1, -1))
        if head.is_marker:
            coordinator_epoch = head.coordinator_epoch
        self.epochs[head.producer_id] = (head.epoch, coordinator_epoch)

    def _end(self, batch: SeenBatch, head: BatchHead) -> LoggedTransaction | None:
        found = self.open.pop(head.producer_id, None)
        if found is None:
            return None
        found.marker_offset, found.is_commit = batch.base_offset, head.is_commit
        found.marker_leader_epoch = batch.epoch
        oldest = min((each.first_offset for each in self.open.values()), default=None)
        found.stable_offset = batch.base_offset + 1 if oldest is None else oldest
        self.ended.append(found)
        return found

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return up to where a reader of committed records may read."""
        first = min((each.first_offset for each in self.open.values()), default=high_watermark)
        for each in reversed(self.ended):
            assert each.marker_offset is not None, each
            if each.marker_offset < high_watermark:
                break
            first = min(first, each.first_offset)
        return min(first, high_watermark)

    def is_aborted(self, batch: SeenBatch) -> bool:
        """Return whether a data batch is of an aborted transaction."""
        found = self.of_batch.get(batch.base_offset)
        return found is not None and found.marker_offset is not None and not found.is_commit

    def is_decided(self, batch: SeenBatch) -> bool:
        """Return whether a data batch is of no transaction, or of one with a marker."""
        found = self.of_batch.get(batch.base_offset)
        return found is None or found.marker_offset is not None
