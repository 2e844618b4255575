"""The connections of one machine: bytes become frames for the node, its outputs become bytes.

As `server.connection` and `server.peers` do it: at most one request of a connection is with the
node, answers go out in order, links report their results. `Wires` is the machine's end of network
connections, and ends with the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from kraft_wire.model import FileSlice
from kraft_wire.node.outputs import Buffers, Close, Connect, Mute, NoReply, Peer, Reply, SendBytes
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.sim.network import HOSTILE_CLIENTS, SimConnection
from kraft_wire.sim.observer import Observer
from kraft_wire.sim.setup import CONTROLLER_PORT, LISTENER
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.traffic import Traffic

__all__ = ["Wires", "frames_of"]


@dataclass(slots=True)
class _Served:
    """The process's state of a connection that it accepted."""

    peer: Peer
    buffer: bytearray = field(default_factory=bytearray)
    frames: deque[bytearray] = field(default_factory=deque)
    awaits_answer: bool = False
    since_us: int = 0
    """When the node got the request that awaits an answer."""
    is_muted: bool = False
    """Whether its client is throttled: its next request waits."""


class Wires:
    """All connections of one machine's process."""

    def __init__(
        self,
        machine: MachineState,
        stage: Stage,
        observer: Observer,
        traffic: Traffic,
        turn: Callable[..., None],
    ) -> None:
        """`turn` makes one call to the machine's node."""
        self._machine = machine
        self._stage = stage
        self._observer = observer
        self._traffic = traffic
        self._turn = turn
        self.place = machine.id
        self._buffers: dict[int, bytearray] = {}

    @property
    def is_up(self) -> bool:
        """Whether a process runs."""
        return self._machine.node is not None

    def why_unanswered(self, until_us: int) -> str | None:
        """Return a request that came before a time and is not answered yet, None for none."""
        for connection in self._machine.served.values():
            served = connection.server_state
            if isinstance(served, _Served) and served.awaits_answer and served.since_us < until_us:
                return f"node {self.place} owes {connection.dialling.place} since {served.since_us}"
        return None

    def drop_all(self, *, is_silent: bool) -> None:
        """Close all connections, because the process is gone."""
        self._stage.network.abandon(self, is_silent=is_silent)
        self._machine.links, self._buffers, self._machine.served = {}, {}, {}

    # -- outputs ---------------------------------------------------------------------------------

    def send(self, output: SendBytes) -> None:
        """Send frames over a link."""
        connection = self._machine.links.get(output.link_id)
        if connection is not None:
            data = joined(output.buffers)
            self._traffic.sent(self._machine, connection, data, is_request=True)
            self._stage.network.send(connection, self, data)

    def reply(self, output: Reply) -> None:
        """Answer a request."""
        connection = self._machine.served.get(output.connection_id)
        if connection is not None:
            data = joined(output.buffers)
            data = self._traffic.sent(self._machine, connection, data, is_request=False)
            self._stage.network.send(connection, self, data)
        self._answered(output.connection_id)

    def fall_silent(self, output: NoReply | Mute) -> None:
        """A request is done without an answer, or the time of a throttled client begins or ends."""
        if isinstance(output, Mute):
            self._mute(output)
        else:
            self._answered(output.connection_id)

    def _mute(self, output: Mute) -> None:
        """Serve no requests of a throttled client, or serve them again."""
        connection = self._machine.served.get(output.connection_id)
        if connection is not None and isinstance(connection.server_state, _Served):
            connection.server_state.is_muted = output.is_muted
            if not output.is_muted:
                self._answered(output.connection_id)

    def connect(self, output: Connect) -> None:
        """Open a link; it fails at once if no node has that address."""
        link_id = output.link_id
        connection = self._stage.network.dial(self, output.host, output.port, link_id)
        if connection is None:
            self._stage.scheduler.after(100, self._link_down, self._machine.life, link_id)
            return
        self._machine.links[link_id] = connection
        self._buffers[link_id] = bytearray()

    def disconnect(self, link_id: int) -> None:
        """Close a link."""
        connection = self._machine.links.pop(link_id, None)
        self._buffers.pop(link_id, None)
        if connection is not None and not connection.is_left_by_dialler:
            self._stage.network.leave(connection, self)

    def close(self, output: Close) -> None:
        """Close a connection that was opened to the node."""
        self._observer.closed_by_node(self._machine, output.rejection)
        connection = self._machine.served.pop(output.connection_id, None)
        if connection is not None:
            if not connection.is_left_by_acceptor:
                self._stage.network.leave(connection, self)
            if self._machine.node is not None:
                self._machine.node.connection_closed(output.connection_id)

    # -- an end of connections -------------------------------------------------------------------

    def accepted(self, connection: SimConnection) -> None:
        """A connection was opened to the node."""
        if not self._machine.serves_clients:
            self._stage.network.leave(connection, self)  # no process listens there yet
            return
        listener = LISTENER if connection.port == CONTROLLER_PORT else "PLAINTEXT"
        peer = Peer(connection.number, f"place{connection.dialling.place}", 1, listener)
        connection.server_state = _Served(peer)
        self._machine.served[connection.number] = connection

    def opened(self, connection: SimConnection) -> None:
        """A link is up."""
        node = self._machine.node
        if node is not None and connection.link_id in self._machine.links:
            self._turn("link_up", node.link_up, connection.link_id)

    def received(self, connection: SimConnection, data: bytes) -> None:
        """Bytes arrived: cut them into frames, for the node now or later."""
        served = connection.server_state
        if connection.dialling == self:
            buffer = self._buffers.get(connection.link_id)
            if buffer is not None:
                for frame in frames_of(buffer, data):
                    self._take_answer(connection, frame)
        elif isinstance(served, _Served) and connection.number in self._machine.served:
            served.frames.extend(frames_of(served.buffer, data))
            self._next_request(connection, served)

    def closed(self, connection: SimConnection) -> None:
        """The other end has closed."""
        machine = self._machine
        if connection.dialling == self:
            self._buffers.pop(connection.link_id, None)
            if machine.links.pop(connection.link_id, None) is not None:
                self._link_down(machine.life, connection.link_id)
        elif machine.served.pop(connection.number, None) is not None and machine.node is not None:
            self._turn(
                "closed", machine.node.connection_closed, connection.number, gives_time=False
            )

    # -- turns of the node -----------------------------------------------------------------------

    def _link_down(self, life: int, link_id: int) -> None:
        machine = self._machine
        if machine.node is not None and life == machine.life:
            self._turn("link_down", machine.node.link_down, link_id)

    def _take_answer(self, connection: SimConnection, frame: bytearray) -> None:
        machine = self._machine
        if machine.node is None or connection.link_id not in self._machine.links:
            return
        self._traffic.arrived(connection, frame, is_request=False)
        self._turn("link_frame", machine.node.link_frame, connection.link_id, frame)

    def _next_request(self, connection: SimConnection, served: _Served) -> None:
        machine = self._machine
        while served.frames and not served.awaits_answer and machine.node is not None:
            if served.is_muted:
                return
            if connection.number not in self._machine.served:
                return
            frame = served.frames.popleft()
            served.awaits_answer, served.since_us = True, self._stage.now_us
            place = connection.dialling.place
            if place > 0:
                machine.heard[place] = self._stage.now_us
            elif place <= HOSTILE_CLIENTS:  # it may repeat any peer's requests
                machine.heard_us = self._stage.now_us
            self._traffic.arrived(connection, frame, is_request=True)
            self._turn("receive", machine.node.receive, served.peer, frame)

    def _answered(self, connection_id: int) -> None:
        connection = self._machine.served.get(connection_id)
        if connection is None or not isinstance(connection.server_state, _Served):
            return
        connection.server_state.awaits_answer = False
        if connection.server_state.frames:
            self._stage.scheduler.after(0, self._go_on, self._machine.life, connection)

    def _go_on(self, life: int, connection: SimConnection) -> None:
        if life == self._machine.life and isinstance(connection.server_state, _Served):
            self._next_request(connection, connection.server_state)


def joined(buffers: Buffers) -> bytes:
    """Return the bytes of an output; slices of files are read here, as sendfile would."""
    return b"".join([part.read() if isinstance(part, FileSlice) else part for part in buffers])


def frames_of(buffer: bytearray, data: bytes) -> list[bytearray]:
    """Cut a stream into frames without their lengths; an incomplete frame stays in the buffer."""
    if not buffer and len(data) >= 4 and int.from_bytes(data[:4], "big") == len(data) - 4:
        frame = bytearray(data)
        del frame[:4]
        return [frame]
    buffer += data
    frames = []
    while len(buffer) >= 4:
        size = int.from_bytes(buffer[:4], "big")
        if len(buffer) - 4 < size:
            break
        frames.append(buffer[4 : 4 + size])
        del buffer[: 4 + size]
    return frames
