"""One client connection: receives into frames, writes answers back in order.

At most one request is with the node; while it is, and while answers are unsent, nothing more is
framed, and the kernel's buffers push back on the client. Not here: where a frame ends
(`node.framing`), which connections exist, time limits, and the node (`host`).
"""

import os
import socket
from collections import deque
from typing import Final, Protocol

from kraft_wire.model import FileSlice
from kraft_wire.node.framing import Framing
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Buffers, Peer, Rejection
from kraft_wire.server.clock import now_ms

__all__ = ["RECEIVE_BYTES", "Connection", "ConnectionHost"]

RECEIVE_BYTES: Final = 256 * 1024
"""The shared receive buffer: one wake-up takes this much at most, so that none starves others."""

_SENDFILE_BYTES_MIN: Final = 64 * 1024
"""Below this, reading and joining is cheaper than a system call of its own."""
_JOIN_BYTES_MAX: Final = 64 * 1024
_BUFFERS_PER_SEND: Final = 64


class ConnectionHost(Protocol):
    """What a connection asks of the server around it."""

    receive_view: memoryview
    limits: ServerLimits

    def watch_reads(self, connection: "Connection", wanted: bool) -> None: ...
    def watch_writes(self, connection: "Connection", wanted: bool) -> None: ...
    def deliver(self, connection: "Connection", frame: bytearray) -> None:
        """Hand a whole frame to the node; `answered` may be called before this returns."""
        ...

    def reserve(self, connection: "Connection", size_bytes: int) -> bool:
        """Count bytes of a growing frame; false when all connections together hold too many."""
        ...

    def reject(self, connection: "Connection", rejection: Rejection) -> None:
        """Close with a log line."""
        ...

    def lost(self, connection: "Connection") -> None:
        """Take note that the peer is gone."""
        ...


class Connection:
    """The bytes of one client, both ways."""

    __slots__ = (
        "_host",
        "_reads_watched",
        "_unsent",
        "_writes_watched",
        "awaits_answer",
        "frame_began_ms",
        "framing",
        "is_closed",
        "is_dirty",
        "is_last_answer",
        "last_active_ms",
        "opened_ms",
        "peer",
        "received_bytes",
        "reserved_bytes",
        "sent_bytes",
        "sock",
        "unsent_bytes",
    )

    def __init__(self, host: ConnectionHost, sock: socket.socket, peer: Peer, at_ms: int) -> None:
        self._host = host
        self.sock = sock
        self.peer = peer
        self.framing = Framing(host.limits)
        self._unsent: deque[bytes | bytearray | memoryview | FileSlice] = deque()
        self.unsent_bytes = 0
        self.reserved_bytes = 0
        """What this connection holds of the bound on all requests' bytes."""
        self.received_bytes = 0
        self.sent_bytes = 0
        self.awaits_answer = False
        self.is_dirty = False
        """Listed by the host for `settle`."""
        self.is_last_answer = False
        self.is_closed = False
        self.opened_ms = self.last_active_ms = at_ms
        self.frame_began_ms = -1
        """When the first byte of the frame that is being received came, -1 between frames."""
        self._reads_watched = True
        self._writes_watched = False

    # -- bytes in --------------------------------------------------------------------------------

    def on_readable(self, at_ms: int) -> None:
        """Receive once, and deliver what became whole."""
        framing = self.framing
        room = framing.room()
        try:
            if room is None:
                count = self.sock.recv_into(self._host.receive_view)
            else:
                with room:
                    count = self.sock.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            count = 0
        if not count:
            self._host.lost(self)
            return
        self.last_active_ms = at_ms
        self.received_bytes += count
        if room is None:
            framing.feed(self._host.receive_view[:count])
        else:
            framing.filled(count)
        self._deliver_frames()

    def resume(self) -> None:
        """Go on with what was received while a request was with the node."""
        if self.is_closed or self.awaits_answer or self.unsent_bytes:
            return
        if self.framing.has_begun:
            self.last_active_ms = now_ms()
            self._deliver_frames()
        if not (self._reads_watched or self.awaits_answer or self.is_closed):
            self._watch_reads(True)

    def _deliver_frames(self) -> None:
        """Deliver whole frames until one is with the node; hold back the rest."""
        framing = self.framing
        while not self.awaits_answer:
            frame = framing.next_frame()
            if frame is None:
                break
            if isinstance(frame, Rejection):
                self._host.reject(self, frame)
                return
            self.awaits_answer = True
            self._host.deliver(self, frame)
            if self.is_closed:
                return
        framing.hold()
        if not framing.has_begun:
            self.frame_began_ms = -1
        elif self.awaits_answer:
            self._watch_reads(False)
        else:
            if self.frame_began_ms < 0:
                self.frame_began_ms = self.last_active_ms
            growth = framing.room_bytes - self.reserved_bytes
            if growth > 0 and not self._host.reserve(self, growth):
                self._watch_reads(False)

    def memory_is_free(self) -> None:
        """Go on receiving a frame that was held up by the bound on all requests' bytes."""
        if not self.awaits_answer and not self.is_closed:
            self._watch_reads(True)

    # -- bytes out -------------------------------------------------------------------------------

    def answered(self, buffers: Buffers, size_bytes: int) -> None:
        """Queue an answer; `settle` writes it together with its neighbours."""
        self.awaits_answer = False
        self._unsent.extend(buffers)
        self.unsent_bytes += size_bytes

    def settle(self) -> None:
        """Write what is queued, then go on reading; or wait until the socket takes more."""
        if self.is_closed:
            return
        if self.unsent_bytes:
            try:
                self._write()
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self._host.lost(self)
                return
        if self.unsent_bytes:
            self._watch_writes(True)
            return
        if self._writes_watched:
            self._watch_writes(False)
        if self.is_last_answer and not self.awaits_answer:
            self._host.lost(self)
            return
        if self.framing.has_begun or not self._reads_watched:
            self.resume()

    def _write(self) -> None:
        """Write until done; BlockingIOError when the socket is full."""
        unsent = self._unsent
        while unsent:
            first = unsent[0]
            if first.__class__ is bytes and len(unsent) == 1:
                sent = self.sock.send(first)
                self._account(sent)
                if sent < len(first):
                    unsent[0] = memoryview(first)[sent:]
                    raise BlockingIOError
                unsent.clear()
                return
            if first.__class__ is FileSlice and first.size_bytes >= _SENDFILE_BYTES_MIN:
                self._send_file(first)
            else:
                self._send_buffers()

    def _send_file(self, part: FileSlice) -> None:
        descriptor = part.file.fileno()
        if descriptor < 0:
            self._unsent[0] = part.read()
            return
        sent = os.sendfile(self.sock.fileno(), descriptor, part.position, part.size_bytes)
        if not sent:
            # The segment was cut below the slice; the frame cannot be completed any more.
            raise ConnectionAbortedError("a log segment ended inside an answer")
        self._account(sent)
        if sent == part.size_bytes:
            self._unsent.popleft()
        else:
            left = part.size_bytes - sent
            self._unsent[0] = FileSlice(part.file, part.position + sent, left)

    def _send_buffers(self) -> None:
        buffers = self._gather()
        total = sum(map(len, buffers))
        if len(buffers) == 1:
            sent = self.sock.send(buffers[0])
        elif total <= _JOIN_BYTES_MAX:
            joined = b"".join(buffers)
            sent = self.sock.send(joined)
            buffers = [joined]
        else:
            sent = self.sock.sendmsg(buffers)
        self._account(sent)
        if sent < total:
            self._unsent.extendleft(reversed(_after(buffers, sent)))
            raise BlockingIOError

    def _gather(self) -> "list[bytes | bytearray | memoryview]":
        """Take the buffers up to the next large file slice; small slices are read here."""
        unsent = self._unsent
        buffers: list[bytes | bytearray | memoryview] = []
        while unsent and len(buffers) < _BUFFERS_PER_SEND:
            part = unsent[0]
            if isinstance(part, FileSlice):
                if part.size_bytes >= _SENDFILE_BYTES_MIN:
                    break
                part = part.read()
            buffers.append(part)
            unsent.popleft()
        return buffers

    def _account(self, sent: int) -> None:
        self.unsent_bytes -= sent
        self.sent_bytes += sent
        assert self.unsent_bytes >= 0, self.unsent_bytes

    # -- the event loop's interest ---------------------------------------------------------------

    def _watch_reads(self, wanted: bool) -> None:
        if self._reads_watched != wanted and not self.is_closed:
            self._reads_watched = wanted
            self._host.watch_reads(self, wanted)

    def _watch_writes(self, wanted: bool) -> None:
        if self._writes_watched != wanted and not self.is_closed:
            self._writes_watched = wanted
            self._host.watch_writes(self, wanted)

    def close(self) -> None:
        """Close the socket and drop everything; the host has already forgotten this connection."""
        self.is_closed = True
        self._host.watch_reads(self, False)
        if self._writes_watched:
            self._host.watch_writes(self, False)
        self._unsent.clear()
        self.framing.clear()
        self.unsent_bytes = 0
        self.sock.close()


def _after(
    buffers: "list[bytes | bytearray | memoryview]", sent: int
) -> "list[bytes | bytearray | memoryview]":
    """Return what is left of buffers of which the first `sent` bytes are written."""
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[index + 1 :]]
        sent -= len(buffer)
    return []
