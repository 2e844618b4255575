"""A string of bytes that are no UTF-8, which would be too long to be written again."""

import pytest

from kraft_wire.wire.generated.join_group import JoinGroupRequest
from kraft_wire.wire.message import DecodeLimits, MalformedMessage

SIZE_THAT_FITS = 32_767 // 3


def frame(size: int, version: int) -> bytes:
    return JoinGroupRequest(protocol_type="Q" * size).encode(version).replace(b"Q", b"\xff")


@pytest.mark.parametrize("version", [2, 9])
def test_string_that_outgrows_its_type_is_refused_from_a_peer_only(version: int) -> None:
    data = frame(SIZE_THAT_FITS + 1, version)
    read, end = JoinGroupRequest.decode(data, version)
    assert (read.protocol_type, end) == ("\ufffd" * (SIZE_THAT_FITS + 1), len(data))
    with pytest.raises(MalformedMessage, match=r"protocol_type .* string of 32769"):
        JoinGroupRequest.decode(data, version, 0, DecodeLimits())


@pytest.mark.parametrize("version", [2, 9])
def test_string_that_just_fits_is_taken_and_can_be_written(version: int) -> None:
    data = frame(SIZE_THAT_FITS, version)
    read, _ = JoinGroupRequest.decode(data, version, 0, DecodeLimits())
    assert JoinGroupRequest.decode(read.encode(version), version)[0] == read
