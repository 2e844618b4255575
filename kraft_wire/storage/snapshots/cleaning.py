"""Removal of old metadata snapshots, and of the log below them (KIP-630).

`clean` removes old ones: by size first, then by time, from the oldest on, and never the newest.
Each step moves the log's start to the next snapshot, removes the segments wholly below it, then the
older snapshots; it stops at the first step that is refused. Every node does this on its own,
whatever its leader has.

Left out: when a snapshot is due, by bytes and time since the last one (the node), and whether it
may be taken (raft's `agreement.snapshot_refusal`).
"""

from collections.abc import Callable
from itertools import pairwise

from kraft_wire.frozen import frozen
from kraft_wire.model import OffsetAndEpoch
from kraft_wire.storage.cleaning.retention import apply_retention
from kraft_wire.storage.log import Log
from kraft_wire.storage.snapshots.store import MetadataSnapshots

__all__ = ["SnapshotRetention", "clean"]


@frozen
class SnapshotRetention:
    """`metadata.max.retention.bytes` and `metadata.max.retention.ms`; negative means no limit."""

    bytes_max: int = 100 * 1024 * 1024
    age_max_ms: int = 7 * 24 * 3600 * 1000


def clean(
    log: Log, snapshots: MetadataSnapshots, retention: SnapshotRetention, wall_ms: int
) -> list[str]:
    """Remove snapshots beyond the limits; return the renamed files, to be unlinked later.

    Errors: those of `files`, between two steps or within one; the rest is consistent.
    """
    assert wall_ms >= 0, wall_ms

    def is_too_large(_: OffsetAndEpoch) -> bool:
        sizes = [snapshots.size_bytes(known) or 0 for known in snapshots.ids]
        return log.size_bytes + sum(sizes) > retention.bytes_max

    def is_too_old(oldest: OffsetAndEpoch) -> bool:
        return wall_ms - snapshots.header_timestamp_ms(oldest) > retention.age_max_ms

    retired: list[str] = []
    if retention.bytes_max >= 0:
        retired += _drop_while(log, snapshots, is_too_large, wall_ms)
    if retention.age_max_ms >= 0:
        retired += _drop_while(log, snapshots, is_too_old, wall_ms)
    return retired


def _drop_while(
    log: Log, snapshots: MetadataSnapshots, is_due: Callable[[OffsetAndEpoch], bool], wall_ms: int
) -> list[str]:
    """Remove the oldest snapshot while it is due and its successor is committed."""
    retired: list[str] = []
    known = snapshots.ids
    for oldest, following in pairwise(known):
        assert snapshots.earliest_id == oldest, oldest
        if following.offset > log.high_watermark or not is_due(oldest):
            break
        log.advance_log_start_offset(following.offset)
        apply_retention(log, wall_ms)
        retired += snapshots.delete_before(following)
    return retired
