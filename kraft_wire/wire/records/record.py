"""Records of batch format v2 (KIP-98): one record, and the body of a batch.

A body is `count` records back to back, each a zig-zag varint size and then attributes, timestamp
delta, offset delta, key, value and headers. Readers accept and refuse the same bytes as Apache's
`DefaultRecord`; every read stays inside the given body.

Batches, compression and control records are one level up, in `record_batch`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kraft_wire.wire.records.corruption import InvalidRecord
from kraft_wire.wire.varint import (
    append_varint,
    read_varint,
    read_varlong,
    text_from_utf8,
    utf8_from_text,
    wrap_int32,
    wrap_int64,
)

__all__ = [
    "NO_OFFSET",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "Header",
    "Record",
    "append_record",
    "append_values",
    "check_records",
    "increment_sequence",
    "iter_records",
    "record_values",
]

Header = tuple[str, bytes | None]

NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1
NO_SEQUENCE: Final = -1
_INT32_MAX: Final = 0x7FFFFFFF


class Record:
    """One record with its offset and time; equal if all fields are equal."""

    __slots__ = ("attributes", "headers", "key", "offset", "sequence", "timestamp", "value")

    def __init__(
        self,
        key: bytes | None = None,
        value: bytes | None = None,
        offset: int = NO_OFFSET,
        timestamp: int = NO_TIMESTAMP,
        headers: list[Header] | None = None,
        sequence: int = NO_SEQUENCE,
        attributes: int = 0,
    ) -> None:
        self.key = key
        self.value = value
        self.offset = offset
        self.timestamp = timestamp
        self.headers = headers if headers is not None else []
        self.sequence = sequence
        self.attributes = attributes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable, compared by value

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Record({fields})"


def increment_sequence(sequence: int, increment: int) -> int:
    """Return the sequence `increment` records later: after 2147483647 comes 0 (KIP-98)."""
    if sequence > wrap_int32(_INT32_MAX - increment):
        return wrap_int32(increment - (_INT32_MAX - sequence) - 1)
    return wrap_int32(sequence + increment)


def append_record(
    output: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | memoryview | None,
    value: bytes | memoryview | None,
    headers: Sequence[Header] = (),
) -> None:
    """Append one record to the body of a batch that is being built."""
    if key is None and value is not None and timestamp_delta == 0 and not headers:
        append_values(output, offset_delta, (value,))
        return
    record = bytearray(1)  # attributes: none are defined
    append_varint(record, timestamp_delta)
    append_varint(record, offset_delta)
    _append_blob(record, key)
    _append_blob(record, value)
    append_varint(record, len(headers))
    for name, content in headers:
        _append_blob(record, utf8_from_text(name))
        _append_blob(record, content)
    append_varint(output, len(record))
    output += record


class _Varints(dict[int, bytes]):
    """The zig-zag forms of small counts, each made on first use."""

    def __missing__(self, count: int) -> bytes:
        form = bytearray()
        append_varint(form, count)
        if count < _REMEMBERED_MAX:
            self[count] = bytes(form)
        return bytes(form)


_REMEMBERED_MAX: Final = 8_192
"""Smaller counts have forms of one and two bytes, which are cached."""
_VARINTS: Final = _Varints()


def append_values(
    output: bytearray, first_delta: int, values: Iterable[bytes | memoryview]
) -> None:
    """Append records with only a value, as all metadata records, with the batch's time."""
    varints = _VARINTS
    parts: list[bytes | memoryview] = []
    for offset_delta, value in enumerate(values, first_delta):
        offset, length = varints[offset_delta], varints[len(value)]
        size = varints[len(offset) + len(length) + len(value) + 4]
        # Attributes and timestamp delta; no key; no headers.
        parts += (size, b"\x00\x00", offset, b"\x01", length, value, b"\x00")
    output += b"".join(parts)


def _append_blob(record: bytearray, blob: bytes | memoryview | None) -> None:
    if blob is None:
        record.append(1)  # the zig-zag form of -1
        return
    append_varint(record, len(blob))
    record += blob


def iter_records(
    body: bytes,
    count: int,
    base_offset: int,
    base_timestamp: int,
    base_sequence: int = NO_SEQUENCE,
    log_append_time: int | None = None,
) -> Iterator[Record]:
    """Yield the `count` records of an uncompressed body.

    `log_append_time` replaces every timestamp if the batch has that timestamp type. Raises
    InvalidRecord at the first malformed record, and at the end if the body has more than `count`
    records. With a count of 0 the body is not read, as in Apache's code.
    """
    if count < 0:
        raise InvalidRecord(f"batch declares {count} records")
    position = 0
    for index in range(count):
        try:
            size, position = read_varint(body, position)
            end = position + size
            attributes = body[position]
            timestamp, position = read_varlong(body, position + 1)
            offset_delta, position = read_varint(body, position)
            key, position = _read_blob(body, position)
            value, position = _read_blob(body, position)
            headers, position = _read_headers(body, position)
        except (IndexError, ValueError) as error:
            raise InvalidRecord(f"record {index} of {count} is cut or malformed") from error
        # A blob that ends after its record, or after the body, was cut: the end shows it.
        if position != end or end > len(body):
            raise InvalidRecord(f"record {index} of {count} has another size than its {size} bytes")
        yield Record(
            key,
            value,
            wrap_int64(base_offset + offset_delta),
            wrap_int64(base_timestamp + timestamp) if log_append_time is None else log_append_time,
            headers,
            increment_sequence(base_sequence, offset_delta) if base_sequence >= 0 else NO_SEQUENCE,
            attributes if attributes < 0x80 else attributes - 0x100,
        )
    if count and position != len(body):
        raise InvalidRecord(f"{len(body) - position} bytes are left after {count} records")


def record_values(body: bytes, count: int) -> list[bytes | None]:
    """Return only the values of an uncompressed body; InvalidRecord as `iter_records`.

    Several times faster for records without keys and headers, as those of the metadata.
    """
    try:
        values = _values_alone(body, count) if count > 0 else None
    except (IndexError, ValueError):  # cut
        values = None
    if values is not None:
        return values
    return [record.value for record in iter_records(body, count, 0, 0)]


def _values_alone(body: bytes, count: int) -> list[bytes | None] | None:
    """Read records of the usual form, with varints of one and two bytes; None for any other."""
    values: list[bytes | None] = []
    position = 0
    for _ in range(count):
        size = body[position]
        position += 1
        if size > 0x7F:
            size = size & 0x7F | body[position] << 7
            position += 1
        end = position + (size >> 1)
        _, timestamp, offset, second = body[position : position + 4]
        position += 3 if offset <= 0x7F else 4
        if timestamp > 0x7F or offset & second > 0x7F or body[position] != 1:
            return None  # deltas of more bytes, or a key
        length = body[position + 1]
        position += 2
        if length > 0x7F:
            length = length & 0x7F | body[position] << 7
            position += 1
        last = position + (length >> 1)
        # Checks of either length: its sign, a third byte; then the end, and headers.
        if (size | length) & 0x4001 or last + 1 != end or body[last]:
            return None
        values.append(body[position:last])
        position = end
    return values if position == len(body) else None


def check_records(body: bytes, count: int) -> None:
    """Raise the InvalidRecord of `iter_records`, without keeping records."""
    for _ in iter_records(body, count, 0, 0):
        pass


def _read_blob(body: bytes, position: int) -> tuple[bytes | None, int]:
    """Read a key or value; if the body ends too early, the blob is short but its end is not."""
    size = body[position]
    if size < 0x80:  # nearly every key: spare the call
        size, position = (size >> 1) ^ -(size & 1), position + 1
    else:
        size, position = read_varint(body, position)
    if size < 0:
        return None, position
    end = position + size
    return body[position:end], end


def _read_headers(body: bytes, position: int) -> tuple[list[Header], int]:
    count = body[position]
    if count == 0:
        return [], position + 1
    count, position = read_varint(body, position)
    if count < 0:
        raise ValueError(f"record declares {count} headers")
    headers: list[Header] = []
    for _ in range(count):
        key, position = _read_blob(body, position)
        if key is None:
            raise ValueError("record has a header without key")
        value, position = _read_blob(body, position)
        headers.append((text_from_utf8(key), value))
    return headers, position
