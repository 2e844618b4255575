"""Compression of record batches: gzip, snappy, lz4 and zstd, with capped decompression.

KIP-110 (zstd), KIP-57 (lz4 framing), RELIABILITY attack "decompression bomb". Output is what
Apache's clients write by default and what every client reads; input is whatever Apache's readers
accept. The cap is a number of bytes known before the first output byte: a size declared above it is
refused before anything is allocated, and an undeclared one is met while streaming.

Does not know batches: `record_batch` and `legacy_batch` hand in the compressed body.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from types import ModuleType
from typing import Final

import zstandard

from kraft_wire.wire.corruption import CorruptRecordBatch, DecompressedTooLarge
from kraft_wire.wire.lz4_frame import lz4_compress, lz4_decompress
from kraft_wire.wire.snappy_framing import snappy_compress, snappy_decompress

_deflate: ModuleType = zlib
try:
    from isal import isal_zlib
except ImportError:
    pass
else:
    _deflate = isal_zlib

__all__ = [
    "DEFAULT_LIMITS",
    "Compression",
    "DecompressionLimits",
    "compress",
    "decompress",
]

Buffer = bytes | bytearray | memoryview


class Compression(IntEnum):
    """Codec ids as they stand in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@dataclass(frozen=True, slots=True)
class DecompressionLimits:
    """How much one compressed body may become; the smaller of both limits holds."""

    bytes_max: int = 64 * 1024 * 1024
    """`max.decompressed.message.bytes`: decompressed bytes of one batch."""
    ratio_max: int = 1000
    """`decompression.ratio.max`: output bytes per input byte, once output passes the floor."""
    ratio_floor_bytes: int = 1024 * 1024
    """Output that is allowed at any ratio: tiny bodies of zeros are honest and common."""

    def cap_bytes(self, compressed_bytes: int) -> int:
        """Return the largest output allowed for a body of `compressed_bytes`."""
        by_ratio = max(self.ratio_floor_bytes, compressed_bytes * self.ratio_max)
        return min(self.bytes_max, by_ratio)


DEFAULT_LIMITS: Final = DecompressionLimits()

_GZIP_WINDOW_BITS: Final = 31  # 15 bits of window, with the gzip wrapper
_GZIP_MEMBER_HEAD: Final = b"\x1f\x8b\x08"
_GZIP_MEMBER_MIN_BYTES: Final = 18
# igzip knows the levels 0-3 and compresses at 2 about as zlib at 6 does, several times faster.
_GZIP_LEVEL: Final = 6 if _deflate is zlib else 2
_GZIP_STEP_BYTES: Final = 64 * 1024
_ZSTD_LEVEL: Final = 3  # compression.zstd.level
# One zstd block of 4 bytes may become 128 KiB: a step this small passes the cap by 16 MiB at most.
_ZSTD_STEP_BYTES: Final = 512
_ZSTD_CHUNK_BYTES: Final = 128 * 1024 + 3  # what zstd-jni reads at once


def compress(codec: Compression, data: Buffer) -> bytes:
    """Return `data` in the form that Apache's producer gives the body of a v2 batch."""
    return _COMPRESSORS[codec](data)


def decompress(
    codec: Compression,
    data: Buffer,
    limits: DecompressionLimits = DEFAULT_LIMITS,
    *,
    magic: int = 2,
) -> bytes:
    """Return the decompressed body.

    `magic` 0 makes lz4 skip the header checksum, which old producers computed wrongly (KIP-57).
    Errors: DecompressedTooLarge where the limits are passed, else CorruptRecordBatch.
    """
    cap = limits.cap_bytes(len(data))
    if codec is Compression.LZ4:
        return lz4_decompress(data, cap, check_header=magic > 0)
    return _DECOMPRESSORS[codec](data, cap)


def _gzip_compress(data: Buffer) -> bytes:
    stream = _deflate.compressobj(level=_GZIP_LEVEL, wbits=_GZIP_WINDOW_BITS)
    compressed: bytes = stream.compress(data) + stream.flush()
    return compressed


def _gzip_decompress(data: Buffer, cap: int) -> bytes:
    """Read all members; like the JDK, ignore bytes after a member that begin no other member."""
    view = memoryview(data)
    output = bytearray()
    position = 0
    while True:
        position = _gzip_member(view, position, output, cap)
        head = bytes(view[position : position + len(_GZIP_MEMBER_HEAD)])
        if len(view) - position <= _GZIP_MEMBER_MIN_BYTES or head != _GZIP_MEMBER_HEAD:
            return bytes(output)


def _gzip_member(view: memoryview, position: int, output: bytearray, cap: int) -> int:
    """Append one member's content to `output` and return the position after its trailer.

    Goes in steps, because what a step leaves over is copied: with the whole rest as one step, a
    body of many empty members would cost quadratic time.
    """
    member = _deflate.decompressobj(wbits=_GZIP_WINDOW_BITS)
    while not member.eof:
        step = view[position : position + _GZIP_STEP_BYTES]
        if not step:
            raise CorruptRecordBatch("gzip data is cut")
        try:
            output += member.decompress(step, cap + 1 - len(output))
        except (zlib.error, _deflate.error, ValueError) as error:
            raise CorruptRecordBatch(f"gzip data is corrupt: {error}") from error
        if len(output) > cap:
            raise DecompressedTooLarge(f"gzip data is larger than {cap} bytes")
        position += len(step) - len(member.unused_data)
    return position


def _zstd_compress(data: Buffer) -> bytes:
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_content_size=True).compress(data)


def _zstd_decompress(data: Buffer, cap: int) -> bytes:
    """Read all frames, skippable ones included; every one must be whole."""
    source = bytes(data)
    decompressor = zstandard.ZstdDecompressor()
    try:
        declared = zstandard.frame_content_size(source) if source else 0
        if declared > cap:
            raise DecompressedTooLarge(f"zstd frame declares {declared} bytes of {cap} allowed")
        if declared > 0:
            return decompressor.decompress(source, allow_extra_data=False)
    except zstandard.ZstdError:
        pass  # several frames, or corrupt: the careful path below tells them apart
    return _zstd_frames(source, decompressor, cap)


def _zstd_frames(source: bytes, decompressor: zstandard.ZstdDecompressor, cap: int) -> bytes:
    output = bytearray()
    frame = decompressor.decompressobj()
    position = frame_end = 0
    while position < len(source):
        step = source[position : position + _ZSTD_STEP_BYTES]
        try:
            output += frame.decompress(step)
        except zstandard.ZstdError as error:
            raise CorruptRecordBatch(f"zstd data is corrupt: {error}") from error
        if len(output) > cap:
            raise DecompressedTooLarge(f"zstd data is larger than {cap} bytes")
        position += len(step) - len(frame.unused_data)
        if frame.eof:
            frame_end = position
            frame = decompressor.decompressobj()
    # Apache's reader misses that a frame is cut if one before it ended in the last chunk it read.
    last_chunk = (len(source) - 1) // _ZSTD_CHUNK_BYTES * _ZSTD_CHUNK_BYTES
    if frame_end <= last_chunk and frame_end < len(source):
        raise CorruptRecordBatch("zstd data is cut")
    return bytes(output)


def _copy(data: Buffer) -> bytes:
    return bytes(data)


def _copy_capped(data: Buffer, cap: int) -> bytes:
    if len(data) > cap:
        raise DecompressedTooLarge(f"body is larger than {cap} bytes")
    return bytes(data)


_COMPRESSORS: Final[dict[Compression, Callable[[Buffer], bytes]]] = {
    Compression.NONE: _copy,
    Compression.GZIP: _gzip_compress,
    Compression.SNAPPY: snappy_compress,
    Compression.LZ4: lz4_compress,
    Compression.ZSTD: _zstd_compress,
}
_DECOMPRESSORS: Final[dict[Compression, Callable[[Buffer, int], bytes]]] = {
    Compression.NONE: _copy_capped,
    Compression.GZIP: _gzip_decompress,
    Compression.SNAPPY: snappy_decompress,
    Compression.ZSTD: _zstd_decompress,
}
