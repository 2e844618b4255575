"""Limits for peers, on by default (keys: `kraft_wire/settings/own_keys.json`).

`ServerLimits` holds the configured numbers; `ConnectionQuotas` counts connections in all, per
address and per second, `RequestMemory` the bytes of requests that are being read or answered.
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.frozen import frozen
from kraft_wire.settings.node_settings import NodeSettings

__all__ = [
    "UNBOUNDED",
    "ConnectionQuotas",
    "RequestMemory",
    "ServerLimits",
    "Waiting",
    "overdue",
    "server_limits",
]

UNBOUNDED: Final = 2_147_483_647
"""Kafka's default of `max.connections`."""


@frozen(kw_only=True)
class ServerLimits:
    """Limits of one connection, of one address, and of all connections."""

    frame_bytes_max: int = 104_857_600
    """`socket.request.max.bytes`: the largest frame, which only Produce needs."""
    metadata_frame_bytes_max: int = 16_777_216
    """`request.metadata.max.bytes`: the largest frame of any other request."""
    queued_bytes_max: int = 268_435_456
    """`queued.max.request.bytes`: frames being read or answered, of all connections."""
    unsent_bytes_max: int = 58_720_256
    """`connection.write.buffer.max.bytes`: memory of answers that one peer has not taken."""
    idle_ms: int = 600_000
    """`connections.max.idle.ms`."""
    handshake_ms: int = 10_000
    """`connection.handshake.timeout.ms`: until the first whole request."""
    read_bytes_per_second_min: int = 1_024
    """`connection.min.read.bytes.per.second`: once a frame has begun."""
    connections_max: int = UNBOUNDED
    """`max.connections`."""
    connections_per_ip_max: int = 1_000
    """`max.connections.per.ip`."""
    connections_per_second_max: int = 1_000
    """`max.connection.creation.rate`."""
    slow_operation_ms: int = 1_000
    """`slow.operation.ms`: slower operations are logged."""


def server_limits(settings: NodeSettings, connections_possible: int = UNBOUNDED) -> ServerLimits:
    """Read the limits; `connections_possible`: those that the process has descriptors for."""
    number = settings.integer
    frame_bytes_max = number("socket.request.max.bytes")
    return ServerLimits(
        frame_bytes_max=frame_bytes_max,
        metadata_frame_bytes_max=min(number("request.metadata.max.bytes"), frame_bytes_max),
        queued_bytes_max=number("queued.max.request.bytes"),
        unsent_bytes_max=number("connection.write.buffer.max.bytes"),
        idle_ms=number("connections.max.idle.ms"),
        handshake_ms=number("connection.handshake.timeout.ms"),
        read_bytes_per_second_min=number("connection.min.read.bytes.per.second"),
        connections_max=min(number("max.connections"), connections_possible),
        connections_per_ip_max=number("max.connections.per.ip"),
        connections_per_second_max=number("max.connection.creation.rate"),
        slow_operation_ms=number("slow.operation.ms"),
    )


@frozen
class Waiting:
    """A connection that waits for its next request, in milliseconds of its host's clock."""

    opened_ms: int
    last_active_ms: int
    frame_began_ms: int
    """Arrival of the first byte of a partial frame, -1 between frames."""
    held_bytes: int
    """Received bytes of that frame."""
    unsent_bytes: int
    """Bytes of unsent answers."""
    requests_count: int


def overdue(waiting: Waiting, limits: ServerLimits, now_ms: int) -> str | None:
    """Return the reason to close a connection whose time is over; None if it is not.

    "idle" is not a fault of the peer.
    """
    if waiting.requests_count == 0:
        if now_ms - waiting.opened_ms > limits.handshake_ms:
            return "handshake_timeout"
    elif now_ms - waiting.last_active_ms > limits.idle_ms:
        return "answers_not_taken" if waiting.unsent_bytes else "idle"
    if waiting.frame_began_ms >= 0:
        late_ms = now_ms - waiting.frame_began_ms - limits.handshake_ms
        if late_ms > 0 and waiting.held_bytes < limits.read_bytes_per_second_min * late_ms // 1000:
            return "too_slow"
    return None


class ConnectionQuotas:
    """Decides whether a new connection may stay."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        """Replaced as a whole when dynamic settings change."""
        self._by_host: dict[str, int] = {}
        self._total = 0
        self._second = -1
        self._in_second = 0

    def admit(self, host: str, now_ms: int) -> str | None:
        """Count a new connection; return the reason if it is refused, and then do not count it."""
        limits = self.limits
        if self._total >= limits.connections_max:
            return "too_many_connections"
        if self._by_host.get(host, 0) >= limits.connections_per_ip_max:
            return "too_many_connections_from_address"
        second = now_ms // 1000
        if second != self._second:
            self._second, self._in_second = second, 0
        if self._in_second >= limits.connections_per_second_max:
            return "connection_rate_exceeded"
        self._in_second += 1
        self._total += 1
        self._by_host[host] = self._by_host.get(host, 0) + 1
        return None

    @property
    def excess_count(self) -> int:
        """Number of connections above `max.connections`, which may have been lowered."""
        return max(0, self._total - self.limits.connections_max)

    def released(self, host: str) -> None:
        """Uncount a closed connection."""
        self._total -= 1
        left = self._by_host[host] - 1
        assert left >= 0, host
        assert self._total >= 0, host
        if left:
            self._by_host[host] = left
        else:
            del self._by_host[host]


class RequestMemory:
    """The use of `queued.max.request.bytes` by connections; beyond it connections wait."""

    __slots__ = ("_starved", "bytes_max", "held", "starving", "used_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.used_bytes = 0
        self.held: dict[int, int] = {}
        """Bytes by connection id."""
        self.starving: Callable[[int], None] = lambda _: None
        """Called with each connection that has to wait."""
        self._starved: dict[int, None] = {}

    def reserve(self, connection_id: int, size_bytes: int) -> bool:
        """Reserve bytes for a connection; return False if it must wait for others."""
        growth = size_bytes - self.held.get(connection_id, 0)
        if growth <= 0:
            return True
        self.held[connection_id] = size_bytes
        self.used_bytes += growth
        runs_alone = len(self.held) - len(self._starved) == 1
        if self.used_bytes <= self.bytes_max or runs_alone:
            return True  # without another active connection the wait would never end
        self._starved[connection_id] = None
        self.starving(connection_id)
        return False

    def is_starved(self, connection_id: int) -> bool:
        """Return whether a connection waits for memory."""
        return connection_id in self._starved

    def release(self, connection_id: int) -> list[int]:
        """Release a connection's bytes; return those that may continue: one if all wait."""
        self.used_bytes -= self.held.pop(connection_id, 0)
        self._starved.pop(connection_id, None)
        assert self.used_bytes >= 0, self.used_bytes
        if self.used_bytes <= self.bytes_max:
            starved, self._starved = self._starved, {}
            return list(starved)
        if len(self._starved) < len(self.held):
            return []
        first = next(iter(self._starved))
        del self._starved[first]
        return [first]
