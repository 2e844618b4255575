"""The state of one share partition, and the changes that records make to it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kraft_wire.broker.coordination.epochs import epoch_after
from kraft_wire.broker.share_persister import DeliveryStateBatch
from kraft_wire.broker.share_state.batch_merging import merged_batches
from kraft_wire.frozen import frozen

__all__ = ["NO_EPOCH", "UNCHANGED", "UNKNOWN", "ShareState", "ShareUpdate"]

UNKNOWN: Final = -1
"""A start offset or a count of completed deliveries that is not known."""
UNCHANGED: Final = -1
"""The start offset of a write that does not move it."""
NO_EPOCH: Final = -1
"""A leader or state epoch that is not checked."""


@frozen
class ShareUpdate:
    """What one write adds: a ShareUpdate record."""

    snapshot_epoch: int
    """Of the snapshot that it belongs to."""
    leader_epoch: int
    start_offset: int
    """-1 for unchanged."""
    delivery_complete_count: int
    batches: Sequence[DeliveryStateBatch]


@frozen
class ShareState:
    """The whole state: a ShareSnapshot record, with later updates in memory."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[DeliveryStateBatch]
    """Ascending, without overlaps."""
    create_ms: int
    """Wall time of the snapshot, unless it was written again for a cold share partition."""
    write_ms: int
    """Wall time of the newest snapshot."""

    def again(self, wall_ms: int) -> "ShareState":
        """Return the next snapshot of the same state."""
        return replace(self, snapshot_epoch=epoch_after(self.snapshot_epoch), write_ms=wall_ms)

    def updated(self, update: ShareUpdate) -> "ShareState":
        """Return the state after an update."""
        start_offset = self.start_offset
        if update.start_offset != UNCHANGED:
            start_offset = update.start_offset
        return ShareState(
            snapshot_epoch=self.snapshot_epoch,
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch
            if update.leader_epoch == NO_EPOCH
            else update.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=update.delivery_complete_count,
            batches=merged_batches(self.batches, update.batches, start_offset),
            create_ms=self.create_ms,
            write_ms=self.write_ms,
        )
