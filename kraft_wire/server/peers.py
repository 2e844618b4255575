"""The node's own connections: opened, written and read without blocking the loop.

Carries out `Connect`, `SendBytes` and `Disconnect`, and reports frames and closed links to the
node. A length is checked before memory is allocated for it, and unsent bytes are bounded. The node
applies time limits (`node.peer_channels`) and disconnects late links.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from kraft_wire.model import FileSlice, ReportEvent
from kraft_wire.node.config.security import LinkSecurity
from kraft_wire.node.event_log import Line
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Connect, Disconnect, LinkNode, SendBytes
from kraft_wire.server.clock import now_ms, wall_ms
from kraft_wire.server.names import Names
from kraft_wire.wire.frame import FrameReader, MalformedFrame
from kraft_wire.wire.message import Buffer

if TYPE_CHECKING:
    from kraft_wire.login.session import LinkSession

__all__ = ["Links"]

_PLAINTEXT: Final[Mapping[str, LinkSecurity]] = {}
_LINE_EVERY_MS: Final = 1_000
"""Limits the log lines about one peer that refuses logins."""


class Links:
    """All outbound connections of one node, by link id."""

    def __init__(
        self,
        node: LinkNode,
        limits: ServerLimits,
        settle: Callable[[], None],
        report: ReportEvent,
        security: Mapping[str, LinkSecurity] = _PLAINTEXT,
    ) -> None:
        """`settle` carries out the node's outputs after an event of a link.

        `security` has the security of links by listener; without an entry they are plain text.
        Errors: StartError.
        """
        self.node = node
        self.limits = limits
        self.settle, self.report = settle, report
        self.now_ms, self.wall_ms = now_ms, wall_ms
        self.by_id: dict[int, _Link] = {}
        self.names = Names()
        self._security = security
        self.contexts = _contexts(security)
        self.tokens: Mapping[str, Callable[[], str]] = {}
        """TLS, and what returns a login's token, by listener; new ones are for later links."""
        self._next_line_ms: dict[tuple[str, int], int] = {}

    def carry_out(
        self, output: Connect | SendBytes | Disconnect, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Carry out an output; nothing is reported before this returns."""
        if isinstance(output, Connect):
            assert output.link_id not in self.by_id, output
            link = self.by_id[output.link_id] = _Link(self, output, self._session(output.listener))
            link.opening = loop.create_task(link.open(loop, self.contexts.get(output.listener)))
        elif output.link_id not in self.by_id:
            return  # the link closed while the node worked
        elif isinstance(output, Disconnect):
            self.by_id.pop(output.link_id).abort()
        else:
            self.by_id[output.link_id].send(output)

    def _session(self, listener: str) -> "LinkSession | None":
        security = self._security.get(listener)
        if security is None or security.mechanism is None:
            return None
        from kraft_wire.login.client_config import Credentials  # most nodes do not use SASL
        from kraft_wire.login.session import LinkSession

        credentials = Credentials(*security.login, self.tokens.get(listener))
        return LinkSession(credentials, self.node.random_source)

    def report_refusal(self, order: Connect, reason: object) -> None:
        """Log a failed TLS handshake or login; at most once a second for each peer."""
        peer, now_ms = (order.host, order.port), self.now_ms()
        if now_ms >= self._next_line_ms.get(peer, 0):
            self._next_line_ms[peer] = now_ms + _LINE_EVERY_MS
            address = f"{order.host}:{order.port}"
            self.report("peer_login_failed", peer=address, reason=Line(reason))

    def close_all(self) -> None:
        """Close every link, at the end of the process."""
        while self.by_id:
            self.by_id.popitem()[1].abort()


class _Link(asyncio.Protocol):
    """One connection; without a transport until it is open, ignored once it is not in `by_id`.

    The node gets `link_up` when the first login is complete.
    """

    def __init__(self, links: Links, order: Connect, session: "LinkSession | None") -> None:
        self.links = links
        self.order = order
        self.link_id = order.link_id
        self.session = session
        """None for links without a login."""
        self.reader = FrameReader(links.limits.frame_bytes_max)
        self.transport: asyncio.Transport | None = None
        self.opening: asyncio.Task[None] | None = None

    async def open(self, loop: asyncio.AbstractEventLoop, context: ssl.SSLContext | None) -> None:
        """Connect to the first address of the host that accepts."""
        host, port = self.order.host, self.order.port
        name = None if context is None else host
        for address in await self.links.names.addresses(loop, host, port):
            try:
                await loop.create_connection(
                    lambda: self, address, port, ssl=context, server_hostname=name
                )
                return
            except ssl.SSLError as error:  # also a ValueError, if a certificate is refused
                self.links.report_refusal(self.order, _words(error))
                break
            except (OSError, ValueError, OverflowError):  # a peer may name an invalid address
                pass
        loop.call_soon(self.connection_lost, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only
        if self.link_id not in self.links.by_id:
            self.transport.abort()
        elif self.session is not None:
            self.transport.write(self.session.begin())
        else:
            self._is_up()

    def _is_up(self) -> None:
        self.links.node.link_up(self.link_id, self.links.now_ms(), self.links.wall_ms())
        self.links.settle()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self.reader.feed(data):
                if self.link_id in self.links.by_id:  # the previous frame may have closed it
                    self._take(frame)
            self.reader.feed(b"")  # raises for an invalid length after the frames
        except MalformedFrame as problem:
            self.links.report("peer_frame_refused", link=self.link_id, reason=problem)
            self.connection_lost(problem)

    def _take(self, frame: bytes) -> None:
        session, now = self.session, self.links.now_ms()
        if session is None or not session.owns(frame):
            self.links.node.link_frame(self.link_id, frame, now, self.links.wall_ms())
            self.links.settle()
            return
        was_open = session.is_open
        try:
            answer = session.take(frame, now)
        except OSError as problem:
            self.links.report_refusal(self.order, problem)
            self.connection_lost(problem)
            return
        self._write(answer)
        if session.is_open and not was_open:
            self._is_up()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.links.by_id.pop(self.link_id, None) is not None:
            self.abort()
            self.links.node.link_down(self.link_id, self.links.now_ms(), self.links.wall_ms())
            self.links.settle()

    def send(self, output: SendBytes) -> None:
        buffers = [part for part in output.buffers if not isinstance(part, FileSlice)]
        assert len(buffers) == len(output.buffers), "requests hold no file slices"
        if self.session is None:
            self._write(buffers)
        else:
            self._write(self.session.send(buffers, output.size_bytes, self.links.now_ms()))

    def _write(self, buffers: Sequence[Buffer]) -> None:
        assert self.transport is not None, "the node sends on links that are up"
        if buffers:  # an empty list is an error of some loops
            self.transport.writelines(buffers)
        held_bytes = 0 if self.session is None else self.session.held_bytes
        unsent_bytes = self.transport.get_write_buffer_size() + held_bytes
        if unsent_bytes > self.links.limits.unsent_bytes_max:
            self.transport.abort()  # which reports the loss, after the node has had its turn

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


def _words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is refused: {error.verify_message}"
    return f"the TLS handshake failed: {error.reason or error}"


def _contexts(security: Mapping[str, LinkSecurity]) -> dict[str, ssl.SSLContext]:
    """Return the context of each listener that links reach by TLS. Errors: StartError."""
    found = {}
    for name, each in security.items():
        if each.tls is not None:
            from kraft_wire.tls.contexts import client_context  # most nodes do not use TLS

            found[name] = client_context(each.tls, name or "of the controllers")
    return found
