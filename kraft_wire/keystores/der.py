"""The elements of an ASN.1 value in DER form: tags, contents and encodings."""

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Element", "elements"]


class Element(NamedTuple):
    """One element of a constructed value."""

    tag: int
    content: bytes
    encoded: bytes


def elements(data: bytes) -> Iterator[Element]:
    """Yield the elements of a constructed value. Errors: IndexError."""
    position = 0
    while position < len(data):
        begin = position
        tag, length = data[position], data[position + 1]
        position += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[position : position + count], "big")
            position += count
        end = position + length
        if end > len(data):
            raise IndexError(end)
        yield Element(tag, data[position:end], data[begin:end])
        position = end
