"""Snappy in the two framings that Kafka clients produce: raw blocks and the xerial stream.

The xerial stream (snappy-java) is a 16-byte header, then chunks of int32 length and one raw block.
JVM clients and librdkafka's readers expect it, so it is written here. A body without the header is
one raw block. Streams may follow one another.

The block format itself is `cramjam`'s.
"""

import struct
from typing import Final

import cramjam

from kraft_wire.wire.records.corruption import CorruptRecordBatch, DecompressedTooLarge

__all__ = ["snappy_compress", "snappy_compress_raw", "snappy_decompress"]

Buffer = bytes | bytearray | memoryview

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + struct.pack(">ii", 1, 1)  # version, oldest compatible one
_HEADER_BYTES: Final = len(_HEADER)
_MAGIC_AS_LENGTH: Final = int.from_bytes(_MAGIC[:4], "big", signed=True)
_CHUNK_BYTES: Final = 32 * 1024  # snappy-java's block size
_INT32: Final = struct.Struct(">i")


def snappy_compress(data: Buffer) -> bytes:
    """Return `data` as a xerial stream."""
    view = memoryview(data)
    parts = [_HEADER]
    for start in range(0, len(view), _CHUNK_BYTES):
        block = snappy_compress_raw(view[start : start + _CHUNK_BYTES])
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def snappy_compress_raw(data: Buffer) -> bytes:
    """Return `data` as one raw block, the form of several non-JVM clients."""
    return bytes(cramjam.snappy.compress_raw(data))


def snappy_decompress(data: Buffer, cap: int) -> bytes:
    """Return the content of a xerial stream or of a raw block, at most `cap` bytes."""
    view = memoryview(data)
    if len(view) < _HEADER_BYTES or bytes(view[: len(_MAGIC)]) != _MAGIC:
        return bytes(_raw_block(view, cap))
    output = bytearray()
    position = _HEADER_BYTES
    while len(view) - position >= _INT32.size:
        length: int = _INT32.unpack_from(view, position)[0]
        position += _INT32.size
        if length == _MAGIC_AS_LENGTH:
            if not _is_header(view, position - _INT32.size):
                break
            position += _HEADER_BYTES - _INT32.size
            continue
        if not 0 < length <= len(view) - position:
            raise CorruptRecordBatch(f"snappy chunk of {length} bytes in {len(view) - position}")
        output += _raw_block(view[position : position + length], cap - len(output))
        position += length
    return bytes(output)


def _is_header(view: memoryview, position: int) -> bool:
    """Whether another stream begins; other bytes end the data, as in snappy-java.

    snappy-java checks the version of a following stream, but not that of the first.
    """
    if len(view) - position < _HEADER_BYTES:
        raise CorruptRecordBatch("snappy header of a following stream is cut")
    if bytes(view[position : position + len(_MAGIC)]) != _MAGIC:
        return False
    version: int = _INT32.unpack_from(view, position + len(_MAGIC))[0]
    if version < 1:
        raise CorruptRecordBatch(f"following snappy stream of version {version}")
    return True


def _raw_block(block: memoryview, cap: int) -> bytearray:
    """Decompress one block; its declared length is checked before memory is allocated."""
    try:
        declared: int = cramjam.snappy.decompress_raw_len(block)
        if declared > cap:
            raise DecompressedTooLarge(f"snappy block declares {declared} bytes of {cap} allowed")
        output = bytearray(declared)
        written: int = cramjam.snappy.decompress_raw_into(block, output)
    except (cramjam.DecompressionError, ValueError) as error:
        raise CorruptRecordBatch(f"snappy data is corrupt: {error}") from error
    assert written == declared, (written, declared)
    return output
