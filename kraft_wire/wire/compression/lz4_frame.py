"""The LZ4 frame format as Apache's reader and writer implement it (KIP-57).

Narrower than the LZ4 specification on purpose: blocks must be independent, there are no
dictionaries, bytes after the end mark are ignored, content size and content checksum are skipped.
Message format 0 has a wrong header checksum, so it is not checked there.

Reads one frame block by block: a block declares at most 4 MiB, which bounds memory before the cap
is reached.
"""

import struct
from typing import Final

import lz4.block
import lz4.frame

from kraft_wire.wire.records.corruption import CorruptRecordBatch, DecompressedTooLarge

__all__ = ["lz4_compress", "lz4_decompress", "xxh32_short"]

Buffer = bytes | bytearray | memoryview

_MAGIC: Final = 0x184D2204
_HEAD: Final = struct.Struct("<IBB")  # magic, FLG, BD
_UINT32: Final = struct.Struct("<I")
_STORED_BIT: Final = 0x80000000
_CONTENT_SIZE_BYTES: Final = 8

_FLG_VERSION_SHIFT: Final = 6
_FLG_INDEPENDENT: Final = 0x20
_FLG_BLOCK_CHECKSUM: Final = 0x10
_FLG_CONTENT_SIZE: Final = 0x08
_FLG_CONTENT_CHECKSUM: Final = 0x04
_FLG_RESERVED: Final = 0x03
_BD_RESERVED: Final = 0x8F

_WRITTEN_FLG: Final = 1 << _FLG_VERSION_SHIFT | _FLG_INDEPENDENT
_WRITTEN_BLOCK_SIZE_ID: Final = 4  # 64 KiB, as Apache's producer


def lz4_compress(data: Buffer) -> bytes:
    """Return `data` as one frame of independent 64 KiB blocks, without checksums or size."""
    frame: bytes = lz4.frame.compress(
        data, block_size=_WRITTEN_BLOCK_SIZE_ID, block_linked=False, store_size=False
    )
    return frame


def lz4_decompress(data: Buffer, cap: int, *, check_header: bool = True) -> bytes:
    """Return the content of the first frame, at most `cap` bytes."""
    view = memoryview(data)
    try:
        position, flags, block_descriptor = _header(view, check_header)
        return _blocks(view, position, flags, block_descriptor, cap)
    except (struct.error, IndexError) as error:
        raise CorruptRecordBatch("lz4 frame is cut") from error
    except (lz4.block.LZ4BlockError, RuntimeError, ValueError) as error:
        raise CorruptRecordBatch(f"lz4 data is corrupt: {error}") from error


def _header(view: memoryview, check_header: bool) -> tuple[int, int, int]:
    """Check the frame header and return (position after it, FLG, BD)."""
    magic, flags, block_descriptor = _HEAD.unpack_from(view, 0)
    if magic != _MAGIC:
        raise CorruptRecordBatch(f"lz4 frame begins with {magic:#010x}")
    if flags >> _FLG_VERSION_SHIFT != 1 or flags & _FLG_RESERVED:
        raise CorruptRecordBatch(f"lz4 frame has unknown flags {flags:#04x}")
    if not flags & _FLG_INDEPENDENT:
        raise CorruptRecordBatch("lz4 frame has dependent blocks")
    if block_descriptor & _BD_RESERVED or not 4 <= block_descriptor >> 4 <= 7:
        raise CorruptRecordBatch(f"lz4 frame has unknown block descriptor {block_descriptor:#04x}")
    position = _HEAD.size
    if flags & _FLG_CONTENT_SIZE:
        position += _CONTENT_SIZE_BYTES
    checksum = view[position]
    if check_header and checksum != xxh32_short(bytes(view[4:position])) >> 8 & 0xFF:
        raise CorruptRecordBatch("lz4 frame header has a wrong checksum")
    return position + 1, flags, block_descriptor


def _blocks(view: memoryview, position: int, flags: int, block_descriptor: int, cap: int) -> bytes:
    block_bytes_max = 1 << (8 + 2 * (block_descriptor >> 4))
    checksum_bytes = _UINT32.size if flags & _FLG_BLOCK_CHECKSUM else 0
    pieces: list[Buffer] = []
    total = 0
    while True:
        size: int = _UINT32.unpack_from(view, position)[0]
        size_bytes = size & ~_STORED_BIT
        if size_bytes == 0:
            if flags & _FLG_CONTENT_CHECKSUM:  # has to be there, but Apache does not verify it
                _UINT32.unpack_from(view, position + _UINT32.size)
            return b"".join(pieces)
        start = position + _UINT32.size
        position = start + size_bytes + checksum_bytes
        if size_bytes > block_bytes_max or position > len(view):
            raise CorruptRecordBatch(f"lz4 block of {size_bytes} bytes at byte {start}")
        if checksum_bytes:
            _check_block(view[start - _UINT32.size : position], flags, block_descriptor)
        block: Buffer = view[start : start + size_bytes]
        if not size & _STORED_BIT:
            block = lz4.block.decompress(block, uncompressed_size=block_bytes_max)
        pieces.append(block)
        total += len(block)
        if total > cap:
            raise DecompressedTooLarge(f"lz4 data is larger than {cap} bytes")


def _check_block(block: memoryview, flags: int, block_descriptor: int) -> None:
    """Verify a block's checksum by the native frame reader, in a frame of only that block."""
    lone_flags = _WRITTEN_FLG | flags & _FLG_BLOCK_CHECKSUM
    descriptor = bytes((lone_flags, block_descriptor))
    head = _UINT32.pack(_MAGIC) + descriptor + bytes((xxh32_short(descriptor) >> 8 & 0xFF,))
    lz4.frame.decompress(b"".join((head, block, bytes(_UINT32.size))))


_PRIME_1: Final = 2654435761
_PRIME_2: Final = 2246822519
_PRIME_3: Final = 3266489917
_PRIME_4: Final = 668265263
_PRIME_5: Final = 374761393
_MASK: Final = 0xFFFFFFFF


def xxh32_short(data: bytes) -> int:
    """Return xxHash32 with seed 0 of fewer than 16 bytes: frame headers have 2 to 14."""
    assert len(data) < 16, len(data)
    value = (_PRIME_5 + len(data)) & _MASK
    words = len(data) // 4
    for (word,) in _UINT32.iter_unpack(data[: 4 * words]):
        value = _rotate(value + word * _PRIME_3 & _MASK, 17) * _PRIME_4 & _MASK
    for byte in data[4 * words :]:
        value = _rotate(value + byte * _PRIME_5 & _MASK, 11) * _PRIME_1 & _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
