"""Record batches of format v2 (KIP-98): reading headers, checking, patching in place.

`parse_batches` is the produce path: one struct unpack per batch, no copy, no record decoding.
`RecordBatch.records` decodes. Offset and leader epoch come before the part under the checksum, so
a leader assigns them in the producer's own bytes (`RecordBatch.assign`).

Building is in `batch_builder`, formats 0 and 1 in `legacy_batch`, the values of control records in
`control_records`.
"""

import struct
from collections.abc import Iterator
from typing import Final

from kraft_wire.wire.compression.codecs import (
    DEFAULT_LIMITS,
    Compression,
    DecompressionLimits,
    decompress,
)
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.corruption import (
    CorruptRecordBatch,
    DecompressedTooLarge,
    InvalidRecord,
)
from kraft_wire.wire.records.record import (
    NO_SEQUENCE,
    Record,
    check_records,
    increment_sequence,
    iter_records,
    record_values,
)
from kraft_wire.wire.varint import wrap_int64

__all__ = [
    "CHECKED_FROM",
    "CONTROL_BIT",
    "DELETE_HORIZON_BIT",
    "HEADER",
    "HEADER_BYTES",
    "LOG_APPEND_TIME_BIT",
    "LOG_OVERHEAD_BYTES",
    "MAGIC",
    "TRANSACTIONAL_BIT",
    "CorruptRecordBatch",
    "DecompressedTooLarge",
    "InvalidRecord",
    "Record",
    "RecordBatch",
    "parse_batches",
    "patch_create_time",
    "patch_log_append_time",
    "peek_header",
]

Buffer = bytes | bytearray | memoryview

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
LOG_OVERHEAD_BYTES: Final = 12  # base offset and length: what `batch_length` does not count
MAGIC: Final = 2
CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
CHECKED_FROM: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
_PLACE: Final = struct.Struct(">qii")
"""Base offset, length and leader epoch: the fields outside of the checksum, except the magic."""
_CRC_AND_ATTRIBUTES: Final = struct.Struct(">Ih")
_CRC: Final = struct.Struct(">I")
_TIMESTAMP: Final = struct.Struct(">q")
_PEEK_BYTES: Final = 17  # up to and with the magic
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD_BYTES


class RecordBatch:
    """The header fields of one batch over a view of its bytes, with the wire's names.

    A snapshot: a change of the view does not change an object parsed before.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "records_count",
        "view",
    )
    attributes: int
    base_offset: int
    base_sequence: int
    base_timestamp: int
    batch_length: int
    crc: int
    last_offset_delta: int
    magic: int
    max_timestamp: int
    partition_leader_epoch: int
    producer_epoch: int
    producer_id: int
    records_count: int
    view: memoryview

    def __init__(self, view: memoryview, position: int = 0) -> None:
        self.view = view
        (
            self.base_offset,
            self.batch_length,
            self.partition_leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.records_count,
        ) = HEADER.unpack_from(view, position)

    def __repr__(self) -> str:
        return (
            f"RecordBatch(offsets {self.base_offset}..{self.last_offset}, "
            f"epoch {self.partition_leader_epoch}, {self.records_count} records, "
            f"{self.size_bytes} bytes, attributes {self.attributes:#x})"
        )

    @property
    def last_offset(self) -> int:
        """Offset of the last record of the batch when it was written, inclusive."""
        return wrap_int64(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> int:
        """Offset after the batch, where the log continues."""
        return wrap_int64(self.base_offset + self.last_offset_delta + 1)

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch, offset and length included."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def compression(self) -> Compression:
        """The codec of the body; CorruptRecordBatch for the ids 5 to 7."""
        codec = self.attributes & CODEC_MASK
        if codec > Compression.ZSTD:
            raise CorruptRecordBatch(f"unknown compression codec {codec}")
        return Compression(codec)

    @property
    def is_compressed(self) -> bool:
        """Whether the body is compressed."""
        return self.attributes & CODEC_MASK != 0

    @property
    def is_control(self) -> bool:
        """Whether the records are transaction or quorum markers."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_log_append_time(self) -> bool:
        """Whether `max_timestamp` is the time of every record."""
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        """Whether an idempotent producer wrote the batch."""
        return self.producer_id > -1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, or -1 without sequences."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones (KIP-534); then base_timestamp is that time."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    def assign(self, base_offset: int, leader_epoch: int) -> None:
        """Write a leader's offset and epoch into the fields and the bytes, which must be writable.

        The checksum does not cover them.
        """
        self.base_offset, self.partition_leader_epoch = base_offset, leader_epoch
        _PLACE.pack_into(self.view, 0, base_offset, self.batch_length, leader_epoch)

    def crc_is_valid(self) -> bool:
        """Whether the checksum over everything from the attributes on is valid."""
        return crc32c(self.view[CHECKED_FROM:]) == self.crc

    def body(self, limits: DecompressionLimits = DEFAULT_LIMITS) -> bytes:
        """Return the bytes of the records, decompressed."""
        body = self.view[HEADER_BYTES:]
        if not self.attributes & CODEC_MASK:
            return bytes(body)
        return decompress(self.compression, body, limits)

    def iter_records(self, limits: DecompressionLimits = DEFAULT_LIMITS) -> Iterator[Record]:
        """Yield the records; errors as `records`, raised when the faulty record is reached."""
        # Apache does not read the body of a batch without records.
        body = b"" if self.records_count == 0 else self.body(limits)
        return iter_records(
            body,
            self.records_count,
            self.base_offset,
            self.base_timestamp,
            self.base_sequence,
            self.max_timestamp if self.is_log_append_time else None,
        )

    def records(self, limits: DecompressionLimits = DEFAULT_LIMITS) -> list[Record]:
        """Return the records, decompressed and decoded; the checksum is not checked.

        Errors: CorruptRecordBatch (codec, compressed bytes), DecompressedTooLarge, InvalidRecord.
        """
        return list(self.iter_records(limits))

    def values(self, limits: DecompressionLimits = DEFAULT_LIMITS) -> list[bytes | None]:
        """Return only the records' values; errors as `records`."""
        return record_values(self.body(limits), self.records_count) if self.records_count else []

    def check_records(self, limits: DecompressionLimits = DEFAULT_LIMITS) -> None:
        """Raise the errors of `records`, without keeping any record."""
        if self.records_count:
            check_records(self.body(limits), self.records_count)


def parse_batches(data: Buffer) -> list[RecordBatch]:
    """Return the batches of `data`, which must be whole and of format v2.

    Checks only lengths and magic, no checksum, no record. The views are slices of `data`.
    Errors: CorruptRecordBatch with the position of the invalid batch.
    """
    view = data if isinstance(data, memoryview) else memoryview(data)
    batches: list[RecordBatch] = []
    position = 0
    end = len(view)
    while position < end:
        batch = peek_header(view, position)
        after = position + batch.batch_length + LOG_OVERHEAD_BYTES
        if after > end:
            raise CorruptRecordBatch(f"batch of {batch.size_bytes} bytes is cut", position)
        batches.append(batch)
        position = after
    return batches


def peek_header(data: Buffer, position: int = 0) -> RecordBatch:
    """Return the batch at `position`, of which only the header is required.

    Its view ends where `data` or the batch ends. Errors: CorruptRecordBatch for fewer than 61
    bytes, another magic, or a length below a header's.
    """
    view = data if isinstance(data, memoryview) else memoryview(data)
    left = len(view) - position
    if left >= _PEEK_BYTES and view[position + _MAGIC_AT] != MAGIC:
        raise CorruptRecordBatch(f"magic is {view[position + _MAGIC_AT]}, not {MAGIC}", position)
    if left < HEADER_BYTES:
        raise CorruptRecordBatch(f"{left} bytes are not a batch header", position)
    batch = RecordBatch(view, position)
    if batch.batch_length < _LENGTH_MIN:
        raise CorruptRecordBatch(f"batch declares a length of {batch.batch_length}", position)
    batch.view = view[position : position + batch.batch_length + LOG_OVERHEAD_BYTES]
    return batch


def patch_log_append_time(view: memoryview, wall_ms: int) -> None:
    """Set `wall_ms` as the time of every record of a whole batch and renew its checksum."""
    attributes: int = _CRC_AND_ATTRIBUTES.unpack_from(view, _CRC_AT)[1]
    _patch_timestamps(view, wall_ms, attributes | LOG_APPEND_TIME_BIT)


def patch_create_time(view: memoryview, max_timestamp: int) -> None:
    """Set the timestamp type CreateTime, and the largest timestamp; renew the checksum."""
    attributes: int = _CRC_AND_ATTRIBUTES.unpack_from(view, _CRC_AT)[1]
    _patch_timestamps(view, max_timestamp, attributes & ~LOG_APPEND_TIME_BIT)


def _patch_timestamps(view: memoryview, max_timestamp: int, attributes: int) -> None:
    assert len(view) >= HEADER_BYTES, len(view)
    _TIMESTAMP.pack_into(view, _MAX_TIMESTAMP_AT, max_timestamp)
    _CRC_AND_ATTRIBUTES.pack_into(view, _CRC_AT, 0, attributes)
    _CRC.pack_into(view, _CRC_AT, crc32c(view[CHECKED_FROM:]))
