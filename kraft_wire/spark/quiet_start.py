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
from threading import Lock, Thread
from typing import Final

__all__ = ["quiet_start"]

_STANDARD_ERROR: Final = 2
_CHUNK_BYTES: Final = 65_536
_LAST_LINES_SECONDS: Final = 1.0
"""Time for the last lines of a start that failed; a JVM that runs keeps the pipe open."""


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
        _restore(own)
        held.release(lambda line: True)
        held.join(_LAST_LINES_SECONDS)
        raise
    _restore(own)
    held.release(lambda line: b" ERROR " in line)


def _restore(own: int) -> None:
    sys.stderr.flush()
    os.dup2(own, _STANDARD_ERROR)


class _HeldLines(Thread):
    """Reads the pipe to its end: keeps lines until `release`, then writes them as they come."""

    def __init__(self, reader: int, target: int) -> None:
        super().__init__(name="jvm-lines", daemon=True)
        self._reader, self._target = reader, target
        self._lock = Lock()
        self._held: bytes | None = b""
        self.start()

    def run(self) -> None:
        while chunk := os.read(self._reader, _CHUNK_BYTES):
            with self._lock:
                if self._held is None:
                    os.write(self._target, chunk)
                else:
                    self._held += chunk
        os.close(self._reader)

    def release(self, is_wanted: Callable[[bytes], bool]) -> None:
        """Write the wanted lines of those held, and everything that follows."""
        with self._lock:
            held, self._held = self._held, None
            assert held is not None, "released once"
            for line in held.splitlines(keepends=True):
                if is_wanted(line):
                    os.write(self._target, line)
