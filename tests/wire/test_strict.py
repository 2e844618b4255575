"""Strict mode and the dissector: what was let pass, and which bytes are which field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_wire.wire.dissect import dissect, dissect_frame
from kraft_wire.wire.generated.registry import MESSAGES, message_table
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record, append_record
from kraft_wire.wire.strict import message_findings, records_findings
from tests.golden.vectors import CORPUS, read_vectors
from tests.wire.odd_batches import batch_around, checked, gzip_of, old_message

TOPIC = "TopicRecord"
TOPIC_BYTES = b"\x02t" + bytes(16)


def found(name: str, version: int, data: bytes) -> list[str]:
    table = message_table(name)
    return [f"{each.field}: {each.what}" for each in message_findings(table, data, version)]


def test_messages_that_apache_wrote_have_no_findings() -> None:
    for kind in ("request", "response", "request_header", "metadata_record"):
        for file in sorted((CORPUS / kind).glob("*.jsonl")):
            for vector in read_vectors(file):
                if vector.canonical and not vector.malformed:
                    data = bytes.fromhex(vector.hex)
                    assert found(vector.name, vector.version, data) == []


@pytest.mark.parametrize(
    ("name", "version", "hex_text", "finding"),
    [
        ("HeartbeatRequest", 0, "0000 00000000 0000 ff", "1 bytes after the message"),
        ("SaslHandshakeRequest", 0, "0002 c3ff", "malformed UTF-8"),
        ("ListOffsetsRequest", 2, "00000000 00 ffffff00", "length -256 for null"),
        ("AlterClientQuotasRequest", 0, "00000000 02", "boolean is 2"),
    ],
)
def test_oddities_of_plain_fields_are_found(
    name: str, version: int, hex_text: str, finding: str
) -> None:
    if name == "ListOffsetsRequest":
        name, version, hex_text = "MetadataRequest", 1, "ffffff00"
    assert any(finding in each for each in found(name, version, bytes.fromhex(hex_text)))


def with_tags(hex_text: str) -> list[str]:
    return found(TOPIC, 0, TOPIC_BYTES + bytes.fromhex(hex_text))


def test_oddities_of_tag_sections_are_found() -> None:
    assert with_tags("02 0501aa 0601bb") == []
    assert with_tags("02 0501aa 0501bb") == ["tag[5].tag: tag 5 is repeated"]
    assert with_tags("02 0501aa 0401bb") == ["tag[4].tag: tag 4 after tag 5"]
    assert with_tags("8000") == ["tagged_fields.count: varint of 2 bytes where 1 are enough"]
    assert with_tags("ffffffff0f") == ["tagged_fields.count: -1 tagged fields"]
    assert with_tags("01 858000 8100aa") == [
        "tag[5].tag: varint of 3 bytes where 1 are enough",
        "tag[5].size: varint of 2 bytes where 1 are enough",
    ]


def test_overlong_length_of_a_compact_string_is_found() -> None:
    data = b"\x82\x00t" + bytes(16) + b"\0"
    assert found(TOPIC, 0, data) == ["name.length: varint of 2 bytes where 1 are enough"]


def test_size_of_a_known_tag_that_its_value_does_not_take_is_found() -> None:
    body = bytes.fromhex("ffffffff 00000000 00000000 7fffffff 00 00000000 ffffffff 01 01 01")
    good = body + bytes.fromhex("01 00 02 0263")
    assert found("FetchRequest", 12, good) == []
    assert found("FetchRequest", 12, body + bytes.fromhex("01 00 05 0263")) == [
        "cluster_id: size 5, but the value takes 2 bytes"
    ]
    assert found("FetchRequest", 12, body + bytes.fromhex("02 00 05 0263 0900")) == [
        "cluster_id: size 5, but the value takes 2 bytes"
    ]


def test_record_of_a_later_version_is_found() -> None:
    assert found("NoOpRecord", 5, b"\0") == ["NoOpRecord: version 5 is not in the schema"]


def test_oddities_of_batches_are_found() -> None:
    plain = bytes(build_batch([Record(b"k"), Record(b"l")]))
    body = bytearray()
    append_record(body, 1, 0, None, None)
    append_record(body, 1, 0, None, None)
    body[1] = 7  # the attributes of the first record
    odd = {
        plain + plain[:20]: "20 bytes of a batch that is cut",
        batch_around(0, b"body", 0): "no records, but 4 bytes of body",
        checked(plain[:21] + b"\x80\x00" + plain[23:]): "attributes -0x8000 have unknown bits",
        checked(plain[:26] + b"\0" + plain[27:]): "last offset 1, but the header says 0",
        batch_around(0, bytes(body), 2): "attributes 0x7",
        old_message(0, 1, 1, None, gzip_of(old_message(0, 1, 0, None, b"", crc=1))): "inner",
    }
    for good in (plain, bytes(build_batch([])), old_message(0, 1, 0, None, b"")):
        assert list(records_findings(good)) == []
    for data, finding in odd.items():
        assert finding in " ".join(each.what for each in records_findings(data))
    offsets = [each.what for each in records_findings(batch_around(0, bytes(body), 2))]
    assert "offset 1 after 1" in offsets


def test_dissection_covers_every_byte_once() -> None:
    data = TOPIC_BYTES + bytes.fromhex("01 0502aabb") + b"rest"
    dissection = dissect(message_table(TOPIC), data, 0)
    assert dissection.error is None
    assert b"".join(data[piece.start : piece.end] for piece in dissection.pieces) == data
    paths = [piece.path for piece in dissection.pieces]
    assert paths == [
        *("name.length", "name", "topic_id", "tagged_fields.count", "tag[5].tag", "tag[5].size"),
        *("tag[5]", ""),
    ]


def test_dissection_of_two_unknown_tags_names_both_contents() -> None:
    data = TOPIC_BYTES + bytes.fromhex("02 0501aa 0601bb")
    paths = [piece.path for piece in dissect(message_table(TOPIC), data, 0).pieces]
    assert paths[-6:] == [
        "tag[5].tag",
        "tag[5].size",
        "tag[5]",
        "tag[6].tag",
        "tag[6].size",
        "tag[6]",
    ]


def test_dissection_of_a_broken_message_ends_at_the_break() -> None:
    dissection = dissect(message_table(TOPIC), b"\x02t" + bytes(7), 0)
    assert dissection.error is not None
    assert (dissection.error.field, dissection.error.byte) == ("topic_id", 2)
    assert [piece.path for piece in dissection.pieces] == ["name.length", "name", ""]
    empty = dissect(message_table(TOPIC), b"", 0)
    assert (empty.pieces, empty.error is not None) == ([], True)


def test_frame_is_dissected_into_size_header_and_body() -> None:
    table = message_table("ApiVersionsRequest")
    data = bytes.fromhex("0000000f 0012 0003 00000007 0002 6162 00" + "0261 0262 00")
    paths = [piece.path for piece in dissect_frame(table, data, 3).pieces]
    assert paths[:3] == ["size", "header.request_api_key", "header.request_api_version"]
    assert paths[-2:] == ["client_software_version", "tagged_fields.count"]
    answer = dissect_frame(
        message_table("ApiVersionsResponse"), bytes.fromhex("00000009 00000007"), 3
    )
    assert [piece.path for piece in answer.pieces] == ["size", "header.correlation_id"]
    assert answer.error is not None
    assert answer.error.byte == 8


def test_frame_that_is_cut_before_its_body_ends_in_an_error() -> None:
    table = message_table("ApiVersionsRequest")
    for data in (b"", b"\0\0", b"\0\0\0\x09\0\x12\0"):
        frame = dissect_frame(table, data, 0)
        assert frame.error is not None
    assert [(piece.start, piece.end) for piece in frame.pieces] == [(0, 4), (4, 6), (6, 7)]
    whole_header_missing = dissect_frame(table, b"\0\0\0\0", 0)
    assert [piece.path for piece in whole_header_missing.pieces] == ["size"]


@given(st.binary(max_size=60), st.sampled_from(sorted(MESSAGES)), st.data())
def test_any_bytes_of_any_message_are_dissected_without_gaps(
    data: bytes, name: str, draw: st.DataObject
) -> None:
    table = message_table(name)
    version = draw.draw(st.integers(table.min_version, table.max_version))
    dissection = dissect(table, data, version)
    assert b"".join(data[piece.start : piece.end] for piece in dissection.pieces) == data
    if dissection.error is None:
        message_findings(table, data, version)
