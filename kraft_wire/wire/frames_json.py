"""The small frames around messages, as bytes and as the JSON that Kafka's dump tool prints.

Metadata records (KIP-631): varint frame version, type and record version, then the body. Keys of
the coordinators' topics: int16 type, then the body at version 0. Their values, and data of group
members: int16 version, then the body.
"""

import re
import struct
from functools import cache
from typing import Final

from kraft_wire.wire.generated.registry import (
    METADATA_RECORDS,
    message_class,
    message_table,
    metadata_record_class,
)
from kraft_wire.wire.json_form import (
    InvalidJson,
    Json,
    expect_object,
    integer_of,
    message_from_json,
    message_to_json,
)
from kraft_wire.wire.message import Buffer, DecodeLimits, MalformedMessage, Message
from kraft_wire.wire.primitives import decode_unsigned_varint, encode_unsigned_varint
from kraft_wire.wire.strict import StrictFinding, message_findings, varint_findings
from kraft_wire.wire.varint import wrap_int32

__all__ = [
    "decode_metadata_frame",
    "encode_metadata_frame",
    "frame_findings",
    "metadata_frame_from_json",
    "metadata_frame_to_json",
    "record_type_name",
    "typed_key_from_json",
    "typed_key_to_json",
    "versioned_from_json",
    "versioned_to_json",
]

_INT16: Final = struct.Struct(">h")
_INT16_MAX: Final = 0x7FFF
_FRAME_VERSION: Final = 1
_KEY_VERSION: Final = 0
_VERSION_TEXT: Final = re.compile("[0-9]{1,5}")


def decode_metadata_frame(data: Buffer, limits: DecodeLimits | None = None) -> tuple[Message, int]:
    """Return (message, version) of the value of a `__cluster_metadata` record.

    MalformedMessage, first match wins: a varint that is cut or above 32767, frame version other
    than 1, unknown type, a body that does not decode, bytes after it.
    """
    kind, version, position = _frame_head(data)
    message, end = metadata_record_class(kind).decode(data, version, position, limits)
    if end != len(data):
        raise MalformedMessage(message.NAME, end, f"{len(data) - end} bytes follow the record")
    return message, version


def _frame_head(data: Buffer) -> tuple[int, int, int]:
    """Return (record type, record version, position of the body); the type is known."""
    frame_version, type_at = _short_varint(data, 0, "frameVersion")
    if frame_version != _FRAME_VERSION:
        raise MalformedMessage("frameVersion", 0, f"{frame_version} is not {_FRAME_VERSION}")
    kind, position = _short_varint(data, type_at, "type")
    version, position = _short_varint(data, position, "version")
    if kind not in METADATA_RECORDS:
        raise MalformedMessage("type", type_at, f"unknown metadata record {kind}")
    return kind, version, position


def frame_findings(data: Buffer) -> list[StrictFinding]:
    """Return the findings of strict mode in a valid framed metadata record."""
    kind, version, position = _frame_head(data)
    findings: list[StrictFinding] = []
    at = 0
    for name, value in (("frameVersion", _FRAME_VERSION), ("type", kind), ("version", version)):
        end = decode_unsigned_varint(data, at)[1]
        findings += varint_findings(name, at, end - at, value & 0xFFFFFFFF)
        at = end
    table = message_table(METADATA_RECORDS[kind].name)
    return findings + message_findings(table, data, version, position)


def encode_metadata_frame(message: Message, version: int) -> bytes:
    """Return the value of a `__cluster_metadata` record; UnencodableMessage as `Message.encode`."""
    assert message.RECORD_TYPE >= 0, message.NAME
    return b"".join(
        (
            encode_unsigned_varint(_FRAME_VERSION),
            encode_unsigned_varint(message.RECORD_TYPE),
            encode_unsigned_varint(version),
            message.encode(version),
        )
    )


def metadata_frame_to_json(data: Buffer, limits: DecodeLimits | None = None) -> dict[str, Json]:
    """Return type, version and data of a framed metadata record."""
    message, version = decode_metadata_frame(data, limits)
    return {
        "type": record_type_name(message.NAME),
        "version": version,
        "data": message_to_json(message, version),
    }


def metadata_frame_from_json(json: Json) -> bytes:
    """Return the framed record of `json`; InvalidJson or UnencodableMessage."""
    members = expect_object(json, "frame")
    kind = members.get("type")
    names = {record_type_name(entry.name): entry.name for entry in METADATA_RECORDS.values()}
    if not isinstance(kind, str) or kind not in names:
        raise InvalidJson("type", f"unknown metadata record {kind!r}")
    version = integer_of(members.get("version"), "int16", "version")
    message = message_from_json(message_table(names[kind]), members.get("data"), version)
    return encode_metadata_frame(message, version)


@cache
def record_type_name(name: str) -> str:
    """Return the upper snake case of a record's name: TopicRecord is TOPIC_RECORD."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name)[1:].upper()


def typed_key_to_json(
    name: str, data: Buffer, limits: DecodeLimits | None = None
) -> dict[str, Json]:
    """Return type and data of a coordinator's key; the type must be that of `name`."""
    kind = _prefix(data, "type")
    if kind != message_table(name).api_key:
        raise MalformedMessage("type", 0, f"{kind} is not the type of {name}")
    message, _ = message_class(name).decode(data, _KEY_VERSION, _INT16.size, limits)
    return {"type": str(kind), "data": message_to_json(message, _KEY_VERSION)}


def typed_key_from_json(name: str, json: Json) -> bytes:
    """Return the bytes of a coordinator's key."""
    table = message_table(name)
    members = expect_object(json, "key")
    if members.get("type", str(table.api_key)) != str(table.api_key):
        raise InvalidJson("type", f"{members['type']!r} is not the type of {name}")
    message = message_from_json(table, members.get("data"), _KEY_VERSION)
    return _INT16.pack(table.api_key) + message.encode(_KEY_VERSION)


def versioned_to_json(
    name: str, data: Buffer, limits: DecodeLimits | None = None
) -> dict[str, Json]:
    """Return version and data of a message after its version."""
    version = _prefix(data, "version")
    message, _ = message_class(name).decode(data, version, _INT16.size, limits)
    return {"version": str(version), "data": message_to_json(message, version)}


def versioned_from_json(name: str, json: Json) -> bytes:
    """Return the bytes of a message after its version, which is a number or a string of one."""
    members = expect_object(json, "value")
    version = members.get("version")
    if isinstance(version, str) and _VERSION_TEXT.fullmatch(version):
        version = int(version)
    version = integer_of(version, "int16", "version")
    message = message_from_json(message_table(name), members.get("data"), version)
    return _INT16.pack(version) + message.encode(version)


def _prefix(data: Buffer, field: str) -> int:
    if len(data) < _INT16.size:
        raise MalformedMessage(field, 0, f"int16 needs 2 bytes, {len(data)} are left")
    prefix: int = _INT16.unpack_from(data)[0]
    return prefix


def _short_varint(data: Buffer, position: int, field: str) -> tuple[int, int]:
    """Read a varint that must fit an int16; a negative int32 is cut to 16 bits, as in Java."""
    try:
        raw, end = decode_unsigned_varint(data, position)
    except (IndexError, ValueError) as error:
        raise MalformedMessage(field, position, "the varint is truncated or too long") from error
    value = wrap_int32(raw)
    if value > _INT16_MAX:
        raise MalformedMessage(field, position, f"{value} is above {_INT16_MAX}")
    return (value + 0x8000 & 0xFFFF) - 0x8000, end
