"""Reads one metadata log, with the snapshot that it begins after, into a history. No Spark here.

The history begins where the log does: at offset 0, or at the oldest snapshot that the log continues
from. Records behind the high watermark count, as they do for a node that reads its own log.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile

import numpy as np

from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.model import OffsetAndEpoch, StorageError
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.logged_batches import Entry, LoggedBatch, logged_batches
from kraft_wire.spark.kraftlog.planning import LogPart
from kraft_wire.spark.metadata.metadata_history import MetadataHistory, QuorumElection
from kraft_wire.spark.metadata.partition_states import UNKNOWN, OffsetAndTimestamp
from kraft_wire.spark.metadata.snapshot_files import snapshot_values
from kraft_wire.spark.metadata.topic_share import TopicShare
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotReader, list_snapshots
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage
from kraft_wire.wire.generated.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.wire.message import MalformedMessage
from kraft_wire.wire.records.control_records import (
    ControlRecordType,
    parse_control_key,
    parse_control_value,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["AsOf", "ReadHistory", "parse_as_of", "read_history"]


@dataclass(frozen=True, slots=True)
class AsOf:
    """Where a history ends: before an offset, or with the last record of a time."""

    offset: int | None = None
    """Exclusive."""
    timestamp_ms: int | None = None
    """Inclusive."""


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """A history with the place where it ends."""

    history: MetadataHistory
    share: TopicShare
    """The topics that it is about."""
    records: int
    """Of the log and of the snapshot before it, including those of other topics."""
    end: OffsetAndTimestamp
    """The last record."""
    epoch: int
    kraft_version: int
    """0 for a static quorum, 1 for a dynamic one (KIP-853): it is in control records alone."""


def parse_as_of(text: str | None) -> AsOf:
    """Read an offset or a time of ISO 8601, by default in UTC."""
    if text is None:
        return AsOf()
    if text.strip().isdecimal():
        return AsOf(offset=int(text))
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise PipelineError(
            f"--as-of {text!r} is neither an offset nor a time such as 2026-03-01T04:00:00Z"
        ) from None
    return AsOf(timestamp_ms=round(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1000))


def read_history(
    fs: FileSystem, part: LogPart, as_of: AsOf, share: TopicShare | None = None
) -> ReadHistory:
    """Replay a whole metadata log up to `as_of`; PipelineError if the log begins later.

    `share` are the topics whose partitions are replayed, all by default. Damage is never skipped,
    because every later record depends on the earlier ones.
    """
    try:
        found = _read(fs, part, as_of, share or TopicShare())
        found.history.image(found.end, found.epoch)  # faults of the whole show at its end
        return found
    except (MetadataFault, CorruptRecordBatch, MalformedMessage, StorageError) as error:
        raise PipelineError(f"metadata log in {part.directory}: {error}") from None


def _read(fs: FileSystem, part: LogPart, as_of: AsOf, share: TopicShare) -> ReadHistory:
    batches = logged_batches(fs, part)
    first = next(batches, None)
    history, end, epoch = MetadataHistory(), OffsetAndTimestamp(-1, -1), -1
    records = kraft_version = 0
    snapshot_id = _start(fs, part, None if first is None else first.batch, as_of)
    if snapshot_id is not None:
        values = snapshot_values(fs, part.directory, snapshot_id)
        unplaced = [(*UNKNOWN, value) for value in values]
        history.take_snapshot(record for _, _, record in share.messages(unplaced))
        records = len(unplaced)
        end, epoch = OffsetAndTimestamp(snapshot_id.offset - 1, -1), snapshot_id.epoch
        kraft_version = _kraft_version(_snapshot_head(fs, part, snapshot_id), kraft_version)
    leader = -1
    for batch, entries in _from(first, batches):
        if batch.next_offset <= end.offset + 1:
            continue
        if _is_beyond(batch.base_offset, batch.base_timestamp, as_of):
            break
        if batch.base_offset > end.offset + 1:
            raise PipelineError(
                f"{part.directory}: offsets {end.offset + 1} to {batch.base_offset - 1} of the"
                " metadata log are missing: give the directory of another node"
            )
        if batch.is_control:
            elections, leader = _elections(batch, leader)
            history.elections += elections if share.is_first else []
            end = _last(batch)
            kraft_version = _kraft_version(batch, kraft_version)
        else:
            wanted = _wanted(entries, end, as_of)
            end = _take(wanted, share, history, end)
            records += len(wanted)
        epoch = batch.partition_leader_epoch
    return ReadHistory(history, share, records, end, epoch, kraft_version)


def _from(first: LoggedBatch | None, rest: Iterator[LoggedBatch]) -> Iterator[LoggedBatch]:
    if first is not None:
        yield first
        yield from rest


def _start(
    fs: FileSystem, part: LogPart, first: RecordBatch | None, as_of: AsOf
) -> OffsetAndEpoch | None:
    """Return the first snapshot of the replay, None for the log's own begin."""
    if first is not None and first.base_offset == 0:
        return None
    known = [each for each in list_snapshots(fs, part.directory) if each.offset > 0]
    if first is not None:
        known = [each for each in known if each.offset >= first.base_offset]
    if not known:
        raise PipelineError(f"{part.directory} holds neither the begin of its log nor a snapshot")
    chosen = known[0] if first is not None else known[-1]
    if as_of.offset is not None and chosen.offset > as_of.offset:
        raise PipelineError(
            f"{part.directory} goes back to offset {chosen.offset}, not to {as_of.offset}"
        )
    if as_of.timestamp_ms is not None:
        stamp = _snapshot_time(fs, part, chosen)
        if stamp > as_of.timestamp_ms:
            begin = np.datetime64(-(-stamp // 1000), "s")  # the full second after, of any calendar
            raise PipelineError(f"{part.directory} goes back to {begin}Z: ask for a later time")
    return chosen


def _snapshot_time(fs: FileSystem, part: LogPart, snapshot_id: OffsetAndEpoch) -> int:
    """Return the time of the last record that a snapshot covers."""
    for record in _snapshot_head(fs, part, snapshot_id).records():
        if parse_control_key(record.key) is ControlRecordType.SNAPSHOT_HEADER:
            head = parse_control_value(ControlRecordType.SNAPSHOT_HEADER, record.value)
            assert isinstance(head, SnapshotHeaderRecord), head
            return head.last_contained_log_timestamp
    return -1


def _snapshot_head(fs: FileSystem, part: LogPart, snapshot_id: OffsetAndEpoch) -> RecordBatch:
    """Return a snapshot's first batch: header, kraft.version and voters."""
    reader = SnapshotReader(fs, part.directory, snapshot_id)
    try:
        return next(iter(reader.batches()))
    finally:
        reader.close()


def _kraft_version(batch: RecordBatch, before: int) -> int:
    """Return kraft.version as a control batch leaves it."""
    for record in batch.records():
        if parse_control_key(record.key) is ControlRecordType.KRAFT_VERSION:
            control_record = parse_control_value(ControlRecordType.KRAFT_VERSION, record.value)
            assert isinstance(control_record, KRaftVersionRecord), control_record
            return control_record.kraft_version
    return before


def _is_beyond(offset: int, timestamp_ms: int, as_of: AsOf) -> bool:
    if as_of.offset is not None and offset >= as_of.offset:
        return True
    return as_of.timestamp_ms is not None and timestamp_ms > as_of.timestamp_ms


def _wanted(entries: Sequence[Entry], end: OffsetAndTimestamp, as_of: AsOf) -> Sequence[Entry]:
    """Return the records of a batch that are behind `end` and before `as_of`."""
    if as_of == AsOf() and entries and entries[0][0] > end.offset:
        return entries
    behind = (entry for entry in entries if entry[0] > end.offset)
    return list(takewhile(lambda entry: not _is_beyond(entry[0], entry[1], as_of), behind))


def _take(
    wanted: Sequence[Entry], share: TopicShare, history: MetadataHistory, end: OffsetAndTimestamp
) -> OffsetAndTimestamp:
    """Give the records of a batch to the history; return the last one's moment."""
    for offset, timestamp_ms, record in share.messages(wanted):
        history.take(record, OffsetAndTimestamp(offset, timestamp_ms))
    return OffsetAndTimestamp(*wanted[-1][:2]) if wanted else end


def _last(batch: RecordBatch) -> OffsetAndTimestamp:
    return OffsetAndTimestamp(batch.next_offset - 1, batch.max_timestamp)


def _elections(batch: RecordBatch, leader: int) -> tuple[list[QuorumElection], int]:
    """Return the elected leader of the quorum in a control batch, and the leader from there on."""
    found = []
    for record in batch.records():
        if parse_control_key(record.key) is ControlRecordType.LEADER_CHANGE:
            control_record = parse_control_value(ControlRecordType.LEADER_CHANGE, record.value)
            assert isinstance(control_record, LeaderChangeMessage), control_record
            at = OffsetAndTimestamp(record.offset, record.timestamp)
            epoch = batch.partition_leader_epoch
            found.append(QuorumElection(epoch, leader, control_record.leader_id, at))
            leader = control_record.leader_id
    return found, leader
