"""Request and response headers, their versions, and headers that are cut off."""

import pytest

from kraft_wire.wire.generated.request_header import RequestHeader as SchemaRequestHeader
from kraft_wire.wire.header import (
    RequestHeader,
    encode_request_header,
    encode_response_header,
    parse_request_header,
    parse_response_header,
    request_header_version,
    response_header_version,
)
from kraft_wire.wire.message import DecodeLimits, MalformedMessage

HEADERS = [
    (RequestHeader(18, 3, 7, "ab"), "0012 0003 00000007 0002 6162 00"),  # flexible, short length
    (RequestHeader(18, 0, 7, "ab"), "0012 0000 00000007 0002 6162"),
    (RequestHeader(1, 11, -1, None), "0001 000b ffffffff ffff"),
    (RequestHeader(1, 12, 0, ""), "0001 000c 00000000 0000 00"),
    (RequestHeader(7, 0, 5, None), "0007 0000 00000005"),  # ControlledShutdown 0
    (RequestHeader(999, 40, 5, "x"), "03e7 0028 00000005 0001 78"),  # unknown: version 1
]


@pytest.mark.parametrize(("header", "data"), HEADERS)
def test_request_header_reads_and_writes_the_same_bytes(header: RequestHeader, data: str) -> None:
    raw = bytes.fromhex(data)
    for frame in (raw, bytearray(raw), memoryview(raw)):
        assert parse_request_header(frame) == (header, len(raw))
    assert parse_request_header(raw + b"body") == (header, len(raw))
    assert encode_request_header(header) == raw


@pytest.mark.parametrize("version", [1, 2])
def test_request_header_agrees_with_the_generated_one(version: int) -> None:
    generated = SchemaRequestHeader(
        request_api_key=1, request_api_version=10 + version, correlation_id=9, client_id="c"
    )
    header = RequestHeader(1, 10 + version, 9, "c")
    assert encode_request_header(header) == generated.encode(version)


@pytest.mark.parametrize(
    ("key", "version", "request_version", "response_version"),
    [(18, 0, 1, 0), (18, 4, 2, 0), (1, 11, 1, 0), (1, 12, 2, 1), (7, 0, 0, 0), (17, 1, 1, 0)],
)
def test_header_versions_follow_the_flexible_versions(
    key: int, version: int, request_version: int, response_version: int
) -> None:
    assert request_header_version(key, version) == request_version
    assert response_header_version(key, version) == response_version


def test_tags_of_a_request_header_are_skipped() -> None:
    raw = bytes.fromhex("0001 000c 00000000 ffff 02 0001aa 8101 02bbcc")
    assert parse_request_header(raw) == (RequestHeader(1, 12, 0, None), len(raw))
    negative = bytes.fromhex("0001 000c 00000000 ffff ffffffff0f")
    assert parse_request_header(negative)[1] == len(negative)


def test_tags_of_a_request_header_are_held_against_the_limits() -> None:
    head = bytes.fromhex("0001 000c 00000000 ffff")
    limits = DecodeLimits(tagged_fields=2, tagged_bytes=10)
    assert parse_request_header(head + b"\x02\x01\x00\x02\x00", limits)[1] == len(head) + 5
    for tags in (b"\x03" + b"\x01\x00" * 3, b"\x01\x05\x14" + bytes(20)):
        assert parse_request_header(head + tags)[1] == len(head + tags)
        with pytest.raises(MalformedMessage, match="tagged_fields"):
            parse_request_header(head + tags, limits)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ("", "request_header"),
        ("0012 0003 000000", "request_header"),
        ("0012 0003 00000007 00", "client_id"),
        ("0012 0003 00000007 0003 6162", "client_id"),
        ("0012 0003 00000007 0002 6162", "tagged_fields"),
        ("0012 0003 00000007 ffff 01 00 05 aa", "tagged_fields"),
        ("0012 0003 00000007 ffff 01 ffffffffff0f", "tagged_fields"),
        ("0012 0003 00000007 ffff 02 00 00", "tagged_fields"),
    ],
)
def test_request_header_that_is_cut_off_names_the_field(data: str, field: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        parse_request_header(bytes.fromhex(data))
    assert caught.value.field == field


def test_client_id_of_invalid_utf8_is_replaced() -> None:
    header, _ = parse_request_header(bytes.fromhex("0012 0000 00000007 0001 ff"))
    assert header.client_id == "\ufffd"


def test_response_headers_of_both_versions() -> None:
    assert encode_response_header(18, 4, 7) == b"\0\0\0\x07"
    assert encode_response_header(1, 12, 7) == b"\0\0\0\x07\0"
    assert parse_response_header(b"\0\0\0\x07", 18, 4) == (7, 4)
    assert parse_response_header(b"\0\0\0\x07\0", 1, 12) == (7, 5)
    assert parse_response_header(b"\0\0\0\x07\x01\x05\x01a", 1, 12) == (7, 8)
    for data in (b"\0\0\0", b"\0\0\0\x07"):
        with pytest.raises(MalformedMessage):
            parse_response_header(data, 1, 12)
