"""One compaction of one log, judged by the batches before and after it.

Each batch is unchanged, or lost what a newer record of its key, a delete horizon or an aborted
transaction lets go. Nothing at or behind the limit is touched: KIP-58, KIP-98, KIP-354.

Errors: `Violation`. The ids are in docs/SIMULATION.md.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.judge.data_log_watch import SeenSegment
from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.judge.reduced_batches import BatchFacts, difference, facts_of, open_transactions
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.replica_watch import ReplicaWatch

__all__ = ["COMPACTION_KEEPS", "CompactionPass", "limit_of", "newest_ms", "with_appended"]

COMPACTION_KEEPS: Final = "S50 CompactionKeeps"
_BOUNDS: Final = "S51 CompactionBounds"


class CompactionPass:
    """One compaction of one log, as the judge sees it afterwards."""

    def __init__(
        self, judge: ReplicaJudge, watch: ReplicaWatch, segments: list[SeenSegment]
    ) -> None:
        """`segments`: the log as it was when the pass began."""
        self.judge = judge
        self.watch = watch
        self.wall_ms = watch.machine.wall_ms
        assert watch.truth.rules is not None, watch.truth.name
        self.rules = watch.truth.rules
        self.limit = limit_of(watch, tuple(segments))
        batches = [batch for segment in segments for batch in segment.batches]
        _, self.aborted = open_transactions(batches)
        self.needed = _markers_with_records(batches)
        self.newest: dict[bytes, int] = {}
        self.last_of_producer: dict[int, int] = {}
        """Producer id -> base offset of its last batch."""
        self._data_epochs: dict[int, int] = {}
        """Producer id -> epoch of its last data."""
        for batch in batches:
            facts = facts_of(batch)
            self._note_producer(facts)
            if batch.end_offset <= self.limit and not self._has_no_say(batch):
                for offset, record in facts.records.items():
                    if record.key is not None:
                        self.newest[bytes(record.key)] = offset

    def _note_producer(self, facts: BatchFacts) -> None:
        """Store a producer's last data batch, or a marker if its epoch has no data."""
        producer_id, epoch, _ = facts.producer
        if producer_id < 0:
            return
        if not (facts.is_control and self._data_epochs.get(producer_id) == epoch):
            self.last_of_producer[producer_id] = facts.base_offset
        if not facts.is_control:
            self._data_epochs[producer_id] = epoch

    def _has_no_say(self, batch: SeenBatch) -> bool:
        return batch.is_control or batch.base_offset in self.aborted

    def look_at(self, before: SeenBatch, after: SeenBatch | None) -> None:
        """Judge the change of one batch."""
        check, watch = self.judge.check, self.watch
        own = facts_of(before)
        if after is not None and after.crc == before.crc:
            if after.segment is not before.segment and not self._has_no_say(before):
                is_due = any(r.value is None for r in own.records.values())
                check(
                    COMPACTION_KEEPS,
                    own.horizon_ms is not None or not is_due,
                    watch,
                    before.identity,
                    "has a tombstone and no delete horizon",
                )
            return
        is_below = before.end_offset <= self.limit
        check(_BOUNDS, is_below, watch, before.identity, "is not below", self.limit)
        kept = {} if after is None else facts_of(after).records
        why = None if after is None else difference(before, after)
        check(COMPACTION_KEEPS, why is None, watch, before.identity, why)
        for offset in own.records:
            if offset not in kept:
                is_due = self._may_go(before, offset)
                check(COMPACTION_KEEPS, is_due, watch, "lost", offset, "of", before.identity)
        if after is None:
            is_last = self.last_of_producer.get(own.producer[0]) == before.base_offset
            is_needed = is_last and before.end_offset > watch.log_start
            check(COMPACTION_KEEPS, not is_needed, watch, before.identity, "is its producer's last")
            return
        if not kept and own.records:
            self.judge.marks["batch emptied and kept"] += 1
        horizon_ms = facts_of(after).horizon_ms
        if horizon_ms is not None and own.horizon_ms is None:
            wanted = self.wall_ms + self.rules.delete_retention_ms
            check(
                COMPACTION_KEEPS, horizon_ms == wanted, watch, "delete horizon", horizon_ms, wanted
            )
            self.judge.marks["delete horizon set"] += 1

    def _may_go(self, batch: SeenBatch, offset: int) -> bool:
        """Return whether a record is superseded, or a tombstone past its horizon."""
        facts = facts_of(batch)
        record = facts.records[offset]
        is_past = facts.horizon_ms is not None and facts.horizon_ms < self.wall_ms
        marks = self.judge.marks
        if facts.is_control:
            return is_past and batch.base_offset not in self.needed
        if batch.base_offset in self.aborted:
            marks["aborted record removed"] += 1
            return True
        if record.key is None or self.newest.get(bytes(record.key), -1) > offset:
            return True
        if record.value is None and is_past:
            marks["tombstone removed"] += 1
            return True
        return False


def _markers_with_records(batches: list[SeenBatch]) -> dict[int, None]:
    """Return the base offsets of markers whose transactions still have records in a log."""
    open_: dict[int, None] = {}
    found: dict[int, None] = {}
    for batch in batches:
        facts = facts_of(batch)
        producer_id = facts.producer[0]
        if facts.is_control:
            if producer_id in open_:
                del open_[producer_id]
                found[batch.base_offset] = None
        elif facts.is_transactional and facts.records:
            open_[producer_id] = None
    return found


def limit_of(watch: ReplicaWatch, segments: tuple[SeenSegment, ...]) -> int:
    """Return the first offset that compaction must not touch: KIP-58, KIP-98, KIP-354.

    The active segment, uncommitted records, an open transaction, records younger than the lag.
    """
    rules = watch.truth.rules
    assert rules is not None, watch.truth.name
    limit = min(watch.state[1], segments[-1].base_offset if segments else 0)
    batches = [batch for segment in segments for batch in segment.batches]
    first, _ = open_transactions(batches)
    if first is not None:
        limit = min(limit, first)
    if rules.min_lag_ms:
        oldest_ms = watch.machine.wall_ms - rules.min_lag_ms
        young = (each.base_offset for each in segments[:-1] if newest_ms(each) > oldest_ms)
        limit = min(limit, next(young, limit))
    return limit


def with_appended(before: list[SeenSegment], after: tuple[SeenSegment, ...]) -> list[SeenSegment]:
    """Add the segments that were begun in the event that compacted, as they are now.

    The pass may then compact the segment that was active before the event.
    """
    end, active = before[-1].end_offset, after[-1]
    if active.base_offset < end:
        return before
    sealed = [
        batch for segment in after[:-1] for batch in segment.batches if batch.base_offset >= end
    ]
    return [*before, SeenSegment(end, active.base_offset, tuple(sealed)), active]


def newest_ms(segment: SeenSegment) -> int:
    """Return the newest time in a segment, -1 without a batch."""
    return max((facts_of(batch).max_timestamp for batch in segment.batches), default=-1)
