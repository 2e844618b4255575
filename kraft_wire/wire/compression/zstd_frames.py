"""Zstd bodies (KIP-110), one or several frames, with a cap on the decompressed size.

Accepts and refuses the same bodies as Apache's reader, even with a cut last frame.
"""

from typing import Final

import zstandard

from kraft_wire.wire.records.corruption import CorruptRecordBatch, DecompressedTooLarge

__all__ = ["zstd_compress", "zstd_decompress"]

Buffer = bytes | bytearray | memoryview

_ZSTD_LEVEL: Final = 3  # compression.zstd.level
# One zstd block of 4 bytes may become 128 KiB: so small a step exceeds the cap by at most 16 MiB.
_ZSTD_STEP_BYTES: Final = 512
_ZSTD_CHUNK_BYTES: Final = 128 * 1024 + 3  # bytes that zstd-jni reads at once


def zstd_compress(data: Buffer) -> bytes:
    """Return one frame that declares its content size, as Apache's producer writes it."""
    return zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_content_size=True).compress(data)


def zstd_decompress(data: Buffer, cap: int) -> bytes:
    """Read all frames, skippable ones included; every one must be whole.

    DecompressedTooLarge above `cap` bytes, else CorruptRecordBatch.
    """
    source = bytes(data)
    decompressor = zstandard.ZstdDecompressor()
    try:
        declared = zstandard.frame_content_size(source) if source else 0
        if declared > cap:
            raise DecompressedTooLarge(f"zstd frame declares {declared} bytes of {cap} allowed")
        if declared > 0:
            return decompressor.decompress(source, allow_extra_data=False)
    except zstandard.ZstdError:
        pass  # several frames, or corrupt: the slow path below decides
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
    # Apache's reader accepts a cut frame if another one ended in the last chunk that it read.
    last_chunk = (len(source) - 1) // _ZSTD_CHUNK_BYTES * _ZSTD_CHUNK_BYTES
    if frame_end <= last_chunk and frame_end < len(source):
        raise CorruptRecordBatch("zstd data is cut")
    return bytes(output)
