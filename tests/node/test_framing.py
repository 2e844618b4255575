"""Frames are cut alike however their bytes arrive; no length is believed before it is judged."""

import random
import struct

import pytest

from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Rejection
from kraft_wire.server.framing import Framing

LIMITS = ServerLimits(frame_bytes_max=5_000_000, metadata_frame_bytes_max=100_000)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def deliver(framing: Framing, stream: bytes, sizes: list[int]) -> list[bytes]:
    """Hand over a stream in pieces, as a host does, and return the frames."""
    frames = []
    position = 0
    for size in sizes:
        piece = stream[position : position + size]
        while piece:
            room = framing.room()
            if room is None:
                framing.feed(memoryview(bytearray(piece)))
                piece = b""
            else:
                with room:
                    taken = min(len(room), len(piece))
                    room[:taken] = piece[:taken]
                framing.filled(taken)
                piece = piece[taken:]
            while (frame := framing.next_frame()) is not None:
                assert isinstance(frame, bytearray), frame
                frames.append(bytes(frame))
            framing.hold()
        position += size
    return frames


@pytest.mark.parametrize("seed", range(30))
def test_frames_are_the_same_in_any_chunking(seed: int) -> None:
    random_source = random.Random(seed)
    payloads = [bytes([index]) * random_source.choice([8, 9, 50, 3000]) for index in range(12)]
    stream = b"".join(map(framed, payloads))
    sizes = []
    while sum(sizes) < len(stream):
        sizes.append(random_source.choice([1, 2, 3, 5, 40, 4000]))
    framing = Framing(LIMITS)
    assert deliver(framing, stream, sizes) == payloads
    assert not framing.has_begun


def test_a_large_produce_frame_is_received_in_place_into_memory_that_grows() -> None:
    payload = b"\0\0" + bytes(range(256)) * 16_000
    framing = Framing(LIMITS)
    framing.feed(memoryview(framed(payload)[:70_000]))
    assert framing.next_frame() is None
    assert framing.room_bytes < len(payload) / 2
    assert deliver(framing, framed(payload)[70_000:], [50_000] * 100) == [payload]
    assert framing.room_bytes == 0


@pytest.mark.parametrize(
    ("size", "api_key", "reason"),
    [
        (-1, b"\0\0", "frame_length_invalid"),
        (0, b"\0\0", "frame_length_invalid"),
        (7, b"\0\0", "frame_length_invalid"),
        (5_000_001, b"\0\0", "frame_too_large"),
        (100_001, b"\0\3", "frame_too_large"),
        (2_147_483_647, b"", "frame_too_large"),
    ],
)
def test_a_length_out_of_bounds_is_refused_before_memory_is_taken(
    size: int, api_key: bytes, reason: str
) -> None:
    framing = Framing(LIMITS)
    framing.feed(memoryview(struct.pack(">i", size) + api_key))
    refused = framing.next_frame()
    assert isinstance(refused, Rejection)
    assert refused.reason == reason
    assert framing.room_bytes == 0


@pytest.mark.parametrize(
    ("size", "api_key", "allowed"),
    [(5_000_001, b"\0\0", 5_000_000), (100_001, b"\0\3", 100_000), (5_000_001, b"", 5_000_000)],
)
def test_too_large_a_frame_is_told_with_its_length_and_the_largest(
    size: int, api_key: bytes, allowed: int
) -> None:
    framing = Framing(LIMITS)
    framing.feed(memoryview(struct.pack(">i", size) + api_key))
    details = (("declared", size), ("allowed", allowed))
    wanted = Rejection("frame_too_large", field="length", byte=0, details=details)
    assert framing.next_frame() == wanted


def test_the_largest_size_waits_for_the_api_key_that_may_use_it() -> None:
    framing = Framing(LIMITS)
    framing.feed(memoryview(struct.pack(">i", 4_000_000)))
    assert framing.next_frame() is None
    framing.hold()
    framing.feed(memoryview(b"\0\0"))
    assert framing.next_frame() is None
    assert framing.room_bytes > 0


@pytest.mark.parametrize("arrived", [2, 10, 50_000, 300_000, 1_500_000])
def test_a_frame_that_only_begins_takes_memory_as_it_arrives(arrived: int) -> None:
    """What is declared costs nothing, two hundred beginnings cost little."""
    framing = Framing(LIMITS)
    sizes = [min(arrived, 10_000)] * (arrived // 10_000 + 1)
    assert deliver(framing, struct.pack(">i", 4_900_000) + bytes(arrived), sizes) == []
    assert framing.room_bytes <= max(64 * 1024, 4 * arrived)


@pytest.mark.parametrize("arrived", [0, 3, 10, 70_000])
def test_bytes_of_a_frame_that_has_not_come_whole_are_counted(arrived: int) -> None:
    """By these a node finds connections that send too slowly."""
    framing = Framing(LIMITS)
    begun = struct.pack(">i", 4_900_000) + bytes(80_000)
    assert deliver(framing, framed(bytes(9)) + begun[:arrived], [13, arrived]) == [bytes(9)]
    size_bytes = 4 if arrived > 4 else 0  # which are not kept once they are all there
    assert framing.held_bytes == arrived - size_bytes
    assert framing.has_begun == (arrived > 0)


def test_before_a_login_memory_follows_what_has_come() -> None:
    """SEC-SASL-16, SEC-SASL-17: an announced length takes nothing; then all is as ever."""
    framing = Framing(ServerLimits(), 65_536)
    framing.feed(memoryview(b"\0\1\0\0" + b"\0\x11\0\1"))
    assert framing.next_frame() is None
    assert framing.room_bytes < 100
    for length in (65_537, -1, 0x7FFFFFFF):
        framing = Framing(ServerLimits(), 65_536)
        framing.feed(memoryview(length.to_bytes(4, "big", signed=True) + b"\0\0"))
        assert isinstance(framing.next_frame(), Rejection)
    framing = Framing(ServerLimits(), 65_536)
    framing.feed(memoryview(b"\0\0\0\0" + b"\0\0\0\3abc" + b"\0\2\0\0\0\0"))
    assert (framing.next_frame(), framing.next_frame()) == (b"", b"abc")
    framing.logged_in()
    assert framing.next_frame() is None, "131,072 bytes are allowed now"
    assert framing.room_bytes > 1000


@pytest.mark.parametrize(
    ("begun", "reason"),
    [
        (b"\x16\x03\x00\x01", "tls_on_a_plain_listener"),
        (b"\x16\x03\x01\x02", "tls_on_a_plain_listener"),
        (b"\x16\x03\x02\x00", "tls_on_a_plain_listener"),
        (b"\x16\x03\x03\xff", "tls_on_a_plain_listener"),
        (b"\x16\x03\x04\x00", "frame_too_large"),
        (b"\x16\x02\x01\x00", "frame_too_large"),
    ],
)
def test_client_that_begins_with_a_tls_handshake_is_told_apart(begun: bytes, reason: str) -> None:
    """RFC 8446, 5.1: type 22, then the version of the record, of SSL 3.0 up to TLS 1.3."""
    refused = Framing(LIMITS)._judge(int.from_bytes(begun, "big"), memoryview(b"\0\0"))
    assert refused is not None
    assert refused.reason == reason
