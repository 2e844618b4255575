"""The transport between one connection and its socket, unencrypted; `kraft_wire.tls` encrypts.

A call that would block raises BlockingIOError, and one that fails another OSError. A send never
waits for the peer: no answer precedes its handshake, and a later handshake is refused.
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
"""Holds back the head of an answer until its records, so that they wake the client once."""


class Transport(Protocol):
    """A socket, as a connection uses it."""

    has_pending: bool
    """Whether bytes were read ahead, and can be received although the socket may have none."""
    unsent_bytes: int
    """Bytes from `send`, or of a handshake, that the socket has not accepted yet."""

    def recv_into(self, room: memoryview, /) -> int:
        """Receive into `room` and return the number of bytes; 0 at the end of the stream."""

    def send(self, buffers: list[Buffer], more_follows: bool) -> int:
        """Send the beginning of some buffers and return the number of accepted bytes."""

    def sendfile(self, part: FileSlice) -> int:
        """Send the beginning of a slice in bounded memory; 0 if its file ends before it."""

    def flush(self) -> None:
        """Send `unsent_bytes` to the socket; BlockingIOError when bytes are left."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


Encrypt: TypeAlias = Callable[[socket.socket, Peer], Transport]
"""Makes the transport of a new TLS connection."""


class PlainTransport:
    """A socket without encryption: one system call for each call, and no buffer."""

    __slots__ = ("_send", "_sendmsg", "close", "fileno", "has_pending", "recv_into", "unsent_bytes")

    def __init__(self, sock: socket.socket) -> None:
        self.has_pending = False
        self.unsent_bytes = 0
        self.recv_into = sock.recv_into  # the socket's own methods, to save a call
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
