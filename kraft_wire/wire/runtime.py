"""Functions for the generated codecs: tables of `struct` functions by length, and long forms.

Generated code reads a run of fixed-size fields together with the length byte of the next field.
That byte indexes a table of functions, each of which reads a payload of exactly that length and the
next run in one step. Lengths of 128 and more, and cut data, use the functions below. The reference
codec (`walker`) decides on input that they refuse with `Unusual`.
"""

from collections.abc import Callable
from functools import cache
from struct import Struct as Codec
from typing import Any

from kraft_wire.model import FileSlice
from kraft_wire.wire.message import Append, Buffer, Part
from kraft_wire.wire.primitives import ONE_BYTE, Unusual, encode_unsigned_varint

__all__ = [
    "Unusual",
    "classic_numbers",
    "classic_text",
    "classic_texts",
    "compact_numbers",
    "compact_text",
    "compact_texts",
    "long_count",
    "long_numbers",
    "long_text",
    "new",
    "one_byte",
    "packers",
    "size_of",
    "tag_head",
    "unknown_tag",
    "unknown_tags",
    "unpackers",
    "varint",
    "write_classic_texts",
    "write_compact_texts",
    "write_tags",
]

SHORT_LENGTHS = 128
STRING_BYTES_MAX = 32767
UNKNOWN_TAGS_MAX = 64
"""Above this, the reference codec counts tagged fields of a section, or their bytes."""
UNKNOWN_TAG_BYTES_MAX = 65_536

Unpack = Callable[[Buffer, int], tuple[Any, ...]]
Pack = Callable[..., bytes]

new = object.__new__
one_byte = ONE_BYTE
varint = encode_unsigned_varint


@cache
def unpackers(element: str, suffix: str, bias: int) -> list[Unpack]:
    """Return functions by length byte: read that many elements, less `bias`, and the suffix.

    Each function is made on first use: the length is the byte before the payload.
    """

    def first_use(data: Buffer, pos: int) -> tuple[Any, ...]:
        length = data[pos - 1]
        if length < bias:
            raise Unusual("null")
        unpack = Codec(f">{repeat(element, length - bias)}{suffix}").unpack_from
        table[length] = unpack
        return unpack(data, pos)

    table: list[Unpack] = [first_use] * SHORT_LENGTHS
    return table


@cache
def packers(prefix: str, element: str, suffix: str, position: int, bias: int) -> list[Pack]:
    """Return functions by element count: write prefix with length, that many elements, suffix.

    Each function is made on first use: the length is argument `position`.
    """

    def first_use(*values: Any) -> bytes:
        count = values[position] - bias
        pack = Codec(f">{prefix}{repeat(element, count)}{suffix}").pack
        table[count] = pack
        return pack(*values)

    table: list[Pack] = [first_use] * SHORT_LENGTHS
    return table


def repeat(element: str, count: int) -> str:
    """Return the format of `count` elements; ids are strings of 16 bytes."""
    return element * count if element == "16s" else f"{count}{element}"


def long_count(data: Buffer, pos: int, first: int) -> tuple[int, int]:
    """Finish a compact length of two and more bytes after `first`; return it less one."""
    byte = data[pos]
    if 0 < byte < 0x80:
        return (byte << 7 | first & 0x7F) - 1, pos + 1
    value = first & 0x7F
    for shift in (7, 14, 21):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    if byte >= 0x80 or value < SHORT_LENGTHS:
        raise Unusual("varint")
    return value - 1, pos


def compact_text(data: Buffer, pos: int, length: int) -> tuple[str, int]:
    """Read a string of 127 bytes and more after the first byte of its length."""
    second = data[pos]
    if 0 < second < 0x80:
        pos += 1
        size = (second << 7 | length & 0x7F) - 1
    else:
        size, pos = long_count(data, pos, length)
    end = pos + size
    if size > STRING_BYTES_MAX or end > len(data):
        raise Unusual("string")
    return str(data[pos:end], "utf-8"), end


def classic_text(data: Buffer, pos: int, length: int) -> tuple[str, int]:
    """Read a string of a known length."""
    end = pos + length
    if not 0 <= length <= STRING_BYTES_MAX or end > len(data):
        raise Unusual("string")
    return str(data[pos:end], "utf-8"), end


def compact_texts(data: Buffer, pos: int, length: int) -> tuple[list[str], int]:
    """Read an array of strings after the first byte of its length."""
    count = length - 1
    if length >= SHORT_LENGTHS:
        count, pos = long_count(data, pos, length)
    elif count < 0:
        raise Unusual("null")
    texts = []
    for _ in range(count):
        size = data[pos]
        pos += 1
        if 0 < size < SHORT_LENGTHS:
            end = pos + size - 1
            texts.append(str(data[pos:end], "utf-8"))
            pos = end
        else:
            text, pos = compact_text(data, pos, size)
            texts.append(text)
    if pos > len(data):
        raise Unusual("string")
    return texts, pos


def classic_texts(data: Buffer, pos: int, count: int) -> tuple[list[str], int]:
    """Read an array of `count` strings."""
    if count < 0:
        raise Unusual("null")
    texts = []
    for _ in range(count):
        size = data[pos] << 8 | data[pos + 1]
        text, pos = classic_text(data, pos + 2, size)
        texts.append(text)
    return texts, pos


def compact_numbers(
    data: Buffer, pos: int, length: int, element: str, size: int
) -> tuple[list[Any], int]:
    """Read an array of 127 and more fixed-size elements after the first byte of its length."""
    count, pos = long_count(data, pos, length)
    return classic_numbers(data, pos, count, element, size)


def classic_numbers(
    data: Buffer, pos: int, count: int, element: str, size: int
) -> tuple[list[Any], int]:
    """Read an array of `count` fixed-size elements of `size` bytes each."""
    end = pos + count * size
    if count < 0 or end > len(data):
        raise Unusual("array")
    return list(Codec(f">{repeat(element, count)}").unpack_from(data, pos)), end


def tag_head(data: Buffer, pos: int) -> tuple[int, int, int]:
    """Read tag and size of a tagged field; return them and the position of its content."""
    tag = data[pos]
    size = data[pos + 1]
    if tag >= 0x80 or size >= 0x80:
        if tag >= 0x80:
            tag, pos = long_count(data, pos + 1, tag)
            tag += 1
        else:
            pos += 1
        size = data[pos]
        if size >= 0x80:
            size, pos = long_count(data, pos + 1, size)
            return tag, size + 1, pos
        return tag, size, pos + 1
    return tag, size, pos + 2


def unknown_tag(data: Buffer, pos: int, size: int) -> tuple[bytes, int]:
    """Keep the content of a tagged field that the schema does not know."""
    end = pos + size
    if size > UNKNOWN_TAG_BYTES_MAX or end > len(data):
        raise Unusual("tag")
    return bytes(data[pos:end]), end


def unknown_tags(data: Buffer, pos: int, count: int) -> tuple[list[tuple[int, bytes]], int]:
    """Read a section of `count` tagged fields, none of which the schema knows."""
    if count > UNKNOWN_TAGS_MAX:
        raise Unusual("tags")
    tags = []
    total = 0
    for _ in range(count):
        tag, size, pos = tag_head(data, pos)
        content, pos = unknown_tag(data, pos, size)
        total += size
        tags.append((tag, content))
    if total > UNKNOWN_TAG_BYTES_MAX:
        raise Unusual("tags")
    return tags, pos


def long_text(raw: bytes) -> bytes:
    """Write a compact string of 127 bytes and more."""
    if len(raw) > STRING_BYTES_MAX:
        raise Unusual("string")
    return encode_unsigned_varint(len(raw) + 1) + raw


def long_numbers(values: list[Any], element: str) -> bytes:
    """Write the elements of an array of fixed-size values."""
    return Codec(f">{repeat(element, len(values))}").pack(*values)


COMPACT_TEXT = packers("B", "s", "", 0, 1)


def write_compact_texts(values: list[str], out: Append) -> None:
    """Write the elements of an array of strings."""
    for text in values:
        raw = text.encode()
        size = len(raw)
        out(COMPACT_TEXT[size](size + 1, raw) if size < SHORT_LENGTHS - 1 else long_text(raw))


def write_classic_texts(values: list[str], out: Append) -> None:
    """Write the elements of an array of strings with two-byte lengths."""
    for text in values:
        raw = text.encode()
        out(len(raw).to_bytes(2, "big", signed=True) + raw)


def size_of(part: Part) -> int:
    """Return the size of a records field in bytes."""
    if isinstance(part, FileSlice):
        return part.size_bytes
    return part.nbytes if type(part) is memoryview else len(part)


def write_tags(fields: list[tuple[int, list[Part]]], out: Append) -> None:
    """Write a tag section whose fields are in tag order already."""
    out(encode_unsigned_varint(len(fields)))
    for tag, parts in fields:
        out(encode_unsigned_varint(tag))
        out(encode_unsigned_varint(sum(map(size_of, parts))))
        for part in parts:
            out(part)
