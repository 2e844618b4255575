"""What cannot be decoded is refused with a word that can be counted, the field and the byte."""

import struct

import pytest

from kraft_wire.node.event_log import EventLog
from kraft_wire.node.outputs import Peer, Rejection
from kraft_wire.node.requests.decoding import Answered, RequestDecoder
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest
from kraft_wire.wire.generated.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kraft_wire.wire.generated.describe_acls import DescribeAclsRequest
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.message import DecodeLimits, Message

SERVED = {0: (3, 13), 3: (0, 13), 18: (0, 4)}
ACL_DECODER = RequestDecoder({29: (1, 3), 30: (1, 3), 31: (1, 3)}, DecodeLimits())
ANY_ENTRY = {
    "resource_type_filter": 1,
    "pattern_type_filter": 1,
    "operation": 1,
    "permission_type": 1,
}
DECODER = RequestDecoder(SERVED, DecodeLimits(elements=1_000, tagged_fields=4, tagged_bytes=100))


def frame(api_key: int, version: int, body: bytes, *, tags: bytes = b"") -> bytearray:
    return bytearray(struct.pack(">hhih", api_key, version, 7, 1) + b"c" + tags + body)


def test_a_request_is_decoded_with_what_follows_it() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    decoded = DECODER.decode(frame(3, 8, request.encode(8) + b"xyz"))
    assert isinstance(decoded, tuple)
    header, found, trailing_bytes = decoded
    assert header.client_id == "c"
    assert found == request
    assert trailing_bytes == 3


@pytest.mark.parametrize(
    ("bad", "api", "field", "byte", "reason"),
    [
        (bytearray(8), "-", "client_id", 8, "truncated"),
        (frame(99, 0, b""), "99", "-", -1, "api_not_served"),
        (frame(3, 14, b"", tags=b"\0"), "Metadata", "-", -1, "version_not_served"),
        (
            frame(3, 1, struct.pack(">i", 2_000_000)),
            "Metadata",
            "topics",
            15,
            "array_count_exceeds_remaining",
        ),
        (
            frame(3, 1, struct.pack(">i", 2_000) + struct.pack(">h", 0) * 2_000),
            "Metadata",
            "topics",
            15,
            "object_budget_exceeded",
        ),
        (frame(3, 1, struct.pack(">ih", 1, 5) + b"ab"), "Metadata", "topics[0].name", 17, None),
        (frame(3, 1, b"\0\0"), "Metadata", "topics", 11, "truncated"),
        (frame(3, 12, b"", tags=b"\x05"), "-", "tagged_fields", 11, "tagged_fields_exceeded"),
    ],
)
def test_a_frame_is_refused_with_a_named_reason(
    bad: bytearray, api: str, field: str, byte: int, reason: str | None
) -> None:
    refused = DECODER.decode(bad)
    assert isinstance(refused, Rejection)
    assert (refused.api, refused.field, refused.byte) == (api, field, byte)
    if reason is not None:
        assert refused.reason == reason


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (DescribeAclsRequest(**ANY_ENTRY | {"operation": 0}), "operation"),
        (DescribeAclsRequest(**ANY_ENTRY), None),
        (
            DeleteAclsRequest(
                filters=[
                    DeleteAclsFilter(**ANY_ENTRY),
                    DeleteAclsFilter(**ANY_ENTRY | {"pattern_type_filter": 0}),
                ]
            ),
            "filters[1].pattern_type_filter",
        ),
        (
            CreateAclsRequest(creations=[AclCreation(resource_type=2, operation=3)]),
            "creations[0].permission_type",
        ),
    ],
)
def test_a_code_of_zero_is_refused_as_apaches_classes_refuse_it(
    request_: Message, field: str | None, version: int
) -> None:
    tags = b"\0" if version >= type(request_).FLEXIBLE_FROM else b""
    found = ACL_DECODER.decode(
        frame(request_.API_KEY, version, request_.encode(version), tags=tags)
    )
    if field is None:
        assert isinstance(found, tuple)
    else:
        assert isinstance(found, Rejection)
        assert (found.reason, found.field, found.client_id) == ("unknown_code", field, "c")


def test_an_unknown_api_versions_version_is_answered() -> None:
    answer = DECODER.decode(frame(18, 77, b"", tags=b"\0"))
    assert isinstance(answer, Answered)
    assert answer.body == struct.pack(">hihhh", 35, 1, 18, 0, 4)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_old_produce_is_refused_partition_by_partition(version: int) -> None:
    """Records have any size, null among them, and several topics follow each other."""
    times = struct.pack(">q", -1) if version == 2 else b""
    body, expected = struct.pack(">hii", 1, 5, 2), struct.pack(">i", 2)
    for name, sizes in ((b"a", (70, -1, 3)), (b"bc", (0, 200))):
        head = struct.pack(">h", len(name)) + name + struct.pack(">i", len(sizes))
        body, expected = body + head, expected + head
        for index, size in enumerate(sizes):
            body += struct.pack(">ii", index, size) + b"\xfe" * max(size, 0)
            expected += struct.pack(">ihq", index, 35, -1) + times
    answer = DECODER.decode(frame(0, version, body))
    assert isinstance(answer, Answered)
    assert answer.body == expected + (struct.pack(">i", 0) if version else b"")


def test_an_old_produce_that_is_cut_is_refused() -> None:
    for size in range(4, 24):
        body = struct.pack(">hiihsii", 1, 5, 1, 1, b"t", 1, 0)[:size]
        assert isinstance(DECODER.decode(frame(0, 0, body)), Rejection), size


def test_a_refusal_is_one_line_and_a_flood_of_them_is_counted() -> None:
    lines: list[str] = []
    log, peer = EventLog(lines.append), Peer(1, "10.0.0.9", 53114, "EXTERNAL")
    refused = Rejection(
        "truncated", "Fetch", 18, 7, "topics[0]", 23, [("declared", "2 m")], "a client\n"
    )
    for _ in range(25):
        log.rejected(peer, refused, 1_000)
    assert lines[0] == (
        "WARN network rejected client=10.0.0.9:53114 listener=EXTERNAL principal=- api=Fetch "
        "version=18 correlation=7 field=topics[0] byte=23 reason=truncated declared=2_m "
        "client_id=a_client_ action=close\n"
    )
    assert len(lines) == 10
    log.rejected(peer, refused, 2_000)
    assert lines[10] == (
        "WARN network rejected_suppressed client=10.0.0.9 reason=truncated count=15\n"
    )
    assert log.rejections == {"truncated": 26}


def test_a_flood_hides_neither_another_reason_nor_another_address() -> None:
    lines: list[str] = []
    log = EventLog(lines.append)
    for number in range(3_000):
        log.rejected(Peer(number, "10.0.0.9", 1, "L"), Rejection("connection_rate_exceeded"), 1_000)
    log.rejected(Peer(3_000, "10.0.0.9", 1, "L"), Rejection("handshake_timeout"), 1_001)
    log.rejected(Peer(3_001, "10.0.0.8", 1, "L"), Rejection("connection_rate_exceeded"), 1_002)
    assert len(lines) == 12
    assert " reason=handshake_timeout " in lines[10]
    assert lines[11].startswith("WARN network rejected client=10.0.0.8:1 ")


def test_addresses_beyond_the_bound_share_their_lines_by_reason() -> None:
    lines: list[str] = []
    log = EventLog(lines.append)
    for number in range(2_000):
        log.rejected(Peer(number, f"10.0.{number}", 1, "L"), Rejection("frame_too_large"), 1_000)
    assert len(lines) == 1_024 + 10
    log.rejected(Peer(2_000, "10.1.1.1", 1, "L"), Rejection("handshake_timeout"), 1_999)
    assert " reason=handshake_timeout " in lines[-1]
    log.rejected(Peer(2_001, "10.1.1.1", 1, "L"), Rejection("handshake_timeout"), 2_000)
    assert lines[-2] == (
        "WARN network rejected_suppressed client=* reason=frame_too_large count=966\n"
    )
