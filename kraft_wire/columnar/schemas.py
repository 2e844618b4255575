"""The Arrow schemas of the views, with the names and types that readers rely on.

Built by hand, because Spark requires a yielded batch to equal the declared schema exactly: every
field nullable, times in microseconds of UTC, a list's child called `element`. Key, value, topic,
partition, offset, timestamp, timestampType and headers are those of Spark's own Kafka source.
"""

from typing import Final

import pyarrow as pa

__all__ = ["BATCHES", "BATCH_FIELDS", "HEADERS_TYPE", "RECORDS", "SEGMENTS", "records_schema"]

HEADERS_TYPE: Final = pa.list_(
    pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
)

RECORDS: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)

BATCHES: Final = pa.schema(
    [
        ("node", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("segment", pa.string()),
        ("position", pa.int64()),
        ("sizeInBytes", pa.int64()),
        ("baseOffset", pa.int64()),
        ("lastOffset", pa.int64()),
        ("count", pa.int32()),
        ("leaderEpoch", pa.int32()),
        ("magic", pa.int32()),
        ("crc", pa.int64()),
        ("crcValid", pa.bool_()),
        ("compression", pa.string()),
        ("timestampType", pa.int32()),
        ("baseTimestamp", pa.int64()),
        ("maxTimestamp", pa.int64()),
        ("isTransactional", pa.bool_()),
        ("isControl", pa.bool_()),
        ("producerId", pa.int64()),
        ("producerEpoch", pa.int32()),
        ("baseSequence", pa.int32()),
        ("status", pa.string()),
    ]
)
"""Times are milliseconds as the header has them: -1 for none, any value in a damaged one."""

SEGMENTS: Final = pa.schema(
    [
        ("node", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("file", pa.string()),
        ("baseOffset", pa.int64()),
        ("logBytes", pa.int64()),
        ("logStartOffset", pa.int64()),
        ("logEndOffset", pa.int64()),
        ("highWatermark", pa.int64()),
    ]
)

BATCH_FIELDS: Final = (
    "leaderEpoch",
    "magic",
    "compression",
    "isTransactional",
    "producerId",
    "producerEpoch",
    "baseSequence",
)
"""Columns of `BATCHES` that `includeBatchFields` adds to records: those of the record's batch."""


def records_schema(*, headers: bool = False, batch_fields: bool = False) -> pa.Schema:
    """Return the schema of records, with the headers and the fields of the batch if wanted."""
    schema = RECORDS
    if headers:
        schema = schema.append(pa.field("headers", HEADERS_TYPE))
    if batch_fields:
        for name in BATCH_FIELDS:
            schema = schema.append(BATCHES.field(name))
    return schema
