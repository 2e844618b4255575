"""The dissector: which bytes of a message are which field, as far as the bytes can be read.

A walk of the reference codec that listens. Of a broken message it keeps everything up to the break
and the reason. What no field claims (content of unknown tags, bytes after the message) is a piece
of its own, so the pieces cover the data without gaps.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kraft_wire.wire.message import Buffer, MalformedMessage
from kraft_wire.wire.schema import MessageTable
from kraft_wire.wire.walker import decode_slowly

__all__ = ["Dissection", "Piece", "dissect"]


class Piece(NamedTuple):
    """A half-open range of bytes with the path and value that were read from it."""

    start: int
    end: int
    path: str
    value: object


@dataclass(slots=True)
class Dissection:
    """All pieces in wire order, and the error where the message is broken."""

    pieces: list[Piece] = field(default_factory=list)
    end: int = 0
    """Byte behind the message, or where it broke."""
    error: MalformedMessage | None = None

    def add(self, path: str, start: int, end: int, value: object) -> None:
        """Append a piece; the signature is the walker's visitor."""
        if start > self.end:
            self.pieces.append(Piece(self.end, start, self._unclaimed_path(), None))
        self.pieces.append(Piece(start, end, path, value))
        self.end = end

    def _unclaimed_path(self) -> str:
        """Name bytes that the walk passed over: only the content of an unknown tag is."""
        return self.pieces[-1].path.removesuffix(".size") if self.pieces else ""


def dissect(table: MessageTable, data: Buffer, version: int, offset: int = 0) -> Dissection:
    """Return the pieces of the message of `table` that begins at `offset`; never raises."""
    found = Dissection(end=offset)
    try:
        _, end = decode_slowly(table, data, version, offset, visit=found.add)
    except MalformedMessage as error:
        found.error = error
        end = found.end
    if end > found.end:
        found.add(found._unclaimed_path(), found.end, end, None)
    if end < len(data):
        found.pieces.append(Piece(end, len(data), "", None))
    return found
