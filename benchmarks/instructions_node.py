"""A combined node in this process, over real storage, without sockets or an event loop.

`InProcessNode.run` is what `benchmarks.instructions` counts: frames go into `Node.receive`, framed
answers come out. The clock moves only in `ask`, which prepares the node.
"""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kraft_wire.model import FileSlice
from kraft_wire.node.config.node_config import Setting, load_config
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import FlushLogs, Peer, Reply
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import RequestHeader, encode_request_header, parse_response_header
from kraft_wire.wire.message import Message

__all__ = ["CONTROLLER", "NODE_ID", "WALL_MS", "InProcessNode", "frame_of"]

WALL_MS: Final = 1_800_000_000_000
NODE_ID: Final = 1
CONTROLLER: Final = "CONTROLLER"
_CLIENTS: Final = "PLAINTEXT"
_SETTINGS: Final = {
    "node.id": str(NODE_ID),
    "controller.listener.names": CONTROLLER,
    "listeners": f"{_CLIENTS}://127.0.0.1:9092,{CONTROLLER}://127.0.0.1:9093",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "storage.ballast.bytes": "0",
}
_TICK_MS: Final = 10
_TICKS_MAX: Final = 1_000
_CORRELATION_ID: Final = 7
_SEED: Final = 0x9E3779B97F4A7C15F39CC0605CEDC835


class _CountingChance:
    """Chance that draws the same numbers in every process."""

    def __init__(self) -> None:
        self._drawn = 0

    def below(self, bound: int) -> int:
        """Return an integer in [0, bound)."""
        self._drawn += 1
        return self._drawn * _SEED % bound


class InProcessNode:
    """Broker 1 and the only voter of its quorum."""

    def __init__(self, home: Path) -> None:
        """Format and open a node in an empty directory; it serves clients when this returns."""
        values = {**_SETTINGS, "log.dirs": str(home)}
        overrides = [(key, Setting(text, "benchmark")) for key, text in values.items()]
        config = load_config(None, {}, overrides)
        self._now_ms = 1_000_000
        self._peers = 0
        self._node = Node(
            config, OsFileSystem(), _CountingChance(), now_ms=self._now_ms, wall_ms=WALL_MS
        )
        for _ in range(_TICKS_MAX):
            if self._node.serves_clients:
                self._take_replies()
                return
            self._tick()
        raise RuntimeError("the node does not serve clients")

    @property
    def cluster_id(self) -> str:
        """The id that the node gave to its cluster."""
        return self._node.cluster_id

    def peer(self, listener: str = _CLIENTS) -> Peer:
        """Return a new connection."""
        self._peers += 1
        return Peer(self._peers, "127.0.0.1", 50_000, listener)

    def ask(self, request: Message, version: int, listener: str = _CLIENTS) -> Message:
        """Return the answer to one request; time passes until there is one."""
        frame = bytearray(frame_of(request, version))
        self._node.receive(self.peer(listener), frame, self._now_ms, WALL_MS)
        for _ in range(_TICKS_MAX):
            replies = self._take_replies()
            if replies:
                return _decoded(replies[0], request.API_KEY, version)
            self._tick()
        raise RuntimeError(f"no answer to {request}")

    def run(self, peer: Peer, frames: Iterable[bytes]) -> int:
        """Hand in frames one after the other; return how many answers there are."""
        node, answers = self._node, 0
        for frame in frames:
            node.receive(peer, bytearray(frame), self._now_ms, WALL_MS)
            answers += 1 if node.outputs[0].__class__ is Reply else len(self._take_replies())
            node.outputs.clear()
        return answers

    def _tick(self) -> None:
        self._now_ms += _TICK_MS
        self._node.tick(self._now_ms, WALL_MS)

    def _take_replies(self) -> list[Reply]:
        """Carry out the flushes that the node asks for; return the answers."""
        node, replies = self._node, []
        while node.outputs:
            outputs, node.outputs = node.outputs, []
            for output in outputs:
                if isinstance(output, Reply):
                    replies.append(output)
                elif isinstance(output, FlushLogs):
                    assert output.run() is None, output
                    node.flushed(output.flush_id, self._now_ms, WALL_MS)
        return replies


def frame_of(request: Message, version: int) -> bytes:
    """Return a request with its header, without the length in front."""
    header = RequestHeader(request.API_KEY, version, _CORRELATION_ID, "benchmark")
    return encode_request_header(header) + request.encode(version)


def _decoded(reply: Reply, api_key: int, version: int) -> Message:
    data = b"".join(part.read() if isinstance(part, FileSlice) else part for part in reply.buffers)
    size: int = struct.unpack_from(">i", data)[0]
    assert size == len(data) - 4 == reply.size_bytes - 4, reply
    correlation_id, body_at = parse_response_header(data[4:], api_key, version)
    assert correlation_id == _CORRELATION_ID, reply
    return response_class(api_key).decode(data[4:], version, body_at)[0]
