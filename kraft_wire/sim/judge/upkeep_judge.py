"""Judges brokers' changes of logs besides appends: compaction, retention, DeleteRecords, stamping.

Each replica of a topic with rules (`upkeep_topics`) is checked after each event of its broker. A
rewritten segment must be a valid compaction, up to the offset where it has to stop. A removed
segment must be due. The log start only rises, to where a leader has rightly moved it. A leader
stamps its own time. Due work must be done: a log that could be compacted or shortened is not left
as it is. Nothing is shared with `storage.cleaner` and `storage.retention`.

Errors: `Violation`. The ids are in docs/SIMULATION.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import takewhile
from operator import attrgetter
from typing import Final, cast

from kraft_wire.broker.partition import Partition
from kraft_wire.sim.judge.compaction_pass import (
    COMPACTION_KEEPS,
    CompactionPass,
    limit_of,
    newest_ms,
    with_appended,
)
from kraft_wire.sim.judge.data_log_watch import DataLogWatch, LogEdit, SeenSegment
from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.judge.reduced_batches import facts_of, open_transactions
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.replica_watch import ReplicaWatch
from kraft_wire.sim.judge.segment_files import SegmentFiles
from kraft_wire.sim.machine_state import MachineState, running
from kraft_wire.sim.upkeep_topics import INDEX_INTERVAL_BYTES, LogRules
from kraft_wire.storage.log import Log

__all__ = ["UpkeepJudge"]

_START: Final = "S52 LogStartMonotone"
_RETENTION: Final = "S53 RetentionAllowed"
_STAMPED: Final = "S54 AppendTime"
_ROLLED: Final = "S74 SegmentsRoll"
_INDEX_ENTRY_BYTES: Final = 8
_SLACK_MS: Final = 3_000
"""A check of the retention every second, and short stalls."""
_UP_TO_HIGH_WATERMARK: Final = -1
_base_offset: Final = attrgetter("base_offset")


class UpkeepJudge:
    """Judges the replicas whose logs are compacted or cut from the front."""

    def __init__(self, judge: ReplicaJudge) -> None:
        self.judge = judge
        self.files = SegmentFiles(judge, interval_bytes=INDEX_INTERVAL_BYTES)

    # -- events ----------------------------------------------------------------------------------

    def after(self, machine: MachineState, event: str) -> None:
        """A broker has taken an event."""
        assert machine.node is not None, machine.id
        for watch, partition in self._ruled(machine):
            log = cast(Log, partition.log)
            before, watch.log_start = watch.log_start, log.log_start_offset
            are_others = watch.segments != log.segments
            if are_others:
                watch.segments = list(log.segments)
                watch.look()
            assert isinstance(watch.log, DataLogWatch), watch.truth.name
            edits, watch.log.edits = watch.log.edits, []
            for edit in edits:
                self._edited(watch, edit, before)
            if watch.log_start != before:
                self._start_moved(watch, before, event, edits)
            if are_others:
                self.files.look_at(watch)
            watch.has_led = partition.is_leader

    def about_to_die(self, machine: MachineState) -> None:
        """A process dies within an event: segments that it has removed by then are gone.

        Its log start may already be higher in memory; the next process only knows it by them. A
        disk error that ends the process has already taken its logs offline.
        """
        for watch, _ in self._ruled(machine, is_failing=True):
            watch.look()
            assert isinstance(watch.log, DataLogWatch), watch.truth.name
            for edit in watch.log.edits:
                if not _begins_anew([edit]):
                    self._removed(watch, edit, _removed_by(edit), watch.log_start)

    def _ruled(
        self, machine: MachineState, *, is_failing: bool = False
    ) -> Iterator[tuple[ReplicaWatch, Partition]]:
        """Yield the replicas of a running broker that must be checked; offline ones if it fails."""
        assert machine.node is not None, machine.id
        partitions = machine.node.broker.partitions
        for watch in self.judge.watches.get(machine.id, {}).values():
            truth = watch.truth
            partition = partitions.get((truth.topic, truth.number))
            is_known = partition is not None and watch.partition is partition
            if truth.rules is None or truth.is_deleted or not is_known or partition is None:
                continue
            is_online = not partition.offline and partition.log is not None
            if is_online or is_failing:
                yield watch, partition

    def appended(self, watch: ReplicaWatch, batch: SeenBatch) -> None:
        """A batch was appended to a log; a batch of its leader has the leader's time."""
        truth = watch.truth
        if truth.rules is None:
            return
        self._look_at_roll(watch, batch, truth.rules)
        if not truth.rules.is_append_time or batch.is_control:
            return
        facts = facts_of(batch)
        self._check(_STAMPED, facts.is_append_time, watch, batch.identity, "is not stamped")
        if watch.state[3] and watch.state[2] == batch.epoch == truth.leader_epoch:
            wall_ms = watch.machine.wall_ms
            is_own = (
                facts.max_timestamp == wall_ms
                or truth.originals[batch.epoch, batch.base_offset] is not batch
            )
            shown = (batch.identity, facts.max_timestamp, "at", wall_ms)
            self._check(_STAMPED, is_own, watch, *shown)

    def _look_at_roll(self, watch: ReplicaWatch, batch: SeenBatch, rules: LogRules) -> None:
        """A leader appends one batch at a time, so that each but the first has an index entry.

        An older segment than the newest one may have been merged in the same event.
        """
        is_own = watch.state[3] and batch.epoch == watch.state[2]
        if not is_own or batch.segment is not watch.log.batches[-1].segment:
            return
        at = bisect_right(watch.log.batches, batch.base_offset, key=_base_offset)
        same = takewhile(
            lambda each: each.segment is batch.segment, watch.log.batches[at - 1 :: -1]
        )
        epochs = [each.epoch for each in same]
        if epochs[-1] == batch.epoch:  # it has appended all of them itself
            most = rules.index_bytes // _INDEX_ENTRY_BYTES + 1
            self._check(_ROLLED, len(epochs) <= most, watch, len(epochs), "batches, not", most)

    def _check(self, invariant: str, holds: bool, watch: ReplicaWatch, *facts: object) -> None:
        self.judge.check(invariant, holds, watch, *facts)

    # -- the log start ---------------------------------------------------------------------------

    def _start_moved(
        self, watch: ReplicaWatch, before: int, event: str, edits: list[LogEdit]
    ) -> None:
        truth, now = watch.truth, watch.log_start
        high_watermark = watch.state[1]
        self._check(_START, now <= high_watermark, watch, now, "above", high_watermark)
        is_empty = not watch.log.batches and now == high_watermark  # S04 judges what it had
        is_new = before < 0 or is_empty or _begins_anew(edits)
        self._check(_START, is_new or now > before, watch, before, "became", now)
        if now > truth.start and event == "receive" and watch.has_led:
            ordered = truth.starts_ordered
            # A restarted leader with too few replicas in sync keeps an older high watermark.
            ends = (truth.end, high_watermark)
            is_ordered = now in ordered or (_UP_TO_HIGH_WATERMARK in ordered and now in ends)
            self._check(_RETENTION, is_ordered, watch, now, "of", ordered[-3:])
            truth.start = now
            self.judge.marks["records deleted by the operator"] += 1
            if truth.batch_before(now + 1) is not None and truth.is_inside_batch(now):
                self.judge.marks["log start inside a batch"] += 1
            if truth.ends_epoch(now):
                self.judge.marks["log start at an epoch's end"] += 1
        self._check(_RETENTION, now <= truth.start, watch, before, "became", now, truth.start)

    # -- segments --------------------------------------------------------------------------------

    def _edited(self, watch: ReplicaWatch, edit: LogEdit, start: int) -> None:
        """`start`: the log start offset before the event."""
        if _begins_anew([edit]):
            self.judge.marks["log begun anew"] += 1
            return
        removed = _removed_by(edit)
        if removed:
            self._removed(watch, edit, removed, start)
        if edit.is_rewritten:
            kept = list(edit.before[len(removed) :])
            self._rewritten(watch, kept, edit.after)

    def _removed(
        self, watch: ReplicaWatch, edit: LogEdit, removed: list[SeenSegment], start: int
    ) -> None:
        """S53: segments are removed from the front, below the high watermark, when they are due."""
        truth, wall_ms, high_watermark = watch.truth, watch.machine.wall_ms, watch.state[1]
        rules = truth.rules
        assert rules is not None, truth.name
        excess = sum(each.size_bytes for each in edit.before) - rules.retention_bytes
        for segment in removed:
            why = ""
            if segment.end_offset <= max(start, truth.start):
                why = "below the log start"
            elif rules.is_deleted and _is_expired(segment, rules, wall_ms):
                why = "expired"
            elif rules.is_deleted and rules.retention_bytes >= 0 and segment.size_bytes <= excess:
                why = "beyond the size"
            facts = (segment.base_offset, segment.end_offset, "excess", excess, "at", wall_ms)
            self._check(_RETENTION, bool(why), watch, *facts)
            is_below = segment.end_offset <= high_watermark
            self._check(_RETENTION, is_below, watch, *facts, "committed to", high_watermark)
            self.judge.marks[f"segment removed {why}"] += 1
            if why == "expired" and segment is edit.before[-1]:
                self.judge.marks["active segment expired"] += 1
            excess -= segment.size_bytes
            truth.start = max(truth.start, segment.end_offset)

    def _rewritten(
        self, watch: ReplicaWatch, before: list[SeenSegment], after: tuple[SeenSegment, ...]
    ) -> None:
        """S50, S51: each batch is unchanged, or a valid compaction."""
        marks = self.judge.marks
        marks["log compacted"] += 1
        if any(each.has_open_transaction for each in self.judge.truth.existing()):
            is_beside = not watch.truth.has_open_transaction
            marks["log compacted beside an open transaction"] += is_beside
        own = [batch for segment in before for batch in segment.batches]
        pass_ = CompactionPass(self.judge, watch, with_appended(before, after))
        left = {batch.base_offset: batch for segment in after for batch in segment.batches}
        for batch in own:
            pass_.look_at(batch, left.pop(batch.base_offset, None))
        invented = [base for base in left if base < before[-1].end_offset]
        self._check(COMPACTION_KEEPS, not invented, watch, "invented", invented)
        if len(after) < len(before):
            marks["segments merged"] += 1

    # -- due work --------------------------------------------------------------------------------

    def why_overdue(self) -> str | None:
        """Return the running broker that has not done due work, None without one."""
        for machine in running(self.judge.stage.machines.values()):
            if machine.is_broker_only:
                for watch, _ in self._ruled(machine):
                    why = self.overdue(watch)
                    if why is not None:
                        return f"{machine.id} {watch.truth.name}: {why}"
        return None

    def overdue(self, watch: ReplicaWatch) -> str | None:
        """Return the due work of a broker in one log, None without any."""
        rules = watch.truth.rules
        assert rules is not None, watch.truth.name
        assert isinstance(watch.log, DataLogWatch), watch.truth.name
        if not watch.log.is_unchanged(watch.machine.fs):
            watch.look()
        segments = watch.log.segments
        if rules.is_deleted:
            high_watermark, wall_ms = watch.state[1], watch.machine.wall_ms
            why = _retention_due(segments, rules, high_watermark, wall_ms)
            if why is not None:
                return why
        if segments and segments[0].end_offset <= watch.log_start and len(segments) > 1:
            return f"segment {segments[0].base_offset} is below {watch.log_start}"
        return self._compaction_due(watch, segments, rules) if rules.is_compacted else None

    def _compaction_due(
        self, watch: ReplicaWatch, segments: tuple[SeenSegment, ...], rules: LogRules
    ) -> str | None:
        """Return a superseded record whose log has enough dirty bytes.

        A segment with a newer record of its key was never compacted, nor were later segments. A
        segment that a pass has emptied is as old as its file, so `min.compaction.lag.ms` may hold
        it, if the process died before it wrote the cleaner checkpoint.
        """
        limit = limit_of(watch, segments)
        if rules.min_lag_ms:
            emptied = (each.base_offset for each in segments[:-1] if not each.batches)
            limit = min(limit, next(emptied, limit))
        if watch.truth.has_open_transaction and limit > watch.log_start:
            # A record below the log start may still count, as in 4.3.1.
            first, _ = open_transactions(watch.truth.batches)
            if first is not None and first < watch.log_start:
                return None
        cleanable = [each for each in segments[:-1] if each.end_offset <= limit]
        newest: dict[bytes, tuple[int, int]] = {}
        dirty_from: int | None = None
        why = ""
        for number, segment in enumerate(cleanable):
            for key, offset in _keys_of(segment):
                if key in newest and offset >= watch.log_start:
                    older = newest[key]
                    if older[0] >= watch.log_start and (dirty_from is None or number < dirty_from):
                        dirty_from, why = number, f"{older[0]} is superseded by {offset}"
                newest[key] = (offset, number)
        if dirty_from is None:
            return None
        total = sum(each.size_bytes for each in cleanable)
        dirty = sum(each.size_bytes for each in cleanable[dirty_from:])
        if dirty <= rules.dirty_ratio * total:
            return None
        return f"{why}, below {limit}, {dirty} of {total} bytes are dirty"

    # -- the end ---------------------------------------------------------------------------------

    def compare(self, watch: ReplicaWatch) -> None:
        """S09, S50: a log has all committed records that policies do not remove."""
        truth, log = watch.truth, watch.log
        found: dict[int, bool] = {}
        for own in log.batches:
            committed = truth.batch_before(own.end_offset)
            is_read = watch.log_start < own.end_offset <= truth.end
            is_known = not is_read or truth.is_same(own, committed)
            is_known = is_known or self.judge.is_gone_from_leader(truth, own.end_offset)
            self._check("S09 CommittedIsForever", is_known, watch, own.identity)
            found.update(dict.fromkeys(facts_of(own).records, True))
        rules = truth.rules
        assert rules is not None, truth.name
        start = max(watch.log_start, log.start_offset)
        for batch in truth.batches:
            facts = facts_of(batch)
            if facts.is_control or facts.is_transactional:
                continue
            for offset, record in facts.records.items():
                is_due = rules.is_compacted and truth.is_superseded(record)
                is_there = offset < start or is_due or offset in found
                self._check(
                    COMPACTION_KEEPS, is_there, watch, "lacks", offset, record.key, "from", start
                )


def _begins_anew(edits: list[LogEdit]) -> bool:
    """Return whether a log was dropped as a whole, and begun where a leader's log begins."""
    return any(
        not edit.is_rewritten and edit.after[0].base_offset > edit.before[-1].end_offset
        for edit in edits
    )


def _removed_by(edit: LogEdit) -> list[SeenSegment]:
    """Return the segments that an edit has taken from the front."""
    return [each for each in edit.before if each.end_offset <= edit.after[0].base_offset]


def _is_expired(segment: SeenSegment, rules: LogRules, wall_ms: int) -> bool:
    if rules.retention_ms < 0 or not segment.batches:
        return False
    return wall_ms - newest_ms(segment) > rules.retention_ms


def _retention_due(
    segments: tuple[SeenSegment, ...], rules: LogRules, high_watermark: int, wall_ms: int
) -> str | None:
    """Return why the oldest segment should have been removed, None if it may stay."""
    if not segments or segments[0].end_offset > high_watermark:
        return None
    oldest = segments[0]
    if _is_expired(oldest, rules, wall_ms - _SLACK_MS):
        return f"segment {oldest.base_offset} has expired"
    excess = sum(each.size_bytes for each in segments) - rules.retention_bytes
    if rules.retention_bytes >= 0 and oldest.size_bytes <= excess and len(segments) > 1:
        return f"segment {oldest.base_offset} is beyond {rules.retention_bytes} bytes"
    return None


def _keys_of(segment: SeenSegment) -> Iterator[tuple[bytes, int]]:
    """Yield key and offset of the data records of a segment."""
    for batch in segment.batches:
        facts = facts_of(batch)
        if facts.is_control or facts.is_transactional:
            continue
        for offset, record in facts.records.items():
            if record.key is not None:
                yield bytes(record.key), offset
