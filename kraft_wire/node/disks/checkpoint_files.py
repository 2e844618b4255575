"""The bytes of the two checkpoints of a formatted directory (KIP-631, KIP-853).

`bootstrap.checkpoint` has a cluster's first records; its header's timestamp is 0. The checkpoint
with the id (0, 0) has a dynamic quorum's first voters; its header's timestamp is the time of
formatting. Both are snapshots: control batch, data, control batch, leader epoch 0, as release 4.3.1
writes them.
"""

from collections.abc import Sequence

from kraft_wire.frozen import frozen
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.wire.generated.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.wire.generated.voters_record import (
    Endpoint,
    KRaftVersionFeature,
    Voter,
    VotersRecord,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.control_records import ControlRecordType, control_record
from kraft_wire.wire.records.record import Record

__all__ = ["FormattedVoter", "bootstrap_checkpoint_bytes", "quorum_checkpoint_bytes"]


@frozen
class FormattedVoter:
    """An initial voter of a dynamic quorum."""

    node_id: int
    host: str
    port: int
    directory_id: Uuid


def bootstrap_checkpoint_bytes(records: Sequence[VersionedRecord], wall_ms: int) -> bytes:
    """Return the content of `bootstrap.checkpoint`."""
    assert records, "a cluster begins with at least its metadata.version"
    header = control_record(ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(), wall_ms)
    data = [Record(None, encode_record(record), timestamp=wall_ms) for record in records]
    batch = build_batch(data, base_offset=1, partition_leader_epoch=0)
    return _control([header], 0) + bytes(batch) + _footer(1 + len(data), wall_ms)


def quorum_checkpoint_bytes(voters: Sequence[FormattedVoter], listener: str, wall_ms: int) -> bytes:
    """Return the (0, 0) checkpoint: kraft.version 1 and the voters, in id order."""
    assert voters, "a quorum begins with at least one voter"
    record = VotersRecord(
        voters=[
            Voter(
                voter_id=voter.node_id,
                voter_directory_id=voter.directory_id,
                endpoints=[Endpoint(name=listener, host=voter.host, port=voter.port)],
                kraft_version_feature=KRaftVersionFeature(
                    min_supported_version=0, max_supported_version=1
                ),
            )
            for voter in sorted(voters, key=lambda each: each.node_id)
        ]
    )
    header = SnapshotHeaderRecord(last_contained_log_timestamp=wall_ms)
    records = [
        control_record(ControlRecordType.SNAPSHOT_HEADER, header, wall_ms),
        control_record(
            ControlRecordType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=1), wall_ms
        ),
        control_record(ControlRecordType.KRAFT_VOTERS, record, wall_ms),
    ]
    return _control(records, 0) + _footer(len(records), wall_ms)


def _footer(offset: int, wall_ms: int) -> bytes:
    footer = control_record(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), wall_ms)
    return _control([footer], offset)


def _control(records: Sequence[Record], offset: int) -> bytes:
    return bytes(
        build_batch(records, base_offset=offset, partition_leader_epoch=0, is_control=True)
    )
