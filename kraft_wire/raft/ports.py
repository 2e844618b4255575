"""Ports of the replica: the log and the snapshots. Reads only.

The host owns the objects behind these protocols and changes them only by performing effects, so
they do not change during a step. Offsets are record offsets; ranges are half-open.
"""

from typing import Protocol

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch

__all__ = ["LogView", "SnapshotView"]


class LogView(Protocol):
    """The metadata log, with the reads that elections and replication need."""

    @property
    def log_start_offset(self) -> Offset:
        """First offset in the log."""
        ...

    @property
    def log_end_offset(self) -> Offset:
        """Offset of the next record, flushed or not."""
        ...

    @property
    def flushed_end_offset(self) -> Offset:
        """End of the durable records, which may be acknowledged."""
        ...

    @property
    def last_epoch(self) -> LeaderEpoch:
        """Epoch of the last record; of the newest snapshot if the log is empty; else 0."""
        ...

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> OffsetAndEpoch:
        """Return the largest known epoch that is not above `epoch`, and its end (KIP-101).

        Below all known epochs: the start of the first one, with the given epoch. No epoch known:
        the log's end, with the given epoch.
        """
        ...

    def is_batch_start(self, offset: Offset) -> bool:
        """Tell whether a batch begins at `offset`, or the log ends there."""
        ...


class SnapshotView(Protocol):
    """The complete snapshots on disk, the bootstrap snapshot (0, 0) left out."""

    @property
    def latest_id(self) -> OffsetAndEpoch | None:
        """Newest snapshot, by epoch and then offset."""
        ...

    @property
    def earliest_id(self) -> OffsetAndEpoch | None:
        """Oldest snapshot."""
        ...

    def size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """Return the size of a snapshot, None if it does not exist."""
        ...
