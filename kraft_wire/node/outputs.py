"""Outputs of a node for its host, in order: answer, no answer, close, flush, use links, stop.

A host drains `Node.outputs` after every call. It writes replies in the order of the list. It runs
flushes where they delay no request, and reports them through `Node.flushed`. Connections that the
node opens are links: the host reports their events through `Node.link_up`, `link_frame` and
`link_down`.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from kraft_wire.frozen import frozen, slotted
from kraft_wire.model import ANONYMOUS, FileSlice, FsyncFailed, Principal, RandomSource
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.metrics.request_figures import ApiFigures
from kraft_wire.node.quotas.charge import Charge

__all__ = [
    "Buffers",
    "Close",
    "Connect",
    "Disconnect",
    "FlushLogs",
    "FlushTarget",
    "LimitsChanged",
    "LinkNode",
    "LoggedIn",
    "LoginGate",
    "Mute",
    "NoReply",
    "Order",
    "Output",
    "Peer",
    "RefuseLogin",
    "Rejection",
    "Reply",
    "SendBytes",
    "ServeClients",
    "StopProcess",
]

Buffers: TypeAlias = "list[bytes | bytearray | memoryview | FileSlice]"


class LoginGate(Protocol):
    """Handles a connection's frames before the node does, until the client has logged in."""

    is_over: bool

    def take(self, frame: bytearray, now_ms: int, wall_ms: int) -> "list[Output] | None":
        """Return the outputs of a frame; None: it is a request to serve as any other."""
        ...


@slotted(eq=False)
class Peer:
    """A node's view of one connection."""

    connection_id: int
    client_host: str
    client_port: int
    listener: str
    client_id: str | None = None
    """Client id of the newest request."""
    software: str = ""
    """Name and version that the client gave in ApiVersions (KIP-511), for log lines."""
    requests_count: int = 0
    figures: ApiFigures | None = None
    """Figures of the request in progress, for the host."""
    asked_at: float = 0.0
    """Arrival of this request, in seconds of the host's clock."""
    principal: Principal = ANONYMOUS
    """The client's identity, as authenticated by the listener."""
    login: LoginGate | None = None
    """Checks the frames of a login; None without login, or after it."""
    charge: Charge | None = None
    """Who pays for the newest request; None while no quotas are set."""


@frozen
class Rejection:
    """Why a connection is closed; becomes one log line."""

    reason: str
    """A fixed snake_case word, which is also counted."""
    api: str = "-"
    version: int = -1
    correlation_id: int = -1
    field: str = "-"
    """Path of the field in which decoding stopped."""
    byte: int = -1
    """Offset of that field from the first byte after the frame's length."""
    details: Sequence[tuple[str, object]] = ()
    client_id: str | None = None


@slotted
class Reply:
    """An answer with its frame length, as buffers to write in order."""

    connection_id: int
    buffers: Buffers
    size_bytes: int


@frozen
class NoReply:
    """The request is done and has no answer: the next one may be read."""

    connection_id: int


@frozen
class Close:
    """Close the connection; `rejection` is None where nothing needs to be logged."""

    connection_id: int
    rejection: Rejection | None


@frozen
class LoggedIn:
    """A client has logged in: the limit for frames before a login no longer applies."""

    connection_id: int


@frozen
class RefuseLogin:
    """A login failed: log it, answer after a delay, then close; read nothing meanwhile."""

    connection_id: int
    reply: Reply | None
    rejection: Rejection
    delay_ms: int


@frozen
class Mute:
    """Read nothing from a throttled connection, to which the answer follows; or read it again."""

    connection_id: int
    is_muted: bool


class FlushTarget(Protocol):
    """A flush of written bytes; `run` may be called in another thread."""

    def run(self) -> None:
        """Flush, or raise FsyncFailed."""
        ...


@slotted
class FlushLogs:
    """Run these flushes; waiting answers depend on them."""

    flush_id: int
    targets: Sequence[FlushTarget]

    def run(self) -> FsyncFailed | None:
        """Run all flushes, in another thread if useful; a failure ends the process."""
        try:
            for target in self.targets:
                target.run()
        except FsyncFailed as failure:
            return failure
        return None


@frozen
class Connect:
    """Open a connection to a peer; a host that cannot reports `link_down`."""

    link_id: int
    """Above 0, and never reused by a node."""
    host: str
    port: int
    listener: str = ""
    """The peer's listener, empty for that of the controllers: it determines the login."""


@slotted
class SendBytes:
    """Write frames, each with its length in front, after those of earlier calls."""

    link_id: int
    buffers: Buffers
    size_bytes: int


@frozen
class Disconnect:
    """Close a link and drop its unsent bytes; it causes no more events."""

    link_id: int


class LinkNode(Protocol):
    """The node, as the receiver of links' events, and as their source of random numbers."""

    @property
    def random_source(self) -> RandomSource: ...
    def link_up(self, link_id: int, now_ms: int, wall_ms: int) -> None: ...
    def link_frame(self, link_id: int, frame: bytes, now_ms: int, wall_ms: int) -> None: ...
    def link_down(self, link_id: int, now_ms: int, wall_ms: int) -> None: ...


@frozen
class LimitsChanged:
    """Apply other limits from now on: dynamic settings have changed (KIP-226, KIP-402, KIP-612)."""

    limits: ServerLimits


@frozen
class ServeClients:
    """Accept clients from now on: the broker runs, or the node has none. Put out once."""


@frozen
class StopProcess:
    """The node is done: its graceful stop is over, or it must not continue for a reason."""

    reason: str | None


Order: TypeAlias = (
    FlushLogs
    | Connect
    | SendBytes
    | Disconnect
    | LimitsChanged
    | LoggedIn
    | RefuseLogin
    | ServeClients
    | StopProcess
)
"""Outputs that are not an answer to a client's request."""

Output: TypeAlias = Reply | NoReply | Close | Mute | Order
