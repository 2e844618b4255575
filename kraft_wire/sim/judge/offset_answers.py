"""The right answers of ListOffsets and OffsetForLeaderEpoch, from the judge's own reading.

A leader answers at some moment between request and answer. If its replica was the same at both, the
answer is compared with the result of the raw segments and of the leader epochs of committed
batches; else only its bounds are judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kraft_wire.sim.judge.log_watch import SeenBatch
from kraft_wire.sim.judge.partition_truth import PartitionTruth
from kraft_wire.sim.judge.reduced_batches import facts_of
from kraft_wire.sim.judge.replica_judge import ReplicaJudge
from kraft_wire.sim.judge.violation import Violation

__all__ = ["EARLIEST", "LATEST", "MAX_TIMESTAMP", "OffsetAnswers", "Place"]

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
_ANSWERS: Final = "S55 OffsetAnswers"
_EPOCHS: Final = "S56 EpochOfOffset"
_FENCED: Final = "S27 StaleIsFenced"
_NOTHING: Final = (-1, -1)


@dataclass(frozen=True, slots=True)
class Place:
    """The state of a leader's replica at one moment."""

    node_id: int
    life: int
    state: tuple[int, int, int, bool]
    log_start: int
    batches: tuple[int, ...]
    """The checksums of its batches."""


class OffsetAnswers:
    """Judges answers about offsets."""

    def __init__(self, judge: ReplicaJudge) -> None:
        self.judge = judge

    def place(self, node_id: int, truth: PartitionTruth) -> Place:
        """Return the present state of a replica."""
        watch = self.judge.watch_of(node_id, truth)
        machine = watch.machine
        if machine.node is not None and not watch.log.is_unchanged(machine.fs):
            watch.look()
        start = watch.log.start_offset if truth.rules is None else watch.log_start
        checksums = tuple(batch.crc for batch in watch.log.batches)
        return Place(node_id, machine.life, watch.state, start, checksums)

    def answered_in_epoch(
        self, truth: PartitionTruth, before: Place, epoch: int, error_code: int
    ) -> None:
        """KIP-320: a request with an earlier leader epoch than the leader's is fenced."""
        is_old = before.state[3] and epoch < before.state[2]
        now = self.place(before.node_id, truth)
        if is_old and now.life == before.life and error_code == 0 and not truth.is_deleted:
            self._wrong(_FENCED, truth, before, "answers epoch", epoch)
        self.judge.marks["client fenced"] += is_old
        self.judge.looked[_FENCED] += 1

    def listed(
        self, truth: PartitionTruth, before: Place, asked: int, answer: tuple[int, int, int]
    ) -> None:
        """Judge an answer of ListOffsets without an error: timestamp, offset, leader epoch."""
        timestamp, offset, epoch = answer
        now = self.place(before.node_id, truth)
        if asked == EARLIEST and offset < before.log_start and now.life == before.life:
            self._wrong(_ANSWERS, truth, before, "earliest", offset, "below", before.log_start)
        if now != before or not before.state[3] or truth.is_deleted:
            return
        self.judge.looked[_ANSWERS] += 1
        self.judge.marks[f"offset answer {_NAMES.get(asked, 'by time')} judged"] += 1
        if asked in (LATEST, EARLIEST):
            wanted = before.state[1] if asked == LATEST else before.log_start
            if (timestamp, offset) != (-1, wanted):
                self._wrong(_ANSWERS, truth, before, asked, answer, "instead of", wanted)
            if asked == EARLIEST:
                self._epoch_of_start(truth, before, offset, epoch)
            elif epoch != before.state[2]:
                self._wrong(_EPOCHS, truth, before, asked, epoch, "of", before.state[2])
            return
        found = self._search(truth, before, asked)
        if found is None:
            return
        wanted_at, batch = found
        if (timestamp, offset) != wanted_at:
            self._wrong(_ANSWERS, truth, before, asked, answer, "instead of", wanted_at)
        if batch is not None and epoch != batch.epoch:
            self._wrong(_EPOCHS, truth, before, asked, epoch, "instead of", batch.epoch)

    def _search(
        self, truth: PartitionTruth, place: Place, asked: int
    ) -> tuple[tuple[int, int], SeenBatch | None] | None:
        """Return time and offset of the requested record, with its batch.

        None if it depends on uncommitted records.
        """
        end, high_watermark = place.state[:2]
        batches = self.judge.watch_of(place.node_id, truth).log.batches
        records = list(_records_of(batches, place.log_start))
        if asked == MAX_TIMESTAMP:
            if end != high_watermark:
                return None
            asked = max((timestamp for timestamp, _, _ in records), default=0)
            if any(facts_of(batch).max_timestamp > asked for batch in batches):
                return None  # a batch that compaction emptied keeps its time, as in 4.3.1
        for timestamp, offset, batch in records:
            if timestamp >= asked:
                return ((timestamp, offset), batch) if offset < high_watermark else (_NOTHING, None)
        return _NOTHING, None

    def _epoch_of_start(self, truth: PartitionTruth, place: Place, offset: int, epoch: int) -> None:
        """KIP-320: the earliest offset comes with the leader epoch of the record there."""
        batch = truth.batch_before(offset + 1)
        if batch is None or offset >= place.state[1]:
            return  # no record is left that this leader, perhaps a replaced one, knows as committed
        is_compacted = truth.rules is not None and truth.rules.is_compacted
        if epoch != batch.epoch and not (is_compacted and epoch == -1):
            self._wrong(_EPOCHS, truth, place, "earliest", offset, epoch, "not", batch.epoch)
        self.judge.looked[_EPOCHS] += 1
        if batch.epoch != place.state[2]:
            self.judge.marks["earliest offset of an earlier epoch"] += 1

    def epoch_ended(
        self, truth: PartitionTruth, before: Place, asked: int, answer: tuple[int, int]
    ) -> None:
        """Judge an answer of OffsetForLeaderEpoch without an error: epoch and its end."""
        now = self.place(before.node_id, truth)
        if now != before or not before.state[3] or truth.is_deleted:
            return
        self.judge.looked[_EPOCHS] += 1
        epoch, end = answer
        batches = self.judge.watch_of(before.node_id, truth).log.batches
        later = [b for b in batches if b.epoch > asked and b.end_offset > before.log_start]
        # Epochs before the log start end there: its entry is the first, as in Kafka.
        until = max(later[0].base_offset, before.log_start) if later else before.state[0]
        if asked > before.state[2]:
            if answer != _NOTHING:
                self._wrong(_EPOCHS, truth, before, "epoch", asked, "ends", answer)
            return
        held = {batch.epoch for batch in batches} | {before.state[2]}
        if asked in held:
            self.judge.marks["end of an epoch judged"] += 1
            is_compacted = truth.rules is not None and truth.rules.is_compacted
            committed = [b.base_offset for b in truth.batches if b.epoch > asked]
            least = committed[0] if is_compacted and committed else until
            whole = [b.base_offset for b in batches if b.epoch > asked]
            if whole and whole[0] < before.log_start:
                least = whole[
                    0
                ]  # an epoch is forgotten with its last segment, not by DeleteRecords
            if epoch != asked or not least <= end <= until:
                wanted = (asked, least, until)
                self._wrong(_EPOCHS, truth, before, "epoch", asked, answer, "not", wanted)
        elif end > until:
            self._wrong(_EPOCHS, truth, before, "epoch", asked, answer, "beyond", until)

    def _wrong(self, invariant: str, truth: PartitionTruth, place: Place, *facts: object) -> None:
        raise Violation(invariant, place.node_id, truth.name, *facts, place.state, place.log_start)


_NAMES: Final = {LATEST: "latest", EARLIEST: "earliest", MAX_TIMESTAMP: "max timestamp"}


def _records_of(batches: list[SeenBatch], start: int) -> Iterator[tuple[int, int, SeenBatch]]:
    """Yield time, offset and batch of the records from a log start on."""
    for batch in batches:
        if batch.end_offset > start:
            for offset, record in facts_of(batch).records.items():
                if offset >= start:
                    yield record.timestamp, offset, batch
