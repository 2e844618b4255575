"""The dissector: assigns the bytes of a message to its fields, up to the first error.

It records a walk of the reference codec. For a broken message it keeps the pieces before the error,
and the reason. Bytes after the message or the error are a separate piece, so that the pieces cover
the data without gaps.
"""

import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kraft_wire.wire.generated.registry import message_table
from kraft_wire.wire.message import Buffer, MalformedMessage
from kraft_wire.wire.schema import MessageTable, includes
from kraft_wire.wire.walker import decode_slowly

__all__ = ["Dissection", "Piece", "dissect", "dissect_frame"]

_SIZE: Final = struct.Struct(">i")


class Piece(NamedTuple):
    """A half-open range of bytes with the path and value that were read from it."""

    start: int
    end: int
    path: str
    value: object


@dataclass(slots=True)
class Dissection:
    """All pieces in wire order, and the error of a broken message."""

    pieces: list[Piece] = field(default_factory=list)
    end: int = 0
    """End of the message, or position of the error."""
    error: MalformedMessage | None = None

    def add(self, path: str, start: int, end: int, value: object) -> None:
        """Append a piece; the signature is the walker's visitor."""
        assert start == self.end, (path, start, self.end)
        self.pieces.append(Piece(start, end, path, value))
        self.end = end


def dissect(table: MessageTable, data: Buffer, version: int, offset: int = 0) -> Dissection:
    """Return the pieces of the message of `table` that begins at `offset`; never raises."""
    found = _walk(table, data, version, offset)
    if found.end < len(data):
        found.pieces.append(Piece(found.end, len(data), "", None))
    return found


def dissect_frame(table: MessageTable, data: Buffer, version: int) -> Dissection:
    """Return the pieces of a whole frame: size, header of the request or response, body.

    Paths of the header begin with `header.`; a frame that is cut ends in an error like any message.
    """
    is_request = table.kind == "request"
    header_table = message_table("RequestHeader" if is_request else "ResponseHeader")
    is_flexible = includes(table.flexible, version) and table.name != "ApiVersionsResponse"
    frame = Dissection()
    if len(data) < _SIZE.size:
        frame.error = MalformedMessage("size", 0, f"int32 needs 4 bytes, {len(data)} remain")
        return frame
    frame.add("size", 0, _SIZE.size, _SIZE.unpack_from(data)[0])
    header = _walk(header_table, data, is_request + is_flexible, _SIZE.size)
    frame.pieces += (each._replace(path=f"header.{each.path}") for each in header.pieces)
    last = header if header.error is not None else dissect(table, data, version, header.end)
    if last is not header:
        frame.pieces += last.pieces
    elif header.end < len(data):
        frame.pieces.append(Piece(header.end, len(data), "", None))
    frame.end, frame.error = last.end, last.error
    return frame


def _walk(table: MessageTable, data: Buffer, version: int, offset: int) -> Dissection:
    found = Dissection(end=offset)
    try:
        decode_slowly(table, data, version, offset, visit=found.add)
    except MalformedMessage as error:
        found.error = error
    return found
