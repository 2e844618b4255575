"""Zig-zag varints of record bodies and the lenient UTF-8 of header keys.

The message codecs inline their own unsigned varints; records use the zig-zag form (KIP-98) in which
-1 takes one byte. Both readers accept what Apache's accept: overlong forms up to 5 or 10 bytes,
excess bits dropped.
"""

import re
from typing import Final

__all__ = [
    "append_varint",
    "read_varint",
    "read_varlong",
    "text_from_utf8",
    "utf8_from_text",
    "wrap_int32",
    "wrap_int64",
]

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\ufffd".encode()


def wrap_int32(value: int) -> int:
    """Return `value` in two's complement of 32 bits, as Java's int arithmetic leaves it."""
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def wrap_int64(value: int) -> int:
    """Return `value` in two's complement of 64 bits, as Java's long arithmetic leaves it."""
    return (value + (1 << 63) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)


def append_varint(output: bytearray, value: int) -> None:
    """Append the zig-zag form of a signed 32- or 64-bit `value`."""
    rest = value << 1 if value >= 0 else (~value << 1) + 1
    while rest > 0x7F:
        output.append(rest & 0x7F | 0x80)
        rest >>= 7
    output.append(rest)


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return (value, end); IndexError past the end, ValueError for more than 5 bytes."""
    raw, end = _read_groups(data, position, 5)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), end


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return (value, end); IndexError past the end, ValueError for more than 10 bytes."""
    raw, end = _read_groups(data, position, 10)
    raw &= 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), end


def _read_groups(data: bytes | memoryview, position: int, groups_max: int) -> tuple[int, int]:
    raw = 0
    for group in range(groups_max):
        byte = data[position + group]
        raw |= (byte & 0x7F) << 7 * group
        if byte < 0x80:
            return raw, position + group + 1
    raise ValueError(f"a varint at byte {position} is longer than {groups_max} bytes")


def text_from_utf8(raw: bytes | memoryview) -> str:
    """Decode as Java does: each bad sequence becomes one U+FFFD.

    Python and Java differ only in encoded surrogates, which are one bad sequence to Java.
    """
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, raw).decode("utf-8", "replace")


def utf8_from_text(text: str) -> bytes:
    """Encode as Java does: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace")
