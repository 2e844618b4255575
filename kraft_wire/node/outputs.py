"""What a node asks of its host, in order: answer, be silent, close, flush, talk to peers, stop.

A host drains `Node.outputs` after every call. It writes replies in the order of the list, and runs
flushes wherever they hold nobody up, reporting back through `Node.flushed`. Connections that the
node opens are links: what becomes of one comes back through `Node.link_up`, `link_frame` and
`link_down`.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from kraft_wire.frozen import frozen, slotted
from kraft_wire.model import ANONYMOUS, FileSlice, FsyncFailed, Principal
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.metrics.request_figures import ApiFigures

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
    """What takes a connection's frames before the node until the client has logged in."""

    is_over: bool

    def take(self, frame: bytearray, now_ms: int) -> "list[Output] | None":
        """Return what a frame leads to; None: it is a request to be served as any other."""
        ...


@slotted(eq=False)
class Peer:
    """One connection, as far as a node needs to know it."""

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
    """Those of the request that is with the node; the host's."""
    asked_at: float = 0.0
    """When it came, in seconds of the host's clock."""
    principal: Principal = ANONYMOUS
    """Who it is, as far as the listener asks."""
    login: LoginGate | None = None
    """What its frames have to pass; None: nothing, or nothing any more."""


@frozen
class Rejection:
    """Why a connection is closed; becomes one log line."""

    reason: str
    """A fixed snake_case word that can be counted."""
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
    """The request is done and its answer is silence: the next one may be read."""

    connection_id: int


@frozen
class Close:
    """The connection is beyond saving; `rejection` is None where nothing needs to be logged."""

    connection_id: int
    rejection: Rejection | None


@frozen
class LoggedIn:
    """A client has logged in: its frames may be as long as any."""

    connection_id: int


@frozen
class RefuseLogin:
    """A login failed: log it, answer after a delay, then close; read nothing meanwhile."""

    connection_id: int
    reply: Reply | None
    rejection: Rejection
    delay_ms: int


class FlushTarget(Protocol):
    """Something whose written bytes must reach the disk; `run` may happen in another thread."""

    def run(self) -> None:
        """Raise FsyncFailed where the disk does not take the bytes."""
        ...


@slotted
class FlushLogs:
    """Flush these; waiting answers depend on it."""

    flush_id: int
    targets: Sequence[FlushTarget]

    def run(self) -> FsyncFailed | None:
        """Flush all of them, in another thread if need be; a failure ends the process."""
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
    """Above 0, and never used again in a node's life."""
    host: str
    port: int
    listener: str = ""
    """The listener that is dialled, empty for that of the controllers: it says how to log in."""


@slotted
class SendBytes:
    """Write frames, each with its length in front, behind what the link was given before."""

    link_id: int
    buffers: Buffers
    size_bytes: int


@frozen
class Disconnect:
    """Close a link, dropping what it has not sent; nothing more is reported of it."""

    link_id: int


class LinkNode(Protocol):
    """What hears of links: the node."""

    def link_up(self, link_id: int, now_ms: int, wall_ms: int) -> None: ...
    def link_frame(self, link_id: int, frame: bytes, now_ms: int, wall_ms: int) -> None: ...
    def link_down(self, link_id: int, now_ms: int, wall_ms: int) -> None: ...


@frozen
class LimitsChanged:
    """Apply other limits from now on: dynamic settings have changed (KIP-226, KIP-402, KIP-612)."""

    limits: ServerLimits
    spared_listeners: frozenset[str]
    """Their connections outlive a lowered `max.connections`: the quorum's."""


@frozen
class ServeClients:
    """Let clients connect from now on: the broker runs, or there is none to wait for. Said once."""


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
"""What is no answer to a client's request."""

Output: TypeAlias = Reply | NoReply | Close | Order
