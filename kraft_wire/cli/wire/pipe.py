"""Moving lines for `kraft-wire wire decode` and `encode`: standard input to standard output.

Answers are flushed as soon as no further input is waiting, so that a peer that asks one question at
a time gets its answer, and one that asks thousands does not pay for a flush each. A line that is
too long is answered with an error without being held.
"""

import contextlib
import gc
import os
import select
from collections.abc import Callable, Iterator
from typing import Final

__all__ = ["LINE_BYTES_MAX", "LineBuffer", "limit_memory", "pipe_lines"]

LINE_BYTES_MAX: Final = 64 << 20
_READ_BYTES: Final = 1 << 20
_WRITE_BYTES: Final = 1 << 20
_MEMORY_BYTES_MAX: Final = 768 << 20
_GARBAGE_OBJECTS: Final = 200_000
_TOO_LONG: Final = b'{"error":"the line is longer than %d bytes"}' % LINE_BYTES_MAX


class LineBuffer:
    """Cuts chunks into lines; a line above the limit becomes None, once, at its end."""

    def __init__(self, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._line_bytes_max = line_bytes_max
        self._rest = bytearray()
        self._is_skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Yield the lines that `chunk` completes, without their ends."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            yield self._take()
            start = end + 1
        self._keep(chunk[start:])

    def finish(self) -> Iterator[bytes | None]:
        """Yield the last line if input ended without a line end."""
        if self._rest or self._is_skipping:
            yield self._take()

    def _keep(self, piece: bytes) -> None:
        if self._is_skipping or len(self._rest) + len(piece) > self._line_bytes_max:
            self._is_skipping = True
            self._rest.clear()
        else:
            self._rest += piece

    def _take(self) -> bytes | None:
        line = None if self._is_skipping else bytes(self._rest)
        self._rest.clear()
        self._is_skipping = False
        return line


def pipe_lines(source: int, target: int, answer: Callable[[bytes], bytes]) -> None:
    """Answer every line of descriptor `source` on descriptor `target` until input ends."""
    lines = LineBuffer()
    waiting = bytearray()

    def emit(line: bytes | None) -> None:
        waiting.extend(_TOO_LONG if line is None else answer(line))
        waiting.append(0x0A)
        if len(waiting) >= _WRITE_BYTES:
            _flush(target, waiting)

    while True:
        if waiting and not select.select([source], [], [], 0)[0]:
            _flush(target, waiting)
        chunk = os.read(source, _READ_BYTES)
        if not chunk:
            break
        for line in lines.feed(chunk):
            emit(line)
    for line in lines.finish():
        emit(line)
    _flush(target, waiting)


def _flush(target: int, waiting: bytearray) -> None:
    view = memoryview(bytes(waiting))
    waiting.clear()
    while view:
        view = view[os.write(target, view) :]


def limit_memory() -> None:
    """Let an allocation beyond the bound fail as MemoryError, which is answered as an error.

    A hostile line becomes millions of lists: looking for cycles among them every few thousand, as
    is Python's custom, would take most of the time that an answer may take.
    """
    gc.set_threshold(_GARBAGE_OBJECTS, 50, 1000)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES_MAX, hard))
