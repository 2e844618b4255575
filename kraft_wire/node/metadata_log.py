"""The metadata log of a quorum of one voter: the seat of the raft core, which comes next.

KIP-595: each start is a new leader epoch, announced by a LeaderChange record; KIP-853: with
kraft.version 1 the voter set follows it in the same batch when it still comes from the formatted
(0,0) checkpoint. A record counts as committed once it is on the disk, and `append` returns only
then, with the image that contains it. Files are Kafka's: `quorum-state`, `leader-epoch-checkpoint`,
segments, snapshots, and `bootstrap.checkpoint` for the very first records.

Left out: other voters, taking snapshots, and Kafka's NoOp record every 500 ms, which lets observers
measure their lag: there are none.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kraft_wire.controller.features import activation_records
from kraft_wire.controller.image import MetadataImage
from kraft_wire.controller.loader import MetadataLoader
from kraft_wire.controller.records import VersionedRecord, decode_record, encode_record
from kraft_wire.model import DiskFull, LeaderEpoch, Offset, OffsetAndEpoch, ReplicaId, StorageError
from kraft_wire.storage.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.files import FileSystem, MissingFile
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.log_directory import LogDirectory
from kraft_wire.storage.quorum_state import ElectionState, read_quorum_state, write_quorum_state
from kraft_wire.storage.snapshots import SnapshotReader, list_snapshots
from kraft_wire.wire.batch_builder import build_batch
from kraft_wire.wire.control_records import (
    ControlRecordType,
    control_record,
    parse_control_key,
    parse_control_value,
)
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage, Voter
from kraft_wire.wire.message import Message
from kraft_wire.wire.record import Record
from kraft_wire.wire.record_batch import RecordBatch, parse_batches

__all__ = ["BOOTSTRAP_CHECKPOINT", "MetadataLog"]

BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"

_FORMATTED: Final = OffsetAndEpoch(Offset(0), LeaderEpoch(0))
"""Id of the checkpoint that formatting a dynamic quorum leaves; it has voters, no metadata."""
_READ_BYTES: Final = 1 << 20


class MetadataLog:
    """Appends to `__cluster_metadata-0`, and the image of everything in it."""

    def __init__(self, fs: FileSystem, directory: LogDirectory, node_id: int, wall_ms: int) -> None:
        """Read everything that is there; `lead` must follow before anything is appended.

        Errors: StorageError for damage, MetadataFault for records that contradict each other.
        """
        self._fs = fs
        self._node_id = ReplicaId(node_id)
        self._directory = directory
        # The metadata log is never cut by time or size: only a snapshot may replace its start.
        config = LogConfig(retention_ms=-1, retention_bytes=-1)
        self.log: Log = directory.open_metadata_log(config, wall_ms)
        self._loader = MetadataLoader()
        self._voter_records: list[Message] = []
        """KRaftVersion and KRaftVoters as the formatted checkpoint has them."""
        self.epoch = LeaderEpoch(0)
        self._read_snapshots()
        self._read_log()

    @property
    def image(self) -> MetadataImage:
        """The image of all that is committed."""
        return self._loader.image

    @property
    def log_end_offset(self) -> Offset:
        """The offset that the next record gets."""
        return self.log.log_end_offset

    def lead(self, wall_ms: int) -> None:
        """Begin a new leader epoch, durably, and on an empty log write the first records."""
        is_first = self.log.log_end_offset == 0
        state = read_quorum_state(self._fs, self.log.directory)
        known = self.log.latest_epoch or 0
        self.epoch = LeaderEpoch(max(known, 0 if state is None else state.leader_epoch) + 1)
        version = 1 if self._voter_records or (state is not None and not state.static_voters) else 0
        election = ElectionState(
            self.epoch,
            leader_id=self._node_id,
            static_voters=(self._node_id,) if not version else (),
        )
        write_quorum_state(self._fs, self.log.directory, election, version)
        voter = Voter(voter_id=self._node_id)
        change = LeaderChangeMessage(
            leader_id=self._node_id, voters=[voter], granting_voters=[voter]
        )
        records = [control_record(ControlRecordType.LEADER_CHANGE, change, wall_ms)]
        if is_first:
            records += self._formatted_voters(wall_ms)
        self._append_batch(records, wall_ms, is_control=True)
        if is_first:
            self.append(self._first_records(), wall_ms)

    def append(self, records: Sequence[VersionedRecord], wall_ms: int) -> MetadataImage:
        """Commit records as one batch and return the image with them.

        A full disk is tried again without the ballast, which is kept for that. Errors: DiskFull
        and StorageError with nothing appended; FsyncFailed.
        """
        assert records, "nothing to append"
        assert self.epoch > 0, "not leading yet"
        stored = [Record(None, encode_record(record), timestamp=wall_ms) for record in records]
        try:
            base_offset = self._append_batch(stored, wall_ms)
        except DiskFull as error:
            self._directory.note_error(None, error)
            base_offset = self._append_batch(stored, wall_ms)
        return self._loader.replay_batch(
            [record.record for record in records], base_offset, self.epoch
        )

    def _append_batch(
        self, records: Sequence[Record], wall_ms: int, *, is_control: bool = False
    ) -> Offset:
        base_offset = self.log.log_end_offset
        data = build_batch(
            records,
            base_offset=base_offset,
            partition_leader_epoch=self.epoch,
            is_control=is_control,
        )
        self.log.append(data, parse_batches(data), 0, wall_ms)
        try:
            self.log.flush()
        except StorageError:
            self.log.truncate_to(base_offset)  # or the next batch would follow what nobody saw
            raise
        self.log.update_high_watermark(self.log.log_end_offset)
        return base_offset

    # -- reading ---------------------------------------------------------------------------------

    def _read_snapshots(self) -> None:
        """Load the newest snapshot; the formatted one only tells who votes."""
        for snapshot_id in list_snapshots(self._fs, self.log.directory)[-1:]:
            reader = SnapshotReader(self._fs, self.log.directory, snapshot_id)
            records: list[Message] = []
            for batch in reader.batches():
                if batch.is_control:
                    self._take_voters(batch)
                else:
                    records += _metadata_records(batch)
            if snapshot_id != _FORMATTED:
                last = Offset(snapshot_id.offset - 1)
                self._loader.replay_snapshot(records, last, snapshot_id.epoch)
                if self.log.log_end_offset < snapshot_id.offset:
                    self.log.truncate_fully_and_start_at(snapshot_id.offset)

    def _read_log(self) -> None:
        """Replay the log behind the snapshot; with one voter everything in it is committed."""
        for batch in self._batches():
            if batch.base_offset <= self._loader.last_offset:
                continue
            if batch.is_control:
                self._take_voters(batch)
            else:
                self._loader.replay_batch(
                    list(_metadata_records(batch)), batch.base_offset, batch.partition_leader_epoch
                )
        self.log.update_high_watermark(self.log.log_end_offset)

    def _batches(self) -> Iterator[RecordBatch]:
        offset = max(self.log.log_start_offset, Offset(self._loader.last_offset + 1))
        while offset < self.log.log_end_offset:
            read = self.log.read(
                offset, _READ_BYTES, upper_bound=self.log.log_end_offset, min_one_batch=True
            )
            data = read.records if isinstance(read.records, bytes) else read.records.read()
            for batch in _whole_batches(data):
                yield batch
                offset = Offset(batch.next_offset)

    def _take_voters(self, batch: RecordBatch) -> None:
        for record in batch.records():
            kind = parse_control_key(record.key)
            if kind is ControlRecordType.KRAFT_VERSION:
                self._voter_records = [parse_control_value(kind, record.value)]
            elif kind is ControlRecordType.KRAFT_VOTERS:
                self._voter_records.append(parse_control_value(kind, record.value))

    # -- the first records -----------------------------------------------------------------------

    def _formatted_voters(self, wall_ms: int) -> list[Record]:
        kinds = (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS)
        return [
            control_record(kind, message, wall_ms)
            for kind, message in zip(kinds, self._voter_records, strict=False)
        ]

    def _first_records(self) -> list[VersionedRecord]:
        """Return what Kafka's controller writes first: the formatted records, as a transaction."""
        return activation_records(list(self._bootstrap_records()))

    def _bootstrap_records(self) -> Iterable[VersionedRecord]:
        path = f"{self._directory.path}/{BOOTSTRAP_CHECKPOINT}"
        try:
            data = self._fs.read(path)
        except MissingFile:
            raise CorruptCheckpoint(path, "is missing, and the metadata log is empty") from None
        for batch in _whole_batches(data):
            if not batch.is_control:
                for record in batch.records():
                    assert record.value is not None, record
                    yield decode_record(record.value)


def _metadata_records(batch: RecordBatch) -> Iterator[Message]:
    for record in batch.records():
        yield decode_record(record.value or b"").record


def _whole_batches(data: bytes) -> Iterator[RecordBatch]:
    """Yield the batches of a stretch whose last one may be cut."""
    position = 0
    view = memoryview(data)
    while len(view) - position >= _SIZE_KNOWN_BYTES:
        size = int.from_bytes(view[position + 8 : position + 12], "big") + _SIZE_KNOWN_BYTES
        if size > len(view) - position:
            return
        yield parse_batches(view[position : position + size])[0]
        position += size


_SIZE_KNOWN_BYTES: Final = 12
