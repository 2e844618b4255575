"""Hosts one node on an event loop: connections, timers, one flush thread, limits.

Every wake-up ends the same way: drain the node's outputs, write the answers of all connections that
got one, arm the timer. Wake-ups of readable connections end together, before the loop waits again,
or after `_ANSWERS_TOGETHER`: the first write wakes a sleeping client, which costs more than the
write, and the writes after it find their clients awake. The node runs only on the loop's thread;
the only other thread runs flushes (effects, never logic). Not here: listening sockets and signals
(`serve`).
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from kraft_wire.model import FsyncFailed
from kraft_wire.node.event_log import EventLog
from kraft_wire.node.events.host_events import HostEvents
from kraft_wire.node.limits import RequestMemory, overdue
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import (
    Close,
    FlushLogs,
    LimitsChanged,
    LoggedIn,
    Mute,
    NoReply,
    Order,
    Output,
    Peer,
    RefuseLogin,
    Rejection,
    Reply,
    ServeClients,
    StopProcess,
)
from kraft_wire.node.quotas.connection_quotas import ConnectionQuotas, Refusal
from kraft_wire.server.clock import now_ms, seconds, wall_ms
from kraft_wire.server.connection import RECEIVE_BYTES, Connection
from kraft_wire.server.peers import Links
from kraft_wire.server.transport import Encrypt, PlainTransport, Transport

__all__ = ["Host"]

_SWEEP_SECONDS = 1.0
_ANSWERS_TOGETHER = 8
_HELD_MAX = 100
"""Sockets of throttled addresses that are held at a time: they take descriptors."""


class Host:
    """One node with its connections."""

    def __init__(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        log: EventLog,
        stop_at_once: Callable[[str], None],
    ) -> None:
        """`stop_at_once` ends the process, as after a failed flush."""
        self.node = node
        self.now_ms, self.wall_ms = now_ms, wall_ms
        self.limits = limits = node.config.limits
        self.log, self.events = log, HostEvents(log, limits.slow_operation_ms, now_ms)
        self.receive_view = memoryview(bytearray(RECEIVE_BYTES))
        self.connections: dict[int, Connection] = {}
        self.is_stopping = False
        self.serve_clients: Callable[[], None] = lambda: None
        self.has_room: Callable[[], None] = lambda: None
        """Called when there may be room for a connection that waits to be accepted."""
        self.node_has_left = False
        """Whether its graceful stop is over."""
        self.links = Links(node, limits, self.settle_all, log.event, node.config.links)
        self._loop = loop
        self._stop_at_once = stop_at_once
        self.connection_quotas = ConnectionQuotas(limits, node.config.protected_listeners)
        self._held: set[socket.socket] = set()
        self.memory = memory = RequestMemory(limits.queued_bytes_max)
        memory.starving = lambda each: self.events.starving(self.connections[each].peer, memory)
        self._opened = 0
        self._dirty: list[Connection] = []
        self._is_settling = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = -1
        self._encrypt = _encryption(node, self.links)
        self._login_bytes_max = {
            name: each.sasl.receive_bytes_max
            for name, each in node.config.security.items()
            if each.sasl is not None
        }
        self._flusher = ThreadPoolExecutor(1, thread_name_prefix="flush")
        self._sweeper = loop.call_later(_SWEEP_SECONDS, self._sweep)

    # -- connections -----------------------------------------------------------------------------

    def accepted(self, sock: socket.socket, address: tuple[str, int], listener: str) -> None:
        """Take over a new socket, or close it with a log line."""
        now = self.now_ms()
        self._opened += 1
        peer = Peer(self._opened, address[0], address[1], listener)
        admit = self.connection_quotas.admit
        refused = Refusal("stopping") if self.is_stopping else admit(listener, address[0], now)
        if refused is not None:
            self._refuse(sock, peer, refused)
            return
        sock.setblocking(False)
        self.node.connection_opened(peer)
        login_bytes_max = self._login_bytes_max.get(listener)
        connection = Connection(self, self._transport(sock, peer), peer, now, login_bytes_max)
        self.connections[peer.connection_id] = connection
        self.watch_reads(connection, True)
        self.events.connection("connection_opened", peer)
        self._end_excess()

    def _refuse(self, sock: socket.socket, peer: Peer, refused: Refusal) -> None:
        """Close a new socket, that of a throttled address after its time (KIP-612)."""
        self.log.rejected(peer, Rejection(refused.reason), self.now_ms())
        if refused.held_ms > 0 and len(self._held) < _HELD_MAX:
            self._held.add(sock)
            self._loop.call_later(refused.held_ms / 1_000, self._end_held, sock)
        else:
            sock.close()

    def _end_held(self, sock: socket.socket) -> None:
        self._held.discard(sock)
        sock.close()

    def _end_excess(self) -> None:
        """Close the connections above `max.connections` that are idle the longest (KIP-402)."""
        excess = self.connection_quotas.excess_count
        if excess == 0:
            return
        protected = self.node.config.protected_listeners
        oldest = sorted(self.connections.values(), key=lambda each: each.last_active_ms)
        may_go = [each for each in oldest if each.peer.listener not in protected]
        for connection in may_go[:excess]:
            self.drop(connection, Rejection("too_many_connections"))

    def _transport(self, sock: socket.socket, peer: Peer) -> Transport:
        encrypt = self._encrypt.get(peer.listener)
        return PlainTransport(sock) if encrypt is None else encrypt(sock, peer)

    def _readable(self, connection: Connection) -> None:
        connection.on_readable(self.now_ms())
        if len(self._dirty) >= _ANSWERS_TOGETHER:
            self._finish_wake_up()
        elif not self._is_settling:
            self._is_settling = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._is_settling = False
        self._finish_wake_up()

    def _writable(self, connection: Connection) -> None:
        connection.last_active_ms = self.now_ms()
        connection.settle()
        self._finish_wake_up()

    def defer(self, connection: Connection) -> None:
        """Continue with a connection's requests after other connections that are ready now."""
        self._loop.call_soon(self._deferred, connection)

    def _deferred(self, connection: Connection) -> None:
        connection.is_deferred = False
        connection.resume()
        self._finish_wake_up()

    def watch_reads(self, connection: Connection, wanted: bool) -> None:
        if wanted:
            self._loop.add_reader(connection.transport.fileno(), self._readable, connection)
        else:
            self._loop.remove_reader(connection.transport.fileno())

    def watch_writes(self, connection: Connection, wanted: bool) -> None:
        if wanted:
            self._loop.add_writer(connection.transport.fileno(), self._writable, connection)
        else:
            self._loop.remove_writer(connection.transport.fileno())

    def drop(self, connection: Connection, rejection: Rejection | None = None) -> None:
        """Close and drop a connection; a rejection becomes a log line."""
        if rejection is not None:
            self.log.rejected(connection.peer, rejection, self.now_ms())
        if self.connections.pop(connection.peer.connection_id, None) is None:
            return
        connection.close()
        self.events.connection("connection_closed", connection.peer)
        peer = connection.peer
        self.connection_quotas.released(peer.listener, peer.client_host)
        self._loop.call_soon(self.has_room)
        self._release(connection.peer.connection_id)
        self.node.connection_closed(connection.peer.connection_id)

    def _release(self, connection_id: int) -> None:
        for starved in self.memory.release(connection_id):
            if starved in self.connections:
                self.connections[starved].memory_is_free()

    # -- the node --------------------------------------------------------------------------------

    def deliver(self, connection: Connection, frame: bytearray) -> None:
        """Pass a frame to the node and carry out its outputs."""
        self.events.received(connection.peer, frame, began := seconds())
        self.node.receive(connection.peer, frame, connection.last_active_ms, self.wall_ms())
        self._drain()
        self.events.served(connection.peer, began, seconds())

    def tick(self) -> None:
        """Call the node's `tick`."""
        self._timer = None
        began = seconds()
        self.node.tick(self.now_ms(), self.wall_ms())
        self.settle_all()
        self.events.worked("tick", began, seconds())

    def settle_all(self) -> None:
        """Carry out outputs of the node outside of a connection's wake-up."""
        self._drain()
        self._finish_wake_up()

    def _drain(self) -> None:
        while self.node.outputs:
            outputs, self.node.outputs = self.node.outputs, []
            for output in outputs:
                self._carry_out(output)

    def _carry_out(self, output: Output) -> None:
        if not isinstance(output, (Reply, NoReply, Close, Mute)):
            self._act(output)
            return
        connection = self.connections.get(output.connection_id)
        if connection is None:
            return  # it closed while the node worked
        match output:
            case Reply():
                connection.answered(output.buffers, output.size_bytes)
                self.events.answered(connection.peer, output.size_bytes, seconds())
            case NoReply():
                connection.answered([], 0)
                self.events.answered(connection.peer, 0, seconds())
            case Close(rejection=rejection):
                self.drop(connection, rejection)
                return
            case Mute(is_muted=is_muted):
                connection.mute(is_muted, self.now_ms())
        if output.connection_id in self.memory.held:
            self._release(output.connection_id)
        if not connection.is_dirty:
            connection.is_dirty = True
            self._dirty.append(connection)

    def _act(self, output: Order) -> None:
        """Carry out an output that is not about one client's connection."""
        match output:
            case FlushLogs():
                self._flush(output)
            case LimitsChanged(limits=limits):
                self.limits = self.connection_quotas.limits = limits
                self._end_excess()
                self._loop.call_soon(self.has_room)
            case LoggedIn(connection_id=connection_id):
                if connection_id in self.connections:  # else it closed while the node worked
                    self.connections[connection_id].framing.logged_in()
            case RefuseLogin():
                self._refuse_login(output)
            case ServeClients():
                self.serve_clients()
            case StopProcess(reason=reason):
                self.node_has_left = True
                if reason is not None:
                    self._stop_at_once(reason)
            case _:
                self.links.carry_out(output, self._loop)

    def _refuse_login(self, order: RefuseLogin) -> None:
        connection = self.connections.get(order.connection_id)
        if connection is None:
            return  # it closed while the node worked
        self.log.rejected(connection.peer, order.rejection, self.now_ms())
        connection.stop_reading()
        self._loop.call_later(order.delay_ms / 1000, self._end_refused, order)

    def _end_refused(self, order: RefuseLogin) -> None:
        """Send the reason of a failed login, if the client is still connected, and close."""
        connection = self.connections.get(order.connection_id)
        if connection is not None:
            connection.is_last_answer = True
            self._carry_out(order.reply or Close(order.connection_id, None))
            self._finish_wake_up()

    def _finish_wake_up(self) -> None:
        while self._dirty:
            dirty, self._dirty = self._dirty, []
            for connection in dirty:
                connection.is_dirty = False
                connection.settle()
        self._arm_timer()

    def _arm_timer(self) -> None:
        """Arm the timer for the node's deadline; an earlier wake-up is kept even if unneeded."""
        deadline = self.node.deadline_ms()
        if self._timer is None or deadline < self._timer_ms:
            if self._timer is not None:
                self._timer.cancel()
            delay_ms = max(0, deadline - self.now_ms())
            self._timer_ms = deadline
            self._timer = self._loop.call_later(delay_ms / 1000, self.tick)

    # -- flushing --------------------------------------------------------------------------------

    def _flush(self, order: FlushLogs) -> None:
        self.events.flush_began(order.flush_id, seconds())
        done = self._flusher.submit(order.run)
        done.add_done_callback(
            lambda future: self._loop.call_soon_threadsafe(self._flushed, order.flush_id, future)
        )

    def _flushed(self, flush_id: int, future: "Future[FsyncFailed | None]") -> None:
        self.events.flush_ended(flush_id, seconds())
        failure = future.result()
        if failure is not None:
            self._stop_at_once(str(failure))
            return
        self.node.flushed(flush_id, self.now_ms(), self.wall_ms())
        self.settle_all()

    # -- time limits -----------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Close connections that are idle, do not log in in time, or are too slow."""
        now = self.now_ms()
        self.log.tick(now)
        for connection_id, connection in list(self.connections.items()):
            if connection.awaits_answer or self.memory.is_starved(connection_id):
                continue
            reason = overdue(connection.waiting(), self.limits, now)
            if reason is not None:
                self.drop(connection, None if reason == "idle" else Rejection(reason))
        self._sweeper = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def stop(self) -> None:
        """Release the timers and the flush thread; the node is stopped by the caller."""
        self._sweeper.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self.links.close_all()
        for sock in self._held:
            sock.close()
        self._flusher.shutdown(wait=True)

    def close_idle(self) -> int:
        """Close connections without requests or unsent answers; return the number of others."""
        for connection in list(self.connections.values()):
            awaits = connection.awaits_answer and not connection.is_muted
            if not awaits and not connection.unsent_bytes:
                self.drop(connection)
            else:
                connection.is_last_answer = True
        return len(self.connections)


def _encryption(node: Node, links: Links) -> Mapping[str, Encrypt]:
    """Return the transport factories of TLS listeners. Errors: StartError."""
    if all(each.tls is None for each in node.config.security.values()):
        return {}
    from kraft_wire.tls.exchange import encryption_of_node  # most nodes do not use TLS

    return encryption_of_node(node, links.contexts)
