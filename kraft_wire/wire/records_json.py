"""Record batches and message sets as JSON, read like Apache's MemoryRecords.

The decoder takes formats 0 to 2 in any codec and checks checksums. The encoder writes format 2,
uncompressed, with create times, as producers do.
"""

from itertools import islice
from typing import Final

from kraft_wire.wire.compression.codecs import DEFAULT_LIMITS, DecompressionLimits
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.json_form import (
    InvalidJson,
    Json,
    base64_of,
    bytes_of,
    expect_object,
    integer_of,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch, InvalidRecord
from kraft_wire.wire.records.legacy_batch import LegacyBatch
from kraft_wire.wire.records.memory_records import AnyBatch, iter_batches
from kraft_wire.wire.records.record import Header, Record, append_record
from kraft_wire.wire.records.record_batch import (
    CHECKED_FROM,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    RecordBatch,
)
from kraft_wire.wire.varint import wrap_int32, wrap_int64

__all__ = ["batch_to_json", "record_to_json", "records_from_json", "records_to_json"]

RECORDS_MAX: Final = 400_000
"""Records in one answer: each becomes a dozen objects, which keeps an answer below 512 MiB."""


def records_to_json(
    data: bytes | memoryview, limits: DecompressionLimits = DEFAULT_LIMITS
) -> dict[str, Json]:
    """Return the JSON of all whole batches and the number of bytes after them.

    Raises CorruptRecordBatch if Apache refuses the bytes, and above 400,000 records.
    """
    batches: list[Json] = []
    seen = records = 0
    for batch in iter_batches(data):
        if not batch.crc_is_valid():
            raise CorruptRecordBatch(f"checksum {batch.crc:#010x} is wrong", seen)
        json = batch_to_json(batch)
        items = _records(batch, records, limits)
        if isinstance(batch, LegacyBatch):
            json["baseOffset"] = items[0].offset
        json["records"] = [record_to_json(record, batch) for record in items]
        batches.append(json)
        records += len(items)
        seen += batch.size_bytes
    return {"batches": batches, "trailingBytes": len(data) - seen}


def _records(batch: AnyBatch, before: int, limits: DecompressionLimits) -> list[Record]:
    if isinstance(batch, LegacyBatch):
        return batch.records(limits)
    allowed = RECORDS_MAX - before
    records = list(islice(batch.iter_records(limits), allowed + 1))
    if len(records) > allowed:
        raise InvalidRecord(f"more than {RECORDS_MAX} records")
    return records


def batch_to_json(batch: AnyBatch) -> dict[str, Json]:
    """Return the JSON of a batch without its records."""
    json: dict[str, Json] = {
        "lastOffset": batch.last_offset,
        "sizeInBytes": batch.size_bytes,
        "magic": batch.magic,
        "compression": batch.compression.name.lower(),
        "timestampType": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
    }
    if isinstance(batch, LegacyBatch):
        json["baseOffset"] = batch.offset
        json["maxTimestamp"] = batch.timestamp
        if batch.magic == 0:
            json["timestampType"] = "NoTimestampType"
        return json
    return json | {
        "baseOffset": batch.base_offset,
        "maxTimestamp": batch.max_timestamp,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "crc": batch.crc,
        "baseTimestamp": batch.base_timestamp,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "isTransactional": batch.is_transactional,
        "isControlBatch": batch.is_control,
        "deleteHorizonMs": batch.delete_horizon_ms,
        "count": batch.records_count,
    }


def record_to_json(record: Record, batch: AnyBatch) -> dict[str, Json]:
    """Return the JSON of one record of `batch`."""
    json: dict[str, Json] = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else base64_of(record.key),
        "value": None if record.value is None else base64_of(record.value),
    }
    if isinstance(batch, RecordBatch):
        json["sequence"] = record.sequence
        json["headers"] = [
            {"key": key, "value": None if value is None else base64_of(value)}
            for key, value in record.headers
        ]
    return json


def records_from_json(json: Json) -> bytes:
    """Return the bytes of `batches` with new sizes, counts and checksums; else InvalidJson."""
    batches = expect_object(json, "records").get("batches")
    if not isinstance(batches, list):
        raise InvalidJson("batches", "expected an array")
    return b"".join(
        _batch_from_json(expect_object(batch, f"batches[{index}]"), f"batches[{index}]")
        for index, batch in enumerate(batches)
    )


def _batch_from_json(json: dict[str, Json], path: str) -> bytes:
    for name, only in (("magic", MAGIC), ("compression", "none"), ("timestampType", "CreateTime")):
        if json.get(name) != only:
            raise InvalidJson(f"{path}.{name}", f"only {only!r} is written")
    base_offset = _integer(json, "baseOffset", "int64", path)
    base_timestamp = _integer(json, "baseTimestamp", "int64", path)
    records = json.get("records")
    if not isinstance(records, list):
        raise InvalidJson(f"{path}.records", "expected an array")
    batch = bytearray(HEADER_BYTES)
    for index, record in enumerate(records):
        _append_record(batch, record, f"{path}.records[{index}]", base_offset, base_timestamp)
    fields = [
        base_offset,
        len(batch) - LOG_OVERHEAD_BYTES,
        _integer(json, "partitionLeaderEpoch", "int32", path),
        MAGIC,
        0,
        _attributes(json),
        wrap_int32(_integer(json, "lastOffset", "int64", path) - base_offset),
        base_timestamp,
        _integer(json, "maxTimestamp", "int64", path),
        _integer(json, "producerId", "int64", path),
        _integer(json, "producerEpoch", "int16", path),
        _integer(json, "baseSequence", "int32", path),
        len(records),
    ]
    HEADER.pack_into(batch, 0, *fields)
    fields[4] = crc32c(memoryview(batch)[CHECKED_FROM:])
    HEADER.pack_into(batch, 0, *fields)
    return bytes(batch)


def _integer(json: dict[str, Json], name: str, kind: str, path: str) -> int:
    return integer_of(json.get(name), kind, f"{path}.{name}")


def _attributes(json: dict[str, Json]) -> int:
    return (
        (TRANSACTIONAL_BIT if json.get("isTransactional") else 0)
        | (CONTROL_BIT if json.get("isControlBatch") else 0)
        | (DELETE_HORIZON_BIT if json.get("deleteHorizonMs") is not None else 0)
    )


def _append_record(
    batch: bytearray, json: Json, path: str, base_offset: int, base_timestamp: int
) -> None:
    members = expect_object(json, path)
    append_record(
        batch,
        wrap_int32(_integer(members, "offset", "int64", path) - base_offset),
        wrap_int64(_integer(members, "timestamp", "int64", path) - base_timestamp),
        _blob(members.get("key"), f"{path}.key"),
        _blob(members.get("value"), f"{path}.value"),
        _headers(members.get("headers"), f"{path}.headers"),
    )


def _blob(json: Json, path: str) -> bytes | None:
    return None if json is None else bytes_of(json, path)


def _headers(json: Json, path: str) -> list[Header]:
    if json is None:
        return []
    if not isinstance(json, list):
        raise InvalidJson(path, "expected an array")
    headers: list[Header] = []
    for header in json:
        members = expect_object(header, path)
        key = members.get("key")
        if not isinstance(key, str):
            raise InvalidJson(f"{path}.key", "expected a string")
        headers.append((key, _blob(members.get("value"), f"{path}.value")))
    return headers
