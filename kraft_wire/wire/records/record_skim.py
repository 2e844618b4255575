"""A check of the records of a batch without decoding: form, offsets, null keys, timestamps.

Before it stores a batch, a broker must check that it can be read (KIP-98's record format), but
needs no record. Accepts and refuses the same bodies as `record.iter_records`, several times faster:
no object is made, and varints of one and two bytes are read in place: sizes up to 8 KiB, deltas up
to eight seconds. The lowest bit of a length is its sign; all negative ones mean null. A body with
unusual parts is read again by `iter_records`, which decides.
"""

from typing import Final, TypeAlias

from kraft_wire.wire.records.record import iter_records
from kraft_wire.wire.varint import read_varint, read_varlong

__all__ = ["RecordSkim", "skim_records"]


RecordSkim: TypeAlias = tuple[int, int, bool, bool]
"""The values that a broker needs of the records of a batch.

The lowest and the highest timestamp delta, 0 included; whether a key is null; whether the offset
deltas are 0, 1, 2 and so on.
"""

# Looked up, because a shift or a mask of an int costs three times as much as an element of a tuple.
_DELTAS: Final = tuple((byte >> 1) ^ -(byte & 1) for byte in range(0x80))
"""The values of varints of one byte."""
_FIELD_BYTES: Final = tuple(1 if byte & 1 else 1 + (byte >> 1) for byte in range(0x80))
"""Bytes of a key or value with its length, by a length of one byte."""
_LOW_BITS: Final = tuple((byte & 0x7F) >> 1 for byte in range(0x100))
"""The first byte's part of a length of two bytes; the second one counts in units of 64."""


def skim_records(body: bytes | memoryview, count: int, begin: int = 0) -> RecordSkim:
    """Check `count` records of an uncompressed body, which `begin` bytes may precede.

    InvalidRecord if they cannot be read.
    """
    try:
        skim = _skim(body, count, begin) if count > 0 else None
    except (IndexError, ValueError):
        skim = None
    return _skim_slowly(bytes(body[begin:]), count) if skim is None else skim


def _skim(body: bytes | memoryview, count: int, position: int) -> RecordSkim | None:  # noqa: C901  # a call per field would double the cost of every produced record
    """Walk over records of the usual form; None or ValueError at the first other one."""
    lowest, highest, has_null_key, is_consecutive = 0, 0, False, True
    for expected in range(0, 2 * count, 2):  # varints hold an offset delta twice; odd: negative
        size = body[position]
        if size <= 0x7F:
            position += 1
            end = position + (size >> 1)
        elif (second := body[position + 1]) <= 0x7F:
            position += 2
            end = position + _LOW_BITS[size] + (second << 6)
        else:
            length, position = read_varint(body, position)
            end, size = position + length, 0  # an end before its record is met by no position
        delta = body[position + 1]
        if delta <= 0x7F:
            delta = _DELTAS[delta]
            position += 2
        elif (second := body[position + 2]) <= 0x7F:
            delta, position = delta & 0x7F | second << 7, position + 3
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, position = read_varlong(body, position + 1)
        if not delta:
            pass  # most records of a batch are of one time
        elif delta > highest:
            highest = delta
        elif delta < lowest:
            lowest = delta
        offset = body[position]
        if offset <= 0x7F:
            position += 1
        elif (second := body[position + 1]) <= 0x7F:
            position += 2
            offset = offset & 0x7F | second << 7
        else:
            offset, position = read_varint(body, position)
            offset <<= 1
        if offset != expected:
            is_consecutive = False
        length = body[position]
        if length <= 0x7F:
            if length & 1:
                has_null_key = True
            position += _FIELD_BYTES[length]
        elif (second := body[position + 1]) <= 0x7F and not length & 1:
            position += 2 + _LOW_BITS[length] + (second << 6)
        else:
            position = _skip_bytes(body, position)
        length = body[position]
        if length <= 0x7F:
            position += _FIELD_BYTES[length]
        elif (second := body[position + 1]) <= 0x7F and not length & 1:
            position += 2 + _LOW_BITS[length] + (second << 6)
        else:
            position = _skip_bytes(body, position)
        position = _skip_headers(body, position) if body[position] else position + 1
        if position != end or size & 1:
            return None
    return (lowest, highest, has_null_key, is_consecutive) if position == len(body) else None


def _skip_bytes(body: bytes | memoryview, position: int) -> int:
    """Return the position after a long key or value; ValueError for a negative length."""
    length, position = read_varint(body, position)
    if length < 0:
        raise ValueError(length)
    return position + length


def _skip_headers(body: bytes | memoryview, position: int) -> int:
    """Return the position after the headers; ValueError for those that need the slow reader."""
    count, position = read_varint(body, position)
    if count < 0:
        raise ValueError(count)
    for _ in range(count):
        length, position = read_varint(body, _skip_bytes(body, position))
        position += max(length, 0)
    return position


def _skim_slowly(body: bytes, count: int) -> RecordSkim:
    lowest = highest = 0
    has_null_key = False
    is_consecutive = True
    for index, record in enumerate(iter_records(body, count, 0, 0)):
        is_consecutive = is_consecutive and record.offset == index
        lowest = min(lowest, record.timestamp)
        highest = max(highest, record.timestamp)
        has_null_key = has_null_key or record.key is None
    return lowest, highest, has_null_key, is_consecutive
