"""Frames packed by hand, valid ones and hostile ones.

Nothing here uses the package's own codecs: what they would refuse to write is what is needed.
"""

import struct
import time
from itertools import count

import crc32c

__all__ = [
    "api_versions_v0",
    "api_versions_v3_with_tags",
    "batch",
    "compressed_batch",
    "fetch_v4",
    "frame",
    "metadata_v1",
    "next_correlation",
    "produce_v3",
    "request",
    "string",
    "unsigned_varint",
]

_correlations = count(1)

NOW_MS = int(time.time() * 1000)
"""Stamps every record: an old one would soon fall to the retention of any broker."""


def next_correlation() -> int:
    """Return a correlation id that this process has not used."""
    return next(_correlations)


def frame(payload: bytes) -> bytes:
    """Put the length in front."""
    return struct.pack(">i", len(payload)) + payload


def string(text: str) -> bytes:
    """A classic string: int16 length, UTF-8."""
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def unsigned_varint(value: int) -> bytes:
    """Seven bits a byte, low group first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def request(api_key: int, version: int, body: bytes, *, flexible_header: bool = False) -> bytes:
    """A whole request frame with header v1, or v2 with an empty tag section."""
    header = struct.pack(">hhi", api_key, version, next_correlation()) + string("attacker")
    return frame(header + (b"\0" if flexible_header else b"") + body)


def api_versions_v0() -> bytes:
    """The smallest request there is."""
    return request(18, 0, b"")


def api_versions_v3_with_tags(tag_section: bytes) -> bytes:
    """ApiVersions v3 whose header carries the given tag section."""
    header = struct.pack(">hhi", 18, 3, next_correlation()) + string("attacker")
    body = unsigned_varint(4) + b"abc" + unsigned_varint(4) + b"1.0" + b"\0"
    return frame(header + tag_section + body)


def metadata_v1(topics: list[str]) -> bytes:
    """Metadata v1 of the named topics."""
    return request(3, 1, struct.pack(">i", len(topics)) + b"".join(map(string, topics)))


def batch(records: bytes, record_count: int, *, attributes: int = 0, **overrides: int) -> bytes:
    """A v2 batch with a right CRC; `overrides` put lies into named header fields.

    Names: magic, last_offset_delta, count, length_delta, crc_delta, base_timestamp.
    """
    after_crc = struct.pack(
        ">hiqqqhii",
        attributes,
        overrides.get("last_offset_delta", record_count - 1),
        overrides.get("base_timestamp", NOW_MS),
        overrides.get("base_timestamp", NOW_MS),
        -1,
        -1,
        -1,
        overrides.get("count", record_count),
    )
    after_crc += records
    crc = (crc32c.crc32c(after_crc) + overrides.get("crc_delta", 0)) & 0xFFFFFFFF
    length = 4 + 1 + 4 + len(after_crc) + overrides.get("length_delta", 0)
    return struct.pack(">qiibI", 0, length, -1, overrides.get("magic", 2), crc) + after_crc


def one_record(value: bytes) -> bytes:
    """A record without key and headers at offset delta 0."""
    body = b"\0\0\0" + b"\x01" + unsigned_varint(len(value) << 1) + value + b"\0"
    return unsigned_varint(len(body) << 1) + body


def compressed_batch(codec: int, payload: bytes, record_count: int = 1) -> bytes:
    """A batch whose records field is whatever was handed in, marked with the codec's number."""
    return batch(payload, record_count, attributes=codec)


def produce_v3(topic: str, records: bytes, *, acks: int = 1, partition: int = 0) -> bytes:
    """Produce v3 of one partition."""
    body = struct.pack(">hhi", -1, acks, 10_000) + struct.pack(">i", 1) + string(topic)
    body += struct.pack(">iii", 1, partition, len(records)) + records
    return request(0, 3, body)


def produce_v7(topic: str, records: bytes) -> bytes:
    """Produce v7, the first version that may carry zstd."""
    frame_v3 = bytearray(produce_v3(topic, records))
    frame_v3[6:8] = struct.pack(">h", 7)
    return bytes(frame_v3)


def fetch_v4(topic: str, *, replica_id: int = -1, offset: int = 0, max_wait_ms: int = 0) -> bytes:
    """Fetch v4 of one partition; `replica_id` >= 0 claims to be a broker."""
    body = struct.pack(">iiiib", replica_id, max_wait_ms, 1, 1 << 20, 0)
    body += struct.pack(">i", 1) + string(topic) + struct.pack(">iiqi", 1, 0, offset, 1 << 20)
    return request(1, 4, body)
