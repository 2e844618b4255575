"""What the straight decoder of `kraft_wire.wire` says of the same bytes: the columns' judge."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from kraft_wire.columnar import (
    BatchSource,
    Window,
    batch_columns,
    read_records,
    records_schema,
    records_table,
    window_of,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.memory_records import AnyBatch, iter_batches, whole_batch_bytes
from kraft_wire.wire.records.record import Record

Row = tuple[int, int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
PLACE = BatchSource("orders", 3, "1", "00000000000000000000.log")


@dataclass
class Reading:
    """Records as plain rows, and the first offsets of batches that cannot be read."""

    rows: list[Row] = field(default_factory=list)
    unreadable: list[tuple[int, str]] = field(default_factory=list)


def rows_of(batch: AnyBatch) -> list[Row]:
    """The records of one batch; control batches have none to show."""
    if not isinstance(batch, LegacyBatch) and batch.is_control:
        return []
    kind = -1 if batch.magic == 0 else int(batch.is_log_append_time)
    return [_row(record, kind) for record in batch.records()]


def _row(record: Record, kind: int) -> Row:
    return record.offset, record.timestamp, kind, record.key, record.value, record.headers


def whole_batches(data: bytes) -> list[tuple[int, AnyBatch]]:
    """The batches up to the first place that is none, with their positions."""
    return [(position, batch) for position, batch, _ in _walk(data) if batch is not None]


def _walk(data: bytes) -> Iterator[tuple[int, AnyBatch | None, str]]:
    """Positions, batches, and why there is none where a message does not fit its own size."""
    view, position = memoryview(data), 0
    while True:
        try:
            size = whole_batch_bytes(view, position)
        except CorruptRecordBatch:
            return
        if size is None:
            return
        part = view[position : position + size]
        try:
            yield position, next(iter_batches(part)), ""
        except CorruptRecordBatch as error:
            if part[16] == 2:
                return
            if zlib.crc32(part[16:]) == int.from_bytes(part[12:16], "big"):
                yield position, None, error.reason
        position += size


def read_by_wire(data: bytes) -> Reading:
    """All batches with a right checksum, one by one."""
    reading = Reading()
    for position, batch, reason in _walk(data):
        if batch is None:
            reading.unreadable.append((position, reason))
        elif batch.crc_is_valid():
            try:
                reading.rows += rows_of(batch)
            except CorruptRecordBatch as error:
                reading.unreadable.append((position, error.reason))
    return reading


def read_by_columns(window: Window, group_bytes: int = 1 << 20) -> Reading:
    """The same through `columnar`, back from Arrow."""
    reading = Reading()
    columns = batch_columns(window)
    for records in read_records(window, columns, group_bytes=group_bytes):
        content = {name: array.to_pylist() for name, array in records.content.items()}
        headers = [
            [(each["key"], each["value"]) for each in row or []] for row in content["headers"]
        ]
        reading.rows += list(
            zip(
                records.offset.tolist(),
                records.timestamp.tolist(),
                records.timestamp_type.tolist(),
                content["key"],
                content["value"],
                headers,
                strict=True,
            )
        )
        reading.unreadable += [(each.position, each.reason) for each in records.unreadable]
        schema = records_schema(headers=True, batch_fields=True)
        table = records_table(records, PLACE, schema, columns)
        table.validate(full=True)
        assert table.schema.equals(schema)
        assert np.array_equal(table["offset"].to_numpy(), records.offset)
    return reading


def assert_read_alike(data: bytes) -> None:
    """Both readers see the same records and refuse the same batches."""
    window = window_of(data)
    ours, straight = read_by_columns(window), read_by_wire(data)
    assert ours.rows == straight.rows
    assert sorted(ours.unreadable) == straight.unreadable
