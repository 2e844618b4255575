"""Control records: transaction markers (KIP-98) and the markers of the metadata log (KIP-595).

The key is an int16 version and an int16 type. The value of a transaction marker is an int16 version
and the coordinator's epoch; the values of the quorum's records (KIP-595, KIP-630, KIP-853) are
generated messages of version 0 or 1 without any prefix, whose first field repeats the version.

The readers of a log decide which control records it may have, and where.
"""

import struct
from enum import IntEnum
from typing import Final

from kraft_wire.wire.message import MalformedMessage, Message
from kraft_wire.wire.records.corruption import InvalidRecord
from kraft_wire.wire.records.record import Record

__all__ = [
    "ControlRecordType",
    "control_key",
    "control_record",
    "end_txn_marker",
    "parse_control_key",
    "parse_control_value",
    "parse_end_txn_marker",
]


class ControlRecordType(IntEnum):
    """The second half of a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_KEY: Final = struct.Struct(">hh")
_KEY_VERSION: Final = 0
_END_TXN_MARKER: Final = struct.Struct(">hi")
_END_TXN_MARKER_VERSION: Final = 0
_MESSAGES: Final = {
    ControlRecordType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlRecordType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlRecordType.KRAFT_VOTERS: "VotersRecord",
}
_VALUE_VERSION: Final = struct.Struct(">h")


def control_key(kind: ControlRecordType) -> bytes:
    """Return the 4-byte key of a control record."""
    return _KEY.pack(_KEY_VERSION, kind)


def parse_control_key(key: bytes | None) -> ControlRecordType | None:
    """Return the type, None for a type that this release does not know.

    InvalidRecord for an invalid key: too short, or of a negative version.
    """
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord("control record without a whole key")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(f"control record key of version {version}")
    return ControlRecordType(kind) if kind in ControlRecordType._value2member_map_ else None


def end_txn_marker(coordinator_epoch: int) -> bytes:
    """Return the value of an ABORT or COMMIT marker."""
    return _END_TXN_MARKER.pack(_END_TXN_MARKER_VERSION, coordinator_epoch)


def parse_end_txn_marker(value: bytes | None) -> int:
    """Return the coordinator epoch; later versions may append fields. InvalidRecord if cut."""
    if value is None or len(value) < _END_TXN_MARKER.size:
        raise InvalidRecord("transaction marker without a whole value")
    version, coordinator_epoch = _END_TXN_MARKER.unpack_from(value)
    if version < 0:
        raise InvalidRecord(f"transaction marker of version {version}")
    epoch: int = coordinator_epoch
    return epoch


def control_record(kind: ControlRecordType, message: Message, timestamp: int) -> Record:
    """Return a record of the quorum with `message`, one of the five generated classes, as value."""
    assert _MESSAGES.get(kind) == message.NAME, (kind, message.NAME)
    version: int = getattr(message, "version")  # noqa: B009  # all five have it, Message does not
    return Record(control_key(kind), message.encode(version), timestamp=timestamp)


def parse_control_value(kind: ControlRecordType, value: bytes | None) -> Message:
    """Return the message of a quorum's control record; its first field is its version.

    InvalidRecord for other bytes, also for transaction markers.
    """
    from kraft_wire.wire.generated.registry import message_class

    name = _MESSAGES.get(kind)
    if name is None or value is None or len(value) < _VALUE_VERSION.size:
        raise InvalidRecord(f"{kind.name} record without a value that is a message")
    try:
        return message_class(name).decode(value, _VALUE_VERSION.unpack_from(value)[0])[0]
    except MalformedMessage as error:
        raise InvalidRecord(f"{kind.name} record: {error}") from error
