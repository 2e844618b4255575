"""The snapshots of a metadata log as rows, and their records for a replay (KIP-630). No Spark here.

A snapshot is read to its end before its row is returned, so `records` is its real count. The
snapshot of offset 0, which formatting writes, holds no image.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from kraft_wire.metadata.records import decode_message
from kraft_wire.model import OffsetAndEpoch, StorageError
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.storage.files import FileSystem, MissingFile
from kraft_wire.storage.snapshots.metadata_snapshot import (
    SnapshotReader,
    list_snapshots,
    snapshot_name,
)
from kraft_wire.wire.json_form import Json, message_to_json
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.control_records import (
    ControlRecordType,
    parse_control_key,
    parse_control_value,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["newest_snapshot", "snapshot_records", "snapshot_rows", "snapshot_values"]


@dataclass(slots=True)
class _Contents:
    """The content of one snapshot."""

    records: int = 0
    controls: dict[ControlRecordType, dict[str, Json]] = field(default_factory=dict)


def newest_snapshot(
    fs: FileSystem, directory: str, as_of_offset: int | None
) -> OffsetAndEpoch | None:
    """Return the newest snapshot that ends at or before an offset, None without one."""
    known = [
        each
        for each in list_snapshots(fs, directory)
        if each.offset > 0 and (as_of_offset is None or each.offset <= as_of_offset)
    ]
    return known[-1] if known else None


def snapshot_records(
    fs: FileSystem, directory: str, snapshot_id: OffsetAndEpoch
) -> Iterator[Message]:
    """Yield the metadata records of a snapshot; StorageError, MetadataFault for damage."""
    for value in snapshot_values(fs, directory, snapshot_id):
        yield decode_message(value)


def snapshot_values(fs: FileSystem, directory: str, snapshot_id: OffsetAndEpoch) -> Iterator[bytes]:
    """Yield the bytes of a snapshot's metadata records; StorageError for damage."""
    reader = SnapshotReader(fs, directory, snapshot_id)
    try:
        for batch in reader.batches():
            if not batch.is_control:
                for record in batch.records():
                    yield record.value or b""
    finally:
        reader.close()


def snapshot_rows(
    fs: FileSystem, directory: str, node: str, options: LogOptions
) -> Iterator[dict[str, object]]:
    """Yield one row for each snapshot, oldest first; a damaged one by `onCorrupt`."""
    for snapshot_id in list_snapshots(fs, directory):
        path = f"{directory}/{snapshot_name(snapshot_id)}"
        contents, status, size_bytes = _Contents(), "ok", 0
        try:
            reader = SnapshotReader(fs, directory, snapshot_id)
            size_bytes = reader.size_bytes
            for batch in reader.batches():
                _note(batch, contents)
            reader.close()
        except MissingFile:  # its owner runs, and has a newer one
            continue
        except (StorageError, CorruptRecordBatch) as error:
            status = str(error)
            if options.on_corrupt == "fail":
                raise PipelineError(
                    f"snapshot {path}: {error}; set onCorrupt to report to see it in column status"
                ) from None
            if options.on_corrupt == "skip":
                continue
        yield _row(snapshot_id, contents) | {
            "node": node,
            "file": snapshot_name(snapshot_id),
            "sizeInBytes": size_bytes,
            "status": status,
        }


def _note(batch: RecordBatch, contents: _Contents) -> None:
    if not batch.is_control:
        contents.records += batch.records_count
        return
    for record in batch.records():
        kind = parse_control_key(record.key)
        if kind is not None:
            message = parse_control_value(kind, record.value)
            contents.controls[kind] = message_to_json(message, getattr(message, "version"))  # noqa: B009  # all five have it, Message does not


def _row(snapshot_id: OffsetAndEpoch, contents: _Contents) -> dict[str, object]:
    header = contents.controls.get(ControlRecordType.SNAPSHOT_HEADER, {})
    footer = contents.controls.get(ControlRecordType.SNAPSHOT_FOOTER, {})
    kraft_version = contents.controls.get(ControlRecordType.KRAFT_VERSION, {})
    voters = contents.controls.get(ControlRecordType.KRAFT_VOTERS)
    return {
        "endOffset": snapshot_id.offset,
        "epoch": snapshot_id.epoch,
        "records": contents.records,
        "headerVersion": header.get("version"),
        "lastContainedLogTimestamp": header.get("lastContainedLogTimestamp"),
        "kraftVersion": kraft_version.get("kRaftVersion"),
        "voters": None if voters is None else json.dumps(voters, separators=(",", ":")),
        "footerVersion": footer.get("version"),
    }
