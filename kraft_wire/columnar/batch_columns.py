"""The headers of a window's batches as columns: one array a field, one row a stretch of the file.

Format 2 (KIP-98) is read from all 61-byte headers at once. Formats 0 and 1 are read one by one
through `wire.legacy_batch`, whose batches do not carry most of the fields: those are -1, as
Apache's own accessors have it. The first offset and the count of a compressed message set are
inside it; a set that cannot be read counts as one message. For `torn` and `garbage` stretches only
place, size and status are known; in the Arrow table the rest is null.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from kraft_wire.columnar.arrays import Bools, Int64s, as_bytes
from kraft_wire.columnar.log_windows import Status, Window
from kraft_wire.columnar.schemas import BATCHES
from kraft_wire.wire.compression.codecs import DEFAULT_LIMITS, Compression, DecompressionLimits
from kraft_wire.wire.records.control_records import parse_control_key
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    TRANSACTIONAL_BIT,
    RecordBatch,
)

__all__ = [
    "NO_CONTROL_TYPE",
    "NO_TIMESTAMP_TYPE",
    "BatchColumns",
    "BatchSource",
    "batch_columns",
    "batches_table",
]

NO_TIMESTAMP_TYPE: Final = -1
"""`timestampType` of message format 0; 0 is the creator's time, 1 the time of the append."""
NO_CONTROL_TYPE: Final = -1
"""`control_type` of other batches, and of control batches with an unreadable key."""

_HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
assert _HEADER.itemsize == HEADER_BYTES, _HEADER.itemsize
_CODEC_NAMES: Final = tuple(codec.name.lower() for codec in Compression)
_STATUS_NAMES: Final = tuple(status.name.lower() for status in Status)


@dataclass(frozen=True, slots=True)
class BatchSource:
    """The source of the bytes; a part of every row of a table."""

    topic: str
    partition: int
    node: str = ""
    segment: str = ""


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """One array a header field; rows are those of the window."""

    position: Int64s
    """In the file."""
    size_bytes: Int64s
    status: Int64s
    is_batch: Bools
    """False for `torn` and `garbage`, whose other columns are undefined."""
    base_offset: Int64s
    last_offset: Int64s
    count: Int64s
    leader_epoch: Int64s
    magic: Int64s
    crc: Int64s
    attributes: Int64s
    base_timestamp: Int64s
    max_timestamp: Int64s
    producer_id: Int64s
    producer_epoch: Int64s
    base_sequence: Int64s
    control_type: Int64s
    """`ControlRecordType` of the first record of a whole control batch."""

    def __len__(self) -> int:
        return len(self.position)

    @property
    def codec(self) -> Int64s:
        """The codec's id as it is in the attributes, 5 to 7 included."""
        return self.attributes & CODEC_MASK

    @property
    def is_valid(self) -> Bools:
        """Whether it is a whole batch with a right checksum."""
        return np.equal(self.status, Status.OK)

    @property
    def is_control(self) -> Bools:
        """Whether the records are markers."""
        return self._has(CONTROL_BIT)

    @property
    def is_transactional(self) -> Bools:
        """Whether a marker decides about the records."""
        return self._has(TRANSACTIONAL_BIT)

    @property
    def timestamp_type(self) -> Int64s:
        """0 the creator's time, 1 the time of the append, -1 no time at all."""
        appended = (self.attributes & LOG_APPEND_TIME_BIT != 0).astype(np.int64)
        return np.where(self.magic == 0, NO_TIMESTAMP_TYPE, appended)

    def _has(self, bit: int) -> Bools:
        found: Bools = (self.magic == MAGIC) & (self.attributes & bit != 0)
        return found


def batch_columns(window: Window, limits: DecompressionLimits = DEFAULT_LIMITS) -> BatchColumns:
    """Read the headers of all batches of a window; never raises for any bytes.

    `limits` applies to message sets of formats 0 and 1 and to control batches, which are decoded.
    """
    is_batch = (window.status == Status.OK) | (window.status == Status.CRC)
    starts = np.where(is_batch, window.starts, 0)
    raw = as_bytes(window.data)[starts[:, np.newaxis] + np.arange(HEADER_BYTES)]
    header = np.ndarray(len(starts), _HEADER, buffer=raw)  # `view` compares all of both layouts
    fields = {name: header[name].astype(np.int64) for name in _HEADER.names or ()}
    base_offset = fields["base_offset"]
    columns = BatchColumns(
        position=window.position + window.starts,
        size_bytes=window.sizes,
        status=window.status,
        is_batch=is_batch,
        base_offset=base_offset,
        last_offset=base_offset + fields["last_offset_delta"],
        count=fields["count"],
        leader_epoch=fields["leader_epoch"],
        magic=fields["magic"],
        crc=fields["crc"],
        attributes=fields["attributes"],
        base_timestamp=fields["base_timestamp"],
        max_timestamp=fields["max_timestamp"],
        producer_id=fields["producer_id"],
        producer_epoch=fields["producer_epoch"],
        base_sequence=fields["base_sequence"],
        control_type=np.full(len(starts), NO_CONTROL_TYPE, np.int64),
    )
    for row in np.flatnonzero(is_batch & (columns.magic < MAGIC)).tolist():
        _read_legacy(window, columns, row, limits)
    for row in np.flatnonzero(columns.is_valid & columns.is_control).tolist():
        columns.control_type[row] = _control_type(window, row, limits)
    return columns


def batches_table(columns: BatchColumns, place: BatchSource) -> pa.Table:
    """Return the view `batches`."""
    unknown = ~columns.is_batch
    known: dict[str, tuple[object, bool]] = {
        "node": (pa.repeat(pa.scalar(place.node), len(columns)), False),
        "topic": (pa.repeat(pa.scalar(place.topic), len(columns)), False),
        "partition": (np.full(len(columns), place.partition), False),
        "segment": (pa.repeat(pa.scalar(place.segment), len(columns)), False),
        "position": (columns.position, False),
        "sizeInBytes": (columns.size_bytes, False),
        "baseOffset": (columns.base_offset, True),
        "lastOffset": (columns.last_offset, True),
        "count": (columns.count, True),
        "leaderEpoch": (columns.leader_epoch, True),
        "magic": (columns.magic, True),
        "crc": (columns.crc, True),
        "crcValid": (columns.is_valid, False),
        "compression": (_names(columns.codec, _CODEC_NAMES), True),
        "timestampType": (columns.timestamp_type, True),
        "baseTimestamp": (columns.base_timestamp, True),
        "maxTimestamp": (columns.max_timestamp, True),
        "isTransactional": (columns.is_transactional, True),
        "isControl": (columns.is_control, True),
        "producerId": (columns.producer_id, True),
        "producerEpoch": (columns.producer_epoch, True),
        "baseSequence": (columns.base_sequence, True),
        "status": (_names(columns.status, _STATUS_NAMES), False),
    }
    arrays = [
        _array(known[field.name][0], field.type, unknown if known[field.name][1] else None)
        for field in BATCHES
    ]
    return pa.Table.from_arrays(arrays, schema=BATCHES)


def _array(values: object, kind: pa.DataType, unknown: Bools | None) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=False)
    if unknown is not None and unknown.any():
        array = pa.compute.if_else(pa.array(unknown), pa.scalar(None, array.type), array)
    return array if array.type == kind else array.cast(kind)


def _names(ids: Int64s, names: tuple[str, ...]) -> pa.Array:
    """Return the names of ids; null for an id without a name."""
    return pa.array(names).take(pa.array(ids, mask=(ids < 0) | (ids >= len(names))))


def _read_legacy(
    window: Window, columns: BatchColumns, row: int, limits: DecompressionLimits
) -> None:
    """Fill a row with the fields of formats 0 and 1."""
    for name in ("leader_epoch", "base_timestamp", "max_timestamp", "producer_id"):
        getattr(columns, name)[row] = -1
    columns.producer_epoch[row] = columns.base_sequence[row] = -1
    columns.last_offset[row] = columns.base_offset[row]
    columns.count[row] = 1
    start = int(window.starts[row])
    columns.crc[row] = int.from_bytes(window.data[start + 12 : start + 16], "big")
    columns.attributes[row] = window.data[start + 17]
    try:
        message = LegacyBatch(_view(window, row))
        columns.max_timestamp[row] = message.timestamp
        if columns.status[row] == Status.OK:
            records = message.records(limits)
            columns.base_offset[row], columns.count[row] = records[0].offset, len(records)
    except CorruptRecordBatch:
        return  # earlier values stay


def _control_type(window: Window, row: int, limits: DecompressionLimits) -> int:
    try:
        for record in RecordBatch(_view(window, row)).iter_records(limits):
            found = parse_control_key(record.key)
            return NO_CONTROL_TYPE if found is None else int(found)
    except CorruptRecordBatch:
        pass
    return NO_CONTROL_TYPE


def _view(window: Window, row: int) -> memoryview:
    """Return the bytes of a row, as many of them as the window holds."""
    start = int(window.starts[row])
    end = min(start + int(window.sizes[row]), window.held_bytes)
    return memoryview(window.data)[start:end]
