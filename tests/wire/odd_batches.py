"""Batches that no well-behaved client writes: odd streams, lies about counts, lengths, old forms.

Made by hand or by one spoiled byte, with the checksum made right again, so that what is judged is
behind it. What Apache makes of each stands in `tests/golden/records/odd_batches.jsonl`; run
`python -m tests.wire.odd_batches` to ask it again (needs Java).
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import lz4.frame
import zstandard

from kraft_wire.wire.compression.lz4_frame import lz4_compress, xxh32_short
from kraft_wire.wire.compression.snappy_framing import snappy_compress, snappy_compress_raw
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.varint import append_varint
from tests.apache.oracle import ask_apache

VECTORS = Path(__file__).parents[1] / "golden" / "records" / "odd_batches.jsonl"
ORIGIN = "verdicts of judge.Oracle over the published jars of Apache Kafka 4.3.1"
SEED = 43
HEX_MAX = 1600

Body = tuple[int, bytes, int]
"""Codec, body, and the count that the header declares."""


def question(data: bytes) -> str:
    """The line that asks what a reader makes of `data`."""
    return json.dumps({"kind": "records", "name": "MemoryRecords", "version": 0, "hex": data.hex()})


def batch_around(codec: int, body: bytes, count: int) -> bytes:
    """A batch of format 2 with any body and a right checksum."""
    batch = bytearray(build_batch([]))
    batch[61:] = body
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">hi", batch, 21, codec, max(count - 1, 0))
    struct.pack_into(">i", batch, 57, count)
    return checked(batch)


def checked(batch: bytes | bytearray) -> bytes:
    """The batch with the checksum of format 2 made right."""
    fixed = bytearray(batch)
    struct.pack_into(">I", fixed, 17, crc32c(bytes(fixed[21:])))
    return bytes(fixed)


def body_of(records: list[Record]) -> bytes:
    """The uncompressed body that holds the records."""
    return bytes(build_batch(records)[61:])


def spoiled(data: bytes, random_source: random.Random) -> bytes:
    """The bytes with one bit turned."""
    changed = bytearray(data)
    changed[random_source.randrange(len(changed))] ^= 1 << random_source.randrange(8)
    return bytes(changed)


def odd_batches() -> Iterator[bytes]:
    """Every case, always the same."""
    random_source = random.Random(SEED)
    records = [
        Record(b"key%d" % index, random_source.randbytes(9) + b"x" * 20 * index, timestamp=index)
        for index in range(4)
    ]
    raw = body_of(records)
    for codec, body, count in _bodies(raw, len(records), random_source):
        yield batch_around(codec, body, count)
    yield from _spoiled_headers(random_source)
    for magic in (0, 1):
        yield from _old_wrappers(magic, random_source)
        yield from _old_messages(magic, random_source)


def _bodies(raw: bytes, count: int, random_source: random.Random) -> Iterator[Body]:
    for codec, compressed in _odd_streams(raw, random_source):
        yield codec, compressed, count
    packers: tuple[tuple[int, Callable[[bytes], bytes]], ...] = (
        (0, bytes),
        (1, gzip_of),
        (2, snappy_compress),
        (3, lz4_compress),
        (4, zstd_of),
    )
    for codec, pack in packers:
        for changed in (raw + b"\0", raw[:-1], raw + raw, b"\x0a" + raw, b""):
            yield codec, pack(changed), count
        for declared in (0, count + 1, count - 1, -1, 1_000_000, 2147483647):
            yield codec, pack(raw), declared
        yield codec, b"garbage", 0
        for _ in range(12):
            yield codec, spoiled(pack(raw), random_source), count
    for _ in range(60):
        changed = bytearray(raw)
        changed[random_source.randrange(len(raw))] = random_source.choice(
            [0, 1, 2, 0x7F, 0x80, 0xFF]
        )
        yield 0, bytes(changed), count
    yield from _odd_texts(random_source)
    yield from _odd_varints()


def gzip_of(data: bytes) -> bytes:
    """One gzip member without a time in it."""
    return gzip.compress(data, mtime=0)


def zstd_of(data: bytes) -> bytes:
    """One zstd frame that declares its size."""
    return zstandard.ZstdCompressor().compress(data)


def _odd_streams(raw: bytes, random_source: random.Random) -> Iterator[tuple[int, bytes]]:
    whole = gzip_of(raw)
    for rest in (b"junk", gzip_of(b""), gzip_of(b"more"), b"\x1f\x8b\x08" + bytes(40)):
        yield 1, whole + rest
    yield 1, gzip_of(raw[:50]) + gzip_of(raw[50:])
    for cut in (1, 3, 8):
        yield 1, whole[:-cut]
    yield from ((2, stream) for stream in _snappy_streams(raw))
    for options in _LZ4_OPTIONS:
        frame = lz4.frame.compress(raw, **options)
        for stream in (frame, frame + b"junk", frame[:-1], frame[:-4], frame[:-5], frame[:6]):
            yield 3, stream
        for _ in range(4):
            yield 3, spoiled(frame[:20], random_source) + frame[20:]
        for _ in range(2):
            yield 3, spoiled(frame, random_source)
    yield from ((4, stream) for stream in _zstd_streams(raw))


def _snappy_streams(raw: bytes) -> Iterator[bytes]:
    whole = snappy_compress(raw)
    magic = whole[:8]
    yield snappy_compress_raw(raw)
    for rest in (b"abc", bytes(4), magic + bytes(8), magic[:4] + b"x" * 12, magic[:4] + b"xxx"):
        yield whole + rest
    yield snappy_compress(raw[:30]) + snappy_compress(raw[30:])
    for versions in ((0, 0), (-1, -1), (7, 7)):
        yield magic + struct.pack(">ii", *versions) + whole[16:]
    for length in (-1, 0, 2147483647):
        yield whole + struct.pack(">i", length)
    yield from (whole[:-1], whole[:16], whole[:15], whole[:3], snappy_compress_raw(raw)[:-1])
    yield whole + struct.pack(">i", 1) + b"\0"


_LZ4_OPTIONS: tuple[dict[str, bool | int], ...] = (
    {"block_linked": False},
    {"block_linked": True},
    {"block_linked": False, "store_size": False},
    {"block_linked": False, "block_checksum": True},
    {"block_linked": False, "content_checksum": True},
    {"block_linked": False, "content_checksum": True, "block_checksum": True, "block_size": 7},
)


def _zstd_streams(raw: bytes) -> Iterator[bytes]:
    whole = zstd_of(raw)
    skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    yield zstandard.ZstdCompressor(write_checksum=True).compress(raw)
    yield zstandard.ZstdCompressor(write_checksum=True).compress(raw)[:-1] + b"?"
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(raw)
    yield from (unsized, unsized[:-1], zstd_of(raw[:20]) + zstd_of(raw[20:]), skippable + whole)
    for rest in (skippable, skippable[:-1], whole[:5], whole[:3], b"zz", b"zzzzzzzz", whole):
        yield whole + rest
    yield from (whole[:-1], whole[:3], b"\x28\xb5\x2f\xfd\x60\x40\x00\x01\x00\x00")


def _odd_texts(random_source: random.Random) -> Iterator[Body]:
    """Header keys that are no UTF-8."""
    texts = [
        *(b"\xed\xa0\x80", b"\xed\xa0", b"\xed\xa0A", b"a\xed\xb0\x80\xed", b"\xe0\x80\x80"),
        *(
            b"\xf5\x80\x80\x80",
            b"\xf0\x90\x80",
            b"\xc0\x80",
            b"\xff\xfe",
            b"\xe2\x82",
            b"\xe2\x82A",
        ),
        *(b"\xf4\x90\x80\x80", b"\xf0\x80\x80\x80", b"\xed\xa0\x80\xed\xb0\x80"),
    ]
    pieces = [0xED, 0xA0, 0x80, 0xE0, 0xF0, 0x90, 0x41, 0xF4, 0xC2]
    texts += [bytes(random_source.choices(pieces, k=8)) for _ in range(20)]
    for text in texts:
        record = bytearray(b"\0\0\0\1\1\2")
        append_varint(record, len(text))
        yield 0, _sized(bytes(record) + text + b"\1"), 1


def _odd_varints() -> Iterator[Body]:
    """Timestamp, offset, key size and value size that are overlong or too long."""
    for varint in (
        *(b"\x80\x00", b"\x80\x80\x80\x80\x00", b"\x80\x80\x80\x80\x80\x00", b"\x80" * 10 + b"\0"),
        *(
            b"\xff" * 9 + b"\x01",
            b"\xff" * 9 + b"\x7f",
            b"\xff" * 4 + b"\x0f",
            b"\xff" * 4 + b"\x7f",
        ),
    ):
        for place in range(1, 6):
            parts = [b"\0", b"\0", b"\0", b"\1", b"\1", b"\0"]
            parts[place] = varint
            yield 0, _sized(b"".join(parts)), 1
    yield 0, b"\x8c\x80\x80\x00\0\0\0\1\1\0", 1


def _sized(record: bytes) -> bytes:
    body = bytearray()
    append_varint(body, len(record))
    return bytes(body) + record


def _spoiled_headers(random_source: random.Random) -> Iterator[bytes]:
    batch = bytes(build_batch([Record(b"k", b"v", timestamp=5)], base_offset=4))
    for length in (0x7FFFFFFF, 0x7FFFFFF3, 0x7FFFFFF4, 14, 48, 49, 13, 0, -1):
        yield batch[:8] + struct.pack(">i", length) + batch[12:]
    for magic in (3, 127, 128, 255):
        yield batch[:16] + bytes([magic]) + batch[17:]
    yield batch[:17] + b"\0\0\0\0" + batch[21:]
    for size in range(0, len(batch), 3):
        yield batch[:size]
        yield batch + batch[:size]
    for _ in range(80):
        at = random_source.randrange(21, 61)
        lie = random_source.choice(
            [b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\1", b"\xff"]
        )
        yield checked((batch[:at] + lie + batch[at + len(lie) :])[: len(batch)])


def old_message(
    offset: int,
    magic: int,
    attributes: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp: int = 77,
    crc: int | None = None,
    extra: bytes = b"",
) -> bytes:
    """A message of format 0 or 1."""
    body = struct.pack(">BB", magic, attributes)
    body += struct.pack(">q", timestamp) if magic else b""
    for blob in (key, value):
        body += struct.pack(">i", -1) if blob is None else struct.pack(">i", len(blob)) + blob
    body += extra
    body = struct.pack(">I", zlib.crc32(body) if crc is None else crc) + body
    return struct.pack(">qi", offset, len(body)) + body


def lz4_compress_magic_0(data: bytes) -> bytes:
    """A frame with the header checksum of message format 0: over the magic number too."""
    frame = bytearray(lz4_compress(data))
    frame[6] = xxh32_short(bytes(frame[:6])) >> 8 & 0xFF
    return bytes(frame)


def _old_wrappers(magic: int, random_source: random.Random) -> Iterator[bytes]:
    packers: tuple[tuple[int, Callable[[bytes], bytes]], ...] = (
        *((1, gzip_of), (2, snappy_compress), (2, snappy_compress_raw), (3, lz4_compress)),
        *((3, lz4_compress_magic_0), (4, zstd_of), (5, bytes)),
    )
    for inner_magic in (0, 1, 2, 3, 255):
        inner = b"".join(old_message(at, inner_magic, 0, b"k", b"v%d" % at) for at in range(3))
        for codec, pack in packers:
            for offset in (0, 1, 2, 10, -1):
                attributes = codec | random_source.choice([0, 8])
                yield old_message(offset, magic, attributes, None, pack(inner))
        for odd in (
            *(inner[:-3], inner + b"\0\0", b"", inner[:10], inner + bytes(12)),
            old_message(0, inner_magic, 0, b"k", b"v", crc=5),
            old_message(0, inner_magic, 1, None, gzip_of(inner)),
            old_message(0, inner_magic, 0, b"k", b"v", extra=b"zz"),
            inner[:8] + b"\0\0\0\5" + inner[12:],
            inner[:8] + b"\x7f\xff\xff\xff" + inner[12:],
        ):
            yield old_message(9, magic, 1, None, gzip_of(odd))


def _old_messages(magic: int, random_source: random.Random) -> Iterator[bytes]:
    for _ in range(40):
        blobs = [random_source.choice([None, b"", b"abc"]) for _ in range(2)]
        message = bytearray(old_message(3, magic, 0, *blobs))
        message[random_source.randrange(16, len(message))] = random_source.randrange(256)
        struct.pack_into(">I", message, 12, zlib.crc32(bytes(message[16:])))
        yield bytes(message)
    message = old_message(3, magic, 0, b"k", b"v")
    yield from (message[:size] for size in range(len(message)))
    yield from (old_message(1, magic, attributes, b"k", b"v") for attributes in (8, 0x70, 0xF8))
    yield from (old_message(1, magic, 1, b"k", None), old_message(1, magic, 0, b"k", b"v", crc=1))
    for length in (0x7FFFFFFF, 0x7FFFFFF3, 0x7FFFFFF4, 14, 13):
        yield message[:8] + struct.pack(">i", length) + message[12:]


def refresh() -> None:
    """Ask Apache about every case and write the answers down."""
    cases = [data for data in odd_batches() if len(data) <= HEX_MAX // 2]
    with VECTORS.open("w", encoding="utf-8") as file:
        print(json.dumps({"origin": ORIGIN, "seed": SEED}), file=file)
        for data, answer in zip(cases, ask_apache(map(question, cases)), strict=True):
            vector = json.loads(question(data)) | {
                "canonical": False,
                "verdict": "accept" if "json" in answer else "refuse",
            }
            if "json" in answer:
                vector["json"] = answer["json"]
            print(json.dumps(vector, separators=(",", ":")), file=file)


if __name__ == "__main__":
    refresh()
