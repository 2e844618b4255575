"""Reads message formats 0 and 1, the formats before record batches (KIP-31, KIP-32).

Old segments and a few old producers still use them. A message is an offset, a size and one record;
a compressed message wraps a whole message set, one level deep. In format 1 the inner offsets count
from 0 and the wrapper has the offset of the last, in format 0 they are absolute.

These formats are never written. Used by dump, audit, the dissector, and by coordinators that load
their groups.
"""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Final

from kraft_wire.wire.compression.codecs import (
    DEFAULT_LIMITS,
    Compression,
    DecompressionLimits,
    decompress,
)
from kraft_wire.wire.records.corruption import (
    CorruptRecordBatch,
    DecompressedTooLarge,
    InvalidRecord,
)
from kraft_wire.wire.records.record import NO_TIMESTAMP, Record
from kraft_wire.wire.varint import wrap_int64

__all__ = ["LEGACY_LENGTH_MIN", "LegacyBatch"]

LEGACY_LENGTH_MIN: Final = 14  # crc, magic, attributes, and two null lengths
_ENTRY: Final = struct.Struct(">qi")
_CRC_MAGIC_ATTRIBUTES: Final = struct.Struct(">Ibb")
_TIMESTAMP: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_CRC_AT: Final = _ENTRY.size
_CHECKED_FROM: Final = _CRC_AT + 4
_BODY_AT: Final = _CRC_AT + _CRC_MAGIC_ATTRIBUTES.size
_INNER_MESSAGES_MAX: Final = 400_000  # many times what a producer of that time could batch
_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME_BIT: Final = 0x08


class LegacyBatch:
    """One message, plain or a compressed wrapper, over a view of its bytes.

    The constructor raises CorruptRecordBatch if the fields do not fit into the view.
    """

    __slots__ = ("attributes", "crc", "key", "magic", "offset", "timestamp", "value", "view")

    def __init__(self, view: memoryview) -> None:
        self.view = view
        try:
            self.offset: int = _ENTRY.unpack_from(view)[0]
            self.crc: int
            self.magic: int
            self.attributes: int
            self.crc, self.magic, self.attributes = _CRC_MAGIC_ATTRIBUTES.unpack_from(view, _CRC_AT)
            position = _BODY_AT
            self.timestamp: int = NO_TIMESTAMP
            if self.magic != 0:
                self.timestamp = _TIMESTAMP.unpack_from(view, position)[0]
                position += _TIMESTAMP.size
            self.key, position = _blob(view, position)
            self.value, _ = _blob(view, position)
        except struct.error as error:
            raise CorruptRecordBatch(f"message of {len(view)} bytes is cut") from error

    @property
    def size_bytes(self) -> int:
        """Bytes of the message, offset and size included."""
        return len(self.view)

    @property
    def compression(self) -> Compression:
        """The codec; CorruptRecordBatch for the ids that formats 0 and 1 do not have."""
        codec = self.attributes & _CODEC_MASK
        if codec >= Compression.ZSTD:
            raise CorruptRecordBatch(f"compression codec {codec} in message format {self.magic}")
        return Compression(codec)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker stamped the message (format 1 only)."""
        return self.magic > 0 and self.attributes & _LOG_APPEND_TIME_BIT != 0

    @property
    def last_offset(self) -> int:
        """The stored offset, which is that of the last inner message of a wrapper."""
        return self.offset

    def crc_is_valid(self) -> bool:
        """Whether the CRC-32 over everything after it is valid."""
        return zlib.crc32(self.view[_CHECKED_FROM:]) == self.crc

    def records(self, limits: DecompressionLimits = DEFAULT_LIMITS) -> list[Record]:
        """Return the record of a plain message or the inner records of a wrapper.

        Offsets are absolute. Errors: CorruptRecordBatch, DecompressedTooLarge, InvalidRecord (a
        wrapper without content, in another codec, or around another wrapper). The checksums of
        inner messages are not checked, as in Apache's iterator: see `inner_crcs_are_valid`.
        """
        if self.compression is Compression.NONE:
            return [_record(self, self.offset, self.timestamp)]
        inner = self._inner_messages(limits)
        base_offset = _base_offset(self, inner[-1].offset)
        return [self._inner_record(message, base_offset) for message in inner]

    def inner_crcs_are_valid(self, limits: DecompressionLimits = DEFAULT_LIMITS) -> bool:
        """Whether every inner message of a wrapper has a valid checksum; errors as `records`."""
        if self.compression is Compression.NONE:
            return True
        return all(message.crc_is_valid() for message in self._inner_messages(limits))

    def _inner_messages(self, limits: DecompressionLimits) -> "list[LegacyBatch]":
        if self.value is None:
            raise InvalidRecord("compressed message has no value")
        data = decompress(self.compression, self.value, limits, magic=self.magic)
        inner = list(islice(_whole_messages(memoryview(data)), _INNER_MESSAGES_MAX + 1))
        if len(inner) > _INNER_MESSAGES_MAX:
            raise DecompressedTooLarge(f"more than {_INNER_MESSAGES_MAX} inner messages")
        if not inner:
            raise InvalidRecord("compressed message holds no messages")
        return inner

    def _inner_record(self, message: "LegacyBatch", base_offset: int) -> Record:
        if message.compression is not Compression.NONE:
            raise InvalidRecord("compressed message inside a compressed message")
        timestamp = message.timestamp
        if message.magic == 1 and self.is_log_append_time:
            timestamp = self.timestamp
        return _record(message, wrap_int64(base_offset + message.offset), timestamp)


def _record(message: LegacyBatch, offset: int, timestamp: int) -> Record:
    return Record(message.key, message.value, offset, timestamp, attributes=message.attributes)


def _base_offset(wrapper: LegacyBatch, last_inner_offset: int) -> int:
    """Return the number to add to the inner offsets."""
    if wrapper.magic == 0:
        return 0
    if wrapper.offset == 0:
        return 0  # some librdkafka releases left the wrapper's offset at 0 in produce requests
    if wrapper.offset < last_inner_offset:
        raise InvalidRecord(
            f"wrapper offset {wrapper.offset} is below its last inner offset {last_inner_offset}"
        )
    return wrapper.offset - last_inner_offset


def _whole_messages(data: memoryview) -> Iterator[LegacyBatch]:
    """Yield the whole messages; a cut last one is left out, as in any message set."""
    position = 0
    while len(data) - position >= _ENTRY.size:
        size: int = _ENTRY.unpack_from(data, position)[1]
        if size < LEGACY_LENGTH_MIN:
            raise CorruptRecordBatch(f"inner message declares {size} bytes")
        end = position + _ENTRY.size + size
        if end > len(data):
            return
        yield LegacyBatch(data[position:end])
        position = end


def _blob(view: memoryview, position: int) -> tuple[bytes | None, int]:
    length: int = _LENGTH.unpack_from(view, position)[0]
    position += _LENGTH.size
    if length < 0:
        return None, position
    if length > len(view) - position:
        raise CorruptRecordBatch(f"message declares a key or value of {length} bytes")
    return bytes(view[position : position + length]), position + length
