"""A leader's checks before an append, in Kafka's order, and the offsets of the records.

KIP-98 (batches), KIP-467 (errors per record), KIP-937 (timestamp limits), KIP-110 (zstd). A batch
is checked as a whole first: base offset, size, CRC, counts, control bit, sequence; then record by
record where something can be wrong inside. Records are only rewritten when the topic demands
another codec; otherwise offset, epoch and, for LogAppendTime, the timestamp are patched into the
client's own bytes. Not here: the state of producers (`storage` keeps that), and the form of a
Produce request's records (`produced_batch`).
"""

from enum import Enum
from typing import Final, NamedTuple, NoReturn

from kraft_wire.broker.ports import TopicLimits
from kraft_wire.model import LeaderEpoch, Offset, TopicPartition
from kraft_wire.wire.compression.codecs import (
    STORED_LIMITS,
    Compression,
    DecompressionLimits,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.batch_builder import BatchBuilder
from kraft_wire.wire.records.corruption import (
    CorruptRecordBatch,
    DecompressedTooLarge,
    InvalidRecord,
)
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import (
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD_BYTES,
    RecordBatch,
    parse_batches,
    patch_create_time,
    patch_log_append_time,
)
from kraft_wire.wire.records.record_skim import RecordSkim, skim_records
from kraft_wire.wire.varint import read_varint

__all__ = [
    "RECORD_ERRORS_MAX",
    "AppendOrigin",
    "AppendRejected",
    "RecordError",
    "assigned",
    "check_batch",
]

_NO_TIMESTAMP: Final = -1
_OFFSET_MAX: Final = (1 << 63) - 1
_COPIED_BYTES_MAX: Final = 64 * 1024
RECORD_ERRORS_MAX: Final = 10_000
"""Refused records of one batch that an answer names: a small batch can decompress to millions.

Clients treat the others as refused with them.
"""
_SHOWN_ERRORS: Final = 3
"""Kafka's message shows the first three record errors at most."""
_CODECS: Final = {
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_LAST_CODEC: Final = int(Compression.ZSTD)
_BATCH_ERRORS: Final = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE}
)
"""Errors whose answer has no log start offset, as in Kafka."""


class AppendOrigin(Enum):
    """The writer of the records: clients are not trusted, coordinators are in this process."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class RecordError(NamedTuple):
    """One refused record of a batch (KIP-467)."""

    batch_index: int
    """Index of the record inside its batch."""
    message: str


class AppendRejected(Exception):
    """The records may not enter the log; nothing was written."""

    def __init__(
        self,
        error: ErrorCode,
        message: str | None = None,
        record_errors: tuple[RecordError, ...] = (),
    ) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message
        self.record_errors = record_errors

    @property
    def tells_log_start(self) -> bool:
        """Whether Kafka's answer carries the log start offset beside this error."""
        return self.error not in _BATCH_ERRORS


def check_batch(
    batch: RecordBatch,
    name: TopicPartition,
    limits: TopicLimits,
    wall_ms: int,
    decompression: DecompressionLimits,
) -> None:
    """Check a client's batch before its append, and correct the times in its header.

    Errors (`AppendRejected`), first match wins: INVALID_RECORD for a base offset that is not 0,
    MESSAGE_TOO_LARGE, CORRUPT_MESSAGE, INVALID_RECORD for a batch whose header contradicts its
    records or that clients may not write, INVALID_RECORD or INVALID_TIMESTAMP with one entry per
    refused record.
    """
    if not _is_sound(batch, limits):
        _refuse(batch, name, limits)
    if batch.attributes & CODEC_MASK > _LAST_CODEC:
        raise AppendRejected(ErrorCode.UNKNOWN_SERVER_ERROR, "Unknown compression type")
    body, begin, skim = _skimmed(batch, decompression)
    delta_min, delta_max, has_null_key, is_consecutive = skim
    is_stamped = batch.attributes & LOG_APPEND_TIME_BIT != 0
    if is_stamped or (has_null_key and limits.is_compacted):
        _refuse_records(batch, name, limits, wall_ms)
    if limits.message_timestamp_type == "CreateTime":
        oldest, latest = batch.base_timestamp + delta_min, batch.base_timestamp + delta_max
        low = wall_ms - limits.message_timestamp_before_max_ms
        if oldest < low or latest > wall_ms + limits.message_timestamp_after_max_ms:
            _refuse_records(batch, name, limits, wall_ms)
        largest = latest if latest > _NO_TIMESTAMP else _NO_TIMESTAMP
        is_below_base = delta_min < 0 == delta_max and not _begins_at_base_time(body, begin)
        if is_below_base or batch.max_timestamp != largest or is_stamped:
            _correct_times(batch)
    if not is_consecutive:
        _refuse_odd_offsets(batch, name, limits)


def assigned(
    batch: RecordBatch,
    limits: TopicLimits,
    next_offset: Offset,
    leader_epoch: LeaderEpoch,
    wall_ms: int,
) -> RecordBatch:
    """Return a batch in its final form: codec, offset, leader epoch, append time.

    Patches the batch's own bytes if the codec stays. Errors (`AppendRejected`): MESSAGE_TOO_LARGE
    (in another codec than it came in), UNKNOWN_SERVER_ERROR (the log has too few offsets left: a
    leader of before may have sent any), RECORD_LIST_TOO_LARGE.
    """
    keeps_codec = limits.compression_type == "producer" or batch.attributes & CONTROL_BIT
    if not keeps_codec and _is_recompressed(batch, limits):
        batch = _recompressed(batch, limits)
    if batch.view.readonly:
        batch.view = memoryview(bytearray(batch.view))
    if next_offset + batch.last_offset_delta >= _OFFSET_MAX:
        raise AppendRejected(ErrorCode.UNKNOWN_SERVER_ERROR, "The log has no offsets left.")
    batch.assign(next_offset, leader_epoch)
    if limits.message_timestamp_type == "LogAppendTime":
        patch_log_append_time(batch.view, wall_ms)
        _take_over_times(batch)
    size_bytes = len(batch.view)
    if size_bytes > limits.segment_bytes:
        raise AppendRejected(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"The record batch list size of {size_bytes} bytes exceeds the maximum "
            f"configured segment size of {limits.segment_bytes} bytes",
        )
    return batch


def _is_sound(batch: RecordBatch, limits: TopicLimits) -> bool:
    """Return whether a client's batch as a whole is valid; `_refuse` finds the error."""
    return (
        batch.base_offset == 0
        and batch.batch_length + LOG_OVERHEAD_BYTES <= limits.max_message_bytes
        and 0 < batch.records_count == batch.last_offset_delta + 1
        and not batch.attributes & CONTROL_BIT
        and (batch.producer_id < 0 or batch.base_sequence >= 0)
        and batch.crc_is_valid()
    )


def _refuse(batch: RecordBatch, name: TopicPartition, limits: TopicLimits) -> NoReturn:
    """Raise the first error of a batch's header or its bytes."""
    if batch.base_offset != 0:
        raise AppendRejected(
            ErrorCode.INVALID_RECORD,
            f"The baseOffset of the record batch in the append to {name} should be 0, but it is "
            f"{batch.base_offset}",
        )
    if batch.size_bytes > limits.max_message_bytes:
        raise AppendRejected(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {name} is {batch.size_bytes} bytes which "
            f"exceeds the maximum configured value of {limits.max_message_bytes} bytes",
        )
    if not batch.crc_is_valid():
        raise AppendRejected(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {batch.crc}) in topic partition {name}.",
        )
    raise AppendRejected(
        ErrorCode.INVALID_RECORD, f"{_head_problem(batch)} in topic partition {name}."
    )


def _head_problem(batch: RecordBatch) -> str:
    """Return what is invalid in the header of a batch that is not sound."""
    count = batch.records_count
    if batch.last_offset_delta < 0:
        return f"Batch has an invalid offset range: [0, {batch.last_offset_delta}]"
    if count <= 0:
        return f"Invalid reported count for record batch: {count}"
    if batch.last_offset_delta + 1 != count:
        return (
            f"Inconsistent batch offset range [0, {batch.last_offset_delta}] and count of "
            f"records {count}"
        )
    if batch.is_control:
        return "Clients are not allowed to write control records"
    assert batch.has_producer_id, batch
    return (
        f"Invalid sequence number {batch.base_sequence} in record batch with producerId "
        f"{batch.producer_id}"
    )


def _skimmed(
    batch: RecordBatch, decompression: DecompressionLimits
) -> tuple[bytes | memoryview, int, RecordSkim]:
    """Return bytes, where the records begin in them, and what a skim over these shows.

    Errors (`AppendRejected`): MESSAGE_TOO_LARGE, INVALID_RECORD, CORRUPT_MESSAGE.
    """
    try:
        body, begin = _body(batch, decompression)
        return body, begin, skim_records(body, batch.records_count, begin)
    except DecompressedTooLarge as bomb:
        raise AppendRejected(ErrorCode.MESSAGE_TOO_LARGE, str(bomb)) from bomb
    except InvalidRecord as invalid:
        raise AppendRejected(ErrorCode.INVALID_RECORD, str(invalid)) from invalid
    except CorruptRecordBatch as corrupt:
        raise AppendRejected(ErrorCode.CORRUPT_MESSAGE, str(corrupt)) from corrupt


def _body(batch: RecordBatch, limits: DecompressionLimits) -> tuple[bytes | memoryview, int]:
    """Return bytes, and where the records begin in them.

    They are copied if that makes reading them cheaper.
    """
    if batch.attributes & CODEC_MASK:
        return batch.body(limits), 0
    view = batch.view
    return view.tobytes() if len(view) < _COPIED_BYTES_MAX else view, HEADER_BYTES


def _refuse_records(
    batch: RecordBatch, name: TopicPartition, limits: TopicLimits, wall_ms: int
) -> None:
    """Refuse a batch that has records without a key, or with times that are not allowed.

    Each record has one error at most, that of its key first. One wrong time makes the error of the
    batch INVALID_TIMESTAMP. All are counted, the first `RECORD_ERRORS_MAX` named.
    """
    no_key = f"Compacted topic cannot accept message without key in topic partition {name}"
    errors: list[RecordError] = []
    count, has_wrong_time = 0, False
    for index, record in enumerate(batch.iter_records(STORED_LIMITS)):
        reason: str | None = no_key
        if not limits.is_compacted or record.key is not None:
            reason = _wrong_time(batch, record, limits, wall_ms)
            has_wrong_time = has_wrong_time or reason is not None
        if reason is not None:
            count += 1
            if count <= RECORD_ERRORS_MAX:
                errors.append(RecordError(index, reason))
    if has_wrong_time:
        message = "One or more records have been rejected due to invalid timestamp"
        raise AppendRejected(ErrorCode.INVALID_TIMESTAMP, message, tuple(errors))
    if errors:
        raise AppendRejected(ErrorCode.INVALID_RECORD, _shown(errors, count), tuple(errors))


def _wrong_time(
    batch: RecordBatch, record: Record, limits: TopicLimits, wall_ms: int
) -> str | None:
    """Return why a record's time is refused: too far in the past or the future (KIP-937).

    And append times, which only a broker may set: a batch that has them gives all its records the
    largest time of its header, so that the range is checked where there is one.
    """
    if limits.message_timestamp_type == "CreateTime" and record.timestamp != _NO_TIMESTAMP:
        low = wall_ms - limits.message_timestamp_before_max_ms
        high = wall_ms + limits.message_timestamp_after_max_ms
        if low <= record.timestamp <= high:
            return None
        return (
            f"Timestamp {record.timestamp} of message with offset {record.offset} is out of "
            f"range. The timestamp should be within [{low}, {high}]"
        )
    if not batch.attributes & LOG_APPEND_TIME_BIT:
        return None
    # A batch that keeps its codec is read without keys and values, and so shown by their lengths.
    is_kept = not _is_recompressed(batch, limits)
    kind = "PartialDefaultRecord" if batch.is_compressed and is_kept else "DefaultRecord"
    null_bytes = -1 if kind == "PartialDefaultRecord" else 0
    key_bytes = null_bytes if record.key is None else len(record.key)
    value_bytes = null_bytes if record.value is None else len(record.value)
    return (
        f"Invalid timestamp type in message {kind}(offset={record.offset}, "
        f"timestamp={record.timestamp}, key={key_bytes} bytes, value={value_bytes} bytes). "
        "Producer should not set timestamp type to LogAppendTime."
    )


def _shown(errors: list[RecordError], count: int) -> str:
    """Return the message of a batch with so many refused records."""
    shown = ", ".join(
        f"RecordError(batchIndex={error.batch_index}, message='{error.message}')"
        for error in errors[:_SHOWN_ERRORS]
    )
    return (
        f"One or more records have been rejected due to {count} record errors in total, and "
        f"only showing the first three errors at most: [{shown}]"
    )


def _refuse_odd_offsets(batch: RecordBatch, name: TopicPartition, limits: TopicLimits) -> None:
    """Refuse compressed records that keep their codec, and have not the offsets 0, 1, 2 and so on.

    4.3.1 tries to rewrite them, and fails. Records that get the codec of their topic are rewritten
    at consecutive offsets; those without compression are stored as they are.
    """
    assert batch.records_count > 0, batch
    if batch.is_compressed and not _is_recompressed(batch, limits):
        message = f"Records with offsets other than 0, 1, 2 and so on in topic partition {name}."
        raise AppendRejected(ErrorCode.INVALID_RECORD, message)


def _begins_at_base_time(body: bytes | memoryview, begin: int) -> bool:
    """Whether the first record has the batch's base time, as those of usual clients do."""
    _, position = read_varint(body, begin)
    return body[position + 1] == 0  # behind the attributes


def _correct_times(batch: RecordBatch) -> None:
    """Correct the timestamps in a batch's header by its records, as Kafka does."""
    times = (record.timestamp for record in batch.iter_records(STORED_LIMITS))
    latest = max(_NO_TIMESTAMP, max(times))
    if latest == batch.max_timestamp and not batch.attributes & LOG_APPEND_TIME_BIT:
        return
    if batch.view.readonly:
        batch.view = memoryview(bytearray(batch.view))
    patch_create_time(batch.view, latest)
    _take_over_times(batch)


def _take_over_times(batch: RecordBatch) -> None:
    """Read again the fields that a patch of the times has changed."""
    patched = RecordBatch(batch.view)
    batch.attributes, batch.crc = patched.attributes, patched.crc
    batch.max_timestamp = patched.max_timestamp


def _is_recompressed(batch: RecordBatch, limits: TopicLimits) -> bool:
    """Return whether the topic demands another codec than the batch has."""
    wanted = limits.compression_type
    return wanted != "producer" and _CODECS[wanted] != batch.compression


def _recompressed(batch: RecordBatch, limits: TopicLimits) -> RecordBatch:
    """Rewrite the records of a batch in the codec of the topic, at consecutive offsets.

    It may be larger than it came, and than the topic allows: MESSAGE_TOO_LARGE.
    """
    builder = BatchBuilder(
        base_offset=batch.base_offset,
        compression=_CODECS[limits.compression_type],
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
    )
    for record in batch.iter_records(STORED_LIMITS):
        # Without its offset: a client may have sent any, and several records with the same.
        builder.append(record.timestamp, record.key, record.value, record.headers)
    rebuilt = builder.build()
    assert builder.next_offset - batch.base_offset == batch.records_count, batch
    if len(rebuilt) > limits.max_message_bytes:
        raise AppendRejected(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"Message batch size is {len(rebuilt)} bytes in append, which exceeds the maximum "
            f"configured size of {limits.max_message_bytes}.",
        )
    return parse_batches(memoryview(rebuilt))[0]
