"""The skim over records: the verdict of the reader, and the same facts, without the records."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kraft_wire.wire.records import record_skim
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.corruption import CorruptRecordBatch, InvalidRecord
from kraft_wire.wire.records.memory_records import scan_batches
from kraft_wire.wire.records.record import Record, append_record, iter_records
from kraft_wire.wire.records.record_batch import HEADER_BYTES, RecordBatch
from kraft_wire.wire.records.record_skim import RecordSkim, skim_records
from tests.golden.vectors import CORPUS, read_vectors
from tests.wire.odd_batches import VECTORS


def outcome(read: Callable[[bytes, int], RecordSkim], body: bytes, count: int) -> object:
    try:
        return read(body, count)
    except InvalidRecord:
        return "refused"


def read_plainly(body: bytes, count: int) -> RecordSkim:
    """What the skim says, by reading every record."""
    records = list(iter_records(body, count, 0, 0))
    stamps = [0, *(record.timestamp for record in records)]
    is_consecutive = [record.offset for record in records] == list(range(len(records)))
    return min(stamps), max(stamps), any(record.key is None for record in records), is_consecutive


def assert_same(body: bytes, count: int) -> None:
    assert outcome(skim_records, body, count) == outcome(read_plainly, body, count)


def test_skim_agrees_with_the_reader_on_apaches_and_on_odd_batches() -> None:
    bodies = 0
    for path in (VECTORS, CORPUS / "records" / "MemoryRecords.jsonl"):
        for vector in read_vectors(path):
            try:
                batches, _ = scan_batches(bytes.fromhex(vector.hex))
                for batch in batches:
                    if isinstance(batch, RecordBatch):
                        assert_same(batch.body(), min(batch.records_count, 1000))
                        bodies += 1
            except CorruptRecordBatch:
                continue
    assert bodies > 400


@pytest.mark.parametrize(
    "record",
    [
        Record(b"k", b"v", timestamp=5, headers=[("h", None), ("i" * 200, b"x" * 200)]),
        Record(None, None, timestamp=-70_000),
        Record(b"k" * 300, b"v" * 300, timestamp=1 << 40),
    ],
)
def test_skim_tells_timestamps_and_null_keys(record: Record) -> None:
    body = bytes(build_batch([Record(b"first", timestamp=0)] * 70 + [record])[61:])
    assert_same(body, 71)
    assert skim_records(body, 71)[2] == (record.key is None)


def test_negative_lengths_other_than_minus_1_are_null_too() -> None:
    for length in (b"\x03", b"\x81\x01", b"\xff\xff\xff\xff\x0f"):
        for fields in (length + b"\x01\x00", b"\x01" + length + b"\x00"):
            record = b"\0\0\0" + fields
            assert_same(bytes([2 * len(record)]) + record, 1)
    assert_same(b"\x0e\0\0\0\x03\x01\x01\0", 1)
    assert_same(b"\x10\0\0\0\x01\x05\x01\x01\0", 1)


@pytest.mark.parametrize(
    ("fields", "outcome_of_both"),
    [
        (b"\x81\x01" + b"\x80\x01" + b"v" * 62 + b"\x02\0\0", (0, 0, True, True)),
        (b"\x02k" + b"\x81\x01" + b"\xff" * 64 + b"\0", "refused"),
    ],
    ids=["64 bytes of key, or none and 64 of value", "64 bytes of value, or none and odd headers"],
)
def test_negative_length_of_two_bytes_is_not_taken_for_its_absolute_value(
    fields: bytes, outcome_of_both: object
) -> None:
    """Read with either sign, such a record ends at its end."""
    record = b"\0\0\0" + fields
    size = 2 * len(record)
    body = bytes([0x80 | size & 0x7F, size >> 7]) + record
    assert outcome(skim_records, body, 1) == outcome_of_both
    assert_same(body, 1)


@given(st.binary(max_size=40), st.integers(-1, 4))
@example(b"\x14\0\0\0\x02k\x02v\x01\0", 1)
@example(b"\x18\0\0\0\x02k\x02v\x02\x01\x01\x00\x00", 1)
def test_any_bytes_get_the_same_verdict_from_both(body: bytes, count: int) -> None:
    assert_same(body, count)


@given(st.lists(st.sampled_from(b"\0\1\2\3\4\5\6\x0c\x0e\x10\x12\x14\x80\x81\xff"), max_size=24))
def test_bytes_that_look_like_records_get_the_same_verdict_from_both(codes: list[int]) -> None:
    record = bytes(codes)
    assert_same(bytes([2 * len(record)]) + record, 1)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 200])
@pytest.mark.parametrize("key_bytes", [None, 0, 1, 63, 64, 8_000])
@pytest.mark.parametrize("value_bytes", [None, 0, 63, 64, 100])
def test_usual_records_are_never_read_by_the_slow_reader(
    monkeypatch: pytest.MonkeyPatch, count: int, key_bytes: int | None, value_bytes: int | None
) -> None:
    """It takes many times as long, and the verdict would be the same."""
    monkeypatch.setattr(record_skim, "_skim_slowly", None)
    records = [
        Record(
            None if key_bytes is None else bytes(key_bytes),
            None if value_bytes is None else bytes(value_bytes),
            timestamp=1_000 + 40 * (at % 3),
        )
        for at in range(count)
    ]
    body = bytes(build_batch(records))[HEADER_BYTES:]
    assert skim_records(body, count) == (0, 40 * min(count - 1, 2), key_bytes is None, True)


@pytest.mark.parametrize("first", [0, 62, 63, 64, 8_190, 8_191])
def test_skim_tells_whether_offsets_are_consecutive(first: int) -> None:
    """As the reader does, at every size of their varints."""
    body = bytearray()
    for delta in range(first):
        append_record(body, delta, 0, b"k", b"v", [])
    assert first == 0 or skim_records(bytes(body), first)[3]
    for more in ([first], [first - 1], [first + 1], [-2], [0], [first, first], [64, 200, 1 << 20]):
        longer = bytearray(body)
        for delta in more:
            append_record(longer, delta, 0, b"k", b"v", [])
        assert_same(bytes(longer), first + len(more))
