"""Compression of record batches: gzip, snappy, lz4 and zstd, with capped decompression.

KIP-110 (zstd), KIP-57 (lz4 framing), safe from decompression bombs. The output is what Apache's
clients write by default and every client reads; the input is anything that Apache's readers accept.
The cap is a number of bytes known before the first output byte: a declared size above it is refused
before anything is allocated, and an undeclared one during the decompression.

Codecs are imported on first use, because imports are most of the time of a start. Not here:
batches; `record_batch` and `legacy_batch` pass the compressed body.
"""

from enum import IntEnum
from typing import Final

from kraft_wire.frozen import frozen
from kraft_wire.wire.records.corruption import DecompressedTooLarge

__all__ = [
    "DEFAULT_LIMITS",
    "STORED_LIMITS",
    "Compression",
    "DecompressionLimits",
    "compress",
    "decompress",
]

Buffer = bytes | bytearray | memoryview


class Compression(IntEnum):
    """Codec ids in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@frozen
class DecompressionLimits:
    """Limits for one decompressed body; the smaller of both applies."""

    bytes_max: int = 64 * 1024 * 1024
    """`max.decompressed.message.bytes`: decompressed bytes of one batch."""
    ratio_max: int = 1000
    """`decompression.ratio.max`: output bytes per input byte, once output passes the floor."""
    ratio_floor_bytes: int = 1024 * 1024
    """Output that is allowed at any ratio: small bodies of zeros are valid and frequent."""

    def cap_bytes(self, compressed_bytes: int) -> int:
        """Return the largest output allowed for a body of `compressed_bytes`."""
        by_ratio = max(self.ratio_floor_bytes, compressed_bytes * self.ratio_max)
        return min(self.bytes_max, by_ratio)


DEFAULT_LIMITS: Final = DecompressionLimits()
STORED_LIMITS: Final = DecompressionLimits(bytes_max=(1 << 31) - 1, ratio_max=1 << 31)
"""For stored batches, accepted under other limits or by Apache: the largest array of a JVM."""


def compress(codec: Compression, data: Buffer) -> bytes:
    """Return `data` compressed like the body of a v2 batch of Apache's producer."""
    if codec is Compression.NONE:
        return bytes(data)
    if codec is Compression.GZIP:
        from kraft_wire.wire.compression.gzip_members import gzip_compress

        return gzip_compress(data)
    if codec is Compression.SNAPPY:
        from kraft_wire.wire.compression.snappy_framing import snappy_compress

        return snappy_compress(data)
    if codec is Compression.LZ4:
        from kraft_wire.wire.compression.lz4_frame import lz4_compress

        return lz4_compress(data)
    from kraft_wire.wire.compression.zstd_frames import zstd_compress

    return zstd_compress(data)


def decompress(
    codec: Compression,
    data: Buffer,
    limits: DecompressionLimits = DEFAULT_LIMITS,
    *,
    magic: int = 2,
) -> bytes:
    """Return the decompressed body.

    With `magic` 0 lz4 skips the header checksum, which old producers computed wrongly (KIP-57).
    Errors: DecompressedTooLarge above the limits, else CorruptRecordBatch.
    """
    cap = limits.cap_bytes(len(data))
    if codec is Compression.NONE:
        return _copy_capped(data, cap)
    if codec is Compression.GZIP:
        from kraft_wire.wire.compression.gzip_members import gzip_decompress

        return gzip_decompress(data, cap)
    if codec is Compression.SNAPPY:
        from kraft_wire.wire.compression.snappy_framing import snappy_decompress

        return snappy_decompress(data, cap)
    if codec is Compression.LZ4:
        from kraft_wire.wire.compression.lz4_frame import lz4_decompress

        return lz4_decompress(data, cap, check_header=magic > 0)
    from kraft_wire.wire.compression.zstd_frames import zstd_decompress

    return zstd_decompress(data, cap)


def _copy_capped(data: Buffer, cap: int) -> bytes:
    if len(data) > cap:
        raise DecompressedTooLarge(f"body is larger than {cap} bytes")
    return bytes(data)
