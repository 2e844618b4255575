"""The reference codec: what it tells a visitor, and how it treats defaults."""

import pytest

from kraft_wire.wire.defaults import default_value, is_default
from kraft_wire.wire.generated.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from kraft_wire.wire.generated.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from kraft_wire.wire.generated.fetch import EpochEndOffset
from kraft_wire.wire.generated.registry import message_table
from kraft_wire.wire.message import MalformedMessage
from kraft_wire.wire.schema import FieldTable, includes
from kraft_wire.wire.walker import decode_slowly


def field_of(message: str, *path: str) -> FieldTable:
    """Find a field by its path."""
    struct = message_table(message).struct
    for name in path[:-1]:
        inner = next(field for field in struct.fields if field.name == name).struct
        assert inner is not None
        struct = inner
    return next(field for field in struct.fields if field.name == path[-1])


def test_visitor_is_told_every_primitive_in_wire_order_up_to_the_break() -> None:
    seen: list[tuple[str, int, int, object]] = []

    def visit(path: str, start: int, end: int, value: object) -> None:
        seen.append((path, start, end, value))

    data = bytes.fromhex("0267 00000001 026d 00 01 05 02 abcd")
    table = message_table("HeartbeatRequest")
    decode_slowly(table, data, 4, visit=visit)
    whole = [
        ("group_id.length", 0, 1, 1),
        ("group_id", 1, 2, "g"),
        ("generation_id", 2, 6, 1),
        ("member_id.length", 6, 7, 1),
        ("member_id", 7, 8, "m"),
        ("group_instance_id.length", 8, 9, -1),
        ("tagged_fields.count", 9, 10, 1),
        ("tag[5].tag", 10, 11, 5),
        ("tag[5].size", 11, 12, 2),
        ("tag[5]", 12, 14, b"\xab\xcd"),
    ]
    assert seen == whole
    seen.clear()
    with pytest.raises(MalformedMessage):
        decode_slowly(table, data[:7], 4, visit=visit)
    assert seen == whole[:4]


def test_visitor_is_told_counts_markers_and_known_tags() -> None:
    seen: dict[str, object] = {}
    value = ConsumerGroupMemberMetadataValue(
        subscribed_topic_names=["a"],
        classic_member_metadata=ClassicMemberMetadata(session_timeout_ms=9),
    )
    table = message_table("ConsumerGroupMemberMetadataValue")
    decode_slowly(
        table, value.encode(0), 0, visit=lambda path, start, end, told: seen.update({path: told})
    )
    assert seen["subscribed_topic_names.length"] == 1
    assert seen["subscribed_topic_names[0]"] == "a"
    assert seen["classic_member_metadata.tag"] == 0
    assert seen["classic_member_metadata.present"] == 1
    assert seen["classic_member_metadata.session_timeout_ms"] == 9


@pytest.mark.parametrize(
    ("marker", "present"), [(0xFF, False), (0x80, False), (1, True), (0, True)]
)
def test_marker_of_a_nullable_struct_is_null_when_negative(marker: int, present: bool) -> None:
    response = ConsumerGroupHeartbeatResponse(assignment=Assignment() if present else None)
    data = bytearray(response.encode(0))
    at = len(data) - (4 if present else 2)
    assert data[at] == (1 if present else 0xFF)
    data[at] = marker
    assert ConsumerGroupHeartbeatResponse.decode(data, 0) == (response, len(data))


@pytest.mark.parametrize("marker", [b"\x00", b"\xff\xff\xff\xff\x0f"])
def test_marker_of_a_tagged_nullable_struct_is_null_when_not_positive(marker: bytes) -> None:
    default = ConsumerGroupMemberMetadataValue()
    data = default.encode(0)
    assert default.classic_member_metadata == ClassicMemberMetadata()
    assert ConsumerGroupMemberMetadataValue.decode(data, 0) == (default, len(data))
    tagged = data[:-1] + b"\x01\x00" + bytes([len(marker)]) + marker
    decoded, end = ConsumerGroupMemberMetadataValue.decode(tagged, 0)
    assert decoded.classic_member_metadata is None
    assert end == len(tagged)
    assert decoded.encode(0) == data[:-1] + b"\x01\x00\x01\x00"
    decoded.unknown_tagged_fields = [(9, b"")]  # by the reference codec, likewise
    assert decoded.encode(0) == data[:-1] + b"\x02\x00\x01\x00\x09\x00"
    decoded.classic_member_metadata = ClassicMemberMetadata(session_timeout_ms=1)
    assert decoded.encode(0).endswith(b"\x02\x00\x07\x01\x00\x00\x00\x01\x01\x00\x09\x00")


def test_default_of_a_tagged_struct_is_none_or_a_struct_of_defaults() -> None:
    field = field_of("FetchResponse", "responses", "partitions", "diverging_epoch")
    assert default_value(field, message_table("FetchResponse")) is None
    assert is_default(field, None)
    assert is_default(field, EpochEndOffset())
    assert not is_default(field, EpochEndOffset(epoch=3))
    assert not is_default(field, EpochEndOffset(unknown_tagged_fields=[(1, b"")]))


def test_default_of_arrays_and_nullable_fields() -> None:
    aborted = field_of("FetchResponse", "responses", "partitions", "aborted_transactions")
    assert is_default(aborted, [])
    assert not is_default(aborted, None)
    isr = field_of("PartitionChangeRecord", "isr")
    assert is_default(isr, None)
    assert not is_default(isr, [])
    instance = field_of("HeartbeatRequest", "group_instance_id")
    assert is_default(instance, None)
    assert not is_default(instance, "")


def test_default_value_of_an_untagged_struct_is_fresh() -> None:
    field = field_of("FetchSnapshotRequest", "topics", "partitions", "snapshot_id")
    table = message_table("FetchSnapshotRequest")
    first, second = default_value(field, table), default_value(field, table)
    assert first == second
    assert first is not second


def test_ranges_are_inclusive() -> None:
    assert includes((1, 3), 1)
    assert includes((1, 3), 3)
    assert not includes((0, -1), 0)


def test_version_that_does_not_exist_is_refused() -> None:
    table = message_table("RegisterBrokerRecord")
    assert table.kind == "metadata_record"
    with pytest.raises(MalformedMessage, match="is outside"):
        decode_slowly(table, b"", -1)
