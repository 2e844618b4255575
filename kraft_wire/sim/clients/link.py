"""A client's way to the nodes: an end of the network that speaks Kafka's protocol in bytes.

One connection at a time and one request at a time. Another node is asked over a new connection; a
request without an answer is given up after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kraft_wire.sim.network import SimConnection
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.traffic import Answered, Traffic
from kraft_wire.sim.wires import frames_of
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import Message

__all__ = ["ClientLink"]

_VERSIONS: Final = {22: 4}
"""Where a client speaks an older version than the newest, by API key."""


class ClientLink:
    """One connection at a time, one request at a time; the caller is called back once."""

    def __init__(self, stage: Stage, traffic: Traffic, place: int) -> None:
        assert place < 0, place
        self.stage = stage
        self.traffic = traffic
        self.place = place
        self.is_up = True
        self._connection: SimConnection | None = None
        self._target: tuple[int, int] | None = None
        self._buffer = bytearray()
        self._correlation_id = 0
        self._asked: tuple[int, Message, int, Callable[[Message | None], None]] | None = None
        self._outgoing = b""
        self.answered: Answered = ((0, 0), 0, False)
        """The node that gave the last answer."""

    @property
    def is_busy(self) -> bool:
        """Whether a request is in flight."""
        return self._asked is not None

    def ask(
        self,
        node_id: int,
        port: int,
        request: Message,
        timeout_us: int,
        then: Callable[[Message | None], None],
        version: int | None = None,
    ) -> None:
        """Send a request to a node; `then` gets the answer, or None without one.

        `version` is the newest unless given.
        """
        assert self._asked is None, "one request at a time"
        if version is None:
            version = _VERSIONS.get(request.API_KEY, request.MAX_VERSION)
        self._correlation_id += 1
        number = self._correlation_id
        header = RequestHeader(request.API_KEY, version, number, f"client{-self.place}")
        body = request.encode(version)
        head = encode_request_header(header)
        data = frame_prefix(len(head) + len(body)) + head + body
        self._asked = (number, request, version, then)
        self.stage.scheduler.after(timeout_us, self._give_up, number)
        if self._target == (node_id, port) and self._connection is not None:
            self._send(self._connection, data)
            return
        self._hang_up()
        self._target, self._outgoing = (node_id, port), data
        self._connection = self.stage.network.dial(self, self.stage.machines[node_id].host, port, 0)
        assert self._connection is not None, (node_id, port)

    def _send(self, connection: SimConnection, data: bytes) -> None:
        self.traffic.client_sent(self.place, connection, data)
        self.stage.network.send(connection, self, data)

    @property
    def connection(self) -> SimConnection | None:
        """The present connection, None without one."""
        return self._connection

    def hang_up(self) -> None:
        """Close the connection, while no request is in flight."""
        assert self._asked is None, self._asked
        self._hang_up()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        self._target, self._buffer, self._outgoing = None, bytearray(), b""
        if connection is not None and not connection.is_left_by_dialler:
            self.stage.network.leave(connection, self)

    def _give_up(self, number: int) -> None:
        if self._asked is not None and self._asked[0] == number:
            self._hang_up()
            self._finish(None)

    def _finish(self, response: Message | None) -> None:
        assert self._asked is not None
        then = self._asked[3]
        self._asked = None
        then(response)

    # -- as an end of connections ----------------------------------------------------------------

    def accepted(self, connection: SimConnection) -> None:
        """Never called: nodes do not connect to a client."""
        raise AssertionError(connection)

    def opened(self, connection: SimConnection) -> None:
        """The connection is established: send the waiting bytes."""
        if connection is self._connection and self._outgoing:
            data, self._outgoing = self._outgoing, b""
            self._send(connection, data)

    def received(self, connection: SimConnection, data: bytes) -> None:
        """Bytes arrived."""
        if connection is not self._connection:
            return
        for frame in frames_of(self._buffer, data):
            number = int.from_bytes(frame[:4], "big")
            if self._asked is None or self._asked[0] != number:
                continue
            _, request, version, _ = self._asked
            self.answered = self.traffic.client_received(connection, frame)
            _, at = parse_response_header(frame, request.API_KEY, version)
            response, _ = response_class(request.API_KEY).decode(frame, version, at)
            self._finish(response)

    def closed(self, connection: SimConnection) -> None:
        """Refused, closed or broken."""
        if connection is self._connection:
            self._connection = None
            self._target, self._buffer, self._outgoing = None, bytearray(), b""
            if self._asked is not None:
                self._finish(None)
