"""The committed metadata: their image, and its end offset.

Committed batches are replayed in order, after the newest snapshot if the log no longer has its
first batches (KIP-595 "State Machine", KIP-630 "Loading"). Nothing above the high watermark is
ever read here, so the image has only committed records.

Errors are final: MetadataFault for records that contradict each other and for feature levels that
this release does not support, StorageError for damage.
"""

from collections.abc import Mapping

from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.features import unsupported_level
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.node.quorum.quorum_log import QuorumLog, read_batch
from kraft_wire.node.quorum.snapshot_arrival import SnapshotArrival
from kraft_wire.wire.records.corruption import CorruptRecordBatch

__all__ = ["CommittedMetadata"]


class CommittedMetadata:
    """The state machine of the metadata log."""

    def __init__(
        self,
        log: QuorumLog,
        arrival: SnapshotArrival | None = None,
        *,
        is_controller: bool = True,
    ) -> None:
        """Load the newest snapshot; `advance` replays the log.

        `arrival` has the image of a snapshot that is fetched later.
        """
        self._is_controller = is_controller
        self._levels: Mapping[str, int] = {}
        """The levels that were checked last."""
        self._log = log
        self._arrival = arrival or SnapshotArrival(log.snapshots)
        self._loader = MetadataLoader()
        self.next_offset = Offset(0)
        """End of the replayed batches, control batches included."""
        self.epoch = LeaderEpoch(0)
        """Leader epoch of the record before it."""
        self.timestamp_ms = 0
        """Append time of the newest replayed batch."""
        self.bytes_since_snapshot = 0
        """Bytes of the log after the newest snapshot."""
        self.loads_count = 0
        """Number of loaded snapshots."""
        latest = log.snapshots.latest_id
        if latest is not None:
            self._load(latest)

    @property
    def image(self) -> MetadataImage:
        """The image of all finished batches."""
        return self._loader.image

    @property
    def in_transaction(self) -> bool:
        """Whether a metadata transaction is open: no snapshot may end in it (KIP-868)."""
        return self._loader.in_transaction

    @property
    def end(self) -> OffsetAndEpoch:
        """The id of a snapshot of the image."""
        assert self.next_offset >= 0, self.next_offset
        return OffsetAndEpoch(self.next_offset, self.epoch)

    def take_delta(self) -> MetadataDelta:
        """Return the changes of the image since the last call; only the node calls it."""
        return self._loader.take_delta()

    def advance(self, high_watermark: Offset) -> bool:
        """Replay newly committed batches; return whether the image changed."""
        before = self._loader.image
        if self.next_offset < self._log.log_start_offset:
            latest = self._log.snapshots.latest_id
            assert latest is not None, self._log.log_start_offset
            self._load(latest)
        try:
            for batch in self._log.batches(self.next_offset, high_watermark):
                assert batch.base_offset == self.next_offset, (batch.base_offset, self.next_offset)
                if batch.records:
                    self._loader.take_batch(batch.records, batch.base_offset, batch.leader_epoch)
                self.next_offset, self.epoch = batch.next_offset, batch.leader_epoch
                self.timestamp_ms = batch.timestamp_ms
                self.bytes_since_snapshot += batch.size_bytes
        except CorruptRecordBatch as error:
            raise MetadataFault(f"the batch at {self.next_offset}: {error}") from error
        self._check_levels()
        return self._loader.image is not before

    def _check_levels(self) -> None:
        """Raise MetadataFault if a feature is finalised at a level that is not supported."""
        levels = self._loader.image.finalized_features
        if levels is self._levels:
            return
        why = unsupported_level(levels, is_controller=self._is_controller)
        if why is not None:
            raise MetadataFault(why)
        self._levels = levels

    def snapshot_began(self) -> None:
        """Reset the counts, because a snapshot of the image is being written."""
        self.bytes_since_snapshot = 0

    def _load(self, snapshot_id: OffsetAndEpoch) -> None:
        """Load a snapshot instead of the present image."""
        assert snapshot_id.offset > self.next_offset, (snapshot_id, self.next_offset)
        snapshots = self._log.snapshots
        image = self._arrival.take_image(snapshot_id)
        if image is not None:
            self._loader.begin_with(image)
        else:
            self._read(snapshot_id)
        self.next_offset, self.epoch = snapshot_id.offset, snapshot_id.epoch
        self.loads_count += 1
        self.timestamp_ms = snapshots.header_timestamp_ms(snapshot_id)
        self.bytes_since_snapshot = 0
        self._check_levels()

    def _read(self, snapshot_id: OffsetAndEpoch) -> None:
        """Replay a snapshot's file."""
        records = (
            record
            for batch in self._log.snapshots.batches(snapshot_id)
            for record in read_batch(batch).records
        )
        last_offset = Offset(snapshot_id.offset - 1)
        try:
            self._loader.replay_snapshot(records, last_offset, snapshot_id.epoch)
        except CorruptRecordBatch as error:
            raise MetadataFault(f"the snapshot {snapshot_id}: {error}") from error
