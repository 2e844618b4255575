"""The attacks, one function each; every one returns what was seen on the wire.

An attack that the server must answer by closing returns "close"; one that must get an error code
returns its number as text; whatever else is seen fails the run. The ids are those of the attack
catalogue that docs/PERFORMANCE.md's table of attacks repeats.
"""

import gzip
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cramjam
import lz4.frame
import zstandard

from tests.attack import frames
from tests.attack.target import Target, read_frame

__all__ = ["ATTACKS", "Attack"]

CORRUPT_MESSAGE = 2
MESSAGE_TOO_LARGE = 10
UNSUPPORTED_VERSION = 35
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
INVALID_RECORD = 87

BOMB_BYTES = 512 << 20


@dataclass(frozen=True)
class Attack:
    """One row of the table: what is sent, and which answers are right."""

    id: str
    title: str
    run: Callable[[Any], str]
    """Takes the kind of target that its table is for."""
    expected: tuple[str, ...]
    reason: str | None = None
    """The `reason=` that the server's log line must carry, where the connection is closed."""
    grows_bytes: int = 32 << 20
    """How much memory may be the server's more, during the attack and behind it."""


def send_and_see(target: Target, payload: bytes, *, half_close: bool = False) -> str:
    """Send bytes, then say how the server took them: "close", "answer" or "silence"."""
    with target.connect() as connection:
        try:
            connection.sendall(payload)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            return "close" if read_frame(connection) is None else "answer"
        except (BrokenPipeError, ConnectionResetError):
            return "close"
        except TimeoutError:
            return "silence"


def produce_error(target: Target, records: bytes, *, version: int = 3) -> str:
    """Produce one blob to partition 0 of `good`; return the partition's error code as text."""
    build = frames.produce_v3 if version == 3 else frames.produce_v7
    with target.connect() as connection:
        connection.sendall(build("good", records))
        answer = read_frame(connection)
    if answer is None:
        return "close"
    return str(int.from_bytes(answer[22:24], "big", signed=True))


def frame_above_limit(target: Target) -> str:
    """A01: the declared length alone must not make the server take memory."""
    return send_and_see(target, struct.pack(">i", 0x7FFFFFFF) + b"\0" * 64)


def many_large_frames_begun(target: Target) -> str:
    """A01: two hundred connections each announce 100 MB and send ten bytes of it."""
    connections = [target.connect() for _ in range(200)]
    for connection in connections:
        connection.sendall(struct.pack(">i", 100_000_000) + b"\0" * 10)
    time.sleep(0.5)
    seen = "close" if not target.is_alive() else "held"
    for connection in connections:
        connection.close()
    return seen


def frame_negative(target: Target) -> str:
    """A02: a negative length."""
    return send_and_see(target, struct.pack(">i", -5) + b"\0" * 16)


def frame_shorter_than_header(target: Target) -> str:
    """A02: a frame too short for a request header."""
    return send_and_see(target, frames.frame(b"\0\x12"))


def array_count_huge(target: Target) -> str:
    """A03: Metadata with 2^31-1 topics in a 30-byte frame."""
    return send_and_see(target, frames.request(3, 1, struct.pack(">i", 0x7FFFFFFF)))


def array_of_cheap_elements(target: Target) -> str:
    """A04: a million empty topic names are two bytes each on the wire."""
    body = struct.pack(">i", 1_000_000) + b"\0\0" * 1_000_000
    return send_and_see(target, frames.request(3, 1, body))


def header_with_many_tags(target: Target) -> str:
    """A05: two million empty tagged fields in the header of ApiVersions v3."""
    tags = frames.unsigned_varint(2_000_000)
    tags += b"".join(frames.unsigned_varint(100 + (n & 0x3F)) + b"\0" for n in range(2_000_000))
    return send_and_see(target, frames.api_versions_v3_with_tags(tags))


def header_with_huge_tag(target: Target) -> str:
    """A06: one tagged field of 8 MiB."""
    size = 8 << 20
    tags = b"\x01\x64" + frames.unsigned_varint(size) + bytes(size)
    return send_and_see(target, frames.api_versions_v3_with_tags(tags))


def header_with_lying_tag(target: Target) -> str:
    """A06: a tagged field that claims more bytes than the frame has."""
    tags = b"\x01\x64" + frames.unsigned_varint(1 << 20) + bytes(10)
    return send_and_see(target, frames.api_versions_v3_with_tags(tags))


def _zeros_bomb(codec: int) -> bytes:
    zeros = bytes(1 << 20)
    if codec == 1:
        return gzip.compress(bytes(BOMB_BYTES), 9)
    if codec == 2:
        return bytes(cramjam.snappy.compress_raw(bytes(64 << 20)))
    if codec == 3:
        return bytes(lz4.frame.compress(zeros * 256))
    compressor = zstandard.ZstdCompressor(level=19).compressobj()
    chunks = [compressor.compress(zeros) for _ in range(BOMB_BYTES >> 20)]
    return b"".join(chunks) + compressor.flush()


def bomb(codec: int) -> Callable[[Target], str]:
    """A07: a batch whose records decompress to hundreds of megabytes."""

    def attack(target: Target) -> str:
        payload = frames.compressed_batch(codec, _zeros_bomb(codec))
        return produce_error(target, payload, version=7 if codec == 4 else 3)

    return attack


def snappy_lying_length(target: Target) -> str:
    """A07: a snappy block that declares 4 GiB."""
    return produce_error(target, frames.compressed_batch(2, b"\xff\xff\xff\xff\x0f" + b"\0" * 32))


def batch_lies(**overrides: int) -> Callable[[Target], str]:
    """A09: one lie in the header of a batch."""

    def attack(target: Target) -> str:
        return produce_error(target, frames.batch(frames.one_record(b"x" * 50), 1, **overrides))

    return attack


def record_varint_overflow(target: Target) -> str:
    """A10: a record length of eleven bytes of continuation."""
    return produce_error(target, frames.batch(b"\xff" * 11 + b"\x01", 1))


def string_negative(target: Target) -> str:
    """A10: a topic name of length -2 where null is not allowed."""
    return send_and_see(target, frames.request(3, 1, struct.pack(">ih", 1, -2)))


def body_truncated(target: Target) -> str:
    """A10: the last byte of a Produce body is missing."""
    whole = frames.produce_v3("good", frames.batch(frames.one_record(b"x"), 1))
    return send_and_see(target, frames.frame(whole[4:-1]))


def forged_replica(target: Target) -> str:
    """A13: a client that claims to be broker 77 must not move the high watermark or get records."""
    with target.connect() as connection:
        connection.sendall(frames.fetch_v4("good", replica_id=77))
        answer = read_frame(connection)
    if answer is None:
        return "close"
    return str(int.from_bytes(answer[26:28], "big", signed=True))


def connection_flood(target: Target) -> str:
    """A20: three thousand connections at once from one address, which is served again later on."""
    held: list[socket.socket] = []
    refused = 0
    for _ in range(3000):
        try:
            held.append(target.connect(timeout_s=2.0))
        except OSError:
            refused += 1
    alive = 0
    for connection in held:
        connection.settimeout(2.0)
        try:
            connection.sendall(frames.api_versions_v0())
            alive += read_frame(connection) is not None
        except OSError:
            refused += 1
    for connection in held:  # only now, or one that waits to be accepted takes the place of another
        connection.close()
    if not 0 < alive <= 1000:
        return f"{alive} served"
    time.sleep(1.0)  # it used up what this second has for new connections, those of others too
    return "capped" if send_and_see(target, frames.api_versions_v0()) == "answer" else "shut out"


def slowloris(target: Target, *, greet: bool = False) -> str:
    """A21: a frame that arrives a byte a second is cut off, also after a first good request."""
    with target.connect(timeout_s=60.0) as connection:
        if greet:
            connection.sendall(frames.api_versions_v0())
            read_frame(connection)
        payload = frames.metadata_v1(["good"])
        try:
            for position in range(len(payload)):
                connection.sendall(payload[position : position + 1])
                connection.settimeout(1.0)
                try:
                    return "close" if not connection.recv(1) else "answer"
                except TimeoutError:
                    continue
        except OSError:
            return "close"
    return "silence"


def never_reading(target: Target) -> str:
    """A21: a client asks for a megabyte a thousand times and reads nothing."""
    record = frames.batch(frames.one_record(b"y" * 900_000), 1)
    for _ in range(2):
        produce_error(target, record)
    with target.connect(timeout_s=1.0) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        try:
            for _ in range(1000):
                connection.sendall(frames.fetch_v4("good"))
        except TimeoutError:
            return "held"
        except OSError:
            return "close"
        time.sleep(1.0)
    return "held"


def pipelining_flood(target: Target) -> str:
    """A22: a hundred thousand requests in one burst are answered in order or held back."""
    burst = frames.api_versions_v0() * 100_000
    with target.connect(timeout_s=1.0) as connection:
        try:
            connection.sendall(burst)
        except (TimeoutError, OSError):
            return "held"
    return "held"


def parked_fetch_flood(target: Target) -> str:
    """A22: two thousand connections park a fetch each for half a minute."""
    connections = [target.connect() for _ in range(900)]
    for connection in connections:
        connection.sendall(frames.fetch_v4("good", offset=0, max_wait_ms=30_000))
    time.sleep(0.5)
    for connection in connections:
        connection.close()
    return "held" if target.is_alive() else "close"


def fetch_session_flood(target: Target) -> str:
    """A22: ten thousand clients each want a fetch session; the cache keeps its bound."""
    body = struct.pack(">iiiibii", -1, 0, 1, 1 << 20, 0, 0, 0)
    body += struct.pack(">i", 1) + frames.string("good")
    body += struct.pack(">iiqqi", 1, 0, 0, -1, 1 << 20) + struct.pack(">i", 0)
    created = 0
    with target.connect() as connection:
        for _ in range(10_000):
            connection.sendall(frames.request(1, 7, body))
            answer = read_frame(connection)
            if answer is None:
                return "close"
            created += int.from_bytes(answer[10:14], "big") != 0
    return "capped" if created <= 1000 else f"{created} sessions"


def unknown_api_key(target: Target) -> str:
    """A23: API key 999."""
    return send_and_see(target, frames.request(999, 0, b""))


def version_above_range(target: Target) -> str:
    """A23: Metadata v99."""
    return send_and_see(target, frames.request(3, 99, b""))


def api_versions_unknown_version(target: Target) -> str:
    """A23: ApiVersions v50 is answered in the layout of v0 with error 35 (KIP-511)."""
    with target.connect() as connection:
        connection.sendall(frames.request(18, 50, b"\x01\x01\0", flexible_header=True))
        answer = read_frame(connection)
    if answer is None:
        return "close"
    return str(int.from_bytes(answer[4:6], "big", signed=True))


_CLOSE = ("close",)
_LIES = (str(CORRUPT_MESSAGE), str(INVALID_RECORD))
_TOO_BIG = (str(MESSAGE_TOO_LARGE), *_LIES)

ATTACKS: tuple[Attack, ...] = (
    Attack("A01a", "frame above the limit", frame_above_limit, _CLOSE, "frame_too_large"),
    Attack("A01b", "200 large frames begun", many_large_frames_begun, ("held",)),
    Attack("A02a", "negative frame length", frame_negative, _CLOSE, "frame_length_invalid"),
    Attack("A02b", "frame below a header", frame_shorter_than_header, _CLOSE, "frame"),
    Attack("A03", "array count 2^31-1", array_count_huge, _CLOSE, "array_count_exceeds_remaining"),
    Attack("A04", "a million cheap elements", array_of_cheap_elements, _CLOSE, "object_budget"),
    Attack("A05", "two million header tags", header_with_many_tags, _CLOSE, "tag"),
    Attack("A06a", "tagged field of 8 MiB", header_with_huge_tag, _CLOSE, "tag"),
    Attack("A06b", "tagged field that lies", header_with_lying_tag, _CLOSE, "tag"),
    Attack("A07a", "gzip bomb", bomb(1), _TOO_BIG),
    Attack("A07b", "snappy bomb", bomb(2), _TOO_BIG),
    Attack("A07c", "lz4 bomb", bomb(3), _TOO_BIG),
    Attack("A07d", "zstd bomb", bomb(4), _TOO_BIG),
    Attack("A07e", "snappy length lie", snappy_lying_length, _TOO_BIG),
    Attack("A09a", "count above the records", batch_lies(count=9), _LIES),
    Attack("A09b", "count of 2^31-1", batch_lies(count=0x7FFFFFFF), _LIES),
    Attack("A09c", "negative count", batch_lies(count=-1), _LIES),
    Attack("A09d", "last offset delta", batch_lies(last_offset_delta=77), _LIES),
    Attack("A09e", "wrong CRC", batch_lies(crc_delta=1), _LIES),
    Attack(
        "A09f",
        "magic 9",
        batch_lies(magic=9),
        (*_LIES, str(UNSUPPORTED_FOR_MESSAGE_FORMAT)),
    ),
    Attack("A09g", "length beyond the blob", batch_lies(length_delta=1000), _LIES),
    Attack("A09h", "length below a header", batch_lies(length_delta=-90), _LIES),
    Attack("A10a", "record varint overflow", record_varint_overflow, _LIES),
    Attack("A10b", "negative string length", string_negative, _CLOSE, "reason="),
    Attack("A10c", "body one byte short", body_truncated, _CLOSE, "reason="),
    Attack("A13", "fetch with a forged replica id", forged_replica, ("6", "9", "31", "-1", "107")),
    Attack("A20", "3,000 connections", connection_flood, ("capped",)),
    Attack("A21a", "slowloris", slowloris, _CLOSE, "handshake_timeout"),
    Attack("A21c", "slowloris later on", lambda t: slowloris(t, greet=True), _CLOSE, "too_slow"),
    Attack("A21b", "never reading", never_reading, ("held", "close")),
    Attack("A22a", "pipelining flood", pipelining_flood, ("held",)),
    Attack("A22b", "parked fetch flood", parked_fetch_flood, ("held",)),
    Attack("A22c", "fetch session flood", fetch_session_flood, ("capped",)),
    Attack("A23a", "unknown API key", unknown_api_key, _CLOSE, "reason="),
    Attack("A23b", "version above the range", version_above_range, _CLOSE, "reason="),
    Attack("A23c", "ApiVersions v50", api_versions_unknown_version, (str(UNSUPPORTED_VERSION),)),
)
