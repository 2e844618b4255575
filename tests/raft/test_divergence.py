"""Where a snapshot may end (KIP-630 "When to Snapshot"), row by row."""

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.raft.divergence import (
    Diverging,
    SnapshotNeeded,
    SnapshotRefusal,
    Valid,
    judge_fetch,
    snapshot_refusal,
)
from tests.raft.memory import MemoryLog, MemorySnapshots, Shelf, Snapshot


def log_with(*batches: tuple[int, int]) -> MemoryLog:
    """A log of (epoch, number of records), one batch each."""
    log, shelf = MemoryLog(), Shelf()
    for epoch, count in batches:
        log.append(shelf.new_batch(log.log_end_offset, epoch, (b"",) * count))
    return log


def at(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))


@pytest.mark.parametrize(
    ("snapshot_id", "high_watermark", "refusal"),
    [
        (at(4, 1), 4, None),
        (at(4, 1), 9, None),
        (at(6, 2), 6, None),
        (at(4, 1), 3, SnapshotRefusal.BEYOND_HIGH_WATERMARK),
        (at(6, 2), 5, SnapshotRefusal.BEYOND_HIGH_WATERMARK),
        (at(4, 1), None, SnapshotRefusal.BEYOND_HIGH_WATERMARK),
        (at(5, 2), 9, SnapshotRefusal.INSIDE_BATCH),
        (at(6, 1), 9, SnapshotRefusal.UNKNOWN_TO_LOG),
        (at(4, 3), 9, SnapshotRefusal.UNKNOWN_TO_LOG),
        (at(2, 1), 9, SnapshotRefusal.EXISTS),
    ],
)
def test_snapshot_ends_at_a_committed_batch_of_its_epoch(
    snapshot_id: OffsetAndEpoch, high_watermark: int | None, refusal: SnapshotRefusal | None
) -> None:
    log, snapshots = log_with((1, 2), (1, 2), (2, 2), (2, 3)), MemorySnapshots()
    snapshots.kept[at(2, 1)] = Snapshot(at(2, 1), 0, (), b"x")
    known = None if high_watermark is None else Offset(high_watermark)
    assert snapshot_refusal(snapshot_id, known, log, snapshots) is refusal


def test_snapshot_below_the_log_start_is_declined() -> None:
    log = log_with((1, 2), (1, 2))
    log.forget_below(at(2, 1))
    refusal = snapshot_refusal(at(1, 1), Offset(4), log, MemorySnapshots())
    assert refusal is SnapshotRefusal.BELOW_LOG_START


@pytest.mark.parametrize(
    ("offset", "last_epoch", "verdict"),
    [
        (4, 1, Valid()),
        (4, 2, SnapshotNeeded(at(4, 1))),
        (3, 1, SnapshotNeeded(at(4, 1))),
        (5, 0, SnapshotNeeded(at(4, 1))),
        (5, 1, Diverging(at(4, 1))),
        (5, 2, Diverging(at(4, 1))),
        (5, 3, Valid()),
        (6, 3, Valid()),
        (7, 3, Diverging(at(6, 3))),
        (6, 4, Diverging(at(6, 3))),
    ],
)
def test_fetch_behind_a_snapshot_diverges_at_it_where_the_log_begins_later(
    offset: int, last_epoch: int, verdict: object
) -> None:
    """KafkaRaftLog.endOffsetForEpoch of 4.3.1: the snapshot's id stands for the epochs before."""
    log, snapshots = log_with((1, 4), (3, 2)), MemorySnapshots()
    log.forget_below(at(4, 1))
    snapshots.kept[at(4, 1)] = Snapshot(at(4, 1), 0, (), b"x")
    assert judge_fetch(Offset(offset), LeaderEpoch(last_epoch), log, snapshots) == verdict
