"""Whether a fetching replica's log agrees with the leader's, and where a follower cuts its own.

KIP-595 "Fetch" (divergence) and KIP-630 "Fetch" (snapshot instead of records). All of it is pure:
the leader's verdict on (fetch offset, last fetched epoch), the follower's truncation point, and
where a snapshot may end.
"""

from enum import Enum

from kraft_wire.frozen import frozen
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.raft.ports import LogView, SnapshotView

__all__ = [
    "Diverging",
    "SnapshotNeeded",
    "SnapshotRefusal",
    "Valid",
    "Verdict",
    "judge_fetch",
    "snapshot_refusal",
    "truncation_point",
]


@frozen
class Valid:
    """The logs agree up to the fetch offset: records may follow."""


@frozen
class Diverging:
    """The replica must truncate first: the largest epoch that both may share, and its end."""

    point: OffsetAndEpoch


@frozen
class SnapshotNeeded:
    """The requested records are no longer in the log; the replica must load this snapshot."""

    snapshot_id: OffsetAndEpoch


Verdict = Valid | Diverging | SnapshotNeeded


def judge_fetch(
    offset: Offset, last_fetched_epoch: LeaderEpoch, log: LogView, snapshots: SnapshotView
) -> Verdict:
    """Compare a replica's position with the leader's log; first match wins.

    1. Offset 0 while any snapshot exists: the snapshot is shorter than the log.
    2. Offset 0 of a log that starts at 0: agreed, there is nothing to compare.
    3. Below the log's start, at it with another epoch than the snapshot there, or of an epoch older
       than the earliest snapshot's: the log does not have the answer, so the snapshot.
    4. The epoch ends elsewhere in the leader's log: diverges.
    """
    assert offset >= 0, offset
    latest = snapshots.latest_id
    if offset == 0 and latest is not None:
        return SnapshotNeeded(latest)
    if offset == 0 and log.log_start_offset == 0:
        return Valid()
    earliest = snapshots.earliest_id
    if earliest is not None and latest is not None:
        below = offset < log.log_start_offset
        other = offset == log.log_start_offset and last_fetched_epoch != earliest.epoch
        if below or other or last_fetched_epoch < earliest.epoch:
            return SnapshotNeeded(latest)
    end = log.end_offset_for_epoch(last_fetched_epoch)
    if earliest is not None and end.offset == earliest.offset and end.epoch > earliest.epoch:
        end = earliest  # the log does not know the epoch; the record before it is the snapshot's
    if end.epoch != last_fetched_epoch or end.offset < offset:
        return Diverging(end)
    return Valid()


def truncation_point(diverging: OffsetAndEpoch, log: LogView) -> Offset:
    """Return the offset at which a follower truncates its log after its leader's DivergingEpoch.

    The result is at most the log's end. The caller must refuse an offset below the high
    watermark, which would remove committed records.
    """
    assert min(diverging.offset, diverging.epoch) >= 0, diverging
    if diverging.epoch == 0:
        return min(diverging.offset, log.log_end_offset)
    own = log.end_offset_for_epoch(diverging.epoch)
    if own.epoch == diverging.epoch:
        return min(own.offset, diverging.offset)
    assert own.epoch < diverging.epoch, (own, diverging)
    return own.offset


class SnapshotRefusal(Enum):
    """Why the state machine must not snapshot at an offset (KIP-630 "When to Snapshot")."""

    BELOW_LOG_START = "the log starts above it: refused"
    BEYOND_HIGH_WATERMARK = "it is not committed"
    UNKNOWN_TO_LOG = "the log has another epoch before it"
    INSIDE_BATCH = "no batch begins there: a follower could never append the batch around it"
    EXISTS = "the snapshot exists already: refused"


def snapshot_refusal(
    snapshot_id: OffsetAndEpoch,
    high_watermark: Offset | None,
    log: LogView,
    snapshots: SnapshotView,
) -> SnapshotRefusal | None:
    """Return why a snapshot must not be written, None if it may be."""
    assert min(snapshot_id.offset, snapshot_id.epoch) >= 0, snapshot_id
    if snapshot_id.offset < log.log_start_offset:
        return SnapshotRefusal.BELOW_LOG_START
    if snapshot_id.offset > (high_watermark or 0):
        return SnapshotRefusal.BEYOND_HIGH_WATERMARK
    if snapshots.size_bytes(snapshot_id) is not None:
        return SnapshotRefusal.EXISTS
    if not log.is_batch_start(snapshot_id.offset):
        return SnapshotRefusal.INSIDE_BATCH
    end = log.end_offset_for_epoch(snapshot_id.epoch)
    if end.epoch != snapshot_id.epoch or end.offset < snapshot_id.offset:
        return SnapshotRefusal.UNKNOWN_TO_LOG
    before = LeaderEpoch(max(0, snapshot_id.epoch - 1))
    begins_later = log.end_offset_for_epoch(before).offset >= snapshot_id.offset
    if before < snapshot_id.epoch and snapshot_id.offset > log.log_start_offset and begins_later:
        return SnapshotRefusal.UNKNOWN_TO_LOG  # the epoch begins here or later
    return None
