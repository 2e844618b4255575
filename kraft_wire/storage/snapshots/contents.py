"""The content of a metadata snapshot, as batches (KIP-630, KIP-853).

The first batch has the header, and KRaftVersion and KRaftVoters of a dynamic quorum; data batches
of at most 1,024 records follow; the footer is the last batch. Offsets begin at 0 and have no gap,
and every batch has the epoch of the snapshot's id.

Not here: the files (`snapshots`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kraft_wire.frozen import frozen
from kraft_wire.model import OffsetAndEpoch
from kraft_wire.wire.generated.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.wire.generated.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import BatchBuilder, build_batch
from kraft_wire.wire.records.control_records import (
    ControlRecordType,
    control_record,
    parse_control_key,
    parse_control_value,
)
from kraft_wire.wire.records.corruption import InvalidRecord
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import HEADER_BYTES, RecordBatch

__all__ = ["VOTER_CONTROL_TYPES", "SnapshotHead", "control_messages", "snapshot_batches"]

VOTER_CONTROL_TYPES: Final = (ControlRecordType.KRAFT_VERSION, ControlRecordType.KRAFT_VOTERS)
"""Control records that a replica applies from their append on (KIP-853)."""

_BATCH_RECORDS_MAX: Final = 1024
_BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
_RECORD_OVERHEAD_BYTES_MAX: Final = 16
"""Two lengths of at most five bytes, an offset delta of two, four fields of one."""
_KINDS: Final = {
    "KRaftVersionRecord": ControlRecordType.KRAFT_VERSION,
    "VotersRecord": ControlRecordType.KRAFT_VOTERS,
}


@frozen
class SnapshotHead:
    """The values of the first batch."""

    last_contained_timestamp_ms: int
    """Append time of the newest batch that the snapshot contains."""
    wall_ms: int
    """The time of writing, in all records of the snapshot."""
    control_records: tuple[Message, ...] = ()
    """KRaftVersionRecord and VotersRecord in force at the snapshot's end; none at level 0."""


def snapshot_batches(
    snapshot_id: OffsetAndEpoch, head: SnapshotHead, values: Iterable[bytes]
) -> Iterator[bytearray]:
    """Yield the batches of a snapshot with these record values, one by one."""
    assert snapshot_id.epoch >= 0, snapshot_id
    assert head.wall_ms >= 0, head
    header = SnapshotHeaderRecord(last_contained_log_timestamp=head.last_contained_timestamp_ms)
    records = [control_record(ControlRecordType.SNAPSHOT_HEADER, header, head.wall_ms)]
    for message in head.control_records:
        records.append(control_record(_KINDS[message.NAME], message, head.wall_ms))
    yield _control_batch(records, 0, snapshot_id)
    offset = len(records)
    for group in _groups(values):
        builder = BatchBuilder(base_offset=offset, partition_leader_epoch=snapshot_id.epoch)
        builder.append_values(head.wall_ms, group)
        yield builder.build()
        offset = builder.next_offset
    footer = control_record(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), head.wall_ms)
    yield _control_batch([footer], offset, snapshot_id)


def _groups(values: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the values of each batch: 1,024, or fewer if they are large."""
    group: list[bytes] = []
    size_bytes = HEADER_BYTES
    for value in values:
        assert value, "a metadata record is not empty"
        record_bytes = len(value) + _RECORD_OVERHEAD_BYTES_MAX
        is_full = len(group) == _BATCH_RECORDS_MAX or size_bytes + record_bytes > _BATCH_BYTES_MAX
        if group and is_full:
            yield group
            group, size_bytes = [], HEADER_BYTES
        group.append(value)
        size_bytes += record_bytes
    if group:
        yield group


def _control_batch(
    records: Sequence[Record], base_offset: int, snapshot_id: OffsetAndEpoch
) -> bytearray:
    assert records, "a batch is not empty"
    return build_batch(
        records,
        base_offset=base_offset,
        partition_leader_epoch=snapshot_id.epoch,
        is_control=True,
    )


def control_messages(batch: RecordBatch) -> list[tuple[ControlRecordType, Message]]:
    """Return the quorum's control records of a batch; empty for a data batch.

    InvalidRecord for one that cannot be read, or of a type that a metadata log may not have.
    """
    found: list[tuple[ControlRecordType, Message]] = []
    if not batch.is_control:
        return found
    for record in batch.records():
        kind = parse_control_key(record.key)
        if kind is None:
            raise InvalidRecord(f"control record of an unknown type {record.key!r}")
        found.append((kind, parse_control_value(kind, record.value)))
    assert len(found) == batch.records_count, batch
    return found
