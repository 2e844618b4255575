"""Primitive types of the wire: unsigned varints, and functions for generated code.

The functions at the top are for hand-written code and tests; the second half is the small runtime
of the generated modules. It refuses unusual input with `Unusual`, and the reference codec
(`walker`) takes over.
"""

import struct
from typing import Any, Final

from kraft_wire.wire.structs import Buffer

__all__ = [
    "FIXED",
    "ONE_BYTE",
    "STRING_BYTES_MAX",
    "UNSET",
    "Unusual",
    "decode_unsigned_varint",
    "encode_unsigned_varint",
]

FIXED: Final = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
    "uuid": struct.Struct("16s"),
    "bool": struct.Struct("B"),
}
"""The types of fixed size, for the reference codec."""
STRING_BYTES_MAX: Final = 32767

UNSET: Any = ()
"""Means "no argument" where None is a value; generated constructors compare identity."""


class Unusual(ValueError):
    """Bytes or a value that generated code leaves to the reference codec."""


def decode_unsigned_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes; return it and the position after it.

    Bits above the 32nd are dropped, as in Java. ValueError if it is longer than five bytes,
    IndexError if it is cut.
    """
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, position
    raise ValueError("a varint of more than 5 bytes")


ONE_BYTE: Final = [bytes((value,)) for value in range(0x80)]
"""The unsigned varints of one byte."""


def encode_unsigned_varint(value: int) -> bytes:
    """Write an unsigned varint; value is in [0, 2**32)."""
    if not 0 <= value <= 0xFFFFFFFF:
        raise ValueError(f"{value} is not an unsigned 32-bit integer")
    if value < 0x80:
        return ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)
