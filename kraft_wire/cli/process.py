"""The process that a server runs in: its log, its event loop, its signals and exits.

The first SIGTERM or SIGINT stops gracefully, which is the server's matter; the second at once. What
ends the process at once leaves the data as it is: what a failed assert says about the state is
unknown, and after a failed flush nothing may be written any more.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import NoReturn

from kraft_wire.cli.loop import EventLoop
from kraft_wire.model import FsyncFailed, StorageError
from kraft_wire.node.event_log import EventLog, Line

__all__ = ["ServerProcess"]

_STOPPED_AT_ONCE = 130
_BROKEN = 70
"""Exit code after a failed flush or a broken invariant."""


class ServerProcess:
    """This process, as a server asks for it (`server.serve.Process`)."""

    def __init__(self) -> None:
        self.log = EventLog(_write_line)
        self.loop = EventLoop()
        self._signals: list[str] = []
        # Collect garbage seldom: neither requests nor the records that a start loads make cycles.
        gc.set_threshold(50_000, 20, 100)

    def settled(self) -> None:
        """Look for garbage only among what was made since: what is alive now stays."""
        gc.freeze()

    def loop_until(self, stop: Callable[[], None]) -> EventLoop:
        """Return the loop; from now on the first signal makes it call `stop`."""
        loop = self.loop

        def signalled(number: int, _: FrameType | None) -> None:
            self._signalled(number, partial(loop.call_soon_threadsafe, self._begin_stop, stop))

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signalled)
        return loop

    def _signalled(self, number: int, begin: Callable[[], object]) -> None:
        """Take a signal, between any two instructions, whether the loop runs already or not."""
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
        """End after an error that leaves nothing else to do."""
        self.log.event("stopped", clean=False, reason=Line(reason))
        os._exit(_BROKEN)

    def broken(self, error: Exception) -> NoReturn:
        """End because of an exception that nobody expected."""
        if isinstance(error, FsyncFailed | StorageError):
            self.break_off(str(error))
        import traceback  # which takes longer to import than to print, and a start needs none

        traceback.print_exception(error)
        self.break_off(f"{type(error).__name__} {error}".rstrip())


def _write_line(line: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads the log any more: serving goes on
        sys.stderr.write(line)
        sys.stderr.flush()
