"""Generated messages: fast and reference codec agree, on good bytes and on bad ones.

What is accepted and refused follows Apache's generated readers; the hand-made cases name the
behaviour that was observed there.
"""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.model import ZERO_UUID, FileSlice
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kraft_wire.wire.generated.heartbeat import HeartbeatRequest
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.no_op_record import NoOpRecord
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.generated.registry import (
    MESSAGES,
    METADATA_RECORDS,
    REQUESTS,
    RESPONSES,
    message_class,
    message_table,
    metadata_record_class,
    request_class,
    response_class,
)
from kraft_wire.wire.generated.topic_record import TopicRecord
from kraft_wire.wire.message import (
    FAILURES,
    DecodeLimits,
    MalformedMessage,
    Message,
    UnencodableMessage,
)
from kraft_wire.wire.table_writer import encode_slowly
from kraft_wire.wire.walker import decode_slowly
from tests.wire.random_messages import random_message


def fast_encode(message: Message, version: int) -> bytes:
    """Encode by the generated function alone."""
    parts: list[Any] = []
    message._encoders[version](message, parts.append)
    return b"".join(parts)


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_generated_functions_agree_with_the_reference_codec(name: str) -> None:
    entry, table = MESSAGES[name], message_table(name)
    found = message_class(name)
    random = Random(name)
    for version in range(entry.min_version, entry.max_version + 1):
        for _ in range(2):
            message = random_message(table, version, random)
            data = fast_encode(message, version)
            assert data == b"".join(encode_slowly(message, table, version))  # type: ignore[arg-type]  # bytes all
            assert found._decoders[version](data, 0) == (message, len(data))
            assert found._decoders[version](memoryview(b"?" + data), 1) == (message, len(data) + 1)
            assert decode_slowly(table, data, version) == (message, len(data))
            assert message.encode(version) == data
            check_mutations(found, version, data, random)


def check_mutations(found: type[Message], version: int, data: bytes, random: Random) -> None:
    """Damaged bytes: what the generated function accepts, the reference codec reads alike."""
    for _ in range(3 if 0 < len(data) < 3000 else 0):
        damaged = bytearray(data)
        for _ in range(random.choice([1, 1, 2, 5])):
            damaged[random.randrange(len(data))] = random.choice([0, 1, 127, 128, 255])
        damaged = damaged[: random.choice([len(data), len(data), random.randrange(len(data) + 1)])]
        try:
            fast = found._decoders[version](bytes(damaged), 0)
        except FAILURES:
            fast = None
        try:
            value, end = found.decode(bytes(damaged), version)
        except MalformedMessage:
            assert fast is None
            continue
        assert end <= len(damaged)
        if fast is not None and "nan" not in repr(value):
            assert decode_slowly(message_table(found.NAME), bytes(damaged), version) == fast


@settings(max_examples=300, deadline=None)
@given(
    name=st.sampled_from(sorted(MESSAGES)),
    data=st.binary(max_size=200),
    step=st.integers(min_value=0, max_value=20),
)
def test_any_bytes_give_a_message_or_the_declared_error(name: str, data: bytes, step: int) -> None:
    entry = MESSAGES[name]
    version = entry.min_version + step % (entry.max_version - entry.min_version + 1)
    try:
        message, end = message_class(name).decode(data, version, limits=DecodeLimits())
    except MalformedMessage as caught:
        error = caught
    else:
        assert 0 <= end <= len(data)
        assert isinstance(message, message_class(name))
        return
    assert error.field
    assert 0 <= error.byte <= len(data)


HEARTBEAT = "0267 00000001 026d 00 00"

REFUSED = [
    (HeartbeatRequest, 4, "0267 00000001 026d 00", "tagged_fields", 9, "truncated"),
    (HeartbeatRequest, 4, "0267 000000", "generation_id", 2, "needs 4 bytes, 3 remain"),
    (HeartbeatRequest, 4, "00 00000001 026d 00 00", "group_id", 1, "null"),
    (HeartbeatRequest, 4, "7f67", "group_id", 1, "126 bytes are declared, 1 remain"),
    (HeartbeatRequest, 4, "ffffffffff0f", "group_id", 0, "longer than 5 bytes"),
    (HeartbeatRequest, 4, "ffff0367", "group_id", 3, "65534 bytes, 32767 are the maximum"),
    (HeartbeatRequest, 0, "ffff", "group_id", 2, "null"),
    (HeartbeatRequest, 4, "0267 00000001 026d 00 01 05 7f 00", "tag[5]", 12, "declared"),
    (HeartbeatRequest, 4, "0267 00000001 026d 00 01 05 ffffffff0f", "tag[5]", 16, "negative size"),
    (MetadataRequest, 12, "ffffffff07 00 00", "topics", 5, "2147483646 elements are declared"),
    (MetadataRequest, 0, "00000003 0001", "topics", 4, "3 elements are declared, 2 bytes"),
    (MetadataRequest, 0, "00000001 ffff", "topics[0].name", 6, "null"),
    (MetadataRequest, 0, "ffffffff", "topics", 4, "null"),
]


@pytest.mark.parametrize(("found", "version", "data", "field", "byte", "reason"), REFUSED)
def test_what_apache_refuses_names_field_and_byte(
    found: type[Message], version: int, data: str, field: str, byte: int, reason: str
) -> None:
    with pytest.raises(MalformedMessage) as caught:
        found.decode(bytes.fromhex(data), version)
    assert (caught.value.field, caught.value.byte) == (field, byte)
    assert reason in caught.value.reason
    assert str(caught.value) == f"{field} at byte {byte}: {caught.value.reason}"


def test_known_tag_of_another_version_is_refused() -> None:
    data = FetchRequest().encode(12)
    with pytest.raises(MalformedMessage) as caught:
        FetchRequest.decode(data[:-1] + b"\x01\x01\x01\x00", 12)
    assert caught.value.field == "replica_state"
    assert caught.value.reason == "tag 1 is not valid for version 12"


def test_error_inside_nested_arrays_names_the_whole_path() -> None:
    partition = FetchPartition(partition=1)
    topics = [FetchTopic(topic=f"t{n}", partitions=[partition] * 3) for n in range(4)]
    data = FetchRequest(topics=topics).encode(12)
    cut = data[: data.index(b"t3") + 2 + 1 + 2 * 33 + 10]
    with pytest.raises(MalformedMessage) as caught:
        FetchRequest.decode(cut, 12)
    assert caught.value.field == "topics[3].partitions[2].fetch_offset"
    assert caught.value.byte == len(cut) - 2


ACCEPTED: list[tuple[str, dict[str, object]]] = [
    (HEARTBEAT + "ffff", {"group_id": "g", "member_id": "m"}),  # trailing bytes
    ("02ff 00000001 026d 00 00", {"group_id": "\ufffd"}),  # invalid UTF-8
    ("04eda080 00000001 026d 00 00", {"group_id": "\ufffd"}),  # an encoded surrogate is one
    ("03e082 00000001 026d 00 00", {"group_id": "\ufffd\ufffd"}),
    ("8280808000 67 00000001 026d 00 00", {"group_id": "g"}),  # overlong varint
    ("0267 00000001 026d 8080808030 00", {"group_instance_id": None}),  # bits beyond the 32nd
    ("0267 00000001 026d ffffffff0f 00", {"group_instance_id": None}),  # any negative is null
    ("0267 00000001 026d 00 ffffffff0f", {"unknown_tagged_fields": None}),  # count -1 is none
    (
        "0267 00000001 026d 00 03 0901aa 0301bb 0901cc",  # duplicate and unordered
        {"unknown_tagged_fields": [(9, b"\xaa"), (3, b"\xbb"), (9, b"\xcc")]},
    ),
    (
        "0267 00000001 026d 00 01 ffffffff0f 01aa",  # negative
        {"unknown_tagged_fields": [(-1, b"\xaa")]},
    ),
]


@pytest.mark.parametrize(("data", "values"), ACCEPTED)
def test_what_apache_lets_pass_is_accepted(data: str, values: dict[str, object]) -> None:
    request, _ = HeartbeatRequest.decode(bytes.fromhex(data), 4)
    for name, value in values.items():
        assert getattr(request, name) == value


def test_size_of_a_known_tag_is_not_used() -> None:
    request = FetchRequest(cluster_id="c")
    data = request.encode(12)
    at = data.index(b"\x00\x02\x02c")
    lying = data[:at] + b"\x00\x63\x02c" + data[at + 4 :]
    assert FetchRequest.decode(lying, 12) == (request, len(data))


def test_bool_byte_other_than_0_and_1_is_true() -> None:
    data = bytes.fromhex("00 07 00 00")
    request, _ = MetadataRequest.decode(data, 12)
    assert request.allow_auto_topic_creation is True


def test_metadata_record_above_the_known_versions_is_read_while_no_struct_is_inside() -> None:
    record = TopicRecord(name="t", topic_id=ZERO_UUID)
    assert TopicRecord.decode(record.encode(0), 5) == (record, len(record.encode(0)))
    assert NoOpRecord.decode(b"\x00", 9) == (NoOpRecord(), 1)
    with pytest.raises(MalformedMessage, match="version 9 is outside 0 to 4"):
        HeartbeatRequest.decode(b"", 9)
    with pytest.raises(UnencodableMessage, match="the version is outside 0 to 0"):
        record.encode(1)
    found = message_class("RegisterBrokerRecord")
    data = b"\x00" * 4 + b"\x00" + b"\x00" * 16 + b"\x00" * 8 + b"\x02" + b"\x00" * 40
    with pytest.raises(MalformedMessage, match=r"end_points\[0\].*not known"):
        found.decode(data, 9)


def test_unknown_tags_are_written_back_in_tag_order() -> None:
    request = FetchRequest(cluster_id="c", unknown_tagged_fields=[(9, b"z"), (5, b"y")])
    data = request.encode(12)
    assert data.endswith(bytes.fromhex("03 00 02 02 63 05 01 79 09 01 7a"))
    decoded, _ = FetchRequest.decode(data, 12)
    assert decoded.cluster_id == "c"
    assert decoded.unknown_tagged_fields == [(5, b"y"), (9, b"z")]
    assert decoded.encode(12) == data


UNENCODABLE = [
    (HeartbeatRequest(group_id=None), 4, "group_id", "never null"),  # type: ignore[arg-type]  # refused
    (HeartbeatRequest(group_id="g" * 32768), 4, "group_id", "32767 are the maximum"),
    (HeartbeatRequest(group_id="g" * 32768), 0, "group_id", "32767 are the maximum"),
    (HeartbeatRequest(group_id=b"g"), 4, "group_id", "bytes is not a string"),  # type: ignore[arg-type]  # refused
    (HeartbeatRequest(generation_id=1 << 31), 4, "generation_id", "is not int32"),
    (HeartbeatRequest(generation_id="1"), 4, "generation_id", "is not int32"),  # type: ignore[arg-type]  # refused
    (HeartbeatRequest(group_instance_id="i"), 2, "group_instance_id", "lacks this field"),
    (HeartbeatRequest(unknown_tagged_fields=[(1, b"")]), 3, "HeartbeatRequest", "not flexible"),
    (
        FetchRequest(topics=[FetchTopic(topic_id=b"short")]),  # type: ignore[arg-type]  # refused
        13,
        "topics[0].topic_id",
        "a uuid is 16 bytes",
    ),
    (FetchRequest(topics=None), 12, "topics", "never null"),  # type: ignore[arg-type]  # refused
    (FetchRequest(topics=3), 12, "topics", "int is not a list"),  # type: ignore[arg-type]  # refused
    (FetchRequest(topics=[None]), 12, "topics[0]", "null in an array"),  # type: ignore[list-item]  # refused
    (FetchRequest(topics=[FetchPartition()]), 12, "topics[0]", "is not a FetchTopic"),  # type: ignore[list-item]  # refused
    (FetchRequest(rack_id="r"), 10, None, ""),
    (FetchRequest(cluster_id="c", unknown_tagged_fields=[(0, b"")]), 12, "FetchRequest", "both"),
    (
        FetchResponse(
            responses=[FetchableTopicResponse(partitions=[PartitionData(records="x")])]  # type: ignore[arg-type]  # refused
        ),
        12,
        "responses[0].partitions[0].records",
        "str is not bytes",
    ),
]


@pytest.mark.parametrize(("message", "version", "field", "reason"), UNENCODABLE)
def test_what_a_version_cannot_carry_names_field_and_version(
    message: Message, version: int, field: str | None, reason: str
) -> None:
    if field is None:  # ignorable: dropped without a word
        assert message.encode(version) == type(message)().encode(version)
        return
    with pytest.raises(UnencodableMessage) as caught:
        message.encode(version)
    assert (caught.value.field, caught.value.version) == (field, version)
    assert reason in caught.value.reason


def test_unpaired_surrogate_is_written_as_a_question_mark() -> None:
    assert HeartbeatRequest(group_id="a\ud800").encode(0).startswith(b"\x00\x02a?")


class OneFile:
    """A file with known content."""

    def pread(self, size_bytes: int, position: int) -> bytes:
        return b"0123456789"[position : position + size_bytes]

    def fileno(self) -> int:
        return -1


def test_records_travel_as_file_slices_and_are_read_only_when_joined() -> None:
    records = FileSlice(OneFile(), 2, 3)
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])
    response = FetchResponse(responses=[topic])
    assert records in response.encode_parts(12)
    data = response.encode(12)
    assert b"\x04234\x00" in data
    decoded, _ = FetchResponse.decode(data, 12)
    assert decoded.responses[0].partitions[0].records == b"234"
    response.unknown_tagged_fields = [(7, b"x")]  # by the reference codec, likewise
    assert records in response.encode_parts(12)
    assert b"\x04234\x00" in response.encode(12)


def test_records_are_slices_of_the_frame_and_small_blobs_are_copies() -> None:
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"r" * 300)])
    frame = bytearray(ProduceRequest(topic_data=[data]).encode(9))
    request, _ = ProduceRequest.decode(frame, 9)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame


def test_elements_are_counted_before_they_are_built() -> None:
    topics = [FetchTopic(topic="", partitions=[FetchPartition()] * 10) for _ in range(3)]
    data = FetchRequest(topics=topics).encode(12)
    assert FetchRequest.decode(data, 12, limits=DecodeLimits(elements=33))[1] == len(data)
    with pytest.raises(MalformedMessage) as caught:
        FetchRequest.decode(data, 12, limits=DecodeLimits(elements=32))
    assert caught.value.field == "topics[2].partitions"
    assert "more than 32 elements" in caught.value.reason


@pytest.mark.parametrize(
    ("tags", "accepted"),
    [
        ([(n, b"") for n in range(64)], True),
        ([(n, b"") for n in range(65)], False),
        ([(9, bytes(65_536))], True),
        ([(9, bytes(65_537))], False),
    ],
)
def test_unknown_tags_are_limited_where_a_server_decodes(
    tags: list[tuple[int, bytes]], accepted: bool
) -> None:
    data = HeartbeatRequest(unknown_tagged_fields=tags).encode(4)
    request, _ = HeartbeatRequest.decode(data, 4)
    assert request.unknown_tagged_fields == tags
    if accepted:
        assert HeartbeatRequest.decode(data, 4, limits=DecodeLimits()) == (request, len(data))
        return
    with pytest.raises(MalformedMessage, match="unknown tagged fields"):
        HeartbeatRequest.decode(data, 4, limits=DecodeLimits())


def test_messages_compare_by_class_and_fields_and_print_themselves() -> None:
    assert FetchTopic(topic="a") == FetchTopic(topic="a")
    assert FetchTopic(topic="a") != FetchTopic(topic="b")
    assert FetchTopic() != FetchPartition()
    assert FetchTopic() != "FetchTopic"
    assert FetchTopic() is not FetchTopic()
    assert FetchTopic().partitions is not FetchTopic().partitions
    with pytest.raises(TypeError, match="unhashable"):
        hash(FetchTopic())
    assert repr(HeartbeatRequest(group_id="g")) == (
        "HeartbeatRequest(group_id='g', generation_id=0, member_id='', group_instance_id=None)"
    )
    assert "unknown_tagged_fields=[(1, b'')]" in repr(
        HeartbeatRequest(unknown_tagged_fields=[(1, b"")])
    )


def test_registry_finds_every_message_by_name_key_and_type() -> None:
    assert request_class(1) is FetchRequest
    assert response_class(1) is FetchResponse
    assert metadata_record_class(2) is TopicRecord
    assert len(REQUESTS) == len(RESPONSES) == 89
    assert len(METADATA_RECORDS) == 26
    for name, entry in MESSAGES.items():
        found, table = message_class(name), message_table(name)
        assert found.__module__ == f"kraft_wire.wire.generated.{entry.module}"
        assert (entry.min_version, entry.max_version) == (found.MIN_VERSION, found.MAX_VERSION)
        assert (table.min_version, table.max_version) == (entry.min_version, entry.max_version)
        assert entry.flexible_from == found.FLEXIBLE_FROM
        assert set(found._decoders) == set(found._encoders)
    unstable = [name for name, entry in MESSAGES.items() if entry.latest_version_unstable]
    assert unstable == ["InitProducerIdRequest"]


def test_error_codes_carry_kafkas_numbers_and_say_whether_to_retry() -> None:
    assert ErrorCode(0) is ErrorCode.NONE
    assert int(ErrorCode.UNKNOWN_SERVER_ERROR) == -1
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert not ErrorCode.TOPIC_ALREADY_EXISTS.retriable


def test_text_of_a_struct_has_unknown_tags_only_if_there_are_any() -> None:
    plain = MetadataRequestTopic(name="t")
    assert repr(plain).startswith("MetadataRequestTopic(")
    assert "unknown_tagged_fields" not in repr(plain)
    plain.unknown_tagged_fields = [(7, b"x")]
    assert "unknown_tagged_fields=[(7, b'x')]" in repr(plain)
