"""The node's own connections: opened, written and read without ever holding up the loop.

Carries out `Connect`, `SendBytes` and `Disconnect`, and reports frames and ends to the node. A
length is judged before memory is taken for it, and what a peer does not take is bounded. Time
limits are the node's (`node.peer_channels`), which disconnects what is late.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from kraft_wire.model import FileSlice, ReportEvent
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Connect, Disconnect, LinkNode, SendBytes
from kraft_wire.server.clock import now_ms, wall_ms
from kraft_wire.server.names import Names
from kraft_wire.wire.frame import FrameReader, MalformedFrame

__all__ = ["Links"]


class Links:
    """All outbound connections of one node, by link id."""

    def __init__(
        self, node: LinkNode, limits: ServerLimits, settle: Callable[[], None], report: ReportEvent
    ) -> None:
        """`settle` carries out what the node asks for when it has heard of something."""
        self.node, self.limits = node, limits
        self.settle, self.report = settle, report
        self.now_ms, self.wall_ms = now_ms, wall_ms
        self.by_id: dict[int, _Link] = {}
        self.names = Names()

    def carry_out(
        self, output: Connect | SendBytes | Disconnect, loop: asyncio.AbstractEventLoop
    ) -> None:
        """Do what the node asked for; nothing is reported before this returns."""
        if isinstance(output, Connect):
            assert output.link_id not in self.by_id, output
            link = self.by_id[output.link_id] = _Link(self, output.link_id)
            link.opening = loop.create_task(link.open(loop, output))
        elif output.link_id not in self.by_id:
            return  # it went down while the node worked
        elif isinstance(output, Disconnect):
            self.by_id.pop(output.link_id).abort()
        else:
            self.by_id[output.link_id].send(output)

    def close_all(self) -> None:
        """Close every link, at the end of the process."""
        while self.by_id:
            self.by_id.popitem()[1].abort()


class _Link(asyncio.Protocol):
    """One connection; without a transport until it is open, of no interest once not in `by_id`."""

    def __init__(self, links: Links, link_id: int) -> None:
        self.links, self.link_id = links, link_id
        self.reader = FrameReader(links.limits.frame_bytes_max)
        self.transport: asyncio.Transport | None = None
        self.opening: asyncio.Task[None] | None = None

    async def open(self, loop: asyncio.AbstractEventLoop, order: Connect) -> None:
        """Connect to the first address of the host that accepts."""
        for address in await self.links.names.addresses(loop, order.host, order.port):
            with suppress(OSError, OverflowError):  # a peer may name a port that is none
                await loop.create_connection(lambda: self, address, order.port)
                return
        loop.call_soon(self.connection_lost, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one by its methods only
        if self.link_id in self.links.by_id:
            self.links.node.link_up(self.link_id, self.links.now_ms(), self.links.wall_ms())
            self.links.settle()
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self.reader.feed(data):
                if self.link_id in self.links.by_id:  # or the frame before made the node leave
                    now, wall = self.links.now_ms(), self.links.wall_ms()
                    self.links.node.link_frame(self.link_id, frame, now, wall)
                    self.links.settle()
            self.reader.feed(b"")  # a length behind the frames that is refused
        except MalformedFrame as problem:
            self.links.report("peer_frame_refused", link=self.link_id, reason=problem)
            self.connection_lost(problem)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.links.by_id.pop(self.link_id, None) is not None:
            self.abort()
            self.links.node.link_down(self.link_id, self.links.now_ms(), self.links.wall_ms())
            self.links.settle()

    def send(self, output: SendBytes) -> None:
        assert self.transport is not None, "the node sends on links that are up"
        buffers = [part for part in output.buffers if not isinstance(part, FileSlice)]
        assert len(buffers) == len(output.buffers), "requests hold no file slices"
        self.transport.writelines(buffers)
        if self.transport.get_write_buffer_size() > self.links.limits.unsent_bytes_max:
            self.transport.abort()  # which reports the loss, after the node has had its turn

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()
