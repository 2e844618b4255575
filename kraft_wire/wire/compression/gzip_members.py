"""Gzip bodies, one or several members, with a cap on the decompressed size.

Read like the JDK: members follow one another, and bytes after a member that do not begin another
one are ignored. Uses igzip if `isal` is installed.
"""

import zlib
from types import ModuleType
from typing import Final

from kraft_wire.wire.records.corruption import CorruptRecordBatch, DecompressedTooLarge

_deflate: ModuleType = zlib
try:
    from isal import isal_zlib
except ImportError:
    pass
else:
    _deflate = isal_zlib

__all__ = ["gzip_compress", "gzip_decompress"]

Buffer = bytes | bytearray | memoryview

_GZIP_WINDOW_BITS: Final = 31  # 15 bits of window, with the gzip wrapper
_GZIP_MEMBER_HEAD: Final = b"\x1f\x8b\x08"
_GZIP_MEMBER_MIN_BYTES: Final = 18
# igzip knows the levels 0-3 and compresses at 2 about as zlib at 6 does, several times faster.
_GZIP_LEVEL: Final = 6 if _deflate is zlib else 2
_GZIP_STEP_BYTES: Final = 64 * 1024


def gzip_compress(data: Buffer) -> bytes:
    """Return one member."""
    stream = _deflate.compressobj(level=_GZIP_LEVEL, wbits=_GZIP_WINDOW_BITS)
    compressed: bytes = stream.compress(data) + stream.flush()
    return compressed


def gzip_decompress(data: Buffer, cap: int) -> bytes:
    """Read all members; DecompressedTooLarge above `cap` bytes, else CorruptRecordBatch."""
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

    It works in steps, because the unused rest of a step is copied: with the whole rest in one step,
    a body of many empty members would cost quadratic time.
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
