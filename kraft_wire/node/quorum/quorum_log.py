"""`__cluster_metadata-0` as the quorum sees it: storage's log as raft's `LogView`, and its batches.

Appending builds Kafka's batches (KIP-595: one batch per change, all or nothing). Of a leader's
batches only those before the first invalid or unreadable one are appended. Appended records stay
decoded until they are committed, so that their replay reads nothing from the disk.

Not here: when to append, flush or cut (`raft_io`), what the records mean (`controller`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from kraft_wire.frozen import frozen
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.records import decode_message
from kraft_wire.model import FileSlice, LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.raft.events import ControlRecord
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_read import LogRead
from kraft_wire.storage.scan import BadBatch, frames
from kraft_wire.storage.snapshots.contents import VOTER_CONTROL_TYPES, control_messages
from kraft_wire.storage.snapshots.store import MetadataSnapshots
from kraft_wire.wire.message import Message, Part
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType, control_record
from kraft_wire.wire.records.corruption import CorruptRecordBatch, InvalidRecord
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches, peek_header

__all__ = ["MetadataBatch", "QuorumLog"]

_READ_BYTES: Final = 1 << 20
_ANSWER_BYTES_MAX: Final = 8 << 20
"""Limit of one fetch, for any request: 4.3.1 requests a mebibyte by default."""
_DECODED_BYTES_MAX: Final = 8 << 20
"""Limit of appended batches whose records stay decoded until they are committed."""
_CONTROL_TYPES: Final = {
    "LeaderChangeMessage": ControlRecordType.LEADER_CHANGE,
    "KRaftVersionRecord": ControlRecordType.KRAFT_VERSION,
    "VotersRecord": ControlRecordType.KRAFT_VOTERS,
}


@frozen
class MetadataBatch:
    """One batch of the log, its data records decoded."""

    base_offset: Offset
    next_offset: Offset
    leader_epoch: LeaderEpoch
    timestamp_ms: int
    """Time of its newest record."""
    size_bytes: int
    records: Sequence[Message]
    """Empty for a control batch."""


class QuorumLog:
    """Storage's log under raft's names; see the module."""

    def __init__(self, log: Log, snapshots: MetadataSnapshots) -> None:
        self.log = log
        self.snapshots = snapshots
        self._decoded: dict[Offset, MetadataBatch] = {}
        """Decoded batches by base offset, in the order of the log."""
        self._decoded_bytes = 0

    # -- raft.ports.LogView ----------------------------------------------------------------------

    @property
    def log_start_offset(self) -> Offset:
        """First offset in the log."""
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> Offset:
        """Offset of the next record, flushed or not."""
        return self.log.log_end_offset

    @property
    def flushed_end_offset(self) -> Offset:
        """End of the durable records."""
        return self.log.recovery_point

    @property
    def last_epoch(self) -> LeaderEpoch:
        """Epoch of the last record; of the newest snapshot if the log is empty; else 0."""
        latest = self.log.latest_epoch
        if latest is not None:
            return latest
        snapshot_id = self.snapshots.latest_id
        return LeaderEpoch(0) if snapshot_id is None else snapshot_id.epoch

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> OffsetAndEpoch:
        """Return the largest known epoch that is not above `epoch`, and where it ends (KIP-101)."""
        # Epochs below the log's start count: the replica compares with the earliest snapshot.
        return self.log.epochs.end_offset_for_epoch(epoch, self.log_end_offset)

    def is_batch_start(self, offset: Offset) -> bool:
        """Tell whether a batch begins at `offset`, or the log ends there."""
        if offset == self.log_end_offset:
            return True
        if not self.log_start_offset <= offset < self.log_end_offset:
            return False
        read = self.log.read(offset, 0, upper_bound=self.log_end_offset, min_one_batch=False)
        return read.first_offset == offset

    # -- appending -------------------------------------------------------------------------------

    def append_values(
        self,
        values: Sequence[bytes],
        records: Sequence[Message],
        epoch: LeaderEpoch,
        now_ms: int,
        wall_ms: int,
    ) -> None:
        """Append a leader's records as one batch, or nothing. Errors: DiskFull, StorageError."""
        assert len(values) == len(records), (len(values), len(records))
        stored = [Record(None, value, timestamp=wall_ms) for value in values]
        self._append(stored, records, epoch, now_ms, wall_ms, is_control=False)

    def append_control(
        self, messages: Sequence[Message], epoch: LeaderEpoch, now_ms: int, wall_ms: int
    ) -> None:
        """Append a leader's control records as one batch; errors as above."""
        stored = [
            control_record(_CONTROL_TYPES[message.NAME], message, wall_ms) for message in messages
        ]
        self._append(stored, (), epoch, now_ms, wall_ms, is_control=True)

    def _append(
        self,
        stored: Sequence[Record],
        records: Sequence[Message],
        epoch: LeaderEpoch,
        now_ms: int,
        wall_ms: int,
        *,
        is_control: bool,
    ) -> None:
        assert epoch >= self.last_epoch, (epoch, self.last_epoch)
        data = build_batch(
            stored,
            base_offset=self.log_end_offset,
            partition_leader_epoch=epoch,
            is_control=is_control,
        )
        (batch,) = parse_batches(data)
        self.log.append(data, [batch], now_ms, wall_ms)
        self._keep(_described(batch, records))

    def append_fetched(
        self, leader_epoch: LeaderEpoch, data: Part, now_ms: int, wall_ms: int
    ) -> list[ControlRecord] | None:
        """Append the longest valid prefix of a leader's batches; None without a valid one.

        Return the voter sets and levels in it. A valid batch continues the log, has an epoch that
        neither falls nor is above the leader's, is undamaged, and has only records that this
        release can read.
        """
        view = memoryview(data.read() if isinstance(data, FileSlice) else data)
        good: list[RecordBatch] = []
        described: list[MetadataBatch] = []
        controls: list[ControlRecord] = []
        end, epoch = self.log_end_offset, self.last_epoch
        for batch in _whole_batches(view):
            if (
                batch.base_offset != end
                or not epoch <= batch.partition_leader_epoch <= leader_epoch
            ):
                break
            try:
                described.append(read_batch(batch))
                controls += voter_control_records(batch)
            except (CorruptRecordBatch, InvalidRecord, MetadataFault):
                break
            good.append(batch)
            end, epoch = described[-1].next_offset, described[-1].leader_epoch
        del described[len(good) :]
        if not good:
            return None
        size = sum(batch.size_bytes for batch in good)
        self.log.append(view[:size], good, now_ms, wall_ms)
        for each in described:
            self._keep(each)
        assert self.log_end_offset == end, (self.log_end_offset, end)
        return controls

    def truncate_to(self, end_offset: Offset) -> None:
        """Truncate the log, durably, and flush the rest."""
        self.log.truncate_to(end_offset)
        self.log.flush()
        for base_offset in [known for known in self._decoded if known >= end_offset]:
            self._forget(base_offset)

    def install_snapshot(self, snapshot_id: OffsetAndEpoch) -> list[str]:
        """Make the fetched snapshot the whole log; see `MetadataSnapshots.install`."""
        retired = self.snapshots.install(self.log, snapshot_id)
        self._decoded, self._decoded_bytes = {}, 0
        return retired

    # -- reading ---------------------------------------------------------------------------------

    def whole_batches(self, offset: Offset, bytes_max: int) -> bytes:
        """Return batches from `offset` on for a follower, at least one if available.

        Copied, because a truncation would change the bytes of an unsent answer.
        """
        end = self.log_end_offset
        bytes_max = min(bytes_max, _ANSWER_BYTES_MAX)
        read = self.log.read(offset, bytes_max, upper_bound=end, min_one_batch=True)
        if isinstance(read.records, bytes):
            return read.records
        part = read.records
        size = part.size_bytes
        try:
            size = 0
            for frame in frames(part.file, part.position, part.position + part.size_bytes):  # type: ignore[arg-type]  # a segment's own file
                size += frame.size_bytes
        except BadBatch:
            pass  # the last one is cut
        return FileSlice(part.file, part.position, size).read()

    def batches(self, offset: Offset, end: Offset) -> Iterator[MetadataBatch]:
        """Yield the batches of [offset, end), and drop their decoded records."""
        while offset < end:
            known = self._decoded.get(offset)
            if known is not None:
                if known.next_offset > end:
                    return
                self._forget(offset)
                yield known
                offset = known.next_offset
                continue
            read = self.log.read(offset, _READ_BYTES, upper_bound=end, min_one_batch=True)
            if not read.size_bytes:
                return
            for batch in _read_back(read, offset):
                yield read_batch(batch)
                offset = Offset(batch.next_offset)

    def control_records(self) -> Iterator[ControlRecord]:
        """Yield the voter sets and levels of the whole log, committed or not."""
        offset = self.log_start_offset
        while offset < self.log_end_offset:
            read = self.log.read(
                offset, _READ_BYTES, upper_bound=self.log_end_offset, min_one_batch=True
            )
            for batch in _read_back(read, offset):
                yield from voter_control_records(batch)
                offset = Offset(batch.next_offset)

    # -- decoded batches -------------------------------------------------------------------------

    def _keep(self, batch: MetadataBatch) -> None:
        if self._decoded_bytes + batch.size_bytes <= _DECODED_BYTES_MAX:
            self._decoded[batch.base_offset] = batch
            self._decoded_bytes += batch.size_bytes

    def _forget(self, base_offset: Offset) -> None:
        self._decoded_bytes -= self._decoded.pop(base_offset).size_bytes
        assert self._decoded_bytes >= 0, self._decoded_bytes


def read_batch(batch: RecordBatch) -> MetadataBatch:
    """Decode a batch. Errors: CorruptRecordBatch, InvalidRecord, MetadataFault."""
    if not 0 < batch.records_count == batch.last_offset_delta + 1:
        raise InvalidRecord(f"{batch.records_count} records at {batch.base_offset} leave a gap")
    if batch.is_control:
        control_messages(batch)
        return _described(batch, ())
    records = [decode_message(value or b"") for value in batch.values()]
    return _described(batch, records)


def _described(batch: RecordBatch, records: Sequence[Message]) -> MetadataBatch:
    return MetadataBatch(
        Offset(batch.base_offset),
        Offset(batch.next_offset),
        LeaderEpoch(batch.partition_leader_epoch),
        batch.max_timestamp,
        batch.size_bytes,
        records,
    )


def voter_control_records(batch: RecordBatch) -> Iterator[ControlRecord]:
    """Yield the records of a batch that a replica applies from their append on (KIP-853)."""
    for delta, (kind, message) in enumerate(control_messages(batch)):
        if kind in VOTER_CONTROL_TYPES:
            yield ControlRecord(Offset(batch.base_offset + delta), message)


def _read_back(read: LogRead, offset: Offset) -> Iterator[RecordBatch]:
    """Yield the batches read from `offset` on; CorruptRecordBatch for an invalid one."""
    data = read.records if isinstance(read.records, bytes) else read.records.read()
    is_whole = False
    for batch in _whole_batches(memoryview(data)):
        is_whole = True
        yield batch
    if not is_whole:
        raise CorruptRecordBatch(f"the batch of the metadata log at {offset} is damaged")


def _whole_batches(view: memoryview) -> Iterator[RecordBatch]:
    """Yield the valid batches at the beginning of a range whose last one may be cut."""
    position = 0
    while position < len(view):
        try:
            batch = peek_header(view, position)
        except CorruptRecordBatch:
            return
        if len(batch.view) < batch.size_bytes or not batch.crc_is_valid():
            return
        yield batch
        position += batch.size_bytes
