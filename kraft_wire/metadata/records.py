"""Metadata records as bytes: the frame around them, and the version that may be written.

Frame (KIP-631): unsigned varints frame version 1, record type, record version, then the record in
its flexible form. A record is written in the lowest version that has all its fields, and never in
one that the finalised metadata.version does not know, because brokers stop on such records.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from kraft_wire.wire.generated.registry import METADATA_RECORDS, metadata_record_class
from kraft_wire.wire.message import MalformedMessage, Message

__all__ = [
    "FRAME_VERSION",
    "PARTITION_HEADS",
    "TOPIC_ID",
    "VersionedRecord",
    "decode_message",
    "decode_record",
    "encode_record",
    "partition_record_version",
    "register_broker_version",
]

FRAME_VERSION: Final = 1
_VARINT_BYTES_MAX: Final = 5
_HEAD_BYTES: Final = 3
_ONE_BYTE_END: Final = 0x80
"""Below this, each of the head's three varints has one byte."""
_HEADS_MAX: Final = 256
"""Size of the cache of classes by head: far more than the number of valid heads."""

PARTITION_HEADS: Final = frozenset(
    bytes((FRAME_VERSION, kind.RECORD_TYPE, version))
    for kind in (PartitionRecord, PartitionChangeRecord)
    for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1)
)
"""First bytes of the values of records about one partition, if their varints are minimal."""
TOPIC_ID: Final = slice(_HEAD_BYTES + 4, _HEAD_BYTES + 20)
"""Position of the topic's id in a value with such a head: after the partition's number."""


class VersionedRecord(NamedTuple):
    """A record with the version to write."""

    record: Message
    version: int = 0


def encode_record(record: VersionedRecord) -> bytes:
    """Return the value of a metadata record; its key is null."""
    message, version = record
    value = _head_of(message.RECORD_TYPE, version) + message.encode(version)
    assert _class_by_head(value[:_HEAD_BYTES]) is type(message), (message.NAME, version)
    return value


@lru_cache(_HEADS_MAX)
def _head_of(record_type: int, version: int) -> bytes:
    """Return the frame in front of the records of one class and version."""
    assert record_type in METADATA_RECORDS, record_type
    kind = metadata_record_class(record_type)
    assert kind.MIN_VERSION <= version <= kind.MAX_VERSION, (kind.NAME, version)
    head = (FRAME_VERSION, record_type, version)
    assert max(head) < _ONE_BYTE_END, head
    return bytes(head)


def decode_record(value: bytes | memoryview) -> VersionedRecord:
    """Decode the value of a metadata record; MetadataFault unless it is exactly one."""
    message = decode_message(value)
    is_short = _class_by_head(bytes(value[:_HEAD_BYTES])) is not None
    return VersionedRecord(message, value[_HEAD_BYTES - 1] if is_short else _long_head(value)[2])


def decode_message(value: bytes | memoryview) -> Message:
    """Return only the record of a value, with the errors of `decode_record`."""
    kind, position = _class_by_head(bytes(value[:_HEAD_BYTES])), _HEAD_BYTES
    if kind is None:
        frame_version, record_type, version, position = _long_head(value)
        kind = _class_of(frame_version, record_type, version)
    else:
        version = value[_HEAD_BYTES - 1]
    try:
        message, end = kind.decode(value, version, position)
    except MalformedMessage as error:
        raise MetadataFault(f"{kind.NAME} version {version}: {error}") from error
    assert end >= position, (kind.NAME, position, end)
    if end != len(value):
        raise MetadataFault(f"{kind.NAME} version {version} has {len(value) - end} extra bytes")
    return message


@lru_cache(_HEADS_MAX)
def _class_by_head(head: bytes) -> type[Message] | None:
    """Return the class of a record by its head; None for a head of another length."""
    assert len(head) <= _HEAD_BYTES, head
    if len(head) < _HEAD_BYTES or max(head) >= _ONE_BYTE_END:
        return None
    return _class_of(*head)


def _class_of(frame_version: int, record_type: int, version: int) -> type[Message]:
    """Return the class that a head names; MetadataFault if it is unknown."""
    if frame_version != FRAME_VERSION:
        raise MetadataFault(f"frame version {frame_version} of a metadata record is unknown")
    if record_type not in METADATA_RECORDS:
        raise MetadataFault(f"metadata record type {record_type} is unknown")
    kind = metadata_record_class(record_type)
    if not kind.MIN_VERSION <= version <= kind.MAX_VERSION:
        raise MetadataFault(f"version {version} of {kind.NAME} is unknown")
    assert record_type == kind.RECORD_TYPE, kind.NAME
    return kind


def register_broker_version(metadata_version: int) -> int:
    """Return the version of RegisterBrokerRecord: cordoned directories from 30, directories 17."""
    assert metadata_version > 0, "no metadata.version is finalised"
    for first_level, version in ((30, 4), (17, 3), (8, 2), (7, 1)):
        if metadata_version >= first_level:
            return version
    return 0


def partition_record_version(metadata_version: int) -> int:
    """Return the version of PartitionRecord and its change: ELR from 23, directories from 17."""
    assert metadata_version > 0, "no metadata.version is finalised"
    if metadata_version >= 23:
        return 2
    return 1 if metadata_version >= 17 else 0


def _long_head(value: bytes | memoryview) -> tuple[int, int, int, int]:
    """Return frame version, type, version and the start of the record, for a head of any size."""
    frame_version, position = _unsigned_varint(value, 0)
    if frame_version != FRAME_VERSION:
        return frame_version, 0, 0, position
    record_type, position = _unsigned_varint(value, position)
    version, position = _unsigned_varint(value, position)
    assert position <= len(value), position
    return frame_version, record_type, version, position


def _unsigned_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _VARINT_BYTES_MAX, 7):
        if position >= len(data):
            raise MetadataFault(f"a metadata record of {len(data)} bytes ends inside its frame")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            assert value < 1 << 7 * _VARINT_BYTES_MAX, value
            return value, position
    raise MetadataFault("a varint in the frame of a metadata record has more than five bytes")
