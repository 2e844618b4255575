"""The simulated network: connections that carry bytes in order, and their faults.

As TCP does it: bytes of one direction arrive in order or not at all. A cut direction holds its
bytes; when it heals, they arrive late, possibly on an abandoned connection. A reset loses the bytes
in flight. A close follows the bytes in front of it, so a request that was given up may still be
served, and an older connection may deliver after a newer one. So nodes get duplicates and reordered
requests.

Ends are hosts (`MachineEnd`); listening is looked up by address. Not here: which faults a seed has
(`faults`), frames (`machine`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

from kraft_wire.sim.scheduler import Scheduler

__all__ = ["HOSTILE_CLIENTS", "Delays", "End", "Network", "SimConnection"]

HOSTILE_CLIENTS: Final = -2_000
"""From this place down are hostile clients; a node cannot distinguish them from peers."""


class End(Protocol):
    """The owner of one end of a connection: a machine, or an outside client."""

    @property
    def place(self) -> int:
        """Its place for cuts and delays: a node id, or a negative number for a client."""
        ...

    @property
    def is_up(self) -> bool:
        """Whether a process is there that would take a connection."""
        ...

    def accepted(self, connection: SimConnection) -> None:
        """A connection was opened towards this end."""
        ...

    def opened(self, connection: SimConnection) -> None:
        """The connection that this end asked for is there."""
        ...

    def received(self, connection: SimConnection, data: bytes) -> None:
        """Bytes arrived, in order."""
        ...

    def closed(self, connection: SimConnection) -> None:
        """The other end closed, refused, or the connection broke."""
        ...


@dataclass(slots=True)
class Delays:
    """How long bytes take, in microseconds, and how they trickle."""

    least_us: int = 200
    most_us: int = 1_000
    slow: dict[int, int] = field(default_factory=dict)
    """Extra microseconds for bytes that leave or reach a place."""


class Pipe:
    """One direction of a connection."""

    __slots__ = ("arrives_us", "connection", "held", "is_forward", "source", "target")

    def __init__(
        self, connection: SimConnection, source: End, target: End, is_forward: bool
    ) -> None:
        self.connection = connection
        self.source = source
        self.target = target
        self.is_forward = is_forward
        self.arrives_us = 0
        """When the newest bytes arrive: nothing overtakes them."""
        self.held: list[bytes | None] = []
        """Bytes held by a cut; None is the end of the stream."""


class SimConnection:
    """A connection with two directions; each end has left it or not."""

    __slots__ = (
        "accepting",
        "backward",
        "dialling",
        "forward",
        "is_left_by_acceptor",
        "is_left_by_dialler",
        "link_id",
        "number",
        "port",
        "server_state",
    )

    def __init__(self, number: int, dialling: End, accepting: End, link_id: int, port: int) -> None:
        self.number = number
        self.dialling = dialling
        self.accepting = accepting
        self.link_id = link_id
        self.port = port
        self.forward = Pipe(self, dialling, accepting, True)
        self.backward = Pipe(self, accepting, dialling, False)
        self.is_left_by_dialler = False
        self.is_left_by_acceptor = False
        self.server_state: object = None
        """The accepting end's state of it."""


class Network:
    """All connections, and the state of the wires between places."""

    def __init__(self, scheduler: Scheduler, random: Random) -> None:
        self._scheduler = scheduler
        self._random = random
        self._numbers = 0
        self.delays = Delays()
        self.cuts: dict[tuple[int, int], int] = {}
        """One-way: (from, to) -> how many faults cut it."""
        self.listening: dict[tuple[str, int], End] = {}
        self.connections: dict[int, SimConnection] = {}

    # -- opening ---------------------------------------------------------------------------------

    def dial(self, dialling: End, host: str, port: int, link_id: int) -> SimConnection | None:
        """Open a connection; `opened` or `closed` follows, or nothing where packets vanish."""
        accepting = self.listening.get((host, port))
        if accepting is None:
            return None
        self._numbers += 1
        connection = SimConnection(self._numbers, dialling, accepting, link_id, port)
        self.connections[connection.number] = connection
        self._scheduler.after(self._delay_us(connection.forward), self._knock, connection)
        return connection

    def _knock(self, connection: SimConnection) -> None:
        """The first packet is there, if nothing cuts its way or that of its answer."""
        one, other = connection.dialling.place, connection.accepting.place
        if connection.is_left_by_dialler:
            self._forget(connection)
        elif self.cuts and (self.cuts.get((one, other)) or self.cuts.get((other, one))):
            connection.is_left_by_acceptor = True  # the dialler waits until it gives up
        elif not connection.accepting.is_up:
            connection.is_left_by_acceptor = True
            self._push(connection.backward, None)
        else:
            connection.accepting.accepted(connection)
            self._scheduler.after(self._delay_us(connection.backward), self._open, connection)

    @staticmethod
    def _open(connection: SimConnection) -> None:
        if not connection.is_left_by_dialler:
            connection.dialling.opened(connection)

    # -- bytes -----------------------------------------------------------------------------------

    def send(self, connection: SimConnection, source: End, data: bytes) -> None:
        """Carry bytes to the other end."""
        pipe = connection.forward if source is connection.dialling else connection.backward
        self._push(pipe, data)

    def leave(self, connection: SimConnection, end: End) -> None:
        """Close: the other end is notified after the bytes in flight."""
        if end is connection.dialling:
            connection.is_left_by_dialler = True
            pipe = connection.forward
        else:
            connection.is_left_by_acceptor = True
            pipe = connection.backward
        if connection.is_left_by_dialler and connection.is_left_by_acceptor:
            self._forget(connection)
        else:
            self._push(pipe, None)

    def _push(self, pipe: Pipe, data: bytes | None) -> None:
        scheduler = self._scheduler
        at_us = scheduler.now_us + self._delay_us(pipe)
        if at_us <= pipe.arrives_us:
            at_us = pipe.arrives_us + 1
        pipe.arrives_us = at_us
        scheduler.at(at_us, self._arrive, pipe, data)

    def _delay_us(self, pipe: Pipe) -> int:
        delays = self.delays
        least_us = delays.least_us
        delay_us = least_us + int(self._random.random() * (delays.most_us - least_us))
        if delays.slow:
            delay_us += delays.slow.get(pipe.source.place, 0)
            delay_us += delays.slow.get(pipe.target.place, 0)
        return delay_us

    def _arrive(self, pipe: Pipe, data: bytes | None) -> None:
        if pipe.held or (self.cuts and self.cuts.get((pipe.source.place, pipe.target.place))):
            pipe.held.append(data)
            return
        connection, target = pipe.connection, pipe.target
        left = connection.is_left_by_acceptor if pipe.is_forward else connection.is_left_by_dialler
        if connection.number not in self.connections or (left and data is None):
            self._forget(connection)
        elif left:
            # Bytes for an end that is gone are answered with a reset, if the host runs.
            if target.is_up:
                back = connection.backward if pipe.is_forward else connection.forward
                self._push(back, None)
        elif data is None:
            if pipe.is_forward:
                connection.is_left_by_acceptor = True
            else:
                connection.is_left_by_dialler = True
            self._forget(connection)
            target.closed(connection)
        else:
            target.received(connection, data)

    def _forget(self, connection: SimConnection) -> None:
        self.connections.pop(connection.number, None)

    # -- faults ----------------------------------------------------------------------------------

    def cut(self, source: int, target: int) -> None:
        """Hold all bytes from one place to another; cuts of several faults add up."""
        self.cuts[source, target] = self.cuts.get((source, target), 0) + 1

    def heal(self, source: int, target: int) -> None:
        """Heal one cut; held bytes are delivered."""
        left = self.cuts.get((source, target), 0) - 1
        if left > 0:
            self.cuts[source, target] = left
            return
        self.cuts.pop((source, target), None)
        self._release(lambda pipe: (pipe.source.place, pipe.target.place) == (source, target))

    def heal_all(self) -> None:
        """Take all cuts back."""
        self.cuts.clear()
        self._release(lambda pipe: True)

    def _release(self, concerns: Callable[[Pipe], bool]) -> None:
        for connection in list(self.connections.values()):
            for pipe in (connection.forward, connection.backward):
                if pipe.held and concerns(pipe):
                    held, pipe.held = pipe.held, []
                    for data in held:
                        self._push(pipe, data)

    def reset(self, connection: SimConnection) -> None:
        """Break a connection: bytes in flight are lost, and both ends are notified."""
        if self.connections.pop(connection.number, None) is None:
            return
        if not connection.is_left_by_dialler:
            connection.is_left_by_dialler = True
            connection.dialling.closed(connection)
        if not connection.is_left_by_acceptor:
            connection.is_left_by_acceptor = True
            connection.accepting.closed(connection)

    def abandon(self, end: End, *, is_silent: bool) -> None:
        """An end's process is gone; its peers are not notified if the machine lost power."""
        for connection in list(self.connections.values()):
            if connection.dialling is end and not connection.is_left_by_dialler:
                self._left(connection, end, is_silent)
            if connection.accepting is end and not connection.is_left_by_acceptor:
                self._left(connection, end, is_silent)

    def _left(self, connection: SimConnection, end: End, is_silent: bool) -> None:
        if not is_silent:
            self.leave(connection, end)
        elif end is connection.dialling:
            connection.is_left_by_dialler = True
        else:
            connection.is_left_by_acceptor = True
        if connection.is_left_by_dialler and connection.is_left_by_acceptor:
            self._forget(connection)
