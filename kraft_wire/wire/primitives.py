"""Primitive types of the wire: unsigned varints, zig-zag varints, and what generated code calls.

CLIENT-FACTS 9.2. The functions at the top are for hand-written code and tests; the second half is
the small runtime of the generated modules. Whatever it cannot do at once it refuses with
`Unusual`, and the reference codec (`walker`) takes over.
"""

from typing import Any

from kraft_wire.wire.message import Buffer

__all__ = [
    "UNSET",
    "Unusual",
    "decode_unsigned_varint",
    "decode_varint",
    "decode_varlong",
    "encode_unsigned_varint",
    "encode_varint",
]

UNSET: Any = ()
"""Stands for "no argument" where None is a value; generated constructors compare identity."""


class Unusual(ValueError):
    """Bytes or a value that generated code leaves to the reference codec."""


def decode_unsigned_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes; return it and the position behind it.

    Bits above the 32nd are dropped, as Java drops them. ValueError when it is longer than five
    bytes, IndexError when it is cut off.
    """
    value = 0
    for shift in range(0, 35, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, position
    raise ValueError("a varint of more than 5 bytes")


def encode_unsigned_varint(value: int) -> bytes:
    """Write an unsigned varint; value is in [0, 2**32)."""
    if 0 <= value < 0x80:
        return bytes((value,))
    if not 0 <= value <= 0xFFFFFFFF:
        raise ValueError(f"{value} is not an unsigned 32-bit integer")
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def decode_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Read a zig-zag varint of at most 5 bytes; return it and the position behind it."""
    raw, position = decode_unsigned_varint(data, position)
    return (raw >> 1) ^ -(raw & 1), position


def decode_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """Read a zig-zag varint of at most 10 bytes; return it and the position behind it."""
    raw = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFFFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), position
    raise ValueError("a varlong of more than 10 bytes")


def encode_varint(value: int) -> bytes:
    """Write a zig-zag varint; any 64-bit value, so that it serves varlongs as well."""
    raw = (value << 1) ^ (value >> 63)
    groups = bytearray()
    while raw >= 0x80:
        groups.append(raw & 0x7F | 0x80)
        raw >>= 7
    groups.append(raw)
    return bytes(groups)
