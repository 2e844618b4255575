"""What the records of a Produce request may be, row by row: one whole batch of format 2."""

from __future__ import annotations

import struct

import pytest

from kraft_wire.broker.producing.append_validation import AppendRejected
from kraft_wire.broker.producing.produced_batch import first_corruption, produced_batch
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

BATCH = bytes(build_batch([Record(b"k", b"v" * 20, timestamp=1)]))
ZSTD = bytes(build_batch([Record(b"k", b"v" * 20)], compression=Compression.ZSTD))
NEWEST = 13


def with_field(form: str, at: int, value: int) -> bytes:
    data = bytearray(BATCH)
    struct.pack_into(form, data, at, value)
    return bytes(data)


SHORT = with_field(">i", 8, 13)
"""Its length is less than that of any record."""


@pytest.mark.parametrize(
    ("name", "records", "version", "error", "message"),
    [
        ("null", None, NEWEST, E.INVALID_RECORD, None),
        ("no batch", b"", NEWEST, E.INVALID_RECORD, None),
        ("cut in the header", BATCH[:60], NEWEST, E.INVALID_RECORD, None),
        ("cut in the records", BATCH[:-1], NEWEST, E.INVALID_RECORD, None),
        ("two batches", BATCH + BATCH, NEWEST, E.INVALID_RECORD, None),
        ("format 1", with_field(">b", 16, 1), NEWEST, E.INVALID_RECORD, None),
        ("format 3", with_field(">b", 16, 3), NEWEST, E.CORRUPT_MESSAGE, "found in record: 3"),
        ("format -1", with_field(">b", 16, -1), NEWEST, E.CORRUPT_MESSAGE, "found in record: -1"),
        ("length 13", with_field(">i", 8, 13), NEWEST, E.CORRUPT_MESSAGE, "size 13 is less"),
        ("length 14", with_field(">i", 8, 14), NEWEST, E.CORRUPT_MESSAGE, None),
        ("length 48", with_field(">i", 8, 48), NEWEST, E.CORRUPT_MESSAGE, None),
        ("cut before the format", BATCH[:16], NEWEST, E.INVALID_RECORD, None),
        ("cut, length 13", SHORT[:17], NEWEST, E.CORRUPT_MESSAGE, "size 13 is less"),
        ("cut, length 14", with_field(">i", 8, 14)[:17], NEWEST, E.INVALID_RECORD, None),
        ("length 13 behind a batch", BATCH + SHORT[:17], NEWEST, E.CORRUPT_MESSAGE, "size 13 is"),
        ("zstd below v7", ZSTD, 6, E.UNSUPPORTED_COMPRESSION_TYPE, None),
        ("codec 6", with_field(">h", 21, 6), 6, E.UNKNOWN_SERVER_ERROR, None),
    ],
)
def test_records_that_are_not_one_batch_are_refused(
    name: str, records: bytes | None, version: int, error: E, message: str | None
) -> None:
    with pytest.raises(AppendRejected) as raised:
        produced_batch(records, version)
    assert raised.value.error is error, name
    assert (message or "") in (raised.value.message or "")
    assert (message is None) == (raised.value.message is None)


@pytest.mark.parametrize("rest", [b"", b"\0", BATCH[:16], BATCH[:17], SHORT[:16], BATCH[:-1]])
def test_cut_batch_behind_a_whole_one_counts_as_none(rest: bytes) -> None:
    batch = produced_batch(memoryview(BATCH + rest), NEWEST)
    assert bytes(batch.view) == BATCH


@pytest.mark.parametrize(("data", "version"), [(ZSTD, 7), (BATCH, 3), (with_field(">h", 21, 6), 7)])
def test_codecs_are_left_to_the_validation_from_version_7_on(data: bytes, version: int) -> None:
    assert bytes(produced_batch(data, version).view) == data


TRANSACTIONAL = with_field(">h", 21, 16)
EMPTY_TRANSACTIONAL = TRANSACTIONAL[:8] + (49).to_bytes(4, "big") + TRANSACTIONAL[12:61]
"""A head alone is the smallest batch."""


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([BATCH, SHORT], "size 13 is less"),
        ([None, b"", BATCH[:60], with_field(">b", 16, 3)], "found in record: 3"),
        ([BATCH, memoryview(BATCH + SHORT)], None),
        ([TRANSACTIONAL, SHORT], None),
        ([EMPTY_TRANSACTIONAL, SHORT], None),
        ([SHORT, TRANSACTIONAL], "size 13 is less"),
        ([with_field(">i", 8, 48)], None),
    ],
)
def test_request_is_corrupt_where_no_first_batch_can_be_read(
    records: list[bytes | memoryview | None], message: str | None
) -> None:
    found = first_corruption(records)
    assert (found is None) == (message is None)
    if found is not None:
        assert found.error is E.CORRUPT_MESSAGE
        assert message is not None
        assert message in (found.message or "")
