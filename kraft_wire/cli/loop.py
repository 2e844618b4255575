"""The event loop of a node: ready sockets, timers, one thread beside it, and word from signals.

What is ready at one moment is served in one go; then come what was put off, the timers that are
due, and `before_wait`, which ends the wake-up: one system call each. It is not asyncio, because
importing that, with ssl, subprocess and logging, takes a fifth of a node's start, and nothing of a
node needs tasks or transports. The names are asyncio's.

Not here: connections of our own (`loop_stream`), signals (`process`), and what is done
(`server.host`).
"""

import os
import select
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Final, TypeVar

from kraft_wire.cli.loop_stream import Stream
from kraft_wire.server.loop import StreamUser

__all__ = ["EventLoop", "LoopThread", "LoopTimer"]

_T = TypeVar("_T")
_IN: Final = select.POLLIN
_OUT: Final = select.POLLOUT
_EVENTS_PER_WAKE_UP: Final = 8
"""A write to a client that sleeps wakes it, which costs more than the write: answers that leave
together find the clients of the later ones awake. More would keep the first one waiting."""


class _PortablePoll:
    """poll, called as epoll is: for systems that have no epoll."""

    def __init__(self) -> None:
        poll = select.poll()
        self.register, self.modify, self.unregister = poll.register, poll.modify, poll.unregister
        self._poll = poll.poll

    def poll(self, seconds: float, maxevents: int) -> list[tuple[int, int]]:
        """Return all that is ready: it comes by number, and the first would be first for ever."""
        return self._poll(seconds * 1000)

    def close(self) -> None: ...


class LoopTimer:
    """A call at a time."""

    __slots__ = ("args", "call", "is_cancelled")

    def __init__(self, call: Callable[..., object], args: tuple[object, ...]) -> None:
        self.call = call
        self.args = args
        self.is_cancelled = False

    def cancel(self) -> None:
        """Do not call; harmless afterwards."""
        self.is_cancelled = True


class EventLoop:
    """One thread's loop; only `call_soon_threadsafe` may be used from others, and from signals."""

    def __init__(self) -> None:
        self.before_wait: Callable[[], object] = lambda: None
        """Called when everything that was ready is done."""
        self._poll = select.epoll() if hasattr(select, "epoll") else _PortablePoll()
        self._readers: dict[int, Callable[[], object]] = {}
        self._writers: dict[int, Callable[[], object]] = {}
        self._soon: deque[tuple[Callable[..., object], tuple[object, ...]]] = deque()
        self._timers: list[tuple[float, int, LoopTimer]] = []
        self._numbers = count()
        self._is_stopping = False
        self.thread = LoopThread(self)
        self._waker, self._wake = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._wake, False)
        self.add_reader(self._waker, lambda: os.read(self._waker, 4096))

    # -- calls -----------------------------------------------------------------------------------

    def time(self) -> float:
        """Return the seconds that timers go by."""
        return monotonic()

    def call_soon(self, call: Callable[..., object], *args: object) -> None:
        """Call after what is ready now."""
        self._soon.append((call, args))

    def call_later(self, seconds: float, call: Callable[..., object], *args: object) -> LoopTimer:
        """Call when so much time has passed."""
        timer = LoopTimer(call, args)
        heappush(self._timers, (monotonic() + seconds, next(self._numbers), timer))
        return timer

    def call_soon_threadsafe(self, call: Callable[..., object], *args: object) -> None:
        """Call soon, from another thread or a signal handler: the loop may be waiting."""
        self._soon.append((call, args))
        with suppress(BlockingIOError):  # it has been woken often enough
            os.write(self._wake, b"\0")

    def connect(self, host: str, port: int, user: StreamUser, unsent_bytes_max: int) -> Stream:
        """Open a connection of our own; nothing is reported before this returns."""
        stream = Stream(self, user, unsent_bytes_max)
        stream.connect(host, port)
        return stream

    # -- sockets ---------------------------------------------------------------------------------

    def add_reader(self, descriptor: int, call: Callable[[], object]) -> None:
        """Call whenever bytes, or the peer's end, are there to read."""
        before = self._wanted(descriptor)
        self._readers[descriptor] = call
        self._watch(descriptor, before)

    def remove_reader(self, descriptor: int) -> None:
        """Call no more; harmless where nothing is called."""
        before = self._wanted(descriptor)
        self._readers.pop(descriptor, None)
        self._watch(descriptor, before)

    def add_writer(self, descriptor: int, call: Callable[[], object]) -> None:
        """Call whenever the socket takes bytes, or has failed."""
        before = self._wanted(descriptor)
        self._writers[descriptor] = call
        self._watch(descriptor, before)

    def remove_writer(self, descriptor: int) -> None:
        """Call no more; harmless where nothing is called."""
        before = self._wanted(descriptor)
        self._writers.pop(descriptor, None)
        self._watch(descriptor, before)

    def _wanted(self, descriptor: int) -> int:
        reads = _IN if descriptor in self._readers else 0
        return reads | (_OUT if descriptor in self._writers else 0)

    def _watch(self, descriptor: int, before: int) -> None:
        """Tell the system what is wanted now, where that is not what it knows."""
        wanted = self._wanted(descriptor)
        if wanted == before:
            return
        if not wanted:
            self._poll.unregister(descriptor)
        elif not before:
            self._poll.register(descriptor, wanted)
        else:
            self._poll.modify(descriptor, wanted)

    # -- the loop --------------------------------------------------------------------------------

    def run_forever(self) -> None:
        """Serve until `stop`; what a callback raises ends the loop."""
        poll, readers, writers = self._poll.poll, self._readers, self._writers
        while not self._is_stopping:
            for descriptor, events in poll(self._seconds_to_wait(), _EVENTS_PER_WAKE_UP):
                # A neighbour of the same wake-up may have closed it, or even had its number given
                # to another: whoever is called too much finds nothing to read, or room to write.
                if events != _OUT and descriptor in readers:
                    readers[descriptor]()
                if events != _IN and descriptor in writers:
                    writers[descriptor]()
            if self._soon:
                self._run_soon()
            self.before_wait()
        self._is_stopping = False

    def _run_soon(self) -> None:
        """Call what was put off; what is put off meanwhile waits until sockets had their turn."""
        for _ in range(len(self._soon)):
            call, args = self._soon.popleft()
            call(*args)

    def _seconds_to_wait(self) -> float:
        """Put off what is due; return how long nothing will be, -1 for ever."""
        timers = self._timers
        left = -1.0
        if timers:
            now = monotonic()
            while timers and (timers[0][0] <= now or timers[0][2].is_cancelled):
                timer = heappop(timers)[2]
                if not timer.is_cancelled:
                    self._soon.append((timer.call, timer.args))
            if timers:
                left = timers[0][0] - now
        return 0.0 if self._soon or self._is_stopping else left

    def stop(self) -> None:
        """Return from `run_forever` when what is ready is done."""
        self._is_stopping = True

    def close(self) -> None:
        """Give back the descriptors."""
        self.thread.end()
        self._poll.close()
        os.close(self._waker)
        os.close(self._wake)


class LoopThread:
    """The one thread beside a loop, started when it is first needed."""

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def run(self, call: Callable[[], _T], then: Callable[[_T], object]) -> None:
        """Call beside the loop, in order, one at a time; `then` is called on the loop."""
        if self._thread is None:
            # A start that is broken off must not wait for the disk: it does not keep the process.
            self._thread = Thread(target=self._work, name="beside the loop", daemon=True)
            self._thread.start()
        self._orders.put(lambda: self._loop.call_soon_threadsafe(then, call()))

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                order()
            except BaseException as error:  # noqa: BLE001  # raised again, on the loop
                self._loop.call_soon_threadsafe(_raise, error)

    def end(self) -> None:
        """Wait until everything is done that was to be called."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join()
            self._thread = None


def _raise(error: BaseException) -> None:
    raise error
