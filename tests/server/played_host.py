"""A host whose loop, clock, sockets and node are played: each turn is what a test asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from kraft_wire.node.event_log import EventLog
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import Peer
from kraft_wire.server.connection import Connection
from kraft_wire.server.host import Host

CLIENTS, BROKERS = "CLIENTS", "BROKERS"


class PlayedSocket:
    """A socket that is told apart by its number."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.is_closed = False
        self.accepts: list[Any] = []
        """Sockets with their addresses, or errors, in the order of `accept`."""
        self.backlog: int | None = None

    def fileno(self) -> int:
        return -1 if self.is_closed else self.number

    def close(self) -> None:
        self.is_closed = True

    def listen(self, backlog: int) -> None:
        self.backlog = backlog

    def accept(self) -> Any:
        found = self.accepts.pop(0) if self.accepts else BlockingIOError()
        if isinstance(found, Exception):
            raise found
        return found

    def setblocking(self, is_blocking: bool) -> None:
        assert not is_blocking

    def setsockopt(self, *option: int) -> None: ...
    def recv_into(self, room: memoryview) -> int:
        raise BlockingIOError

    def send(self, data: bytes, flags: int = 0) -> int:
        raise BlockingIOError

    sendmsg = send


class PlayedLoop:
    """A loop that does nothing by itself."""

    def __init__(self) -> None:
        self.later: list[tuple[float, Callable[..., object], tuple[Any, ...]]] = []
        self.soon: list[Callable[[], object]] = []
        self.readers: dict[int, Callable[[], object]] = {}
        self.cancelled: list[float] = []

    def call_later(self, delay: float, call: Callable[..., object], *args: Any) -> Any:
        self.later.append((delay, call, args))
        return SimpleNamespace(cancel=lambda: self.cancelled.append(delay))

    def call_soon(self, call: Callable[..., object], *args: Any) -> None:
        self.soon.append(lambda: call(*args))

    def add_reader(self, number: int, call: Callable[..., object], *args: Any) -> None:
        self.readers[number] = lambda: call(*args)

    def remove_reader(self, number: int) -> None:
        self.readers.pop(number, None)

    def run_soon(self) -> None:
        soon, self.soon = self.soon, []
        for call in soon:
            call()

    def run_later(self, delay: float) -> None:
        """Run what was to be called after a delay."""
        due = [each for each in self.later if each[0] == delay]
        assert due, self.later
        self.later = [each for each in self.later if each[0] != delay]
        for _, call, args in due:
            call(*args)


class PlayedNode:
    """A node that notes which connections it is told of."""

    def __init__(self, limits: ServerLimits, protected: frozenset[str]) -> None:
        self.config = SimpleNamespace(
            limits=limits, security={}, links={}, protected_listeners=protected
        )
        self.outputs: list[Any] = []
        self.open: list[int] = []
        self.due_ms = 1 << 40

    def connection_opened(self, peer: Peer) -> None:
        self.open.append(peer.connection_id)

    def connection_closed(self, connection_id: int) -> None:
        self.open.remove(connection_id)

    def deadline_ms(self) -> int:
        return self.due_ms


class Played:
    """The host and its parts; `lines` has what was logged, by the connection's number or name."""

    def __init__(self, *, protected: frozenset[str] = frozenset(), **limits: Any) -> None:
        self.time_ms = 1_000
        self.lines: list[tuple[str, object]] = []
        self.loop = PlayedLoop()
        self.node = PlayedNode(ServerLimits(**limits), protected)
        log = SimpleNamespace(
            event=lambda *_, **__: None,
            may_write=lambda name: False,
            rejected=lambda peer, each, _: self.lines.append((each.reason, peer.connection_id)),
            limited=lambda name, _, now_ms, **fields: self.lines.append((name, fields)),
            tick=lambda now_ms: None,
        )
        self.host = Host(
            cast(Node, self.node),
            cast(asyncio.AbstractEventLoop, self.loop),
            cast(EventLog, log),
            lambda reason: None,
        )
        self.host.now_ms = lambda: self.time_ms
        self.rooms = 0
        self.host.has_room = self._has_room

    def _has_room(self) -> None:
        self.rooms += 1

    def connect(self, number: int, address: str = "10.0.0.1", listener: str = CLIENTS) -> Any:
        """Accept a socket; return its connection, or the socket if that was refused."""
        sock = PlayedSocket(number)
        before = set(self.host.connections)
        self.host.accepted(cast(Any, sock), (address, 50_000), listener)
        found = [each for key, each in self.host.connections.items() if key not in before]
        return found[0] if found else sock

    def at(self, time_ms: int, connection: Connection | None = None) -> None:
        """Let time pass; a connection is active then."""
        self.time_ms = time_ms
        if connection is not None:
            connection.last_active_ms = time_ms
