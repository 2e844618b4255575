"""Reading keys and values of the internal topics' records for `kraft-wire dump`.

A reader turns a record into JSON: metadata records (KIP-631), group offsets and group metadata
(`__consumer_offsets`), transactions (`__transaction_state`), share groups (`__share_group_state`),
or the text or base64 of anything else. A reader returns undecodable bytes as base64 with the
reason, and the dump continues.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.wire.frames_json import metadata_frame_to_json, typed_key_to_json, versioned_to_json
from kraft_wire.wire.generated.registry import MESSAGES
from kraft_wire.wire.json_form import Json, base64_of, message_to_json
from kraft_wire.wire.message import MalformedMessage, UnencodableMessage
from kraft_wire.wire.records.control_records import (
    ControlRecordType,
    parse_control_key,
    parse_control_value,
    parse_end_txn_marker,
)
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record import Record

__all__ = ["READERS", "RecordReader", "control_reader", "reader_of_topic"]

RecordReader = Callable[[Record], dict[str, Json]]

_TYPE_BYTES: Final = 2
_MARKERS: Final = (ControlRecordType.ABORT, ControlRecordType.COMMIT)
_TRANSACTION_KEYS: Final = ("TransactionLogKey",)
_SHARE_KEYS: Final = ("ShareSnapshotKey", "ShareUpdateKey")
_GROUP_KEYS: Final = tuple(
    entry.name
    for entry in MESSAGES.values()
    if entry.kind == "coordinator_key" and entry.name not in _TRANSACTION_KEYS + _SHARE_KEYS
)


def data_reader(record: Record) -> dict[str, Json]:
    """Show key and value as text where they are text."""
    return {"key": _text_or_base64(record.key), "value": _text_or_base64(record.value)}


def metadata_reader(record: Record) -> dict[str, Json]:
    """Decode the value of a `__cluster_metadata` record."""
    value = record.value if record.value is not None else b""
    return _guarded(record, lambda: metadata_frame_to_json(value))


def control_reader(record: Record) -> dict[str, Json]:
    """Decode a transaction marker or a marker of the metadata log."""
    return _guarded(record, lambda: _control_to_json(record))


def _control_to_json(record: Record) -> dict[str, Json]:
    kind = parse_control_key(record.key)
    if kind is None:
        return {"control": "UNKNOWN"} | data_reader(record)
    if kind in _MARKERS:
        return {"control": kind.name, "coordinatorEpoch": parse_end_txn_marker(record.value)}
    message = parse_control_value(kind, record.value)
    version = int.from_bytes((record.value or b"")[:_TYPE_BYTES], "big")
    return {"control": kind.name, "data": message_to_json(message, version)}


def _coordinator_reader(key_names: tuple[str, ...]) -> RecordReader:
    """Return a reader of the record types of one coordinator."""
    by_type = {MESSAGES[name].api_key: name for name in key_names}

    def read(record: Record) -> dict[str, Json]:
        name = by_type.get(int.from_bytes((record.key or b"\xff\xff")[:_TYPE_BYTES], "big"))
        if name is None or record.key is None:
            return data_reader(record) | {"error": "not a record type of this topic"}
        return _guarded(record, lambda: _key_and_value(name, record))

    return read


def _key_and_value(key_name: str, record: Record) -> dict[str, Json]:
    assert record.key is not None
    value_name = key_name.removesuffix("Key") + "Value"
    tombstone = record.value is None
    return {
        "type": key_name.removesuffix("Key"),
        "key": typed_key_to_json(key_name, record.key)["data"],
        "value": None if tombstone else versioned_to_json(value_name, record.value or b""),
    }


READERS: Final[dict[str, RecordReader]] = {
    "metadata": metadata_reader,
    "offsets": _coordinator_reader(_GROUP_KEYS),
    "transactions": _coordinator_reader(_TRANSACTION_KEYS),
    "shares": _coordinator_reader(_SHARE_KEYS),
    "data": data_reader,
}
_TOPICS: Final = {
    "__cluster_metadata": "metadata",
    "__consumer_offsets": "offsets",
    "__transaction_state": "transactions",
    "__share_group_state": "shares",
}


def reader_of_topic(topic: str) -> RecordReader:
    """Return the reader for a topic, by its name."""
    return READERS[_TOPICS.get(topic, "data")]


def _guarded(record: Record, read: Callable[[], dict[str, Json]]) -> dict[str, Json]:
    try:
        return read()
    except (MalformedMessage, UnencodableMessage, CorruptRecordBatch) as error:
        return data_reader(record) | {"error": str(error)}


def _text_or_base64(content: bytes | None) -> Json:
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return {"base64": base64_of(content)}
    return text if text.isprintable() else {"base64": base64_of(content)}
