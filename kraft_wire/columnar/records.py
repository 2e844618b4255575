"""The records of a window's batches as columns, in the order of the file.

Batches of format 2 (KIP-98) are read many at once; formats 0 and 1 (KIP-31, KIP-32), and batches
with unusual records, go through `wire`, so that both readers accept the same. Markers are never
records. A batch that cannot be read becomes an `Unreadable` as a whole: none of its records is
returned.

Bodies are decompressed in groups: memory is one window, one group and one body. The caller's
`selected` has the requested batches (committed ones, a range of offsets).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from kraft_wire.columnar.arrays import PADDING_BYTES, Bools, Int64s, words_of
from kraft_wire.columnar.batch_columns import BatchColumns, BatchSource, batches_table
from kraft_wire.columnar.blobs import FieldPairs, headers_array
from kraft_wire.columnar.log_windows import Window
from kraft_wire.columnar.record_fields import RecordFields, read_record_fields
from kraft_wire.columnar.record_starts import Bodies, find_record_starts
from kraft_wire.columnar.schemas import BATCH_FIELDS, HEADERS_TYPE, records_schema
from kraft_wire.wire.compression.codecs import (
    DEFAULT_LIMITS,
    Compression,
    DecompressionLimits,
    decompress,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import HEADER_BYTES, MAGIC, RecordBatch

__all__ = [
    "CONTENT",
    "TIME_MS_MAX",
    "RecordColumns",
    "Unreadable",
    "read_records",
    "records_table",
]

CONTENT: Final = ("key", "value", "headers")
"""The columns that cost copying; leave out those that are not requested."""

_GROUP_BYTES: Final = 8 << 20
_US_PER_MS: Final = 1000
TIME_MS_MAX: Final = ((1 << 63) - 1) // _US_PER_MS
"""Times beyond it are not timestamps of Spark or Arrow, and null."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A whole batch with a right checksum whose records cannot be read."""

    row: int
    """In the window."""
    position: int
    """In the file."""
    base_offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """One element a record in each column, and the batches that could not be read."""

    row: Int64s
    """The batch's row in the window."""
    offset: Int64s
    timestamp: Int64s
    """Milliseconds since 1970, -1 for none."""
    timestamp_type: Int64s
    content: dict[str, pa.Array]
    """The requested columns of `CONTENT`."""
    unreadable: list[Unreadable]

    def __len__(self) -> int:
        return len(self.offset)


def read_records(
    window: Window,
    columns: BatchColumns,
    selected: Bools | None = None,
    *,
    content: Collection[str] = CONTENT,
    limits: DecompressionLimits = DEFAULT_LIMITS,
    group_bytes: int = _GROUP_BYTES,
) -> Iterator[RecordColumns]:
    """Yield the records of the selected batches (default: all), in groups of some megabytes.

    Only whole batches with a right checksum that are not control batches count. Never raises for
    any bytes.
    """
    assert len(columns) == len(window.starts), "columns of another window"
    wanted = columns.is_valid & ~columns.is_control
    if selected is not None:
        wanted &= selected
    group = _Group(window, columns, content, limits)
    in_place = wanted & group.is_held & (columns.magic == MAGIC) & (columns.codec == 0)
    if in_place.any() and np.array_equal(in_place, wanted):
        yield group.in_place(np.flatnonzero(in_place))
        return
    for row in np.flatnonzero(wanted).tolist():
        group.add(row)
        if group.body_bytes >= group_bytes:
            yield group.flush()
    if group.rows or group.slow_rows or group.unreadable:
        yield group.flush()


class _Group:
    """Bodies that are read together."""

    def __init__(
        self,
        window: Window,
        columns: BatchColumns,
        content: Collection[str],
        limits: DecompressionLimits,
    ) -> None:
        self._window = window
        self._columns = columns
        self._content = content
        self._limits = limits
        self.is_held = window.starts + window.sizes <= window.held_bytes
        self._codecs = columns.codec
        self._clear()

    def _clear(self) -> None:
        self.rows: list[int] = []
        self.slow_rows: list[int] = []
        self.unreadable: list[Unreadable] = []
        self.body_bytes = 0
        self._bodies: list[bytes | memoryview] = []

    def add(self, row: int) -> None:
        """Take a batch in: decompress it, or leave it to the plain reader."""
        if not self.is_held[row]:
            size = int(self._window.sizes[row])
            self._refuse(row, f"batch of {size} bytes is larger than the window")
        elif self._columns.magic[row] != MAGIC or self._columns.count[row] < 0:
            self.slow_rows.append(row)
            self.body_bytes += int(self._window.sizes[row])
        elif self._columns.count[row]:
            body = self._body(row)
            if body is not None:
                self.rows.append(row)
                self._bodies.append(body)
                self.body_bytes += len(body)

    def in_place(self, rows: Int64s) -> RecordColumns:
        """Read uncompressed batches where they are in the window."""
        counts = self._columns.count[rows]
        self.slow_rows = rows[counts < 0].tolist()
        rows = rows[counts > 0]
        starts = self._window.starts[rows]
        return self._read(
            self._window.data, rows, starts + HEADER_BYTES, starts + self._window.sizes[rows]
        )

    def flush(self) -> RecordColumns:
        """Read the added bodies, and begin again."""
        data = b"".join([*self._bodies, bytes(PADDING_BYTES)])
        ends = np.cumsum([len(body) for body in self._bodies], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
        return self._read(data, np.array(self.rows, np.int64), starts, ends)

    def _body(self, row: int) -> bytes | memoryview | None:
        start, size = int(self._window.starts[row]), int(self._window.sizes[row])
        body = memoryview(self._window.data)[start + HEADER_BYTES : start + size]
        codec = int(self._codecs[row])
        if codec == Compression.NONE:
            return body
        try:
            if codec > Compression.ZSTD:
                raise CorruptRecordBatch(f"unknown compression codec {codec}")
            return decompress(Compression(codec), body, self._limits)
        except CorruptRecordBatch as error:
            self._refuse(row, error.reason)
            return None

    def _read(self, data: bytes, rows: Int64s, starts: Int64s, ends: Int64s) -> RecordColumns:
        bodies = Bodies(data, words_of(data), starts, ends, self._columns.count[rows])
        fields = read_record_fields(bodies, find_record_starts(bodies))
        columns = self._columns_of(data, rows, fields)
        slow = sorted([*self.slow_rows, *rows[fields.odd].tolist()])
        result = self._with_slow(columns, slow) if slow else columns
        self._clear()
        return result

    def _columns_of(self, data: bytes, rows: Int64s, fields: RecordFields) -> RecordColumns:
        row = rows[fields.owners]
        types = self._columns.timestamp_type[row]
        timestamp = self._columns.base_timestamp[row] + fields.timestamp_deltas
        timestamp = np.where(types == 1, self._columns.max_timestamp[row], timestamp)
        content: dict[str, pa.Array] = {}
        pairs = FieldPairs(data, *fields[3:7])
        if "key" in self._content:
            content["key"] = pairs.first()
        if "value" in self._content:
            content["value"] = pairs.second()
        if "headers" in self._content:
            content["headers"] = headers_array(data, fields.headers)
        offset = self._columns.base_offset[row] + fields.offset_deltas
        return RecordColumns(row, offset, timestamp, types, content, self.unreadable)

    def _with_slow(self, quick: RecordColumns, slow_rows: list[int]) -> RecordColumns:
        """Read batches one by one and insert their records in order."""
        found = [(row, record) for row in slow_rows for record in self._slow_records(row)]
        records = [record for _, record in found]
        slow_row = np.array([row for row, _ in found], np.int64)
        row = np.concatenate([quick.row, slow_row])
        order = np.argsort(row, kind="stable")
        offset = np.array([record.offset for record in records], np.int64)
        timestamp = np.array([record.timestamp for record in records], np.int64)
        types = self._columns.timestamp_type[slow_row]
        slow = {name: _content_of(name, records) for name in quick.content}
        return RecordColumns(
            row[order],
            np.concatenate([quick.offset, offset])[order],
            np.concatenate([quick.timestamp, timestamp])[order],
            np.concatenate([quick.timestamp_type, types])[order],
            {
                name: pa.concat_arrays([array, slow[name]]).take(pa.array(order))
                for name, array in quick.content.items()
            },
            sorted(self.unreadable, key=lambda each: each.row),
        )

    def _slow_records(self, row: int) -> list[Record]:
        start, size = int(self._window.starts[row]), int(self._window.sizes[row])
        view = memoryview(self._window.data)[start : start + size]
        try:
            if self._columns.magic[row] == MAGIC:
                return RecordBatch(view).records(self._limits)
            return LegacyBatch(view).records(self._limits)
        except CorruptRecordBatch as error:
            self._refuse(row, error.reason)
            return []

    def _refuse(self, row: int, reason: str) -> None:
        position = int(self._columns.position[row])
        base_offset = int(self._columns.base_offset[row])
        self.unreadable.append(Unreadable(row, position, base_offset, reason))


def _content_of(name: str, records: list[Record]) -> pa.Array:
    if name != "headers":
        return pa.array([getattr(record, name) for record in records], pa.binary())
    headers = [
        [{"key": key, "value": value} for key, value in record.headers] or None
        for record in records
    ]
    return pa.array(headers, HEADERS_TYPE)


def records_table(
    records: RecordColumns,
    place: BatchSource,
    schema: pa.Schema,
    batches: BatchColumns | None = None,
) -> pa.Table:
    """Return the view `records` with the columns of `schema`, in its order.

    `schema` is `records_schema` or some of its fields; `batches`, those that the records were read
    from, are needed for the fields of a batch. A time that microseconds cannot express is null.
    """
    known = dict(records.content)
    known["topic"] = pa.repeat(pa.scalar(place.topic), len(records))
    known["partition"] = pa.repeat(pa.scalar(place.partition, pa.int32()), len(records))
    known["offset"] = pa.array(records.offset)
    known["timestamp"] = _microseconds(records.timestamp)
    known["timestampType"] = pa.array(records.timestamp_type).cast(pa.int32())
    if any(name in BATCH_FIELDS for name in schema.names):
        assert batches is not None, "fields of the batch are requested"
        fields = batches_table(batches, place).select(BATCH_FIELDS).take(pa.array(records.row))
        known |= {name: fields[name].combine_chunks() for name in BATCH_FIELDS}
    return pa.Table.from_arrays([known[name] for name in schema.names], schema=schema)


def _microseconds(milliseconds: Int64s) -> pa.Array:
    beyond = (milliseconds > TIME_MS_MAX) | (milliseconds < -TIME_MS_MAX)
    scaled = np.where(beyond, 0, milliseconds) * _US_PER_MS
    mask = beyond if beyond.any() else None
    return pa.array(scaled, mask=mask).cast(records_schema().field("timestamp").type)
