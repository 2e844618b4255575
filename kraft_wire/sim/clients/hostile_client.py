"""Who connects without being a client: it sends some bytes, and listens to nothing."""

from __future__ import annotations

from kraft_wire.sim.network import Network, SimConnection
from kraft_wire.sim.setup import CONTROLLER_PORT

__all__ = ["HostileClient"]


class HostileClient:
    """Connects, sends some bytes, and listens to nothing."""

    def __init__(self, network: Network, place: int, data: bytes) -> None:
        self.place = place
        self.is_up = True
        self._network = network
        self._data = data

    def dial(self, host: str, port: int = CONTROLLER_PORT) -> None:
        """Connect to a node."""
        self._network.dial(self, host, port, 0)

    def accepted(self, connection: SimConnection) -> None:
        """Nobody connects to a stranger."""
        raise AssertionError(connection)

    def opened(self, connection: SimConnection) -> None:
        """Send, and wait."""
        self._network.send(connection, self, self._data)

    def received(self, connection: SimConnection, data: bytes) -> None:
        """One answer is enough."""
        if not connection.is_left_by_dialler:
            self._network.leave(connection, self)

    def closed(self, connection: SimConnection) -> None:
        """That was all."""
