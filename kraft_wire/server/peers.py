"""The node's own connections: opened, written and read without ever holding up the loop.

Carries out `Connect`, `SendBytes` and `Disconnect`, and reports frames and ends to the node. A
length is judged before memory is taken for it, and what a peer does not take is bounded. Time
limits are the node's (`node.peer_channels`), which disconnects what is late.
"""

from collections.abc import Callable
from typing import Protocol

from kraft_wire.node.event_log import Report
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.outputs import Connect, Disconnect, SendBytes
from kraft_wire.server.clock import now_ms, wall_ms
from kraft_wire.server.loop import Loop, Stream
from kraft_wire.wire.frame import FrameReader, MalformedFrame

__all__ = ["LinkNode", "Links"]


class LinkNode(Protocol):
    """What hears of links: the node."""

    def link_up(self, link_id: int, now_ms: int) -> None: ...
    def link_frame(self, link_id: int, frame: bytes, now_ms: int, wall_ms: int) -> None: ...
    def link_down(self, link_id: int, now_ms: int) -> None: ...


class Links:
    """All outbound connections of one node, by link id."""

    def __init__(
        self, node: LinkNode, limits: ServerLimits, settle: Callable[[], None], report: Report
    ) -> None:
        """`settle` carries out what the node asks for when it has heard of something."""
        self.node = node
        self.limits = limits
        self.settle = settle
        self.report = report
        self.by_id: dict[int, _Link] = {}

    def carry_out(self, output: Connect | SendBytes | Disconnect, loop: Loop) -> None:
        """Do what the node asked for; nothing is reported before this returns."""
        link = self.by_id.get(output.link_id)
        if isinstance(output, Connect):
            assert link is None, output
            link = self.by_id[output.link_id] = _Link(self, output.link_id)
            bytes_max = self.limits.unsent_bytes_max
            link.stream = loop.connect(output.host, output.port, link, bytes_max)
        elif link is None:
            return  # it went down while the node worked
        elif isinstance(output, Disconnect):
            del self.by_id[output.link_id]
            link.stream.abort()
        else:
            assert link.is_open, "the node sends on links that are up"
            link.stream.write(output.buffers, output.size_bytes)

    def close_all(self) -> None:
        """Close every link, at the end of the process."""
        while self.by_id:
            self.by_id.popitem()[1].stream.abort()


class _Link:
    """One connection; of no interest once not in `by_id`."""

    stream: Stream

    def __init__(self, links: Links, link_id: int) -> None:
        self.links = links
        self.link_id = link_id
        self.reader = FrameReader(links.limits.frame_bytes_max)
        self.is_open = False

    def stream_opened(self) -> None:
        self.is_open = True
        self.links.node.link_up(self.link_id, now_ms())
        self.links.settle()

    def bytes_received(self, data: bytes) -> None:
        try:
            for frame in self.reader.feed(data):
                if self.link_id in self.links.by_id:  # or the frame before made the node leave
                    self.links.node.link_frame(self.link_id, frame, now_ms(), wall_ms())
                    self.links.settle()
            self.reader.feed(b"")  # a length behind the frames that is refused
        except MalformedFrame as problem:
            self.links.report("peer_frame_refused", link=self.link_id, reason=problem)
            self.stream.abort()
            self.stream_lost()

    def stream_lost(self) -> None:
        if self.links.by_id.pop(self.link_id, None) is not None:
            self.links.node.link_down(self.link_id, now_ms())
            self.links.settle()
