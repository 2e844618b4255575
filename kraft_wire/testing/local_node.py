"""One node of a cluster in this process: its sockets, its disk, and the node and host of one life.

Everything here runs on the thread of the loop.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kraft_wire.model import RandomSource
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.event_log import EventLog
from kraft_wire.node.node import Node
from kraft_wire.storage.files import DirectoryLock
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.testing.clock import Clock
from kraft_wire.testing.exchanges import Recorder
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.memory_files import MemoryFileSystem
from kraft_wire.testing.node_host import NodeHost
from kraft_wire.testing.plan import ClusterPlan, Identity, format_node, node_config

__all__ = ["LocalNode", "Surroundings", "bind"]

_HOST: Final = "127.0.0.1"
_BACKLOG: Final = 1_024


@dataclass(slots=True)
class Surroundings:
    """The shared parts of the nodes of one cluster."""

    plan: ClusterPlan
    loop: asyncio.AbstractEventLoop
    clock: Clock
    random_source: RandomSource
    rules: FaultRules
    recorder: Recorder
    identity: Identity
    log: EventLog
    directory: Path | None
    """The directory of the data; None for memory."""
    failed: Callable[[str], None]
    """Takes the reason why a node ended by itself."""
    ports: dict[int, Mapping[str, int]] = field(default_factory=dict)


def bind(names: list[str], ports: Mapping[str, int]) -> dict[str, socket.socket]:
    """Bind a socket for each listener, on its former port if it has one."""
    bound = {}
    for name in names:
        sock = bound[name] = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind((_HOST, ports.get(name, 0)))
    return bound


class _Disk(OsFileSystem):
    """The real disk; a killed node releases its locks, as its process would."""

    def __init__(self) -> None:
        self._locks: list[DirectoryLock] = []

    def lock(self, path: str) -> DirectoryLock:
        self._locks.append(super().lock(path))
        return self._locks[-1]

    def release_locks(self) -> None:
        """Give up every lock."""
        while self._locks:
            self._locks.pop().release()


class LocalNode:
    """A node that can be started, stopped, killed and emptied; its ports stay the same."""

    def __init__(self, node_id: int, surroundings: Surroundings) -> None:
        self.node_id = node_id
        self._around = surroundings
        self._sockets = bind(surroundings.plan.listeners(node_id), {})
        ports = {name: sock.getsockname()[1] for name, sock in self._sockets.items()}
        surroundings.ports[node_id] = ports
        self.host: NodeHost | None = None
        self.serves_clients = False
        self.fs = self._new_disk()
        self._is_empty = True
        self._config: NodeConfig | None = None
        """Created at the first start, when the ports of all nodes are known."""

    @property
    def node(self) -> Node | None:
        """The node of the present life."""
        return None if self.host is None else self.host.node

    @property
    def ports(self) -> Mapping[str, int]:
        """The port of each listener."""
        return self._around.ports[self.node_id]

    @property
    def _place(self) -> str:
        root = self._around.directory
        return "data" if root is None else str(root / f"node-{self.node_id}")

    def _new_disk(self) -> "MemoryFileSystem | _Disk":
        in_memory = self._around.directory is None
        return MemoryFileSystem(self._around.clock.wall_ms) if in_memory else _Disk()

    def start(self) -> None:
        """Open the node over its disk, and listen. Errors: StartError, ConfigError."""
        assert self.host is None, f"node {self.node_id} runs"
        around, plan = self._around, self._around.plan
        clock, ports = around.clock, around.ports
        config = self._config or node_config(plan, self.node_id, self._place, ports)
        self._config = config
        if self._is_empty and not plan.is_embedded:
            wall_ms = clock.wall_ms()
            format_node(self.fs, self._place, plan, self.node_id, ports, around.identity, wall_ms)
        self._is_empty = False
        node = Node(
            config,
            self.fs,
            around.random_source,
            now_ms=clock.now_ms(),
            wall_ms=clock.wall_ms(),
            report=around.log.event,
        )
        self.host = host = NodeHost(
            node,
            around.loop,
            around.log,
            self._broken,
            clock,
            around.rules,
            around.recorder,
        )
        host.serve_clients = self._serve_clients
        self._listen([each.name for each in config.controller_listeners])
        host.settle_all()

    def _serve_clients(self) -> None:
        assert self.host is not None, "it runs"
        self.serves_clients = True
        self._listen([each.name for each in self.host.node.config.listeners])

    def _listen(self, names: list[str]) -> None:
        for name in names:
            sock = self._sockets[name]
            sock.listen(_BACKLOG)
            self._around.loop.add_reader(sock.fileno(), self._accept, name, sock)

    def _accept(self, name: str, sock: socket.socket) -> None:
        try:
            accepted, address = sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        if self.host is None:
            accepted.close()
        else:
            self.host.accepted(accepted, (address[0], address[1]), name)

    def _broken(self, reason: str) -> None:
        self.kill()
        self._around.failed(f"node {self.node_id} has stopped: {reason}")

    # -- ending ----------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Leave as a server does at SIGTERM; a quorum has time to receive the last requests."""
        host = self.host
        if host is None:
            return
        host.node.begin_stop(host.now_ms(), host.wall_ms())
        host.settle_all()
        until = self._around.loop.time() + 2.0
        while not host.node_has_left and self._around.loop.time() < until:
            await asyncio.sleep(0.002)
        if self.host is host:
            self._refuse_connections()
            self._leave(host)
            host.node.stop(host.now_ms(), host.wall_ms())

    def kill(self) -> None:
        """End at once, as SIGKILL does: nothing is flushed, and clients lose their connections."""
        self._refuse_connections()
        if self.host is not None:
            self._leave(self.host)
        self.fs.release_locks()

    def _leave(self, host: NodeHost) -> None:
        """Drop all connections of a life."""
        self.host, self.serves_clients = None, False
        host.is_stopping = True
        for connection in list(host.connections.values()):
            host.drop(connection)
        host.stop()
        host.is_over = True

    def _refuse_connections(self) -> None:
        """Bind new sockets that do not listen, to reserve the ports until the next start."""
        self.close()
        self._sockets = bind(self._around.plan.listeners(self.node_id), self.ports)

    def close(self) -> None:
        """Give up the ports."""
        for sock in self._sockets.values():
            self._around.loop.remove_reader(sock.fileno())
            sock.close()

    def begin_anew(self) -> None:
        """Start with an empty disk in memory; connections end, the sockets keep listening."""
        if self.host is not None:
            self._leave(self.host)
        self.fs, self._is_empty = self._new_disk(), True
        self.start()
