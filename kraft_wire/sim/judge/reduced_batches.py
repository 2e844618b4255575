"""The batches to which compaction may reduce a batch, by the judge's rules.

A batch that lost records keeps offsets, producer, sequence, leader epoch, codec and timestamp type;
its remaining records are unchanged. Nothing here is taken from `storage.cleaner`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["BatchFacts", "difference", "facts_of", "open_transactions"]

_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_APPEND_TIME: Final = 0x08
_HORIZON: Final = 0x40


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """One batch, decoded."""

    base_offset: int
    last_offset: int
    epoch: int
    producer: tuple[int, int, int]
    """Id, epoch and base sequence."""
    attributes: int
    """Without the bit of the delete horizon."""
    horizon_ms: int | None
    max_timestamp: int
    records: dict[int, Record]
    """By offset."""

    @property
    def is_control(self) -> bool:
        """Whether it holds a transaction's marker."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_abort(self) -> bool:
        """Whether a marker aborts: its key is a version and a type, where type 0 is an abort."""
        return any(
            record.key is not None and int.from_bytes(record.key[2:4], "big") == 0
            for record in self.records.values()
        )

    @property
    def is_transactional(self) -> bool:
        """Whether a marker decides about its records."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_append_time(self) -> bool:
        """Whether the leader stamped it."""
        return bool(self.attributes & _APPEND_TIME)


def facts_of(batch: SeenBatch) -> BatchFacts:
    """Return the fields and records of a batch."""
    return _decoded(batch.data)


@lru_cache(maxsize=4_096)
def _decoded(data: bytes) -> BatchFacts:
    head = RecordBatch(memoryview(data))
    has_horizon = bool(head.attributes & _HORIZON)
    return BatchFacts(
        head.base_offset,
        head.base_offset + head.last_offset_delta,
        head.partition_leader_epoch,
        (head.producer_id, head.producer_epoch, head.base_sequence),
        head.attributes & ~_HORIZON,
        head.base_timestamp if has_horizon else None,
        head.max_timestamp,
        {record.offset: record for record in head.records()},
    )


def difference(original: SeenBatch, reduced: SeenBatch) -> str | None:
    """Return why a batch is not a reduction of another one, None if it is one."""
    if original.crc == reduced.crc and original.identity == reduced.identity:
        return None
    before, after = facts_of(original), facts_of(reduced)
    for name in ("base_offset", "last_offset", "epoch", "producer", "attributes"):
        if getattr(before, name) != getattr(after, name):
            return f"{name} {getattr(before, name)} became {getattr(after, name)}"
    for offset, record in after.records.items():
        if before.records.get(offset) != record:
            return f"record {offset} is another one"
    allowed = [before.max_timestamp]
    if not before.is_append_time:
        # An emptied batch keeps the time of the last records that were left.
        left = after.records or before.records
        times = [record.timestamp for record in left.values()]
        allowed = [max(times)] if after.records else [*allowed, *times]
    if after.max_timestamp not in allowed:
        return f"largest time {after.max_timestamp} instead of {allowed}"
    if before.horizon_ms not in (None, after.horizon_ms):
        return f"delete horizon {before.horizon_ms} became {after.horizon_ms}"
    return None


def open_transactions(batches: list[SeenBatch]) -> tuple[int | None, dict[int, bool]]:
    """Return where the first transaction without a marker begins, and the aborted batches.

    The second is the base offset of each batch of an aborted transaction.
    """
    first: dict[int, int] = {}
    under_way: dict[int, list[int]] = {}
    aborted: dict[int, bool] = {}
    for batch in batches:
        facts = facts_of(batch)
        producer_id = facts.producer[0]
        if facts.is_control:
            first.pop(producer_id, None)
            for base in under_way.pop(producer_id, []):
                # Of an emptied marker the leader had no records any more: none is missed.
                aborted[base] = facts.is_abort or not facts.records
        elif facts.is_transactional:
            first.setdefault(producer_id, facts.base_offset)
            under_way.setdefault(producer_id, []).append(facts.base_offset)
    found = dict.fromkeys((base for base, is_aborted in aborted.items() if is_aborted), True)
    return min(first.values(), default=None), found
