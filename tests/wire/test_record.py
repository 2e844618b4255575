"""Records and their varints: KIP-98's format, with Java's arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.wire.records.corruption import InvalidRecord
from kraft_wire.wire.records.record import (
    Record,
    append_record,
    append_values,
    increment_sequence,
    iter_records,
    record_values,
)
from kraft_wire.wire.varint import (
    append_varint,
    read_varint,
    read_varlong,
    text_from_utf8,
    utf8_from_text,
    wrap_int32,
    wrap_int64,
)

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


def varint(value: int) -> bytes:
    output = bytearray()
    append_varint(output, value)
    return bytes(output)


@pytest.mark.parametrize(
    ("value", "raw"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (-65, "8101")],
)
def test_varint_has_the_zigzag_form_of_kip_98(value: int, raw: str) -> None:
    assert varint(value).hex() == raw
    assert read_varint(bytes.fromhex(raw), 0) == (value, len(raw) // 2)


@given(INT32)
def test_varint_reads_back_every_int32(value: int) -> None:
    raw = varint(value)
    assert read_varint(b"\xff" + raw + b"rest", 1) == (value, 1 + len(raw))


@given(INT64)
def test_varlong_reads_back_every_int64(value: int) -> None:
    raw = varint(value)
    assert read_varlong(raw, 0) == (value, len(raw))


def test_varint_that_is_cut_or_too_long_is_told_apart() -> None:
    with pytest.raises(IndexError):
        read_varint(b"\x80\x80\x80", 0)
    with pytest.raises(ValueError, match="longer than 5"):
        read_varint(b"\x80" * 6, 0)
    with pytest.raises(ValueError, match="longer than 10"):
        read_varlong(b"\x80" * 11, 0)


def test_arithmetic_wraps_as_in_java() -> None:
    assert wrap_int32(1 << 31) == -(1 << 31)
    assert wrap_int64((1 << 63) + 5) == -(1 << 63) + 5
    assert increment_sequence(2147483647, 1) == 0
    assert increment_sequence(2147483646, 3) == 1
    assert increment_sequence(5, 2) == 7


def test_text_is_repaired_and_encoded_as_java_does() -> None:
    assert text_from_utf8("schön".encode()) == "schön"
    assert text_from_utf8(memoryview(b"a\xffb")) == "a\ufffdb"
    assert text_from_utf8(b"\xed\xa0\x80|\xed\xa0A") == "\ufffd|\ufffdA"
    assert utf8_from_text("a\ud800b") == b"a?b"


HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3)


@given(
    st.lists(
        st.tuples(
            st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=200), HEADERS, INT64
        ),
        max_size=5,
    )
)
def test_records_read_back_as_they_were_written(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]],
) -> None:
    body = bytearray()
    expected = []
    for index, (key, value, headers, timestamp) in enumerate(rows):
        append_record(body, index, timestamp, key, value, headers)
        expected.append(Record(key, value, index + 100, timestamp, headers, index + 7))
    assert list(iter_records(bytes(body), len(rows), 100, 0, 7)) == expected


def test_log_append_time_replaces_every_timestamp() -> None:
    body = bytearray()
    append_record(body, 0, 5, None, None)
    [record] = iter_records(bytes(body), 1, 0, 1000, log_append_time=77)
    assert (record.timestamp, record.sequence) == (77, -1)


@pytest.mark.parametrize(
    ("body", "count", "reason"),
    [
        (b"", -1, "declares -1 records"),
        (b"", 1, "cut or malformed"),
        (b"\x0c\0\0\0\1\1\0", 2, "cut or malformed"),
        (b"\x0c\0\0\0\1\1\0\0", 1, "1 bytes are left"),
        (b"\x0e\0\0\0\1\1\0", 1, "another size"),
        (b"\x0a\0\0\0\1\1\0", 1, "another size"),
        (b"\x0c\0\0\0\1\x14\0", 1, "cut or malformed"),
        (b"\x0c\0\0\0\1\1\1", 1, "cut or malformed"),
        (b"\x10\0\0\0\1\1\2\1\1", 1, "cut or malformed"),
        (b"\x16\0\0\0\x80\x80\x80\x80\x80\0\1\0", 1, "cut or malformed"),
    ],
)
def test_malformed_record_is_refused(body: bytes, count: int, reason: str) -> None:
    with pytest.raises(InvalidRecord, match=reason):
        list(iter_records(body, count, 0, 0))


def test_batch_of_no_records_leaves_its_body_unread() -> None:
    assert list(iter_records(b"anything", 0, 0, 0)) == []


def test_record_attributes_are_signed() -> None:
    [record] = iter_records(b"\x0c\xff\0\0\1\1\0", 1, 0, 0)
    assert record.attributes == -1


def test_record_is_compared_by_value_and_shown_by_field() -> None:
    assert Record(b"k") == Record(b"k")
    assert Record(b"k") != Record(b"l")
    assert Record() != "record"
    assert "key=b'k'" in repr(Record(b"k"))
    with pytest.raises(TypeError):
        hash(Record())


@given(st.binary(max_size=80), st.integers(-1, 5))
def test_any_bytes_give_records_or_the_declared_error(body: bytes, count: int) -> None:
    try:
        records = list(iter_records(body, count, 0, 0))
    except InvalidRecord:
        return
    assert len(records) == count


VALUES = st.lists(st.none() | st.binary(max_size=70) | st.just(bytes(9_000)), max_size=5)


def outcome(read: Callable[[], list[bytes | None]]) -> list[bytes | None] | str:
    try:
        return read()
    except InvalidRecord as bad:
        return bad.reason


def assert_same_values(body: bytes, count: int) -> None:
    slowly = outcome(lambda: [record.value for record in iter_records(body, count, 0, 0)])
    assert outcome(lambda: record_values(body, count)) == slowly


@given(VALUES, st.sampled_from([0, 1, 64, 9_000]), st.data())
def test_values_alone_are_those_of_the_records_whatever_is_spoilt(
    values: list[bytes | None], timestamp: int, data: st.DataObject
) -> None:
    body = bytearray()
    for index, value in enumerate(values):
        append_record(body, index * 70, timestamp, None, value)
    assert_same_values(bytes(body), len(values))
    if body:
        body[data.draw(st.integers(0, min(len(body), 99) - 1))] = data.draw(st.integers(0, 255))
        assert_same_values(bytes(body), len(values))
        assert_same_values(bytes(body[: data.draw(st.integers(0, len(body)))]), len(values))


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("0e 00 00 00 01 02 61 00", 1),
        ("0e 00 00 00 01 02 61 00 ff", 1),
        ("0c 00 00 00 01 01 00", 1),
        ("0e 00 00 00 00 02 61 00", 1),
        ("10 00 00 80 01 01 02 61 00", 1),
        ("12 00 00 80 81 01 01 02 61 00", 1),
        ("10 00 80 01 01 01 02 61 00", 1),
        ("8e 00 00 00 00 01 82 00 61 00", 1),
        ("14 00 00 00 01 02 61 02 02 6b 01", 1),
        ("0f 00 00 00 01 02 61 00", 1),
        ("0e 00 00 00 01 02 61 00", -1),
        ("", 0),
        ("61", 0),
    ],
)
def test_values_alone_of_odd_records_are_those_that_the_whole_reading_finds(
    body: str, count: int
) -> None:
    assert_same_values(bytes.fromhex(body), count)


@given(st.integers(0, 10_000), st.binary(max_size=200))
def test_record_with_nothing_but_a_value_has_the_form_of_kip_98(offset: int, value: bytes) -> None:
    body = bytearray()
    append_record(body, offset, 0, None, value)
    inner = b"\0\0" + varint(offset) + b"\1" + varint(len(value)) + value + b"\0"
    assert bytes(body) == varint(len(inner)) + inner


@given(st.integers(0, 100), st.lists(st.binary(max_size=80)))
def test_values_in_a_row_are_the_records_that_each_of_them_makes(
    first: int, values: list[bytes]
) -> None:
    together, one_by_one = bytearray(b"before"), bytearray(b"before")
    append_values(together, first, values)
    for offset, value in enumerate(values, first):
        append_record(one_by_one, offset, 0, None, value)
    assert together == one_by_one


@pytest.mark.parametrize("size", [8_191, 8_192, 1 << 20])
def test_length_of_any_value_reads_back(size: int) -> None:
    body = bytearray()
    append_values(body, 8_190, [b"v" * size] * 3)
    found = [(each.offset, each.value) for each in iter_records(bytes(body), 3, 0, 0)]
    assert found == [(offset, b"v" * size) for offset in (8_190, 8_191, 8_192)]
