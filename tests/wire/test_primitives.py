"""Varints at their edges, and the long forms that generated code falls back on."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.wire import runtime
from kraft_wire.wire.primitives import (
    Unusual,
    decode_unsigned_varint,
    encode_unsigned_varint,
)
from kraft_wire.wire.varint import append_varint, read_varint, read_varlong

UNSIGNED = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2147483647, "ffffffff07"),
    (4294967295, "ffffffff0f"),
]
ZIGZAG = [(0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"), (-2147483648, "ffffffff0f")]


@pytest.mark.parametrize(("value", "data"), UNSIGNED)
def test_unsigned_varint_reads_and_writes(value: int, data: str) -> None:
    raw = bytes.fromhex(data)
    assert encode_unsigned_varint(value) == raw
    assert decode_unsigned_varint(b"?" + raw, 1) == (value, 1 + len(raw))


@pytest.mark.parametrize(("value", "data"), ZIGZAG)
def test_varint_is_zigzag(value: int, data: str) -> None:
    raw = bytes.fromhex(data)
    assert written(value) == raw
    assert read_varint(raw, 0) == (value, len(raw))


@given(st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1))
def test_varlong_survives_a_round_trip(value: int) -> None:
    raw = written(value)
    assert read_varlong(raw, 0) == (value, len(raw))


def written(value: int) -> bytes:
    output = bytearray()
    append_varint(output, value)
    return bytes(output)


def test_varints_that_are_too_long_or_cut_off_or_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 5 bytes"):
        decode_unsigned_varint(b"\xff" * 6, 0)
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        read_varlong(b"\xff" * 11, 0)
    with pytest.raises(IndexError):
        decode_unsigned_varint(b"\xff", 0)
    for value in (-1, 1 << 32):
        with pytest.raises(ValueError, match="not an unsigned"):
            encode_unsigned_varint(value)


@pytest.mark.parametrize("size", [127, 128, 16382, 16383, 16384, 32767])
def test_long_texts_read_what_long_text_writes(size: int) -> None:
    raw = b"x" * size
    data = runtime.long_text(raw)
    assert runtime.compact_text(data, 1, data[0]) == ("x" * size, len(data))
    with pytest.raises(Unusual):
        runtime.compact_text(data[:-1], 1, data[0])


def test_texts_above_the_limit_are_left_to_the_reference_codec() -> None:
    with pytest.raises(Unusual):
        runtime.long_text(b"x" * 32768)
    data = encode_unsigned_varint(32769) + b"x" * 32768
    with pytest.raises(Unusual):
        runtime.compact_text(data, 1, data[0])
    with pytest.raises(Unusual):
        runtime.classic_text(b"x" * 40000, 0, 40000)
    with pytest.raises(Unusual):
        runtime.classic_text(b"x", 0, -1)


@pytest.mark.parametrize("data", ["8000", "ff00", "ffffffffff01", "ffffffff0f"])
def test_overlong_and_huge_lengths_are_left_to_the_reference_codec(data: str) -> None:
    raw = bytes.fromhex(data)
    with pytest.raises(Unusual):
        runtime.long_count(raw, 1, raw[0])


def test_arrays_of_texts_and_numbers_refuse_null_and_truncation() -> None:
    assert runtime.compact_texts(b"\x02a\x03bc", 0, 3) == (["a", "bc"], 5)
    assert runtime.classic_texts(b"\x00\x01a\x00\x00", 0, 2) == (["a", ""], 5)
    assert runtime.classic_numbers(b"\x00\x01\x00\x02", 0, 2, "h", 2) == ([1, 2], 4)
    refused: list[Callable[[], object]] = [
        lambda: runtime.compact_texts(b"", 0, 0),
        lambda: runtime.compact_texts(b"\x05a", 0, 2),
        lambda: runtime.classic_texts(b"", 0, -1),
        lambda: runtime.classic_numbers(b"\x00", 0, 1, "h", 2),
        lambda: runtime.classic_numbers(b"", 0, -1, "h", 2),
        lambda: runtime.unpackers("s", "", 1)[0](b"\x00", 1),
    ]
    for read in refused:
        with pytest.raises(Unusual):
            read()
    many = runtime.long_numbers(list(range(300)), "i")
    data = encode_unsigned_varint(301) + many
    assert runtime.compact_numbers(data, 1, data[0], "i", 4) == (list(range(300)), len(data))
    texts = ["t"] * 200
    data = encode_unsigned_varint(201) + b"\x02t" * 200
    assert runtime.compact_texts(data, 1, data[0]) == (texts, len(data))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("0102", (1, 2, 2)),
        ("810102", (129, 2, 3)),
        ("018201", (1, 130, 3)),
        ("81018201", (129, 130, 4)),
    ],
)
def test_tag_and_size_may_both_be_long(data: str, expected: tuple[int, int, int]) -> None:
    assert runtime.tag_head(bytes.fromhex(data), 0) == expected


def test_unknown_tags_beyond_the_caps_are_left_to_the_reference_codec() -> None:
    assert runtime.unknown_tags(b"\x05\x01a\x06\x00", 0, 2) == ([(5, b"a"), (6, b"")], 5)
    most = b"\x05" + encode_unsigned_varint(32768) + bytes(32768)
    tags, end = runtime.unknown_tags(most * 2, 0, 2)
    assert ([len(content) for _, content in tags], end) == ([32768] * 2, 2 * len(most))
    with pytest.raises(Unusual):
        runtime.unknown_tags(most * 2 + b"\x06\x01a", 0, 3)
    assert len(runtime.unknown_tags(b"\x05\x00" * 64, 0, 64)[0]) == 64
    big = b"\x05" + encode_unsigned_varint(40000) + bytes(40000)
    with pytest.raises(Unusual):
        runtime.unknown_tags(big * 2, 0, 2)
    with pytest.raises(Unusual):
        runtime.unknown_tags(b"\x05\x00" * 65, 0, 65)
    with pytest.raises(Unusual):
        runtime.unknown_tag(bytes(70000), 0, 65537)
    with pytest.raises(Unusual):
        runtime.unknown_tag(b"", 0, 1)
