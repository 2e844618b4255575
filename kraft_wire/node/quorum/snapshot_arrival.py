"""A metadata snapshot while it is fetched: written, verified and replayed chunk by chunk (KIP-630).

A million records take seconds to replay. A replay after the last chunk would keep this node from
fetching for longer than a fetch timeout. A replay with each chunk leaves no work for the
installation, and no chunk is larger than this node requests.

Errors found here are reported later: the installation refuses a damaged file, and the load refuses
records that contradict each other.
"""

from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.loader import SnapshotReplay
from kraft_wire.model import OffsetAndEpoch
from kraft_wire.node.quorum.quorum_log import read_batch
from kraft_wire.storage.snapshots.metadata_snapshot import CorruptMetadataSnapshot
from kraft_wire.storage.snapshots.store import MetadataSnapshots
from kraft_wire.wire.message import Part
from kraft_wire.wire.records.corruption import CorruptRecordBatch

__all__ = ["SnapshotArrival"]


class SnapshotArrival:
    """The snapshot being fetched, and the image of the last complete one."""

    def __init__(self, snapshots: MetadataSnapshots) -> None:
        self._snapshots = snapshots
        self._snapshot_id: OffsetAndEpoch | None = None
        self._replay: SnapshotReplay | None = None
        """Replay of the received part; None if it cannot be replayed."""

    def append_chunk(self, snapshot_id: OffsetAndEpoch, position: int, data: Part) -> None:
        """Write a chunk and replay the batches that it completes; raises only write errors."""
        if position == 0:
            self._snapshot_id, self._replay = snapshot_id, SnapshotReplay()
        self._snapshots.append_chunk(snapshot_id, position, data)
        if self._replay is None:
            return
        try:
            for batch in self._snapshots.arrived():
                self._replay.take(read_batch(batch).records)
        except (CorruptMetadataSnapshot, CorruptRecordBatch, MetadataFault):
            self._replay = None

    def take_image(self, snapshot_id: OffsetAndEpoch) -> MetadataImage | None:
        """Return the image of an installed snapshot, once; None if its file must be read."""
        replay, self._replay = self._replay, None
        if replay is None or self._snapshot_id != snapshot_id:
            return None
        return replay.finish(snapshot_id.offset - 1, snapshot_id.epoch)
