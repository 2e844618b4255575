"""Hides what a JVM writes to standard error while it starts.

Spark's start writes several lines about its log settings, native libraries and Java's modules. Some
come from the launcher or from Java itself, before any setting applies, so they are held back here:
for the time of the start the file descriptor of standard error is a pipe, which the JVM inherits. A
thread of this process reads it as long as the JVM runs.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

__all__ = ["quiet_start"]

_STANDARD_ERROR: Final = 2
_CHUNK_BYTES: Final = 65_536
_LAST_LINES_SECONDS: Final = 1.0
"""Time for the lines of a start that has ended, which the thread has not read yet."""
_END_OF_START: Final = b"\n\x00end of start\x00\n"
"""Follows the lines of the start in the pipe; no JVM writes it."""


@contextmanager
def quiet_start() -> Iterator[None]:
    """Hold back lines of processes that the body starts; later lines are written at once.

    If the body returns, only held lines of level ERROR are written; if it raises, all of them.
    """
    sys.stderr.flush()
    own = os.dup(_STANDARD_ERROR)
    reader, writer = os.pipe()
    os.dup2(writer, _STANDARD_ERROR)
    os.close(writer)
    held = _HeldLines(reader, own)
    try:
        yield
    except BaseException:
        held.release(lambda line: True)
        raise
    else:
        held.release(lambda line: b" ERROR " in line)
    finally:
        _restore(own)


def _restore(own: int) -> None:
    sys.stderr.flush()
    os.dup2(own, _STANDARD_ERROR)


class _HeldLines(Thread):
    """Reads the pipe to its end: keeps the lines of the start, then writes lines as they come."""

    def __init__(self, reader: int, target: int) -> None:
        super().__init__(name="jvm-lines", daemon=True)
        self._reader, self._target = reader, target
        self._is_wanted: Callable[[bytes], bool] | None = None
        self._has_ended = Event()
        self.start()

    def run(self) -> None:
        held = b""
        while not self._has_ended.is_set() and (chunk := os.read(self._reader, _CHUNK_BYTES)):
            held += chunk
            lines, mark, later = held.partition(_END_OF_START)
            if mark:
                self._write_start(lines)
                os.write(self._target, later)
                self._has_ended.set()
        while chunk := os.read(self._reader, _CHUNK_BYTES):
            os.write(self._target, chunk)
        os.close(self._reader)

    def _write_start(self, lines: bytes) -> None:
        assert self._is_wanted is not None, "the mark is written by `release`"
        for line in lines.splitlines(keepends=True):
            if self._is_wanted(line):
                os.write(self._target, line)

    def release(self, is_wanted: Callable[[bytes], bool]) -> None:
        """Write the wanted lines of the start, and everything that follows.

        Standard error still is the pipe: what was written before is read before the mark.
        """
        self._is_wanted = is_wanted
        sys.stderr.flush()
        os.write(_STANDARD_ERROR, _END_OF_START)
        self._has_ended.wait(_LAST_LINES_SECONDS)
