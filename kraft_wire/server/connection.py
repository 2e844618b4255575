"""One client connection: receives into frames, writes answers back in order.

The node handles at most one request at a time. Meanwhile, and while answers are unsent, no more
frames are read, and the kernel's buffers push back on the client. Not here: where a frame ends
(`framing`), how bytes reach the socket (`transport`), the set of connections, time limits, the node
(`host`).
"""

from typing import Final, Protocol

from kraft_wire.model import FileSlice
from kraft_wire.node.event_log import Line
from kraft_wire.node.limits import RequestMemory, ServerLimits, Waiting
from kraft_wire.node.outputs import Buffers, Peer, Rejection
from kraft_wire.server.framing import Framing
from kraft_wire.server.send_queue import SendQueue
from kraft_wire.server.transport import Transport
from kraft_wire.tls.refused import TransportRefused

__all__ = ["RECEIVE_BYTES", "Connection", "ConnectionHost"]

RECEIVE_BYTES: Final = 256 * 1024
"""The shared receive buffer: one wake-up takes at most this much, so that no client starves."""
_SLICE_MS: Final = 5
"""Time after which a connection with more requests yields to others."""
_PAUSE_BYTES: Final = 1024 * 1024
"""Limit for unsent bytes before further requests: small requests may have large answers."""
_UNTAKEN_BYTES: Final = 128 * 1024
"""Limit for bytes that a transport holds before more is received: TLS answers key updates."""


class ConnectionHost(Protocol):
    """The server, as a connection uses it."""

    receive_view: memoryview
    limits: ServerLimits
    memory: RequestMemory

    def now_ms(self) -> int: ...
    def watch_reads(self, connection: "Connection", wanted: bool) -> None: ...
    def watch_writes(self, connection: "Connection", wanted: bool) -> None: ...
    def deliver(self, connection: "Connection", frame: bytearray) -> None:
        """Hand a whole frame to the node; `answered` may be called before this returns."""

    def defer(self, connection: "Connection") -> None:
        """Let other connections be served, then clear `is_deferred` and call `resume`."""

    def drop(self, connection: "Connection", rejection: Rejection | None = None) -> None:
        """Close a connection whose peer has left or is refused."""


class Connection:
    """The bytes of one client, in both directions."""

    def __init__(
        self,
        host: ConnectionHost,
        transport: Transport,
        peer: Peer,
        at_ms: int,
        login_bytes_max: int | None = None,
    ) -> None:
        """`login_bytes_max` bounds the frames of a client that must log in first."""
        self._host = host
        self.transport = transport
        self.peer = peer
        self.framing = Framing(host.limits, login_bytes_max)
        self._queue = SendQueue()
        self.awaits_answer = False
        self.is_dirty = False
        """Whether the host has it in its list for `settle`."""
        self.is_deferred = False
        """Whether it has requests that wait until other connections were served."""
        self.is_last_answer = False
        self.is_muted = False  # throttled: the next request awaits the end of the throttle time
        self.is_closed = False
        self.opened_ms = self.last_active_ms = at_ms
        self.frame_began_ms = -1
        """Arrival of the first byte of the current frame, -1 between frames."""
        self._reads_watched = True
        self._writes_watched = False

    # -- bytes in --------------------------------------------------------------------------------

    def on_readable(self, at_ms: int) -> None:
        """Receive once, and deliver whole frames."""
        transport = self.transport
        if transport.unsent_bytes >= _UNTAKEN_BYTES:
            self._watch_reads(False)
            return
        if self._receive():
            self.last_active_ms = at_ms
            self._deliver_frames()
        if transport.unsent_bytes:
            self._watch_writes(True)
        if transport.has_pending and self._reads_watched:
            self._defer()  # the loop does not see them

    def _receive(self) -> bool:
        """Receive once; return whether bytes came. A connection that ends is dropped."""
        framing = self.framing
        room = framing.room()
        try:
            if room is None:
                count = self.transport.recv_into(self._host.receive_view)
            else:
                with room:
                    count = self.transport.recv_into(room)
        except (BlockingIOError, InterruptedError):
            return False
        except TransportRefused as refusal:
            details = (("detail", Line(refusal)),)
            self._host.drop(self, Rejection("tls_handshake_failed", details=details))
            return False
        except OSError:
            count = 0
        if not count:
            self._host.drop(self)
        elif room is None:
            framing.feed(self._host.receive_view[:count])
        else:
            framing.filled(count)
        return count > 0

    def resume(self) -> None:
        """Continue with bytes that were received while the node handled a request."""
        if self.awaits_answer or self.is_deferred or self.unsent_bytes:
            return
        if self.framing.has_begun:
            self.last_active_ms = self._host.now_ms()
            self._deliver_frames()
        is_starved = self._host.memory.is_starved(self.peer.connection_id)
        if self.awaits_answer or self.is_deferred or self.is_closed or is_starved:
            return
        self._watch_reads(True)
        if self.transport.has_pending:
            self.on_readable(self._host.now_ms())

    def _deliver_frames(self) -> None:
        """Deliver whole frames until one waits for its answer; hold back the rest."""
        framing = self.framing
        until_ms = self.last_active_ms + _SLICE_MS
        while not self.awaits_answer:
            if self._queue.size_bytes >= _PAUSE_BYTES:
                self._defer()
                break
            frame = framing.next_frame()
            if frame is None:
                break
            if isinstance(frame, Rejection):
                self._host.drop(self, frame)
                return
            self.awaits_answer = True
            self._host.deliver(self, frame)
            if self.is_closed:
                return
            if self.awaits_answer or not framing.has_begun:
                break
            if self._host.now_ms() > until_ms:
                self._defer()
                break
        if framing.hold():
            self._hold_rest_back()
        else:
            self.frame_began_ms = -1

    def _hold_rest_back(self) -> None:
        """Stop reading if whole frames wait; count and limit the memory of a partial frame."""
        if self.awaits_answer or self.is_deferred:
            self.frame_began_ms = -1
            self._watch_reads(False)
        else:
            if self.frame_began_ms < 0:
                self.frame_began_ms = self.last_active_ms
            if not self._host.memory.reserve(self.peer.connection_id, self.framing.room_bytes):
                self._watch_reads(False)

    def _defer(self) -> None:
        self.is_deferred = True
        self._host.defer(self)

    def waiting(self) -> Waiting:
        """Return the values that the time limits are checked against."""
        times = (self.opened_ms, self.last_active_ms, self.frame_began_ms)
        held, unsent = self.framing.held_bytes, self.unsent_bytes
        login = self.peer.login
        has_begun = login is None or login.is_over
        return Waiting(*times, held, unsent, self.peer.requests_count if has_begun else 0)

    def stop_reading(self) -> None:
        """Stop reading from a client that is about to be refused."""
        self.framing.clear()
        self._watch_reads(False)

    def memory_is_free(self) -> None:
        """Continue to receive a frame that waited for memory."""
        if not self.awaits_answer and not self.is_closed:
            self._watch_reads(True)
            if self.transport.has_pending:
                self._defer()

    # -- bytes out -------------------------------------------------------------------------------

    @property
    def unsent_bytes(self) -> int:
        """Bytes of answers that the peer has not taken yet."""
        return self._queue.size_bytes + self.transport.unsent_bytes

    def answered(self, buffers: Buffers, size_bytes: int) -> None:
        """Queue an answer; `settle` writes it together with others."""
        self.awaits_answer = self.is_muted
        self._queue.add(buffers, size_bytes)

    def mute(self, is_muted: bool, at_ms: int) -> None:
        """Begin or end to read nothing; `settle` must follow."""
        self.is_muted = self.awaits_answer = is_muted
        self.last_active_ms = at_ms
        if is_muted:
            self._watch_reads(False)

    def settle(self) -> None:
        """Write queued answers, then continue to read; or wait until the socket takes more."""
        if self.is_closed:
            return
        queue, transport = self._queue, self.transport
        if queue.size_bytes or transport.unsent_bytes:
            try:
                self._write()
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self._host.drop(self)
                return
        if queue.size_bytes or transport.unsent_bytes:
            self._end_if_it_holds_too_much()
            self._watch_writes(True)
            return
        if self._writes_watched:
            self._watch_writes(False)
        if self.is_last_answer and not self.awaits_answer:
            self._host.drop(self)
            return
        if self.framing.has_begun or not self._reads_watched or transport.has_pending:
            self.resume()

    def _end_if_it_holds_too_much(self) -> None:
        """Close a connection whose unread answers reach the limit."""
        bytes_max = self._host.limits.unsent_bytes_max
        held = self._queue.held_bytes() + self.transport.unsent_bytes
        if held > bytes_max:
            details = (("unsent", held), ("allowed", bytes_max))
            self._host.drop(self, Rejection("write_buffer_full", details=details))

    def _write(self) -> None:
        """Write until done; BlockingIOError when the socket is full."""
        queue, transport = self._queue, self.transport
        if transport.unsent_bytes:
            transport.flush()
        while queue.size_bytes:
            part = queue.next_part()
            if isinstance(part, FileSlice):
                sent = transport.sendfile(part)
                if not sent:
                    # The segment was truncated below the slice: the frame can no longer be
                    # completed.
                    raise ConnectionAbortedError("a log segment ended inside a response")
            else:
                sent = transport.send(part, not queue.ends_with(part))
            queue.wrote(sent)

    def _watch_reads(self, wanted: bool) -> None:
        if self._reads_watched != wanted and not self.is_closed:
            self._reads_watched = wanted
            self._host.watch_reads(self, wanted)

    def _watch_writes(self, wanted: bool) -> None:
        if self._writes_watched != wanted and not self.is_closed:
            self._writes_watched = wanted
            self._host.watch_writes(self, wanted)

    def close(self) -> None:
        """Close the socket and drop everything; the host has already dropped this connection."""
        self._watch_reads(False)
        self._watch_writes(False)
        self.is_closed = True
        self._queue.clear()
        self.framing.clear()
        self.transport.close()
