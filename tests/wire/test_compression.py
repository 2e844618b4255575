"""Compression: what every client writes is read, bombs are refused before they grow."""

from __future__ import annotations

import gzip
import importlib.util
import struct
import sys
import warnings
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import pytest
import zstandard

from kraft_wire.wire.compression import gzip_members
from kraft_wire.wire.compression.codecs import (
    Compression,
    DecompressionLimits,
    compress,
    decompress,
)
from kraft_wire.wire.compression.lz4_frame import xxh32_short
from kraft_wire.wire.compression.snappy_framing import snappy_compress, snappy_compress_raw
from kraft_wire.wire.records.corruption import CorruptRecordBatch, DecompressedTooLarge
from tests.wire.odd_batches import lz4_compress_magic_0

Codec = Callable[[bytes], bytes]

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of how kafka-python reads its schemas
    from kafka import codec as theirs

TEXT = b"to be or not to be, that is the question " * 3000
SAMPLES = [b"", b"a", bytes(70_000), TEXT]
SMALL = DecompressionLimits(bytes_max=10_000)


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("data", SAMPLES, ids=len)
def test_every_codec_gives_back_what_it_was_given(codec: Compression, data: bytes) -> None:
    assert decompress(codec, memoryview(compress(codec, data))) == data


@pytest.mark.parametrize(
    ("codec", "encode", "decode"),
    [
        (Compression.GZIP, theirs.gzip_encode, theirs.gzip_decode),
        (Compression.LZ4, theirs.lz4_encode, theirs.lz4_decode),
        (Compression.ZSTD, theirs.zstd_encode, theirs.zstd_decode),
    ],
)
def test_kafka_python_reads_ours_and_we_read_its(
    codec: Compression, encode: Codec, decode: Codec
) -> None:
    assert decode(compress(codec, TEXT)) == TEXT
    assert decompress(codec, encode(TEXT)) == TEXT


def test_snappy_is_read_as_raw_block_and_as_concatenated_streams() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    assert (
        decompress(Compression.SNAPPY, snappy_compress(TEXT) + snappy_compress(b"x")) == TEXT + b"x"
    )


def test_lz4_of_format_0_has_the_historic_header_checksum() -> None:
    frame = lz4_compress_magic_0(TEXT)
    assert decompress(Compression.LZ4, frame, magic=0) == TEXT
    with pytest.raises(CorruptRecordBatch, match="header has a wrong checksum"):
        decompress(Compression.LZ4, frame)


@pytest.mark.parametrize("store_size", [False, True])
@pytest.mark.parametrize("block_checksum", [False, True])
def test_lz4_frames_with_every_optional_part_are_read(
    store_size: bool, block_checksum: bool
) -> None:
    frame = lz4.frame.compress(
        TEXT,
        block_linked=False,
        store_size=store_size,
        block_checksum=block_checksum,
        content_checksum=True,
    )
    assert decompress(Compression.LZ4, frame) == TEXT


def test_xxh32_agrees_with_the_published_values() -> None:
    assert xxh32_short(b"") == 0x02CC5D05
    assert xxh32_short(b"abc") == 0x32D153FF


def test_gzip_of_many_empty_members_is_read_in_linear_time() -> None:
    assert decompress(Compression.GZIP, gzip.compress(b"", mtime=0) * 5000) == b""


def test_zstd_frames_are_read_one_after_the_other() -> None:
    frames = zstandard.ZstdCompressor().compress(TEXT) * 2
    assert decompress(Compression.ZSTD, frames) == TEXT * 2


@pytest.mark.parametrize("codec", Compression)
def test_output_above_the_limit_is_refused_for_every_codec(codec: Compression) -> None:
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, compress(codec, TEXT), SMALL)


def test_undeclared_size_is_met_while_streaming() -> None:
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 24))
    with pytest.raises(DecompressedTooLarge, match="larger than"):
        decompress(Compression.ZSTD, unsized)


def test_ratio_binds_only_above_its_floor() -> None:
    limits = DecompressionLimits(ratio_max=10, ratio_floor_bytes=50_000)
    assert len(decompress(Compression.GZIP, compress(Compression.GZIP, bytes(50_000)), limits))
    with pytest.raises(DecompressedTooLarge):
        decompress(Compression.GZIP, compress(Compression.GZIP, bytes(50_001)), limits)
    assert limits.cap_bytes(100_000) == 1_000_000
    assert limits.cap_bytes(100_000_000) == limits.bytes_max


@pytest.mark.parametrize(
    ("codec", "data", "reason"),
    [
        (Compression.GZIP, b"no gzip member at all", "gzip data is corrupt"),
        (Compression.GZIP, gzip.compress(TEXT)[:-1], "gzip data is cut"),
        (Compression.ZSTD, b"no zstd frame", "zstd data is corrupt"),
        (Compression.ZSTD, zstandard.ZstdCompressor().compress(TEXT)[:-1], "zstd data is"),
        (Compression.SNAPPY, b"", "snappy data is corrupt"),
        (Compression.SNAPPY, b"\xff\xff\xff\xff\xff\xff", "snappy data is corrupt"),
        (Compression.SNAPPY, snappy_compress(TEXT)[:-1], "snappy chunk of"),
        (Compression.SNAPPY, snappy_compress(b"x") + b"\x82SNAP", "following stream is cut"),
        (
            Compression.SNAPPY,
            snappy_compress(b"x") + b"\x82SNAPPY\0" + bytes(8),
            "following snappy stream of version 0",
        ),
        (Compression.LZ4, b"", "lz4 frame is cut"),
        (Compression.LZ4, b"\x00" * 20, "lz4 frame begins with"),
        (Compression.LZ4, b"\x04\x22\x4d\x18\xa0\x40\x00", "unknown flags"),
        (Compression.LZ4, b"\x04\x22\x4d\x18\x61\x40\x00", "unknown flags"),
        (Compression.LZ4, lz4.frame.compress(TEXT, block_linked=True), "dependent blocks"),
        (Compression.LZ4, b"\x04\x22\x4d\x18\x60\x10\x00", "unknown block descriptor"),
        (Compression.LZ4, b"\x04\x22\x4d\x18\x60\x41\x00", "unknown block descriptor"),
        (Compression.LZ4, compress(Compression.LZ4, b"abc")[:7] + b"\xff" * 9, "lz4 block of"),
        (Compression.LZ4, compress(Compression.LZ4, TEXT)[:-4], "lz4 frame is cut"),
        (
            Compression.LZ4,
            compress(Compression.LZ4, b"abc")[:7] + struct.pack("<I", 4) + b"\xff" * 4,
            "lz4 data is corrupt",
        ),
    ],
)
def test_bytes_that_do_not_decompress_are_refused_with_a_reason(
    codec: Compression, data: bytes, reason: str
) -> None:
    with pytest.raises(CorruptRecordBatch, match=reason):
        decompress(codec, data)


def test_a_wrong_block_checksum_is_refused() -> None:
    frame = bytearray(lz4.frame.compress(b"abc", block_linked=False, block_checksum=True))
    frame[-5] ^= 1
    with pytest.raises(CorruptRecordBatch, match="lz4 data is corrupt"):
        decompress(Compression.LZ4, bytes(frame))


def test_snappy_with_other_bytes_after_the_last_chunk_ends_there() -> None:
    odd = snappy_compress(b"abc") + b"\x82SNA" + b"x" * 12
    assert decompress(Compression.SNAPPY, odd) == b"abc"
    assert decompress(Compression.SNAPPY, snappy_compress_raw(b"abc")) == b"abc"


def test_zlib_serves_where_isal_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    assert gzip_members.__file__ is not None
    spec = importlib.util.spec_from_file_location("without_isal", gzip_members.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "without_isal", module)
    spec.loader.exec_module(module)
    assert module._deflate is zlib
    assert module.gzip_decompress(gzip.compress(TEXT), len(TEXT)) == TEXT
    assert gzip.decompress(module.gzip_compress(TEXT)) == TEXT


def test_zstd_has_kafkas_level() -> None:
    """`compression.zstd.level` is 3."""
    data = b"".join(b"%d of many records " % (number * 7919 % 1000) for number in range(2000))
    kafkas = zstandard.ZstdCompressor(level=3).compress(data)
    assert compress(Compression.ZSTD, data) == kafkas
    assert zstandard.ZstdCompressor(level=2).compress(data) != kafkas
