"""How the bytes of one connection get to its socket and from there: plainly; see `kraft_wire.tls`.

A call that can do nothing now raises BlockingIOError, and one that fails another OSError. A send
never waits for the peer: no answer precedes its handshake, and a later handshake is refused.
"""

import os
import socket
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from kraft_wire.model import FileSlice
from kraft_wire.node.outputs import Peer
from kraft_wire.wire.structs import Buffer

__all__ = ["Encrypt", "PlainTransport", "Transport"]

_MORE_FOLLOWS: Final = getattr(socket, "MSG_MORE", 0)
"""Keeps the head of an answer back for its records, so that they wake the client once."""


class Transport(Protocol):
    """What a connection asks of its socket."""

    has_pending: bool
    """Whether bytes can be received although the socket may have none: they were read ahead."""
    unsent_bytes: int
    """Bytes taken from `send`, or of a handshake, that the socket has not taken yet."""

    def recv_into(self, room: memoryview, /) -> int:
        """Receive into `room` and return how many bytes; 0 at the end of the stream."""

    def send(self, buffers: list[Buffer], more_follows: bool) -> int:
        """Send the beginning of some buffers and return how many bytes were taken."""

    def sendfile(self, part: FileSlice) -> int:
        """Send the beginning of a slice in bounded memory; 0 where its file ends before it."""

    def flush(self) -> None:
        """Send of `unsent_bytes` what the socket takes; BlockingIOError when bytes are left."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


Encrypt: TypeAlias = Callable[[socket.socket, Peer], Transport]
"""Makes the transport of a new connection that speaks TLS."""


class PlainTransport:
    """A socket without encryption: one system call a call, and nothing is kept."""

    __slots__ = ("_send", "_sendmsg", "close", "fileno", "has_pending", "recv_into", "unsent_bytes")

    def __init__(self, sock: socket.socket) -> None:
        self.has_pending = False
        self.unsent_bytes = 0
        self.recv_into = sock.recv_into  # the socket's own: no call between it and a connection
        self.fileno, self.close = sock.fileno, sock.close
        self._send, self._sendmsg = sock.send, sock.sendmsg

    def send(self, buffers: list[Buffer], more_follows: bool) -> int:
        flags = _MORE_FOLLOWS if more_follows else 0
        if len(buffers) == 1:
            return self._send(buffers[0], flags)
        return self._sendmsg(buffers, (), flags)

    def sendfile(self, part: FileSlice) -> int:
        return os.sendfile(self.fileno(), part.file.fileno(), part.position, part.size_bytes)

    def flush(self) -> None:
        assert not self.unsent_bytes, "a plain socket has no buffer"
