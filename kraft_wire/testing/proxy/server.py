"""The proxy's sockets: one listener for each address of the cluster, two connections a client."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from kraft_wire.model import Uuid
from kraft_wire.server.clock import wall_ms
from kraft_wire.testing.exchanges import Client, Recorder
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.testing.proxy.conversation import Address, Conversation, Side
from kraft_wire.wire.frame import MalformedFrame

__all__ = ["Proxy"]

_BACKLOG: Final = 1_024
_UNWRITTEN_BYTES_MAX: Final = 4_194_304


class Proxy:
    """Listens for a cluster, and for each of its nodes as soon as one is named."""

    def __init__(self, listen: Address, upstream: Address, report: Callable[..., None]) -> None:
        """Errors: OSError where the address cannot be listened on."""
        self.topic_names: dict[Uuid, str] = {}
        self.node_ids: dict[Address, int] = {}
        self.rules = FaultRules(self.topic_names.get)
        self.recorder = Recorder(wall_ms, keeps=False)
        self._report = report
        self._host = listen[0]
        self._sockets: dict[Address, socket.socket] = {}
        self._not_understood: set[tuple[int, int]] = set()
        self._bind(upstream, listen[1])

    def _bind(self, upstream: Address, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        sock = self._sockets[upstream] = socket.socket(family)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setblocking(False)
        sock.bind((self._host, port))
        sock.listen(_BACKLOG)
        return sock

    @property
    def address(self) -> Address:
        """Where clients bootstrap."""
        return self._host, next(iter(self._sockets.values())).getsockname()[1]

    def local_address(self, upstream: Address) -> Address:
        """Return where the proxy listens for an address of the cluster, from now on."""
        sock = self._sockets.get(upstream)
        if sock is None:
            sock = self._bind(upstream, 0)
            self._accept_on(sock, upstream)
        local: Address = self._host, sock.getsockname()[1]
        return local

    def not_understood(self, api_key: int, version: int) -> None:
        """Report once that addresses in such responses are not replaced."""
        if (api_key, version) not in self._not_understood:
            self._not_understood.add((api_key, version))
            self._report("not_rewritten", api=api_key, version=version)

    def listen(self) -> None:
        """Accept clients; called on the loop."""
        for upstream, sock in self._sockets.items():
            self._accept_on(sock, upstream)

    def _accept_on(self, sock: socket.socket, upstream: Address) -> None:
        asyncio.get_running_loop().add_reader(sock.fileno(), self._accept, sock, upstream)

    def _accept(self, sock: socket.socket, upstream: Address) -> None:
        try:
            accepted, address = sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        relay = Relay(self, Client(f"{address[0]}:{address[1]}"), upstream, self._report)
        relay.task = asyncio.get_running_loop().create_task(relay.open(accepted))

    def close(self) -> None:
        """Stop listening."""
        for sock in self._sockets.values():
            asyncio.get_running_loop().remove_reader(sock.fileno())
            sock.close()


class Relay:
    """The two connections of one client."""

    def __init__(
        self, proxy: Proxy, client: Client, upstream: Address, report: Callable[..., None]
    ) -> None:
        self.conversation = Conversation(proxy, client, upstream)
        self.client = _End(self, self.conversation.client_data)
        self.upstream = _End(self, self.conversation.upstream_data)
        self.task: asyncio.Task[None] | None = None
        self.is_closed = False
        self._address = upstream
        self._report = report

    async def open(self, accepted: socket.socket) -> None:
        """Connect to the cluster, then take the client's bytes."""
        loop = asyncio.get_running_loop()
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await loop.create_connection(lambda: self.upstream, *self._address)
        except OSError as error:
            self._report("upstream_refused", address=self._address, reason=error.strerror)
            accepted.close()
            return
        await loop.connect_accepted_socket(lambda: self.client, accepted)

    def drain(self) -> None:
        """Write the conversation's bytes for either side, and apply its state."""
        conversation = self.conversation
        for end, out in (
            (self.upstream, conversation.to_upstream),
            (self.client, conversation.to_client),
        ):
            if out and end.transport is not None:
                # Not `writelines`, which pauses nothing in asyncio of Python 3.12.0 to 3.13.1.
                end.transport.write(b"".join(out))
                out.clear()
        if conversation.is_over:
            self.close()
            return
        for side in (conversation.requests, conversation.responses):
            if side.pause_ms:
                delay_s, side.pause_ms = side.pause_ms / 1000, 0
                asyncio.get_running_loop().call_later(delay_s, self._resume, side)

    def _resume(self, side: Side) -> None:
        self.protect(lambda: self.conversation.resume(side))

    def protect(self, act: Callable[[], None]) -> None:
        """Act, then write the results; a malformed frame closes both connections."""
        try:
            act()
        except MalformedFrame as problem:
            self._report("frame_refused", address=self._address, reason=problem)
            self.close()
            return
        self.drain()

    def close(self) -> None:
        """Close both connections, once the written bytes are sent."""
        self.is_closed = True
        for end in (self.client, self.upstream):
            if end.transport is not None:
                end.transport.close()

    def other(self, end: "_End") -> "_End":
        """Return the other end."""
        return self.upstream if end is self.client else self.client


class _End(asyncio.Protocol):
    """One of the two connections."""

    def __init__(self, relay: Relay, take: Callable[[bytes], None]) -> None:
        self._relay = relay
        self._take = take
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only
        self.transport.set_write_buffer_limits(high=_UNWRITTEN_BYTES_MAX)
        if self._relay.is_closed:  # the cluster closed its connection before there was this one
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        self._relay.protect(lambda: self._take(data))

    def pause_writing(self) -> None:
        """Pause the other side until this one has taken its bytes."""
        other = self._relay.other(self).transport
        if other is not None:
            other.pause_reading()

    def resume_writing(self) -> None:
        other = self._relay.other(self).transport
        if other is not None:
            other.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relay.close()
