"""Reads every kind of file in a log directory for `kraft-wire dump`, as a stream of JSON entries.

Each entry has a `kind`: `batch`, `record`, `entry` (a line or slot of a small file) or `fault`.
Reading is tolerant, because a dump is needed most when a file is damaged: a fault names the byte
and, if anything can follow it, the reading continues. The node itself reads through `storage/`,
which refuses damaged files.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Final, NamedTuple

from kraft_wire.cli.dump.records import READERS, RecordReader, control_reader, reader_of_topic
from kraft_wire.foreign_text import json_value
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.registry import message_class
from kraft_wire.wire.json_form import Json, base64_of, message_to_json
from kraft_wire.wire.message import MalformedMessage
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.memory_records import AnyBatch, iter_batches
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch
from kraft_wire.wire.records_json import batch_to_json

__all__ = ["Entry", "FileFormat", "format_of_file"]

Entry = dict[str, Json]
Buffer = bytes | memoryview

_PASSING_SUFFIXES: Final = (".deleted", ".part", ".cleaned", ".swap")
_INDEX_SLOT: Final = struct.Struct(">ii")
_TIME_SLOT: Final = struct.Struct(">qi")
_TRANSACTION_SLOT: Final = struct.Struct(">hqqqq")
_SNAPSHOT_VERSION: Final = struct.Struct(">h")
_SNAPSHOT_CRC_END: Final = 6
_CHUNK_BYTES: Final = 1 << 20
_NUMBER_DIGITS_MAX: Final = 19
"""The digits of an int64; int() itself refuses thousands of digits."""


class FileFormat(NamedTuple):
    """How a file is called and read."""

    name: str
    read: Callable[[Buffer], Iterator[Entry]]


def format_of_file(
    path: PurePath, *, with_records: bool = False, records_as: str | None = None
) -> FileFormat | None:
    """Return the format for a file's name; None for a name that Kafka does not use.

    `records_as` is a key of `READERS` and overrides the name of the directory, so the path should
    be absolute.
    """
    name = path.name
    while name.endswith(_PASSING_SUFFIXES):
        name = name.rpartition(".")[0]
    if name.endswith((".log", ".checkpoint")):
        is_snapshot = name.endswith(".checkpoint")
        reader = _reader(path, is_snapshot, records_as)
        title = "metadata snapshot" if is_snapshot else "log segment"
        return FileFormat(title, lambda data: log_entries(data, reader, with_records))
    if name.endswith((".index", ".timeindex")):
        base_offset = int(name.partition(".")[0]) if name.partition(".")[0].isdecimal() else 0
        read = offset_index_entries if name.endswith(".index") else time_index_entries
        return FileFormat(name.rpartition(".")[2], lambda data: read(data, base_offset))
    suffix = PurePath(name).suffix
    return _FORMATS.get(suffix) or _FORMATS.get(name) or _text_checkpoint(name)


def _reader(path: PurePath, is_snapshot: bool, records_as: str | None) -> RecordReader:
    if records_as is not None:
        return READERS[records_as]
    if is_snapshot:
        return READERS["metadata"]
    return reader_of_topic(path.parent.name.rpartition("-")[0])


def log_entries(data: Buffer, reader: RecordReader, with_records: bool) -> Iterator[Entry]:
    """Yield the batches of a segment or snapshot, each followed by its records if wanted."""
    position = 0
    fault = "bytes of a truncated batch"
    try:
        for batch in iter_batches(data):
            yield from _batch_entries(batch, position, reader, with_records)
            position += batch.size_bytes
    except CorruptRecordBatch as error:
        fault = f"the following bytes cannot be read: {error.reason}"
    left = len(data) - position
    if left and _is_zeros(data, position):
        yield {"kind": "entry", "position": position, "preallocatedBytes": left}
    elif left:
        yield {"kind": "fault", "position": position, "reason": f"{left} {fault}"}


def _is_zeros(data: Buffer, position: int) -> bool:
    """Whether only zeros follow, as in a segment that was given its size in advance."""
    for start in range(position, len(data), _CHUNK_BYTES):
        chunk = bytes(data[start : start + _CHUNK_BYTES])
        if chunk.count(0) != len(chunk):
            return False
    return True


def _batch_entries(
    batch: AnyBatch, position: int, reader: RecordReader, with_records: bool
) -> Iterator[Entry]:
    entry: Entry = {"kind": "batch", "position": position, "crcIsValid": batch.crc_is_valid()}
    try:
        yield entry | batch_to_json(batch)
        if with_records:
            for record in batch.records():
                yield _record_entry(record, batch, reader)
    except CorruptRecordBatch as error:
        yield {"kind": "fault", "position": position, "reason": error.reason}
    if not entry["crcIsValid"]:
        yield {"kind": "fault", "position": position, "reason": "the checksum is wrong"}


def _record_entry(record: Record, batch: AnyBatch, reader: RecordReader) -> Entry:
    is_control = isinstance(batch, RecordBatch) and batch.is_control
    entry: Entry = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp}
    if record.sequence >= 0:
        entry["sequence"] = record.sequence
    if record.headers:
        entry["headers"] = [
            {"key": key, "value": None if value is None else base64_of(value)}
            for key, value in record.headers
        ]
    return entry | (control_reader if is_control else reader)(record)


def offset_index_entries(data: Buffer, base_offset: int) -> Iterator[Entry]:
    """Yield offset and position of each slot, up to the zeros of a preallocated tail."""
    before = -1
    for index, (relative, position) in enumerate(_slots(data, _INDEX_SLOT)):
        if relative == 0 and position == 0:
            return
        yield {"kind": "entry", "offset": base_offset + relative, "position": position}
        if position <= before and index:
            yield _slot_fault(index, _INDEX_SLOT, "the position does not increase")
        before = position
    yield from _odd_bytes(data, _INDEX_SLOT)


def time_index_entries(data: Buffer, base_offset: int) -> Iterator[Entry]:
    """Yield timestamp and offset of each slot, up to the zeros of a preallocated tail."""
    before = -1
    for index, (timestamp, relative) in enumerate(_slots(data, _TIME_SLOT)):
        if timestamp == 0 and relative == 0:
            return
        yield {"kind": "entry", "timestamp": timestamp, "offset": base_offset + relative}
        if timestamp <= before and index:
            yield _slot_fault(index, _TIME_SLOT, "the timestamp does not increase")
        before = timestamp
    yield from _odd_bytes(data, _TIME_SLOT)


def transaction_index_entries(data: Buffer) -> Iterator[Entry]:
    """Yield the aborted transactions of a `.txnindex`."""
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    for index, slot in enumerate(_slots(data, _TRANSACTION_SLOT)):
        yield {"kind": "entry", **dict(zip(names, slot, strict=True))}
        if slot[0] != 0:
            yield _slot_fault(index, _TRANSACTION_SLOT, f"version {slot[0]} is unknown")
    yield from _odd_bytes(data, _TRANSACTION_SLOT)


def _slots(data: Buffer, slot: struct.Struct) -> Iterator[tuple[int, ...]]:
    return slot.iter_unpack(data[: len(data) - len(data) % slot.size])


def _slot_fault(index: int, slot: struct.Struct, reason: str) -> Entry:
    return {"kind": "fault", "position": index * slot.size, "reason": reason}


def _odd_bytes(data: Buffer, slot: struct.Struct) -> Iterator[Entry]:
    odd = len(data) % slot.size
    if odd:
        position = len(data) - odd
        yield {
            "kind": "fault",
            "position": position,
            "reason": f"{odd} bytes are not a complete slot",
        }


def producer_snapshot_entries(data: Buffer) -> Iterator[Entry]:
    """Yield the producers of a `.snapshot`; its checksum covers all after itself."""
    if len(data) < _SNAPSHOT_VERSION.size:
        yield {"kind": "fault", "position": 0, "reason": "the file is truncated"}
        return
    version: int = _SNAPSHOT_VERSION.unpack_from(data)[0]
    try:
        snapshot_class = message_class("ProducerSnapshot")
        message, end = snapshot_class.decode(bytes(data), version, _SNAPSHOT_VERSION.size)
    except MalformedMessage as error:
        yield {"kind": "fault", "position": error.byte, "reason": str(error)}
        return
    content = message_to_json(message, version)
    producers = content.pop("producerEntries")
    yield {"kind": "entry", "version": version, **content}
    assert isinstance(producers, list)
    for producer in producers:
        assert isinstance(producer, dict)
        yield {"kind": "entry", **producer}
    if crc32c(data[_SNAPSHOT_CRC_END:]) != content["crc"]:
        reason = "the checksum is wrong"
        yield {"kind": "fault", "position": _SNAPSHOT_VERSION.size, "reason": reason}
    if end < len(data):
        reason = f"{len(data) - end} bytes follow"
        yield {"kind": "fault", "position": end, "reason": reason}


def properties_entries(data: Buffer) -> Iterator[Entry]:
    """Yield the keys of a properties file such as `meta.properties`."""
    for number, line in enumerate(_lines(data), start=1):
        if not line.strip() or line.startswith(("#", "!")):
            continue
        key, separator, value = line.partition("=" if "=" in line else ":")
        if separator and line.isprintable():
            yield {"kind": "entry", "key": key.strip(), "value": value.strip()}
        else:
            yield {"kind": "fault", "position": 0, "reason": f"line {number} is not key=value"}


def json_entries(data: Buffer) -> Iterator[Entry]:
    """Yield the object of a JSON file such as `quorum-state`."""
    try:
        content = json_value(bytes(data))
    except ValueError as error:
        yield {"kind": "fault", "position": 0, "reason": f"not JSON: {error}"}
        return
    members = content if isinstance(content, dict) else {"value": content}
    yield {"kind": "entry", **members}


def _text_checkpoint(name: str) -> FileFormat | None:
    columns: tuple[str, ...]
    if name == "leader-epoch-checkpoint":
        columns = ("leaderEpoch", "startOffset")
    elif name.endswith("-checkpoint"):
        columns = ("topic", "partition", "offset")
    else:
        return None
    return FileFormat("checkpoint", lambda data: checkpoint_entries(data, columns))


def checkpoint_entries(data: Buffer, columns: tuple[str, ...]) -> Iterator[Entry]:
    """Yield the lines of a text checkpoint: version, count, then words in `columns`."""
    lines = _lines(data)
    if len(lines) < 2 or not all(_is_number(line.strip()) for line in lines[:2]):
        yield {"kind": "fault", "position": 0, "reason": "no version and count at the start"}
        return
    rows = [line.split() for line in lines[2:] if line.strip()]
    for number, words in enumerate(rows, start=3):
        if len(words) != len(columns):
            reason = f"line {number} has {len(words)} words, not {len(columns)}"
            yield {"kind": "fault", "position": 0, "reason": reason}
            continue
        values = (int(word) if _is_number(word.removeprefix("-")) else word for word in words)
        yield {"kind": "entry", **dict(zip(columns, values, strict=True))}
    if len(rows) != int(lines[1]):
        reason = f"{lines[1].strip()} entries are declared, {len(rows)} exist"
        yield {"kind": "fault", "position": 0, "reason": reason}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS_MAX


def _lines(data: Buffer) -> list[str]:
    return bytes(data).decode("utf-8", "replace").splitlines()


_FORMATS: Final = {
    ".txnindex": FileFormat("transaction index", transaction_index_entries),
    ".snapshot": FileFormat("producer snapshot", producer_snapshot_entries),
    ".properties": FileFormat("properties", properties_entries),
    "partition.metadata": FileFormat("partition metadata", properties_entries),
    "quorum-state": FileFormat("quorum state", json_entries),
    ".kafka_cleanshutdown": FileFormat("clean shutdown marker", json_entries),
}
