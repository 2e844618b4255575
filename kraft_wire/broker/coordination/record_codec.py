"""The form of all coordinators' records: an int16, then the struct of the key or the value.

The int16 of a key is the type of the record, that of a value the version of its struct. Keys are
written in version 0. What the structs mean is known to each kind of coordinator.
"""

from struct import Struct
from typing import Final, TypeVar

from kraft_wire.broker.coordination.log import CoordinatorRecord
from kraft_wire.wire.message import DecodeLimits, Message

__all__ = [
    "BODY_AT",
    "coordinator_record",
    "read_struct",
    "record_type",
    "tombstone",
    "value_version",
]

_INT16: Final = Struct(">h")
_KEY_VERSION: Final = 0

BODY_AT: Final = _INT16.size
"""Where the struct of a key or a value begins."""
_STORED_FIELDS: Final = DecodeLimits(elements=1 << 31, tagged_fields=1 << 31, tagged_bytes=1 << 31)
"""No limits, but those of strings: a group's id must fit the tombstone that ends the group."""
_Struct = TypeVar("_Struct", bound=Message)


def coordinator_record(key: Message, value: Message, version: int) -> CoordinatorRecord:
    """Write a record of a key's type, with the value in a version."""
    return CoordinatorRecord(_key(key), _INT16.pack(version) + value.encode(version))


def tombstone(key: Message) -> CoordinatorRecord:
    """Return the tombstone of a key."""
    return CoordinatorRecord(_key(key), None)


def read_struct(kind: type[_Struct], data: bytes, version: int = _KEY_VERSION) -> _Struct:
    """Read the struct of a key, or of a value in a version. Errors: MalformedMessage."""
    return kind.decode(data, version, BODY_AT, _STORED_FIELDS)[0]


def record_type(key: bytes) -> int:
    """Return the record type at the start of a key; -1 if the key is too short."""
    return _leading_int16(key)


def value_version(value: bytes) -> int:
    """Return the version at the start of a value; -1 if the value is too short."""
    return _leading_int16(value)


def _key(key: Message) -> bytes:
    return _INT16.pack(key.RECORD_TYPE) + key.encode(_KEY_VERSION)


def _leading_int16(data: bytes) -> int:
    return int(_INT16.unpack_from(data)[0]) if len(data) >= _INT16.size else -1
