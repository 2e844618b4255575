"""The whole result of a refused append: error, message and log start, in the order of the checks.

Messages are those of `UnifiedLog.analyzeAndValidateRecords` and `LogValidator` of 4.3.1.
"""

import struct
import tracemalloc

import pytest

from kraft_wire.broker.partition import AppendResult, Partition
from kraft_wire.broker.producing import append_validation
from kraft_wire.model import Offset
from kraft_wire.storage.log import Log
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.broker.test_append_validation import (
    HOUR_MS,
    WALL_MS,
    batch,
    partition,
    produced,
    spoilt,
    with_head,
)

LOG_START = 3
RECORDS = 50_000
BYTES_MAX = 1_000
CONTROL = batch(is_control=True)
WITHOUT_SEQUENCE = batch(producer_id=7, producer_epoch=0)


def begun(**settings: object) -> Partition:
    """A partition whose log starts at 3, so that the log start of an answer can be seen."""
    target = partition(**settings)
    assert isinstance(target.log, Log)
    target.log.truncate_fully_and_start_at(Offset(LOG_START))
    return target


def with_range(data: bytearray, last_offset_delta: int, count: int) -> bytearray:
    """Return a batch whose header has another last offset and another number of records."""
    return with_head(with_head(bytearray(data), ">i", 23, last_offset_delta), ">i", 57, count)


def stored_crc(data: bytearray) -> int:
    return int(struct.unpack_from(">I", data, 17)[0])


LARGE = batch(60)
SPOILT = spoilt(with_range(batch(), -1, 0))
TOO_LARGE = (
    f"The record batch size in the append to t-0 is {len(LARGE)} bytes which exceeds the maximum "
    f"configured value of {BYTES_MAX} bytes"
)
SPOILT_MESSAGE = f"Record is corrupt (stored crc = {stored_crc(SPOILT)}) in topic partition t-0."

ROWS = [
    (
        with_head(spoilt(bytearray(LARGE)), ">q", 0, 5),
        E.INVALID_RECORD,
        "The baseOffset of the record batch in the append to t-0 should be 0, but it is 5",
    ),
    (spoilt(bytearray(LARGE)), E.MESSAGE_TOO_LARGE, TOO_LARGE),
    (SPOILT, E.CORRUPT_MESSAGE, SPOILT_MESSAGE),
    (
        with_range(CONTROL, -1, 0),
        E.INVALID_RECORD,
        "Batch has an invalid offset range: [0, -1] in topic partition t-0.",
    ),
    (
        with_range(CONTROL, 0, 0),
        E.INVALID_RECORD,
        "Invalid reported count for record batch: 0 in topic partition t-0.",
    ),
    (
        with_range(CONTROL, 0, -1),
        E.INVALID_RECORD,
        "Invalid reported count for record batch: -1 in topic partition t-0.",
    ),
    (
        with_range(CONTROL, 0, 2),
        E.INVALID_RECORD,
        "Inconsistent batch offset range [0, 0] and count of records 2 in topic partition t-0.",
    ),
    (
        with_range(CONTROL, 2, 2),
        E.INVALID_RECORD,
        "Inconsistent batch offset range [0, 2] and count of records 2 in topic partition t-0.",
    ),
    (
        batch(is_control=True, producer_id=7, producer_epoch=0),
        E.INVALID_RECORD,
        "Clients are not allowed to write control records in topic partition t-0.",
    ),
    (
        WITHOUT_SEQUENCE,
        E.INVALID_RECORD,
        "Invalid sequence number -1 in record batch with producerId 7 in topic partition t-0.",
    ),
    (
        with_head(batch(), ">h", 21, 5),
        E.UNKNOWN_SERVER_ERROR,
        "Unknown compression type",
    ),
]


@pytest.mark.parametrize(("data", "error", "message"), ROWS)
def test_first_rule_that_a_batch_breaks_is_named(data: bytearray, error: E, message: str) -> None:
    start = -1 if error in (E.MESSAGE_TOO_LARGE, E.CORRUPT_MESSAGE) else LOG_START
    target = begun(max_message_bytes=BYTES_MAX)
    expected = AppendResult(error, log_start_offset=Offset(start), error_message=message)
    assert produced(target, data) == expected
    assert target.log_end_offset == LOG_START


@pytest.mark.parametrize("count", [1, 3, 4])
def test_three_records_at_most_are_shown_of_all_that_are_refused(count: int) -> None:
    target = begun(cleanup_policy=("compact",))
    result = produced(target, batch(count, key=None))
    reason = "Compacted topic cannot accept message without key in topic partition t-0"
    assert result.record_errors == tuple((index, reason) for index in range(count))
    shown = ", ".join(
        f"RecordError(batchIndex={index}, message='{reason}')" for index in range(min(count, 3))
    )
    assert result.error_message == (
        f"One or more records have been rejected due to {count} record errors in total, and only "
        f"showing the first three errors at most: [{shown}]"
    )
    assert (result.error, result.log_start_offset) == (E.INVALID_RECORD, LOG_START)


def test_ten_thousand_refused_records_are_told_of_all_that_are_counted() -> None:
    told = append_validation.RECORD_ERRORS_MAX
    result = produced(begun(cleanup_policy=("compact",)), batch(told + 1, key=None))
    assert [each.batch_index for each in result.record_errors] == list(range(10_000))
    assert "due to 10001 record errors in total" in str(result.error_message)


@pytest.mark.parametrize(
    ("settings", "records", "header_ms"),
    [
        ({"cleanup_policy": ("compact",)}, Record(None, None, timestamp=WALL_MS), WALL_MS),
        ({}, Record(None, None, timestamp=WALL_MS), WALL_MS + 1),
        ({"compression_type": "gzip"}, Record(None, None, timestamp=WALL_MS), WALL_MS),
    ],
    ids=["refused", "corrected", "rewritten"],
)
def test_many_tiny_records_are_looked_at_one_after_the_other(
    settings: dict[str, object], records: Record, header_ms: int
) -> None:
    """Each takes some hundred bytes once it is an object, and seven in its batch."""
    data = build_batch([records] * RECORDS, compression=Compression.ZSTD)
    target = partition(**settings)
    tracemalloc.start()
    produced(target, with_head(data, ">q", 35, header_ms))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 100 * RECORDS


def test_record_out_of_range_is_shown_with_the_range() -> None:
    """The offsets are those that the records would have got: they count from 0 in the batch."""
    target = begun(
        message_timestamp_before_max_ms=HOUR_MS, message_timestamp_after_max_ms=2 * HOUR_MS
    )
    late = WALL_MS + 2 * HOUR_MS + 1
    records = [Record(b"k", b"v", timestamp=each) for each in (WALL_MS, late, -1)]
    result = produced(target, build_batch(records))
    message = (
        f"Timestamp {late} of message with offset 1 is out of range. The timestamp should be "
        f"within [{WALL_MS - HOUR_MS}, {WALL_MS + 2 * HOUR_MS}]"
    )
    assert result.record_errors == ((1, message),)
    assert (result.error, result.log_start_offset) == (E.INVALID_TIMESTAMP, LOG_START)


def test_batch_that_does_not_fit_is_named_with_its_size() -> None:
    data = batch()
    result = produced(begun(segment_bytes=len(data) - 1), data)
    message = (
        f"The record batch list size of {len(data)} bytes exceeds the maximum configured segment "
        f"size of {len(data) - 1} bytes"
    )
    assert result == AppendResult(E.RECORD_LIST_TOO_LARGE, error_message=message)


def test_last_codec_is_the_first_behind_which_there_is_none() -> None:
    """zstd is 4."""
    known = with_head(batch(), ">h", 21, 4)
    assert produced(begun(), known).error is E.CORRUPT_MESSAGE
    assert produced(begun(), with_head(batch(), ">h", 21, 7)).error is E.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("more", "kind"), [(-1, bytes), (0, memoryview)])
def test_batches_below_64_kib_are_copied_before_they_are_read(
    more: int, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading bytes is cheaper than reading a view, by more than a small copy takes."""
    size_bytes = 64 * 1024 + more
    value = b"v" * (size_bytes - len(build_batch([Record(None, b"")])) - 4)
    data = build_batch([Record(None, value, timestamp=WALL_MS)])
    assert len(data) == size_bytes
    kinds: list[type] = []
    skim_records = append_validation.skim_records

    def noted(body: bytes | memoryview, count: int, begin: int) -> object:
        kinds.append(type(body))
        return skim_records(body, count, begin)

    monkeypatch.setattr(append_validation, "skim_records", noted)
    assert produced(partition(), data).error is E.NONE
    assert kinds == [kind]


@pytest.mark.parametrize(
    ("settings", "stamp"), [({}, -1), ({"message_timestamp_type": "LogAppendTime"}, WALL_MS)]
)
def test_whole_result_of_an_append_and_of_its_repetition(
    settings: dict[str, object], stamp: int
) -> None:
    target = begun(**settings)
    first = batch(3, producer_id=7, producer_epoch=1, base_sequence=0)
    sent = (bytes(first), bytes(first))
    wanted = AppendResult(E.NONE, 3, 5, stamp, Offset(LOG_START))
    results = [produced(target, each) for each in sent]
    assert results[0] == wanted
    assert (target.bytes_in, target.messages_in) == (len(first), 3)
    assert (results[1].error, results[1].base_offset, results[1].last_offset) == (E.NONE, 3, 5)
    assert results[1].log_start_offset == LOG_START
    gap = batch(producer_id=7, producer_epoch=1, base_sequence=4)
    message = "Producer 7 at epoch 1 may not append sequence 4 to t-0"
    assert produced(target, gap) == AppendResult(
        E.OUT_OF_ORDER_SEQUENCE_NUMBER, log_start_offset=Offset(LOG_START), error_message=message
    )
    assert (target.bytes_in, target.messages_in, target.log_end_offset) == (len(first), 3, 6)
