"""Unsent answers: buffers and file slices in order, and their written part.

Small neighbours are joined into one buffer, small file slices are read, and large ones are sent by
the host's sendfile. The part that `next_part` returned stays first until `wrote` reports that it
was sent.
"""

from collections import deque
from typing import Final

from kraft_wire.model import FileSlice
from kraft_wire.node.outputs import Buffers
from kraft_wire.wire.structs import Buffer

__all__ = ["SendQueue"]

_SENDFILE_BYTES_MIN: Final = 64 * 1024
"""Below this size, reading and joining is cheaper than another system call."""
_JOIN_BYTES_MAX: Final = 64 * 1024
_BUFFERS_PER_PART: Final = 64


class SendQueue:
    """The unsent bytes of one peer."""

    __slots__ = ("_parts", "size_bytes")

    def __init__(self) -> None:
        self._parts: deque[Buffer | FileSlice] = deque()
        self.size_bytes = 0

    def add(self, buffers: Buffers, size_bytes: int) -> None:
        """Append an answer."""
        self._parts.extend(buffers)
        self.size_bytes += size_bytes

    def next_part(self) -> list[Buffer] | FileSlice:
        """Return the next part to write: some buffers in order, or a slice for sendfile."""
        parts = self._parts
        if len(parts) == 1 and parts[0].__class__ is bytes:
            return [parts[0]]
        buffers: list[Buffer] = []
        while parts and len(buffers) < _BUFFERS_PER_PART:
            part = parts[0]
            if isinstance(part, FileSlice):
                if part.size_bytes >= _SENDFILE_BYTES_MIN and part.file.fileno() >= 0:
                    if not buffers:
                        return part
                    break
                part = part.read()
            buffers.append(part)
            parts.popleft()
        if len(buffers) > 1 and sum(map(len, buffers)) <= _JOIN_BYTES_MAX:
            buffers = [b"".join(buffers)]
        parts.extendleft(reversed(buffers))
        return buffers

    def ends_with(self, buffers: list[Buffer]) -> bool:
        """Return whether nothing is queued after the part that `next_part` returned."""
        return len(self._parts) == len(buffers)

    def wrote(self, count: int) -> None:
        """Remove `count` bytes from the front, which may end inside of a part."""
        self.size_bytes -= count
        assert self.size_bytes >= 0, self.size_bytes
        parts = self._parts
        while count:
            part = parts[0]
            size = part.size_bytes if isinstance(part, FileSlice) else len(part)
            if count < size:
                parts[0] = _after(part, count)
                return
            count -= size
            parts.popleft()

    def held_bytes(self) -> int:
        """Return the memory of unsent bytes: file slices take none."""
        return sum(len(part) for part in self._parts if not isinstance(part, FileSlice))

    def clear(self) -> None:
        """Drop everything: the connection is closed."""
        self._parts.clear()
        self.size_bytes = 0


def _after(part: Buffer | FileSlice, count: int) -> Buffer | FileSlice:
    if isinstance(part, FileSlice):
        return FileSlice(part.file, part.position + count, part.size_bytes - count)
    return memoryview(part)[count:]
