"""Limits for peers, on by default (keys: `kraft_wire/settings/own_keys.json`).

`ServerLimits` holds the numbers in force, `RequestMemory` counts the bytes of requests that are
being read or answered. Who may connect decides `kraft_wire/node/quotas/connection_quotas.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from ipaddress import ip_address
from typing import Final, NamedTuple

from kraft_wire.frozen import frozen
from kraft_wire.metadata.authorizer.principal import host_text
from kraft_wire.node.quotas.windows import Windows
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.settings.values import parse_value

__all__ = [
    "UNBOUNDED",
    "ListenerLimits",
    "RequestMemory",
    "ServerLimits",
    "Waiting",
    "listener_entries",
    "overdue",
    "server_limits",
]

UNBOUNDED: Final = 2_147_483_647
"""Kafka's default of `max.connections`."""
_CONNECTIONS: Final = "max.connections"
_CREATION_RATE: Final = "max.connection.creation.rate"
_DIGITS_MAX: Final = 10
_LISTENER_KEYS: Final = (_CONNECTIONS, _CREATION_RATE)
"""Limits that a listener may have for itself (KIP-402, KIP-612)."""


class ListenerLimits(NamedTuple):
    """Limits of the connections of one listener."""

    connections_max: int
    connections_per_second_max: int


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
    connections_possible: int = UNBOUNDED
    """Connections that the process has descriptors for."""
    connections_of_address: Mapping[str, int] = field(default_factory=dict)
    """`max.connections.per.ip.overrides`, by address as `host_text` has it."""
    rate_of_address: Mapping[str | None, int] = field(default_factory=dict)
    """The quotas `connection_creation_rate` of addresses; None: of all others."""
    listeners: Mapping[str, ListenerLimits] = field(default_factory=dict)
    """The listeners with limits of their own; in others those of all connections count."""
    windows: Windows = Windows(11, 1_000)
    """`quota.window.num` and `quota.window.size.seconds`, for rates of connections."""
    slow_operation_ms: int = 1_000
    """`slow.operation.ms`: slower operations are logged."""

    def of_listener(self, name: str) -> ListenerLimits:
        """Return the limits of a listener, its own or those of all."""
        of_all = ListenerLimits(self.connections_max, self.connections_per_second_max)
        return self.listeners.get(name, of_all)


def server_limits(
    settings: NodeSettings,
    connections_possible: int = UNBOUNDED,
    *,
    listener_entries: Mapping[str, Mapping[str, str]] | None = None,
    rate_of_address: Mapping[str | None, int] | None = None,
) -> ServerLimits:
    """Read the limits.

    `connections_possible`: those that the process has descriptors for; `listener_entries`: what
    listeners have for themselves, as text; `rate_of_address`: the quotas of addresses.
    """
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
        connections_max=min(number(_CONNECTIONS), connections_possible),
        connections_per_ip_max=number("max.connections.per.ip"),
        connections_per_second_max=number(_CREATION_RATE),
        connections_possible=connections_possible,
        connections_of_address=_overrides(settings.text("max.connections.per.ip.overrides")),
        rate_of_address=rate_of_address or {},
        listeners={
            listener: ListenerLimits(
                min(_own_number(entries, _CONNECTIONS, settings), connections_possible),
                _own_number(entries, _CREATION_RATE, settings),
            )
            for listener, entries in (listener_entries or {}).items()
        },
        windows=Windows.of(settings),
        slow_operation_ms=number("slow.operation.ms"),
    )


def listener_entries(names: Iterable[str], entries: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the limits that listeners have for themselves, as text, by listener and key."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        prefix = f"listener.name.{name.lower()}."
        own = {key: entries[prefix + key] for key in _LISTENER_KEYS if prefix + key in entries}
        if own:
            found[name] = own
    return found


def _own_number(entries: Mapping[str, str], key: str, settings: NodeSettings) -> int:
    if key not in entries:
        return settings.integer(key)
    value = parse_value(BROKER_KEYS[key], entries[key])
    assert isinstance(value, int), (key, value)
    return value


def _overrides(text: str | None) -> dict[str, int]:
    """Return the numbers by address; leave out other texts, and host names.

    Nothing resolves host names here.
    """
    found: dict[str, int] = {}
    for each in filter(None, map(str.strip, (text or "").split(","))):
        host, _, number = each.rpartition(":")
        address = host.strip().strip("[]")
        if _is_address(address) and _is_number(number.strip()):
            found[host_text(address)] = int(number)
    return found


def _is_number(text: str) -> bool:
    """Return whether `int` takes the text: not every digit of Unicode, nor thousands of them."""
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


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
