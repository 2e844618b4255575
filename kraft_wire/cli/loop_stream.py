"""One connection on an event loop that a user hears of by three calls: opened, bytes, lost.

For what is neither fast nor many: the node's own connections to its peers, and whoever asks for
metrics. A name is looked up in a thread that nobody waits for, as it may take the system many
seconds, and its addresses are tried in turn. How long that may take is the user's matter.

Not here: clients' connections (`server.connection`).
"""

import errno
import socket
from collections.abc import Callable
from threading import Thread
from typing import Final, Protocol, TypeAlias

from kraft_wire.model import FileSlice
from kraft_wire.node.outputs import Buffers
from kraft_wire.node.send_queue import SendQueue
from kraft_wire.server.loop import StreamUser

__all__ = ["Stream", "StreamLoop"]

_RECEIVE_BYTES: Final = 256 * 1024
_UNDER_WAY: Final = (0, errno.EINPROGRESS, errno.EINTR)

Address: TypeAlias = "tuple[str | int, ...] | tuple[int, bytes]"
Found: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, Address]


class StreamLoop(Protocol):
    """What a stream asks of the loop."""

    def call_soon(self, call: Callable[..., object], *args: object) -> None: ...
    def call_soon_threadsafe(self, call: Callable[..., object], *args: object) -> None: ...
    def add_reader(self, descriptor: int, call: Callable[[], object]) -> None: ...
    def remove_reader(self, descriptor: int) -> None: ...
    def add_writer(self, descriptor: int, call: Callable[[], object]) -> None: ...
    def remove_writer(self, descriptor: int) -> None: ...


class Stream:
    """A socket, or the way to one; `connect` or `adopt` comes first, once."""

    def __init__(self, loop: StreamLoop, user: StreamUser, unsent_bytes_max: int) -> None:
        """`unsent_bytes_max`: the stream is lost where the peer leaves more than that untaken."""
        self._loop = loop
        self._user = user
        self._unsent_bytes_max = unsent_bytes_max
        self._queue = SendQueue()
        self._sock: socket.socket | None = None
        self._addresses: list[Found] = []
        self._is_writing = False
        self._ends_when_sent = False
        self._is_over = False

    # -- opening ---------------------------------------------------------------------------------

    def connect(self, host: str, port: int) -> None:
        """Open a connection; the user hears of it later."""
        found = _look_up(host, port, socket.AI_NUMERICHOST)
        if found:
            self._loop.call_soon(self._found, found)
        else:
            Thread(target=self._look_up, args=(host, port), name="look up", daemon=True).start()

    def _look_up(self, host: str, port: int) -> None:
        self._loop.call_soon_threadsafe(self._found, _look_up(host, port, 0))

    def _found(self, addresses: list[Found]) -> None:
        self._addresses = addresses
        self._try_next()

    def _try_next(self) -> None:
        while self._addresses and not self._is_over:
            family, kind, protocol, _, address = self._addresses.pop(0)
            try:
                sock = self._sock = socket.socket(family, kind, protocol)
                sock.setblocking(False)
                if sock.connect_ex(address) in _UNDER_WAY:
                    self._loop.add_writer(sock.fileno(), self._decided)
                    return
            except (OSError, OverflowError):
                pass  # no such family here, no descriptor left, or a port that is none
            if self._sock is not None:
                self._sock.close()
                self._sock = None
        self._lost()

    def _decided(self) -> None:
        sock = self._sock
        assert sock is not None, "it is watched until it is closed"
        self._loop.remove_writer(sock.fileno())
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            sock.close()
            self._sock = None
            self._try_next()
            return
        self.adopt(sock)

    def adopt(self, sock: socket.socket) -> None:
        """Take over a connected socket that does not block."""
        self._sock = sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._loop.add_reader(sock.fileno(), self._readable)
        self._user.stream_opened()

    # -- open ------------------------------------------------------------------------------------

    def _readable(self) -> None:
        assert self._sock is not None, "it is watched until it is closed"
        try:
            data = self._sock.recv(_RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._user.bytes_received(data)
        else:
            self._lost()

    def write(self, buffers: Buffers, size_bytes: int) -> None:
        """Have it written together with what follows; a loss is reported later, too."""
        self._queue.add(buffers, size_bytes)
        if not self._is_writing:
            self._is_writing = True
            self._loop.call_soon(self._write)

    def end(self) -> None:
        """Be lost as soon as everything is written."""
        self._ends_when_sent = True

    def _write(self) -> None:
        """Write until done, or wait until the socket takes more."""
        sock, queue = self._sock, self._queue
        if sock is None:
            return
        try:
            while queue.size_bytes:
                part = queue.next_part()
                assert not isinstance(part, FileSlice), "streams carry no file slices"
                queue.wrote(sock.sendmsg(part))
        except (BlockingIOError, InterruptedError):
            if queue.held_bytes() > self._unsent_bytes_max:
                self._lost()
            else:
                self._loop.add_writer(sock.fileno(), self._write)
            return
        except OSError:
            self._lost()
            return
        self._is_writing = False
        self._loop.remove_writer(sock.fileno())
        if self._ends_when_sent:
            self._lost()

    # -- over ------------------------------------------------------------------------------------

    def _lost(self) -> None:
        if not self._is_over:
            self.abort()
            self._user.stream_lost()

    def abort(self) -> None:
        """Close at once, dropping what is unsent; the user hears nothing more."""
        self._is_over = True
        self._queue.clear()
        if self._sock is not None:
            self._loop.remove_reader(self._sock.fileno())
            self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
            self._sock = None


def _look_up(host: str, port: int, flags: int) -> list[Found]:
    """Return addresses, none where the name is none: a peer may send anything as one."""
    try:
        return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags))
    except (OSError, ValueError, OverflowError):
        return []
