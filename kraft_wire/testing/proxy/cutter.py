"""Finds frames in a stream that is passed on as it arrives; only wanted frames are collected.

Bytes are passed on in the pieces in which they arrived, independent of frames, and are not copied.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from kraft_wire.wire.frame import FRAME_PREFIX_BYTES, MalformedFrame

__all__ = ["Cutter", "Piece"]

_LENGTH: Final = Struct(">i")
_FRAME_BYTES_MAX: Final = 1 << 30


class Piece(NamedTuple):
    """Bytes to be passed on, or one whole frame without its length."""

    data: bytes | bytearray | memoryview
    is_frame: bool


class Cutter:
    """One direction of a connection."""

    def __init__(self, head_bytes: int, wants: Callable[[memoryview], bool]) -> None:
        """`wants` sees the head of each frame once, from its length on."""
        assert head_bytes > FRAME_PREFIX_BYTES, head_bytes
        self._head_bytes = head_bytes
        self._wants = wants
        self._data = memoryview(b"")
        self._position = 0
        self._left = 0
        """Bytes of the frame that is being passed."""
        self._parts: list[memoryview] | None = None
        """The received parts of a frame that is collected."""
        self._missing = 0
        """Bytes of it that have not arrived yet."""

    @property
    def is_inside_frame(self) -> bool:
        """Whether a part of a frame has arrived, and a part is missing."""
        return self._left > 0 or self._parts is not None

    def feed(self, data: bytes) -> None:
        """Take the next bytes; the rest of the bytes before stays in front of them."""
        if self._position < len(self._data):
            data = bytes(self._data[self._position :]) + data
        self._data, self._position = memoryview(data), 0

    def next_piece(self) -> Piece | None:
        """Return the next piece; None when more bytes are needed. Errors: MalformedFrame."""
        start = self._position
        while True:
            if self._parts is not None:
                return self._collected(self._parts)
            passed = min(self._left, len(self._data) - self._position)
            self._position += passed
            self._left -= passed
            if self._left or len(self._data) - self._position < self._head_bytes:
                break
            end = self._position
            if self._begin() and end > start:
                return Piece(self._data[start:end], False)
        if self._position == start:
            return None
        return Piece(self._data[start : self._position], False)

    def _begin(self) -> bool:
        """Check the head of a frame; return whether it is collected."""
        head = self._data[self._position : self._position + self._head_bytes]
        size: int = _LENGTH.unpack_from(head)[0]
        if not self._head_bytes - FRAME_PREFIX_BYTES <= size <= _FRAME_BYTES_MAX:
            raise MalformedFrame(size, "it is not a frame of Kafka's protocol")
        if not self._wants(head):
            self._left = FRAME_PREFIX_BYTES + size
            return False
        self._position += FRAME_PREFIX_BYTES
        self._parts, self._missing = [], size
        return True

    def _collected(self, parts: list[memoryview]) -> Piece | None:
        """Return the frame that is being collected, once it is whole."""
        end = min(self._position + self._missing, len(self._data))
        parts.append(self._data[self._position : end])
        self._missing -= end - self._position
        self._position = end
        if self._missing:
            return None
        self._parts = None
        return Piece(parts[0] if len(parts) == 1 else b"".join(parts), True)
