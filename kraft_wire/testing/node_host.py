"""The host of a node for tests: the server's own, with rules and a record of exchanges.

Rules are applied to a request before the node gets it, to a response before its connection gets it.
Records are sent as bytes, because a disk in memory has no descriptor to send from.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future

from kraft_wire.model import FileSlice, FsyncFailed
from kraft_wire.node.event_log import EventLog
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import Close, NoReply, Output, Rejection, Reply
from kraft_wire.server.connection import Connection
from kraft_wire.server.host import Host
from kraft_wire.testing.clock import Clock
from kraft_wire.testing.exchanges import Client, Exchange, Recorder
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.faults.treatment import Fate, Treatment
from kraft_wire.wire.frame import frame_prefix

__all__ = ["NodeHost"]


class NodeHost(Host):
    """One node with its connections, observed."""

    def __init__(
        self,
        node: Node,
        loop: asyncio.AbstractEventLoop,
        log: EventLog,
        stop_at_once: Callable[[str], None],
        clock: Clock,
        rules: FaultRules,
        recorder: Recorder,
    ) -> None:
        super().__init__(node, loop, log, stop_at_once)
        self.now_ms = self.links.now_ms = clock.now_ms
        self.wall_ms = self.links.wall_ms = clock.wall_ms
        self._rules = rules
        self._recorder = recorder
        self._clients: dict[int, Client] = {}
        self._exchanges: dict[int, tuple[Exchange | None, Treatment | None]] = {}
        """The request in flight, by connection id."""
        self.is_over = False
        """Whether the node was killed: then it does nothing any more, not even work in progress."""

    def tick(self) -> None:
        """Let the node act on time, unless it was killed."""
        if not self.is_over:
            super().tick()

    def settle_all(self) -> None:
        """Carry out the node's outputs, unless it was killed."""
        if not self.is_over:
            super().settle_all()

    def _flushed(self, flush_id: int, future: "Future[FsyncFailed | None]") -> None:
        if not self.is_over:
            super()._flushed(flush_id, future)

    # -- requests --------------------------------------------------------------------------------

    def deliver(self, connection: Connection, frame: bytearray) -> None:
        """Hand a request to the node, as the rules allow it."""
        peer, node_id = connection.peer, self.node.config.node_id
        client = self._clients.setdefault(
            peer.connection_id, Client(f"{peer.client_host}:{peer.client_port}")
        )
        exchange = self._recorder.begin(node_id, client, frame)
        treatment = self._rules.on_request(node_id, frame)
        if exchange is not None:
            exchange.treatment = treatment
        self._exchanges[peer.connection_id] = exchange, treatment
        if treatment is None:
            super().deliver(connection, frame)
        elif treatment.delay_ms:
            self._later(treatment.delay_ms, self._handle, connection, treatment)
        else:
            self._handle(connection, treatment)

    def _later(
        self, delay_ms: int, act: Callable[..., None], connection: Connection, *arguments: object
    ) -> None:
        """Act once some time has passed, unless the connection is closed by then."""

        def wake() -> None:
            if not connection.is_closed:
                act(connection, *arguments)
                self.settle_all()

        self._loop.call_later(delay_ms / 1000, wake)

    def _handle(self, connection: Connection, treatment: Treatment) -> None:
        match treatment.fate:
            case Fate.PASS:
                super().deliver(connection, bytearray(treatment.frame))
            case Fate.ANSWER:
                self._answer(connection, treatment.answer)
            case Fate.DISCONNECT:
                self.drop(connection)
            case Fate.BLACKHOLE:
                self._finish(connection.peer.connection_id, None)

    # -- responses -------------------------------------------------------------------------------

    def _carry_out(self, output: Output) -> None:
        if isinstance(output, Reply):
            _, treatment = self._exchanges.get(output.connection_id, (None, None))
            connection = self.connections.get(output.connection_id)
            if connection is not None:
                frame = b"".join(
                    part.read() if isinstance(part, FileSlice) else part for part in output.buffers
                )[4:]
                if treatment is None:
                    self._answer(connection, frame)
                else:
                    self._treat(connection, treatment, frame)
            return
        if isinstance(output, NoReply | Close):
            self._finish(output.connection_id, None)
        super()._carry_out(output)

    def _treat(self, connection: Connection, treatment: Treatment, frame: bytes) -> None:
        """Let a response meet the rules."""
        outcome = self._rules.on_response(treatment, frame)
        if outcome.fate is Fate.DISCONNECT:
            super()._carry_out(Close(connection.peer.connection_id, None))
        elif outcome.fate is Fate.BLACKHOLE:
            self._finish(connection.peer.connection_id, None)
        elif outcome.delay_ms:
            size_max = outcome.size_bytes_max
            self._later(outcome.delay_ms, self._answer, connection, outcome.frame, size_max)
        else:
            self._answer(connection, outcome.frame, outcome.size_bytes_max)

    def _answer(self, connection: Connection, frame: bytes, size_max: int | None = None) -> None:
        """Send a response, or the beginning of one, behind which the connection ends."""
        connection_id = connection.peer.connection_id
        self._finish(connection_id, frame)
        data = frame_prefix(len(frame)) + frame[:size_max]
        if size_max is not None:
            connection.is_last_answer = True
        super()._carry_out(Reply(connection_id, [data], len(data)))

    def _finish(self, connection_id: int, frame: bytes | None) -> None:
        exchange, _ = self._exchanges.pop(connection_id, (None, None))
        if exchange is not None:
            self._recorder.end(exchange, frame)

    def drop(self, connection: Connection, rejection: Rejection | None = None) -> None:
        """Close and drop a connection."""
        connection_id = connection.peer.connection_id
        self._finish(connection_id, None)
        self._clients.pop(connection_id, None)
        super().drop(connection, rejection)
