"""Leader epochs that began in a gap of the leader's log, before their first batch that is left.

Compaction removes batches, and with them the record of where a leader epoch began: a follower that
took the first batch it gets for that begin would name a later offset. As a leader, it would then
not have a former leader truncate uncommitted records of the epoch before, which lie in the gap. The
leader still knows: OffsetForLeaderEpoch names where the epochs before ended (KIP-101), so the
follower asks for these, the newest first, before it appends the batch. Apache Kafka does not ask
(docs/DEVIATIONS.md).

Not here: the requests (`leader_questions`), and the append (`following`).
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["GapEpochs", "count_before_gap"]

_EPOCHS_MAX: Final = 1_000
"""Epochs that are asked for in one gap; a sound leader has fewer."""


def count_before_gap(batches: Sequence[RecordBatch], end_offset: int, latest_epoch: int) -> int:
    """Return how many batches come before the first one that begins an epoch behind a gap.

    `end_offset` and `latest_epoch` (-1 for none) are those of the log before the batches. Epoch 0
    follows no other.
    """
    if not batches or batches[-1].partition_leader_epoch == latest_epoch:
        return len(batches)
    for index, batch in enumerate(batches):
        epoch = batch.partition_leader_epoch
        if epoch not in (latest_epoch, 0) and batch.base_offset > end_offset:
            return index
        end_offset, latest_epoch = batch.next_offset, epoch
    return len(batches)


class GapEpochs:
    """The epochs that began between the end of a log and the next batch of its leader."""

    __slots__ = ("_begins", "_latest", "end_offset", "epoch", "is_known")

    def __init__(self, end_offset: Offset, latest_epoch: int, batch: RecordBatch) -> None:
        """`latest_epoch` is that of the log, -1 for none; `batch` is the first behind the gap."""
        assert end_offset < batch.base_offset, (end_offset, batch)
        self.end_offset = end_offset
        self.epoch = LeaderEpoch(batch.partition_leader_epoch)
        self.is_known = False
        """Whether the leader has named all."""
        self._latest = latest_epoch
        self._begins = [OffsetAndEpoch(Offset(batch.base_offset), self.epoch)]
        """Newest first; the last one began there, or earlier."""

    @property
    def asked_epoch(self) -> LeaderEpoch:
        """The epoch whose end is asked for: where it ended, the last one that is known began."""
        return LeaderEpoch(self._begins[-1].epoch - 1)

    @property
    def begins(self) -> list[OffsetAndEpoch]:
        """Where each epoch began, oldest first; the last is that of the batch."""
        return self._begins[::-1]

    def is_before(self, end_offset: Offset, batch: RecordBatch) -> bool:
        """Return whether the gap is the one between a log's end and a batch, and all is known.

        Another compaction may have widened it since; only a wrong leader makes it narrower.
        """
        is_same = end_offset == self.end_offset and batch.partition_leader_epoch == self.epoch
        return self.is_known and is_same and self._begins[0].offset <= batch.base_offset

    def take(self, epoch: int, end_offset: int) -> None:
        """Take the leader's largest epoch up to `asked_epoch`, and its end; -1 if it has none.

        A leader that does not know the asked epoch any more names it with the start of its log's
        first one, which says nothing about epochs before that.
        """
        assert not self.is_known, self.epoch
        upper, newest = self._begins[-1]
        begin = Offset(max(end_offset, self.end_offset))
        self.is_known = True
        if end_offset < 0 or begin >= upper:
            if len(self._begins) > 1:
                self._begins.pop()
            return
        self._begins[-1] = OffsetAndEpoch(begin, newest)
        is_in_gap = self._latest < epoch < newest and begin > self.end_offset
        if is_in_gap and len(self._begins) < _EPOCHS_MAX:
            self._begins.append(OffsetAndEpoch(begin, LeaderEpoch(epoch)))
            self.is_known = False
