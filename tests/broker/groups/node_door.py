"""A whole node under virtual time, on a simulated disk, as a door for group requests.

Flushes that the node orders are carried out at once, or kept back until a test allows them, so
that a test can look at what is answered before and after.
"""

from __future__ import annotations

from typing import Any

from kraft_wire.model import FileSlice, Uuid
from kraft_wire.node.config.node_config import Setting, load_config
from kraft_wire.node.events.catalogue import EVENTS
from kraft_wire.node.limits import ServerLimits
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import (
    FlushLogs,
    LimitsChanged,
    Mute,
    NoReply,
    Peer,
    Reply,
    ServeClients,
    StopProcess,
)
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.request_header import RequestHeader
from kraft_wire.wire.generated.response_header import ResponseHeader
from kraft_wire.wire.message import Message
from tests.broker.groups.harness import WALL_MS, CountingChance

DIRECTORY = "/data"


class NodeReply:
    """The answer to one request; None while there is none."""

    def __init__(self) -> None:
        self.response: Any = None

    @property
    def error(self) -> int:
        return int(self.response.error_code)


class NodeDoor:
    """One node, started over a disk."""

    def __init__(self, fs: SimFileSystem, now_ms: int = 1_000, **overrides: str) -> None:
        values = {
            "log.dirs": DIRECTORY,
            "offsets.topic.num.partitions": "2",
            "group.initial.rebalance.delay.ms": "0",
        }
        values |= {key.replace("_", "."): value for key, value in overrides.items()}
        settings = [(key, Setting(value, "test")) for key, value in values.items()]
        config = load_config(None, {}, settings)
        config = config.with_ports({listener.name: 9092 for listener in config.listeners})
        self.fs = fs
        self.now_ms = now_ms
        self.wall_ms = WALL_MS + now_ms
        self.keeps_flushes_back = False
        self.flushes: list[FlushLogs] = []
        self.limits: list[ServerLimits] = []
        """What the host was told to obey, the newest last."""
        self.stops: list[StopProcess] = []
        self.muted: dict[int, int] = {}
        """When each throttled connection was muted."""
        self._peers: dict[int, Peer] = {}
        self._waiting: dict[int, tuple[NodeReply, Message, int]] = {}
        if not fs.is_directory(DIRECTORY):
            fs.make_directory(DIRECTORY)
            fs.sync_directory("/")
        self.lines: list[tuple[str, dict[str, object]]] = []
        """Name and fields of each line of the node's log that is no mere news: WARN and above."""
        self.node = Node(
            config,
            fs,
            self.chance(),
            now_ms=self.now_ms,
            wall_ms=self.wall_ms,
            report=self._report,
        )
        self._drain()
        self.settle()

    def chance(self) -> CountingChance:
        """Return the node's chance; a node over the disk of another one needs other ids."""
        return CountingChance()

    def _report(self, name: str, **fields: object) -> None:
        if EVENTS[name].level != "INFO" or name == "log_directory_has_room":
            self.lines.append((name, fields))

    def send(
        self,
        request: Message,
        version: int,
        *,
        client_id: str | None = "client",
        connection: int = 1,
    ) -> NodeReply:
        peer = self._peers.setdefault(connection, Peer(connection, "127.0.0.1", 1, "PLAINTEXT"))
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=version,
            correlation_id=7,
            client_id=client_id,
        )
        header_version = 2 if version >= type(request).FLEXIBLE_FROM else 1
        frame = bytearray(header.encode(header_version)) + request.encode(version)
        reply = NodeReply()
        self._waiting[connection] = (reply, request, version)
        self.node.receive(peer, frame, self.now_ms, self.wall_ms)
        self._drain()
        self.settle()
        return reply

    def close(self, connection: int) -> None:
        """Close a connection from the client's side."""
        self._waiting.pop(connection, None)
        self.muted.pop(connection, None)
        self.node.connection_closed(connection)
        del self._peers[connection]

    def stop(self) -> None:
        """Have the node stopped."""
        self.node.stop(self.now_ms, self.wall_ms)

    def flush(self) -> None:
        """Carry out the flushes that were kept back."""
        while self.flushes:
            order = self.flushes.pop(0)
            for target in order.targets:
                target.run()
            self.node.flushed(order.flush_id, self.now_ms, self.wall_ms)
            self._drain()

    def settle(self) -> None:
        """Do everything that is due now."""
        for _ in range(1_000):
            if self.node.deadline_ms() > self.now_ms:
                return
            self.node.tick(self.now_ms, self.wall_ms)
            self._drain()
        raise AssertionError("the node is never done")

    def advance(self, ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + ms
        while (deadline_ms := self.node.deadline_ms()) <= end_ms:
            self._move_to(max(deadline_ms, self.now_ms))
            self.settle()
        self._move_to(end_ms)

    def prepare(self, topic: str, partitions: int = 1) -> None:
        """Create a topic, and the coordinator's with it."""
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
        created = self.send(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7).response
        assert created.topics[0].error_code == 0, created
        for _ in range(2):
            found = self.send(FindCoordinatorRequest(coordinator_keys=["group"]), 6).response
            self.settle()
        assert found.coordinators[0].error_code == 0, found

    def create_topic(self, name: str) -> Uuid:
        """Create a topic with one partition; return its id."""
        self.prepare(name)
        topic = self.node.broker.image.topic(name)
        assert topic is not None
        return topic.topic_id

    def _move_to(self, now_ms: int) -> None:
        self.wall_ms += now_ms - self.now_ms
        self.now_ms = now_ms

    def _drain(self) -> None:
        outputs, self.node.outputs = self.node.outputs, []
        for output in outputs:
            if isinstance(output, Reply):
                self._answer(output)
            elif isinstance(output, FlushLogs):
                self.flushes.append(output)
            elif isinstance(output, LimitsChanged):
                self.limits.append(output.limits)
            elif isinstance(output, Mute) and output.is_muted:
                assert output.connection_id not in self.muted, output
                assert output.connection_id in self._waiting, "muted before it is answered"
                self.muted[output.connection_id] = self.now_ms
            elif isinstance(output, Mute):
                del self.muted[output.connection_id]
            elif isinstance(output, StopProcess):
                self.stops.append(output)
            else:
                assert isinstance(output, NoReply | ServeClients), output
        if not self.keeps_flushes_back:
            self.flush()

    def _answer(self, output: Reply) -> None:
        reply, request, version = self._waiting.pop(output.connection_id)
        parts = [
            part.read() if isinstance(part, FileSlice) else bytes(part) for part in output.buffers
        ]
        body = b"".join(parts)[4:]
        kind = response_class(request.API_KEY)
        _, start = ResponseHeader.decode(body, 1 if version >= kind.FLEXIBLE_FROM else 0)
        reply.response, _ = kind.decode(body, version, start)
