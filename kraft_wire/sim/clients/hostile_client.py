"""A connection of a hostile client: it sends some bytes, and reads no answer."""

from __future__ import annotations

from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.network import Network, SimConnection
from kraft_wire.sim.setup import CONTROLLER_PORT
from kraft_wire.sim.wires import frames_of
from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import parse_response_header

__all__ = ["Foreigner", "HostileClient"]


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
        """Never called: nodes do not connect to a hostile client."""
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


class Foreigner(HostileClient):
    """A node of another cluster: every request of the quorum that it sends is refused (S61)."""

    def __init__(
        self, network: Network, place: int, frame: bytes, api_key: int, version: int
    ) -> None:
        super().__init__(network, place, frame_prefix(len(frame)) + frame)
        self._api_key, self._version = api_key, version
        self._buffer = bytearray()

    def received(self, connection: SimConnection, data: bytes) -> None:
        """Judge the answer, which comes at once."""
        for frame in frames_of(self._buffer, data):
            _, at = parse_response_header(frame, self._api_key, self._version)
            response, _ = response_class(self._api_key).decode(frame, self._version, at)
            error = getattr(response, "error_code", None)
            if error != ErrorCode.INCONSISTENT_CLUSTER_ID:
                node_id = connection.accepting.place
                raise Violation("S61 OtherClusterIsRefused", node_id, response, "has error", error)
        super().received(connection, data)
