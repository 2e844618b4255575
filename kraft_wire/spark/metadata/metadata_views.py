"""The views of the metadata log: `metadata`, `snapshots`, `partitions`. No Spark here.

Metadata records and control records (KIP-631, KIP-595, KIP-630) become JSON as Apache's own
converters write it. The partitions at an offset are the result of `controller` from the newest
snapshot before it and the log after that: one log, in order, in one task. Damage there is never
skipped, because every later record depends on the earlier ones.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import decode_message
from kraft_wire.model import StorageError, uuid_to_text
from kraft_wire.spark.failure import PipelineError
from kraft_wire.spark.garbage_collection import uncollected
from kraft_wire.spark.kraftlog.log_walk import LogWindow, complain, judge_damage, walk
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.planning import LogPart
from kraft_wire.spark.kraftlog.schemas import METADATA, PARTITIONS
from kraft_wire.spark.metadata.snapshot_files import newest_snapshot, snapshot_records
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.frames_json import metadata_frame_to_json
from kraft_wire.wire.json_form import Json, message_to_json
from kraft_wire.wire.message import MalformedMessage, Message
from kraft_wire.wire.records.control_records import (
    ControlRecordType,
    parse_control_key,
    parse_control_value,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = [
    "arrow_batches",
    "batches_of",
    "image_at",
    "metadata_batches",
    "metadata_windows",
    "partition_rows",
    "read_metadata_view",
    "read_partitions_view",
]

_VERSION_BYTES: Final = 2
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
Row = dict[str, object]


def read_metadata_view(
    fs: FileSystem, part: LogPart, options: LogOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a part of the metadata log, control records among them."""
    for found in walk(fs, part, fail_on_loss=options.fail_on_data_loss):
        judge_damage(found, options.on_corrupt)
        with uncollected():
            rows = _rows(found, part, options)
        yield from arrow_batches(rows, METADATA, schema, options.arrow_batch_rows)


def _rows(found: LogWindow, part: LogPart, options: LogOptions) -> list[Row]:
    rows: list[Row] = []
    for _, batch in batches_of(found):
        try:
            rows += [_row(batch, record) for record in batch.records() if _is_asked(part, record)]
        except (CorruptRecordBatch, MalformedMessage) as error:
            what = f"offset {batch.base_offset}: {error}"
            complain(found, found.window.position, what, options.on_corrupt)
    return rows


def arrow_batches(
    rows: Sequence[Row], full: pa.Schema, schema: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows of a view as Arrow batches with the columns that are asked for."""
    for start in range(0, len(rows), batch_rows):
        table = pa.Table.from_pylist(list(rows[start : start + batch_rows]), schema=full)
        yield from table.select(schema.names).cast(schema).to_batches()


def metadata_batches(fs: FileSystem, part: LogPart) -> Iterator[RecordBatch]:
    """Yield all batches of a metadata log in order; PipelineError where it is damaged."""
    for found in metadata_windows(fs, part):
        yield from (batch for _, batch in batches_of(found))


def metadata_windows(fs: FileSystem, part: LogPart) -> Iterator[LogWindow]:
    """Yield a metadata log window by window; PipelineError where it is damaged."""
    for found in walk(fs, part):
        judge_damage(found, "fail")
        yield found


def batches_of(found: LogWindow) -> Iterator[tuple[int, RecordBatch]]:
    """Yield the whole batches of a window that are asked for, each with its row."""
    view = memoryview(found.window.data)
    for row in np.flatnonzero(found.in_range & found.columns.is_valid).tolist():
        start = int(found.window.starts[row])
        yield row, RecordBatch(view[start : start + int(found.window.sizes[row])])


def _is_asked(part: LogPart, record: Record) -> bool:
    end = part.offsets.end
    return record.offset >= part.offsets.start and (end is None or record.offset < end)


def _row(batch: RecordBatch, record: Record) -> Row:
    name, version, data = _control(record) if batch.is_control else _data(record)
    return {
        "offset": record.offset,
        "epoch": batch.partition_leader_epoch,
        "isControl": batch.is_control,
        "type": name,
        "version": version,
        "json": _ENCODER.encode(data),
    }


def _data(record: Record) -> tuple[str, int, Json]:
    frame = metadata_frame_to_json(record.value or b"")
    name, version = frame["type"], frame["version"]
    assert isinstance(name, str) and isinstance(version, int), frame  # noqa: PT018  # one fact
    return name, version, frame["data"]


def _control(record: Record) -> tuple[str, int, Json]:
    kind = parse_control_key(record.key)
    if kind is None or kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return "UNKNOWN" if kind is None else kind.name, -1, None
    message = parse_control_value(kind, record.value)
    version = int.from_bytes((record.value or b"")[:_VERSION_BYTES], "big")
    return kind.name, version, message_to_json(message, version)


def read_partitions_view(
    fs: FileSystem, part: LogPart, options: LogOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield all partitions of all topics at an offset."""
    only_snapshot = options.image == "snapshot"
    with uncollected():
        image = image_at(fs, part, as_of_offset=options.as_of_offset, only_snapshot=only_snapshot)
        rows = list(partition_rows(image))
    yield from arrow_batches(rows, PARTITIONS, schema, options.arrow_batch_rows)


def partition_rows(image: MetadataImage) -> Iterator[Row]:
    """Yield a row a partition, by topic and number."""
    for topic in image.topics():
        topic_id = uuid_to_text(topic.topic_id)
        for number in sorted(topic.partitions):
            each = topic.partitions[number]
            yield {
                "topic": topic.name,
                "topicId": topic_id,
                "partition": number,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "leader": each.leader,
                "leaderEpoch": each.leader_epoch,
                "partitionEpoch": each.partition_epoch,
            }


def image_at(
    fs: FileSystem,
    part: LogPart,
    *,
    as_of_offset: int | None = None,
    only_snapshot: bool = False,
) -> MetadataImage:
    """Return the metadata before an offset (exclusive; None is the end of the log).

    `part` is the whole metadata log. The newest snapshot at or before the offset is loaded, and
    unless `only_snapshot`, the log after it is replayed; records of a transaction that is open
    there are not in the image. Errors: PipelineError if log and snapshots do not reach back that
    far.
    """
    loader = MetadataLoader()
    begin = 0
    snapshot_id = newest_snapshot(fs, part.directory, as_of_offset)
    try:
        if snapshot_id is not None:
            records = snapshot_records(fs, part.directory, snapshot_id)
            begin = snapshot_id.offset
            loader.replay_snapshot(records, begin - 1, snapshot_id.epoch)
        if not only_snapshot:
            _replay(fs, part, loader, begin, as_of_offset)
        image = loader.image
    except (MetadataFault, CorruptRecordBatch, StorageError) as error:
        raise PipelineError(f"metadata log in {part.directory}: {error}") from None
    if only_snapshot and snapshot_id is None:
        before = "" if as_of_offset is None else f" that ends at or before offset {as_of_offset}"
        raise PipelineError(f"{part.directory} has no snapshot{before}: set image to replay")
    return image


def _replay(
    fs: FileSystem, part: LogPart, loader: MetadataLoader, begin: int, end: int | None
) -> None:
    """Apply the log from `begin` on; there may be nothing between it and the first batch."""
    expected = begin
    for batch in metadata_batches(fs, part):
        if end is not None and batch.base_offset >= end:
            return
        if batch.next_offset <= expected:
            continue
        if batch.base_offset > expected:
            raise PipelineError(
                f"{part.directory}: the log continues at offset {batch.base_offset}, and what"
                f" comes before it from {expected} on is in no snapshot: ask for a later offset"
            )
        _take(batch, loader, expected, end)
        expected = batch.next_offset


def _take(batch: RecordBatch, loader: MetadataLoader, begin: int, end: int | None) -> None:
    if batch.is_control:
        loader.last_offset = batch.next_offset - 1
        return
    messages: list[Message] = []
    for record in batch.records():
        if record.offset >= begin and (end is None or record.offset < end):
            messages.append(decode_message(record.value or b""))
    loader.take_batch(messages, max(batch.base_offset, begin), batch.partition_leader_epoch)
