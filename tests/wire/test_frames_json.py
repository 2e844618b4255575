"""The frames around messages and the JSON of batches, in both directions."""

from __future__ import annotations

import pytest

from kraft_wire.wire.frames_json import (
    decode_metadata_frame,
    encode_metadata_frame,
    frame_findings,
    metadata_frame_from_json,
    metadata_frame_to_json,
    record_type_name,
    typed_key_from_json,
    typed_key_to_json,
    versioned_from_json,
    versioned_to_json,
)
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.json_form import InvalidJson, Json
from kraft_wire.wire.message import MalformedMessage

TOPIC = bytes.fromhex("01020004666f6f") + bytes(16) + b"\0"
TOPIC_JSON: dict[str, Json] = {
    "type": "TOPIC_RECORD",
    "version": 0,
    "data": {"name": "foo", "topicId": "A" * 22},
}
KEY = bytes.fromhex("0001000167000174") + b"\0\0\0\1"
KEY_JSON: dict[str, Json] = {"type": "1", "data": {"group": "g", "topic": "t", "partition": 1}}
VALUE = bytes.fromhex("0003") + bytes(8) + b"\xff\xff\xff\xff" + bytes(2) + bytes(8)
VALUE_JSON: dict[str, Json] = {
    "version": "3",
    "data": {"offset": 0, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 0},
}


def test_metadata_frame_goes_to_json_and_back() -> None:
    assert metadata_frame_to_json(TOPIC) == TOPIC_JSON
    assert metadata_frame_from_json(TOPIC_JSON) == TOPIC
    message, version = decode_metadata_frame(TOPIC)
    assert (message, version) == (TopicRecord(name="foo"), 0)
    assert encode_metadata_frame(message, version) == TOPIC


def test_record_type_is_upper_snake_case() -> None:
    assert record_type_name("NoOpRecord") == "NO_OP_RECORD"
    assert record_type_name("ZkMigrationStateRecord") == "ZK_MIGRATION_STATE_RECORD"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"", "frameVersion"),
        (b"\x00" + TOPIC[1:], "frameVersion"),
        (b"\x02" + TOPIC[1:], "frameVersion"),
        (b"\x80\x80\x02" + TOPIC[1:], "frameVersion"),
        (b"\x80\x80\x80\x80\x80\x01" + TOPIC[1:], "frameVersion"),
        (b"\x01\x7f\x00", "type"),
        (b"\x01\x02", "version"),
        (TOPIC[:-1], "TopicRecord|tag|topic_id"),
        (TOPIC + b"\0", "TopicRecord"),
    ],
)
def test_bad_metadata_frame_is_refused_with_field_and_byte(data: bytes, field: str) -> None:
    with pytest.raises(MalformedMessage, match=field):
        decode_metadata_frame(data)


def test_negative_varint_is_cut_to_16_bits_as_in_java() -> None:
    assert metadata_frame_to_json(b"\x81\x80\x80\x80\x08" + TOPIC[1:]) == TOPIC_JSON


@pytest.mark.parametrize(
    "json",
    [
        None,
        {},
        TOPIC_JSON | {"type": "OTHER"},
        TOPIC_JSON | {"type": 5},
        TOPIC_JSON | {"version": "0"},
        TOPIC_JSON | {"version": 9},
        TOPIC_JSON | {"data": None},
    ],
)
def test_bad_json_of_a_frame_is_refused(json: Json) -> None:
    with pytest.raises(InvalidJson):
        metadata_frame_from_json(json)


def test_coordinator_key_goes_to_json_and_back() -> None:
    assert typed_key_to_json("OffsetCommitKey", KEY) == KEY_JSON
    assert typed_key_from_json("OffsetCommitKey", KEY_JSON) == KEY


def test_coordinator_key_of_another_type_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="1 is not the type of GroupMetadataKey"):
        typed_key_to_json("GroupMetadataKey", KEY)
    with pytest.raises(MalformedMessage, match="int16 needs 2 bytes"):
        typed_key_to_json("OffsetCommitKey", b"\0")
    with pytest.raises(InvalidJson, match="not the type"):
        typed_key_from_json("OffsetCommitKey", KEY_JSON | {"type": "2"})


def test_value_behind_its_version_goes_to_json_and_back() -> None:
    assert versioned_to_json("OffsetCommitValue", VALUE) == VALUE_JSON
    assert versioned_from_json("OffsetCommitValue", VALUE_JSON) == VALUE
    assert versioned_from_json("OffsetCommitValue", VALUE_JSON | {"version": 3}) == VALUE


def test_value_of_an_unknown_version_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="version 9"):
        versioned_to_json("OffsetCommitValue", b"\0\x09")
    for version in ("x", "999999", None, 9):
        with pytest.raises(InvalidJson):
            versioned_from_json("OffsetCommitValue", VALUE_JSON | {"version": version})


def test_strict_mode_finds_overlong_varints_of_the_frame() -> None:
    assert frame_findings(TOPIC) == []
    [finding] = frame_findings(b"\x81\x00" + TOPIC[1:])
    assert (finding.field, finding.byte) == ("frameVersion", 0)
    assert "varint of 2 bytes where 1 are enough" in finding.what
