"""Zig-zag varints of record bodies, and the lenient UTF-8 of header keys and of messages' strings.

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
    """Return `value` in two's complement of 32 bits, like Java's int arithmetic."""
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def wrap_int64(value: int) -> int:
    """Return `value` in two's complement of 64 bits, like Java's long arithmetic."""
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
    raw = data[position]
    if raw < 0x80:  # nearly every length, count and delta
        return (raw >> 1) ^ -(raw & 1), position + 1
    second = data[position + 1]
    if second < 0x80:
        raw = raw & 0x7F | second << 7
        return (raw >> 1) ^ -(raw & 1), position + 2
    third = data[position + 2]
    if third < 0x80:  # lengths up to 1 MiB
        raw = raw & 0x7F | (second & 0x7F) << 7 | third << 14
        return (raw >> 1) ^ -(raw & 1), position + 3
    raw, end = _read_groups(data, position, 5)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), end


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return (value, end); IndexError past the end, ValueError for more than 10 bytes."""
    raw = data[position]
    if raw < 0x80:
        return (raw >> 1) ^ -(raw & 1), position + 1
    raw, end = _read_groups(data, position, 10)
    raw &= 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), end


def _read_groups(data: bytes | memoryview, position: int, groups_max: int) -> tuple[int, int]:
    raw = shift = 0
    for byte in data[position : position + groups_max]:
        raw |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return raw, position + shift // 7
    if shift < 7 * groups_max:
        raise IndexError(f"a varint at byte {position} is cut")
    raise ValueError(f"a varint at byte {position} is longer than {groups_max} bytes")


def text_from_utf8(raw: bytes | memoryview) -> str:
    """Decode like Java: each invalid sequence becomes one U+FFFD.

    Python and Java differ only in encoded surrogates, which are one invalid sequence in Java.
    """
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, raw).decode("utf-8", "replace")


def utf8_from_text(text: str) -> bytes:
    """Encode as Java does: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace")
