"""Building record batches of format v2 (KIP-98).

`build_batch` makes one batch of given records; `BatchBuilder` takes them one by one and has the
current size of the batch. Bytes are those of Apache's builder for the same records, except the
compressed body, which depends on the codec library.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from kraft_wire.wire.compression.codecs import Compression, compress
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.record import (
    NO_OFFSET,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Header,
    Record,
    append_record,
    append_values,
)
from kraft_wire.wire.records.record_batch import (
    CHECKED_FROM,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
)
from kraft_wire.wire.varint import wrap_int64

__all__ = ["BatchBuilder", "build_batch"]

_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1


class BatchBuilder:
    """One batch under construction: append records, then `build` once.

    Offsets of the records are deltas from `base_offset`: consecutive ones, or larger if given, as
    compaction keeps the offsets of retained records.
    """

    __slots__ = (
        "_attributes",
        "_base_sequence",
        "_base_timestamp",
        "_body",
        "_compression",
        "_last_offset_delta",
        "_log_append_time",
        "_max_timestamp",
        "_producer_epoch",
        "_producer_id",
        "base_offset",
        "partition_leader_epoch",
        "records_count",
    )

    def __init__(
        self,
        *,
        base_offset: int = 0,
        partition_leader_epoch: int = -1,
        compression: Compression = Compression.NONE,
        log_append_time: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        delete_horizon_ms: int | None = None,
    ) -> None:
        """Begin a batch; `log_append_time` and `delete_horizon_ms` are wall times when set."""
        self.base_offset = base_offset
        self.partition_leader_epoch = partition_leader_epoch
        self.records_count = 0
        self._compression = compression
        self._attributes = (
            compression
            | (LOG_APPEND_TIME_BIT if log_append_time is not None else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
            | (DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0)
        )
        self._log_append_time = log_append_time
        self._base_timestamp = delete_horizon_ms
        self._max_timestamp = NO_TIMESTAMP
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._base_sequence = base_sequence
        self._last_offset_delta = -1
        self._body = bytearray()

    @property
    def size_bytes(self) -> int:
        """Size of the batch without compression."""
        return HEADER_BYTES + len(self._body)

    @property
    def next_offset(self) -> int:
        """Offset of the next record."""
        return self.base_offset + self._last_offset_delta + 1

    def append(
        self,
        timestamp: int,
        key: bytes | memoryview | None,
        value: bytes | memoryview | None,
        headers: Sequence[Header] = (),
        *,
        offset: int = NO_OFFSET,
    ) -> None:
        """Add one record; without `offset` it follows the previous one."""
        offset_delta = self._last_offset_delta + 1
        if offset != NO_OFFSET:
            assert offset - self.base_offset >= offset_delta, (offset, self.base_offset)
            offset_delta = offset - self.base_offset
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        timestamp_delta = timestamp - self._base_timestamp
        if not _INT64_MIN <= timestamp_delta <= _INT64_MAX:
            timestamp_delta = wrap_int64(timestamp_delta)  # a reader's sum wraps back
        append_record(self._body, offset_delta, timestamp_delta, key, value, headers)
        self._last_offset_delta = offset_delta
        self._max_timestamp = max(self._max_timestamp, timestamp)
        self.records_count += 1

    def append_values(self, timestamp: int, values: Sequence[bytes]) -> None:
        """Add records with only a value, all of one time, at consecutive offsets."""
        assert values, "none is added"
        assert self._base_timestamp in (None, timestamp), (self._base_timestamp, timestamp)
        self._base_timestamp = timestamp
        append_values(self._body, self._last_offset_delta + 1, values)
        self._last_offset_delta += len(values)
        self._max_timestamp = max(self._max_timestamp, timestamp)
        self.records_count += len(values)

    def build(
        self, *, last_offset: int | None = None, max_timestamp: int | None = None
    ) -> bytearray:
        """Return the batch.

        Compaction keeps `last_offset` of a rewritten batch (KIP-98), and `max_timestamp` of an
        emptied one.
        """
        if last_offset is not None:
            assert last_offset >= self.next_offset - 1, (last_offset, self.next_offset)
            self._last_offset_delta = last_offset - self.base_offset
        if max_timestamp is None:
            max_timestamp = self._max_timestamp
        if self._log_append_time is not None:
            max_timestamp = self._log_append_time
        compressed = self._compression is not Compression.NONE and self.records_count > 0
        body = compress(self._compression, self._body) if compressed else self._body
        batch = bytearray(HEADER_BYTES + len(body))
        batch[HEADER_BYTES:] = body
        self._write_header(batch, max_timestamp)
        return batch

    def _write_header(self, batch: bytearray, max_timestamp: int) -> None:
        """Write the header twice, because the checksum covers the part after it."""
        base_timestamp = NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp
        crc = 0
        for _ in range(2):
            HEADER.pack_into(
                batch,
                0,
                self.base_offset,
                len(batch) - LOG_OVERHEAD_BYTES,
                self.partition_leader_epoch,
                MAGIC,
                crc,
                self._attributes,
                self._last_offset_delta,
                base_timestamp,
                max_timestamp,
                self._producer_id,
                self._producer_epoch,
                self._base_sequence,
                self.records_count,
            )
            crc = crc32c(memoryview(batch)[CHECKED_FROM:])


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    compression: Compression = Compression.NONE,
    log_append_time: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
    last_offset: int | None = None,
    max_timestamp: int | None = None,
) -> bytearray:
    """Return one batch with `records`; those without an offset get consecutive ones."""
    builder = BatchBuilder(
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        compression=compression,
        log_append_time=log_append_time,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        delete_horizon_ms=delete_horizon_ms,
    )
    for record in records:
        builder.append(
            record.timestamp, record.key, record.value, record.headers, offset=record.offset
        )
    return builder.build(last_offset=last_offset, max_timestamp=max_timestamp)
