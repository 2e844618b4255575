"""Accepts the connections of one listener, no faster than the quotas allow (KIP-402, KIP-612).

A connection that must wait, for time or for room, stops its listener only: the next ones stay in
the backlog. The kernel, not the process, then holds them.
"""

import asyncio
import socket

from kraft_wire.server.host import Host

__all__ = ["Acceptor"]

_ACCEPTS_PER_WAKE_UP = 64
_PAUSE_SECONDS = 0.1

_Accepted = tuple[socket.socket, tuple[str, int]]


class Acceptor:
    """One listening socket, with at most one connection that waits."""

    def __init__(
        self, host: Host, loop: asyncio.AbstractEventLoop, listener: str, sock: socket.socket
    ) -> None:
        self.listener = listener
        self._host, self._loop, self._sock = host, loop, sock
        self._waiting: _Accepted | None = None
        self._until_ms = 0

    def listen(self, backlog: int) -> None:
        """Accept from now on."""
        self._sock.listen(backlog)
        self._watch()

    def close(self) -> None:
        """Accept nothing more; the connection that waits ends."""
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        if self._waiting is not None:
            self._waiting[0].close()
            self._waiting = None

    def resume(self) -> None:
        """Take over the connection that waits, if its time has come and there is room."""
        if self._waiting is None or self._host.now_ms() < self._until_ms:
            return
        if self._host.connection_quotas.has_room(self.listener):
            accepted, self._waiting = self._waiting, None
            self._host.accepted(*accepted, self.listener)
            self._watch()

    def _watch(self) -> None:
        if self._sock.fileno() >= 0 and self._waiting is None:
            self._loop.add_reader(self._sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_PER_WAKE_UP):
            try:
                sock, address = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                # Out of descriptors: the connection stays in the backlog until one is free.
                fields = {"listener": self.listener, "reason": error.strerror}
                self._host.log.limited("accept_failed", "-", self._host.now_ms(), **fields)
                self._loop.remove_reader(self._sock.fileno())
                self._loop.call_later(_PAUSE_SECONDS, self._watch)
                return
            if self._must_wait(sock, (address[0], address[1])):
                return
            self._host.accepted(sock, (address[0], address[1]), self.listener)

    def _must_wait(self, sock: socket.socket, address: tuple[str, int]) -> bool:
        now = self._host.now_ms()
        quotas = self._host.connection_quotas
        delay_ms = quotas.delay_ms(self.listener, now)
        if delay_ms == 0 and quotas.has_room(self.listener):
            return False
        reason = "max.connection.creation.rate" if delay_ms else "max.connections"
        self._host.log.limited("accept_delayed", "-", now, listener=self.listener, reason=reason)
        self._waiting, self._until_ms = (sock, address), now + delay_ms
        self._loop.remove_reader(self._sock.fileno())
        self._loop.call_later(delay_ms / 1_000, self.resume)
        return True
