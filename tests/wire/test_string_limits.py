"""The longest string of the protocol, 32,767 bytes: read by both codecs, and not a byte more."""

import pytest

from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.describe_groups import DescribeGroupsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.message import MalformedMessage
from kraft_wire.wire.primitives import encode_unsigned_varint

LONGEST = 32_767


def compact(size: int) -> bytes:
    return encode_unsigned_varint(size + 1) + b"a" * size


def classic(size: int) -> bytes:
    return size.to_bytes(2, "big") + b"a" * size


@pytest.mark.parametrize("size", [LONGEST - 1, LONGEST])
def test_longest_string_is_read(size: int) -> None:
    request, _ = ApiVersionsRequest.decode(compact(size) + compact(1) + b"\0", 3)
    assert request.client_software_name == "a" * size
    coordinator, _ = FindCoordinatorRequest.decode(classic(size), 0)
    assert coordinator.key == "a" * size
    groups, _ = DescribeGroupsRequest.decode(b"\2" + compact(size) + b"\0\0", 5)
    assert groups.groups == ["a" * size]


@pytest.mark.parametrize("size", [LONGEST + 1, 70_000, 3_000_000])
def test_longer_compact_string_is_refused(size: int) -> None:
    with pytest.raises(
        MalformedMessage, match=f"string of {size} bytes, {LONGEST} are the maximum"
    ):
        ApiVersionsRequest.decode(compact(size) + compact(1) + b"\0", 3)
    with pytest.raises(
        MalformedMessage, match=f"string of {size} bytes, {LONGEST} are the maximum"
    ):
        DescribeGroupsRequest.decode(b"\2" + compact(size) + b"\0\0", 5)


def test_longer_classic_string_has_a_negative_length() -> None:
    with pytest.raises(MalformedMessage, match="never null"):
        FindCoordinatorRequest.decode(classic(LONGEST + 1), 0)
