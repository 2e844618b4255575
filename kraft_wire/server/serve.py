"""Serves one node until a signal: accepting connections, and the order of a stop.

Sockets are bound before the node is made, and listen only here, those for clients once the broker
runs: otherwise the backlog would accept clients before their requests are answered. Not here: how
sockets are bound (`listening`) and connections accepted (`accepting`), the loop and exits
(`process`), how a node is made (`cli`).
"""

import socket
from collections.abc import Callable, Sequence

from kraft_wire.node.config.node_config import Listener
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.node import Node
from kraft_wire.server.accepting import Acceptor
from kraft_wire.server.host import Host
from kraft_wire.server.listening import starting
from kraft_wire.server.process import ServerProcess

__all__ = ["Serving"]

_STOP_GRACE_SECONDS = 5.0
_STOP_STEP_SECONDS = 0.01


class Serving:
    """A started node with its listening sockets; `listen`, then `run`."""

    def __init__(
        self,
        node: Node,
        sockets: list[tuple[Listener, socket.socket]],
        process: ServerProcess,
        host: Callable[..., Host] = Host,
    ) -> None:
        self._node, self._process = node, process
        self.loop = process.new_loop(self._stop)
        self.host = host(node, self.loop, process.log, process.break_off)
        self._acceptors = [
            (listener, Acceptor(self.host, self.loop, listener.name, sock))
            for listener, sock in sockets
        ]
        self.host.has_room = self._resume

    def listen(self, ready: Callable[[], None]) -> None:
        """Accept peers of the quorum, and clients after ServeClients; then call `ready`.

        Errors: StartError for a port that is taken; if clients' port is, the process ends.
        """
        early = self._node.config.controller_listeners

        def serve_clients() -> None:
            try:
                self._listen([each for each in self._acceptors if each[0] not in early])
            except StartError as error:
                self._process.break_off(str(error))
            ready()

        self.host.serve_clients = serve_clients
        self._listen([each for each in self._acceptors if each[0] in early])
        self.host.settle_all()

    def _listen(self, acceptors: Sequence[tuple[Listener, Acceptor]]) -> None:
        backlog = self._node.config.settings.integer("socket.listen.backlog.size")
        for listener, acceptor in acceptors:
            if not self.host.is_stopping:
                with starting(listener):
                    acceptor.listen(backlog)

    def _resume(self) -> None:
        for _, each in self._acceptors:
            each.resume()

    def run(self) -> None:
        """Serve until the process must stop, then stop."""
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    # -- stopping --------------------------------------------------------------------------------

    def _stop(self) -> None:
        self._node.begin_stop(self.host.now_ms(), self.host.wall_ms())
        self._leave()

    def _leave(self) -> None:
        """Serve until other brokers lead this broker's partitions; the node limits the time."""
        self.host.settle_all()
        if self._node.serves_clients:
            self.loop.call_later(_STOP_STEP_SECONDS, self._leave)
            return
        self.host.is_stopping = True
        for _, each in self._acceptors:
            each.close()
        self._drain_connections(self.loop.time() + _STOP_GRACE_SECONDS)

    def _drain_connections(self, until: float) -> None:
        """Close each answered connection while the node leaves; at the end close all."""
        is_busy = self.host.close_idle() or not self.host.node_has_left
        if is_busy and self.loop.time() < until:
            self.loop.call_later(_STOP_STEP_SECONDS, self._drain_connections, until)
            return
        for connection in list(self.host.connections.values()):
            self.host.drop(connection)
        self.host.stop()
        self._node.stop(self.host.now_ms(), self.host.wall_ms())
        self._process.log.event("stopped", clean=True)
        self.loop.call_later(0, self.loop.stop)  # after the connection attempts were cancelled
