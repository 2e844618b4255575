"""Limits on the tagged fields of a request header, which arrive before any authentication."""

import pytest

from kraft_wire.wire.header import parse_request_header
from kraft_wire.wire.message import DecodeLimits, MalformedMessage


def _header_with_tags(tags: bytes) -> bytes:
    return b"\x00\x12\x00\x03\x00\x00\x00\x07\x00\x02ab" + tags


def test_header_with_more_tags_than_the_limit_is_refused_before_they_are_walked() -> None:
    frame = _header_with_tags(b"\xff\xff\x7f" + b"\x64\x00" * 3)
    with pytest.raises(MalformedMessage, match="64 are the maximum"):
        parse_request_header(frame, DecodeLimits())


def test_header_with_a_tag_beyond_the_byte_limit_is_refused() -> None:
    frame = _header_with_tags(b"\x01\x64\x81\x80\x04" + bytes(65_537))
    with pytest.raises(MalformedMessage, match="65536 are the maximum"):
        parse_request_header(frame, DecodeLimits())


def test_header_with_many_tags_and_no_limits_is_read_as_apache_reads_it() -> None:
    frame = _header_with_tags(b"\x64" + b"\x64\x00" * 100)
    header, end = parse_request_header(frame)
    assert (header.client_id, end) == ("ab", len(frame))


def test_client_id_that_cannot_be_written_again_is_refused() -> None:
    """An invalid byte of UTF-8 is read as three: no envelope and no record could have it."""
    frame = b"\x00\x12\x00\x00\x00\x00\x00\x07" + (10_923).to_bytes(2, "big") + b"\xff" * 10_923
    with pytest.raises(MalformedMessage, match="32769 bytes, 32767 are the maximum, as UTF-8"):
        parse_request_header(frame, DecodeLimits())
    header, _ = parse_request_header(frame)
    assert header.client_id == "\ufffd" * 10_923
    valid = frame.replace(b"\xff", b"c")
    assert parse_request_header(valid, DecodeLimits())[0].client_id == "c" * 10_923
