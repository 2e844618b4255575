"""The process that a server runs in: its log, event loop, signals and exits.

The first SIGTERM or SIGINT makes the server stop gracefully; the second exits at once. An immediate
exit writes no data: after a failed assert the state is unknown, and after a failed flush nothing
may be written any more.
"""

import asyncio
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import NoReturn

from kraft_wire.model import FsyncFailed, StorageError
from kraft_wire.node.event_log import EventLog, Line
from kraft_wire.server.clock import wall_ms

__all__ = ["ServerProcess"]

_STOPPED_AT_ONCE = 130
_BROKEN = 70
"""Exit code after a failed flush or a broken invariant."""


class ServerProcess:
    """This process, as `serve` and the command use it."""

    def __init__(self) -> None:
        self.log = EventLog(_write_line, wall_ms)
        self._signals: list[str] = []
        # Collect garbage rarely: neither requests nor the records that a start loads make cycles.
        gc.set_threshold(50_000, 20, 100)

    def settled(self) -> None:
        """Exclude all present objects from garbage collection."""
        gc.freeze()

    def new_loop(self, stop: Callable[[], None]) -> asyncio.AbstractEventLoop:
        """Return the fastest loop; the first signal calls `stop`, an unexpected exception exits."""
        try:
            import uvloop
        except ImportError:
            loop = asyncio.new_event_loop()
        else:
            loop = uvloop.new_event_loop()
        loop.set_exception_handler(lambda _, context: self._broken(context))

        def signalled(number: int, _: FrameType | None) -> None:
            self._signalled(number, partial(loop.call_soon_threadsafe, self._begin_stop, stop))

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signalled)
        return loop

    def _signalled(self, number: int, begin: Callable[[], object]) -> None:
        """Handle a signal at any time, whether or not the loop runs already.

        The loops' own handlers are not used: uvloop's drops a signal that arrives before it runs.
        """
        self._signals.append(signal.Signals(number).name)
        if len(self._signals) == 1:
            begin()
            return
        try:
            self.log.event("stopped_at_once", signal=self._signals[-1])
        finally:
            os._exit(_STOPPED_AT_ONCE)

    def _begin_stop(self, stop: Callable[[], None]) -> None:
        self.log.event("stopping", signal=self._signals[0])
        stop()

    def break_off(self, reason: str) -> NoReturn:
        """Exit after a fatal error."""
        self.log.event_at("FATAL", "stopped", clean=False, reason=Line(reason))
        os._exit(_BROKEN)

    def _broken(self, context: Mapping[str, object]) -> NoReturn:
        """Exit because of an unexpected exception."""
        error = context.get("exception")
        if isinstance(error, FsyncFailed | StorageError):
            self.break_off(str(error))
        if isinstance(error, BaseException):
            traceback.print_exception(error)
        self.break_off(str(context.get("message", "unknown")))


def _write_line(line: str) -> None:
    with suppress(OSError, ValueError):  # the log has no reader any more: continue to serve
        sys.stderr.write(line)
        sys.stderr.flush()
