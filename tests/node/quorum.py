"""Several whole nodes in one process: simulated disks, one clock, and a pump for their bytes.

The pump is trivial: everything arrives at once and in order, unless a node is down or cut off. What
a bad network does is the simulator's business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_wire.model import FileSlice, Uuid
from kraft_wire.node.config.node_config import Setting, load_config
from kraft_wire.node.disks.checkpoint_files import FormattedVoter, quorum_checkpoint_bytes
from kraft_wire.node.disks.formatting import DEFAULT_LEVELS, format_directory
from kraft_wire.node.node import Node
from kraft_wire.node.outputs import (
    Close,
    Connect,
    Disconnect,
    FlushLogs,
    LimitsChanged,
    Mute,
    NoReply,
    Output,
    Peer,
    Reply,
    SendBytes,
    ServeClients,
    StopProcess,
)
from kraft_wire.raft.roles import Leader
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.storage.snapshots.store import FORMATTED_ID
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.generated.request_header import RequestHeader
from kraft_wire.wire.generated.response_header import ResponseHeader
from kraft_wire.wire.message import Message
from tests.broker.groups.harness import WALL_MS, CountingChance

DIRECTORY = "/data"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
HOST = "127.0.0.1"


def directory_id(node_id: int, generation: int = 0, number: int = 0) -> Uuid:
    """The id of one of a node's directories, by its place in `log.dirs`."""
    return Uuid(bytes([0xD0 + number, generation]) + node_id.to_bytes(14, "big"))


class PowerLost(Exception):
    """The power of one node went in the middle of a call of its disk."""


@dataclass
class Answer:
    """The answer to one request; None while there is none."""

    request: Message
    version: int
    response: Any = None


@dataclass
class Member:
    """One node's disk, and the node while it runs."""

    node_id: int
    fs: SimFileSystem
    node: Node | None = None
    generation: int = 0
    life: int = 0
    """How often it was started."""
    flushes: deque[FlushLogs] = field(default_factory=deque)
    lines: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    is_done: bool = False
    """Whether its graceful stop is over."""
    serves_clients: bool = False
    """Whether it was said, in its present life, that clients may come."""
    may_give_up: bool = False
    """Whether its process may end by itself, for the reason in `gave_up`."""
    gave_up: str | None = None
    power_lost: int = 0
    """How often its power went in the middle of something."""

    @property
    def running(self) -> Node:
        assert self.node is not None, f"node {self.node_id} is down"
        return self.node

    @property
    def port(self) -> int:
        return 9_000 + self.node_id


class NodeQuorum:
    """Controllers 1, 2, …, and whoever joins them."""

    def __init__(
        self,
        voters: Iterable[int] = (1, 2, 3),
        settings: Mapping[str, str] | None = None,
        *,
        is_dynamic: bool = False,
        disk: type[SimFileSystem] = SimFileSystem,
        levels: Mapping[str, int] = DEFAULT_LEVELS,
    ) -> None:
        """A dynamic quorum has its first voters in the formatted checkpoint (KIP-853)."""
        self.voters = tuple(voters)
        self.is_dynamic = is_dynamic
        self.settings = settings or {}
        self.own_settings: dict[int, Mapping[str, str]] = {}
        """What single nodes are set beside that, by id."""
        self.disk = disk
        self.levels = levels
        self.now_ms = 1_000
        self.members: dict[int, Member] = {}
        self.keeps_flushes_back = False
        self.keeps_unsynced = False
        """Whether a power loss leaves what was never synced: the system may have written it."""
        self.cut: set[int] = set()
        """Nodes that nobody reaches and that reach nobody."""
        self._links: dict[tuple[int, int], tuple[int, int]] = {}
        """(node, link id) to (peer's node, connection id)."""
        self._sources: dict[tuple[int, int], tuple[int, int]] = {}
        self._peers: dict[tuple[int, int], Peer] = {}
        self._asked: dict[tuple[int, int], Answer] = {}
        self._opened = 0
        for node_id in self.voters:
            self.add(node_id)

    # -- life ------------------------------------------------------------------------------------

    def add(self, node_id: int, **overrides: str) -> Member:
        """Format a node's disk and start it."""
        member = self.members[node_id] = Member(node_id, self.disk())
        self.format(member)
        self.start(node_id, **overrides)
        return member

    def add_broker(self, node_id: int, **settings: str) -> Member:
        """Add a node that is only a broker."""
        named = {key.replace("_", "."): value for key, value in settings.items()}
        self.own_settings[node_id] = {"process.roles": "broker", **named}
        return self.add(node_id)

    def format(self, member: Member) -> None:
        own = self.own_settings.get(member.node_id, {})
        for number, path in enumerate(own.get("log.dirs", DIRECTORY).split(",")):
            member.fs.make_directory(path)
            member.fs.sync_directory("/")
            format_directory(
                member.fs,
                path,
                cluster_id=CLUSTER_ID,
                node_id=member.node_id,
                directory_id=directory_id(member.node_id, member.generation, number),
                levels=self.levels,
                wall_ms=WALL_MS,
            )
        if self.is_dynamic and member.node_id in self.voters and not member.generation:
            formatted = [
                FormattedVoter(each, HOST, 9_000 + each, directory_id(each)) for each in self.voters
            ]
            directory = f"{DIRECTORY}/{METADATA_PARTITION}"
            member.fs.make_directory(directory)
            writer = SnapshotWriter(member.fs, directory, FORMATTED_ID, attempt=0)
            writer.append(quorum_checkpoint_bytes(formatted, "CONTROLLER", WALL_MS))
            writer.freeze()

    def start(self, node_id: int, **overrides: str) -> None:
        member = self.members[node_id]
        values = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://{HOST}:{member.port}",
            "offsets.topic.num.partitions": "1",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": DIRECTORY,
            "storage.ballast.bytes": "0",
        }
        listed = {each: f"{HOST}:{9_000 + each}" for each in self.voters}
        if self.is_dynamic:
            values["controller.quorum.bootstrap.servers"] = ",".join(listed.values())
        else:
            voters = [f"{each}@{address}" for each, address in listed.items()]
            values["controller.quorum.voters"] = ",".join(voters)
        values |= self.settings | self.own_settings.get(node_id, {})
        if values["process.roles"] == "broker":
            values["listeners"] = f"PLAINTEXT://{HOST}:{member.port + 1_000}"
        elif "broker" in values["process.roles"]:
            values["listeners"] += f",PLAINTEXT://{HOST}:{member.port + 1_000}"
        values |= {key.replace("_", "."): value for key, value in overrides.items()}
        config = load_config({key: Setting(text, "test") for key, text in values.items()}, {})
        random_source = CountingChance()
        for _ in range(node_id + 100 * member.life):  # no two lives draw the same ids
            random_source.below(1_000)
        member.life += 1
        member.is_done = member.serves_clients = False
        try:
            member.node = Node(
                config,
                member.fs,
                random_source,
                now_ms=self.now_ms,
                wall_ms=WALL_MS + self.now_ms,
                report=lambda name, **fields: member.lines.append((name, fields)),
            )
        except PowerLost:
            self._power_lost(node_id)
        self.drain(node_id)

    def _do(self, node_id: int, action: Callable[[Node], None]) -> None:
        """Let a node do something, in the middle of which its power may go."""
        try:
            action(self.members[node_id].running)
        except PowerLost:
            self._power_lost(node_id)

    def _power_lost(self, node_id: int) -> None:
        self.members[node_id].power_lost += 1
        self.kill(node_id)

    def lose_power_in(self, node_id: int, changes: int) -> None:
        """Let a node lose its power before a later change that it makes to its disk."""
        left = changes

        def count_down() -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise PowerLost

        self.members[node_id].fs.before_change = count_down

    def kill(self, node_id: int) -> None:
        """Lose power: what is unflushed is gone, and every connection of the node."""
        member = self.members[node_id]
        member.node, member.flushes = None, deque()
        pending = [atom.number for atom in member.fs.pending_atoms()] if self.keeps_unsynced else []
        member.fs = member.fs.crashed(pending)
        self._break_links(node_id)

    def stop(self, node_id: int) -> None:
        """Stop gracefully: wait for the node to say that it is done, then close it."""
        member = self.members[node_id]
        member.running.begin_stop(*self.clocks)
        self.drain(node_id)
        self.until(lambda: member.is_done)
        member.running.stop(*self.clocks)
        member.node = None
        self._break_links(node_id)

    def wipe(self, node_id: int, *, keeps_directory_id: bool = True) -> None:
        """Lose the disk, and format a new one."""
        self.kill(node_id)
        member = self.members[node_id]
        member.fs = self.disk()
        member.generation += not keeps_directory_id
        self.format(member)

    def _break_links(self, node_id: int) -> None:
        for (source, link_id), (target, connection_id) in list(self._links.items()):
            if node_id not in (source, target):
                continue
            self._forget(source, link_id)
            other, member = self.members[target], self.members[source]
            if other.node is not None:
                other.node.connection_closed(connection_id)
                self.drain(target)
            if member.node is not None:
                self._do(
                    source, lambda node, link_id=link_id: node.link_down(link_id, *self.clocks)
                )  # type: ignore[misc]  # a default binds it
                self.drain(source)

    # -- time ------------------------------------------------------------------------------------

    @property
    def clocks(self) -> tuple[int, int]:
        """What a node is told: the time, and the time of day."""
        return self.now_ms, WALL_MS + self.now_ms

    def advance(self, ms: int) -> None:
        """Let time pass; every node acts when it wants to."""
        end_ms = self.now_ms + ms
        while True:
            due = [
                (max(self.now_ms, member.node.deadline_ms()), member)
                for member in self.members.values()
                if member.node is not None
            ]
            at_ms, member = min(due, key=lambda each: each[0], default=(end_ms + 1, None))
            if member is None or at_ms > end_ms:
                break
            self.now_ms = at_ms
            self._do(member.node_id, lambda node: node.tick(*self.clocks))
            self.drain(member.node_id)
        self.now_ms = end_ms

    def until(self, condition: Callable[[], bool], ms: int = 30_000) -> None:
        """Let time pass until something is so."""
        for _ in range(ms // 10):
            if condition():
                return
            self.advance(10)
        raise AssertionError("it never came to be")

    # -- who leads -------------------------------------------------------------------------------

    @property
    def leader(self) -> int | None:
        """The node whose controller is active, of the highest epoch."""
        active = [
            (member.node.raft.replica.quorum.epoch, member.node_id)
            for member in self.members.values()
            if member.node is not None
            and member.node_id not in self.cut
            and isinstance(member.node.raft.replica.quorum.role, Leader)
            and member.node.controller.is_active
        ]
        return max(active)[1] if active else None

    def elect(self) -> int:
        """Wait for an active controller."""
        self.until(lambda: self.leader is not None)
        assert self.leader is not None
        return self.leader

    def images(self) -> list[Any]:
        """The committed image of every running node."""
        return [
            member.node.raft.committed.image
            for member in self.members.values()
            if member.node is not None
        ]

    def ends(self) -> list[int]:
        """How far every running node has replayed."""
        return [
            member.node.raft.committed.next_offset
            for member in self.members.values()
            if member.node is not None
        ]

    def level(self) -> None:
        """Wait until every running node has what the furthest one has."""
        self.until(lambda: len(set(self.ends())) == 1)

    # -- requests --------------------------------------------------------------------------------

    def ask(
        self,
        node_id: int,
        request: Message,
        version: int | None = None,
        *,
        listener: str = "CONTROLLER",
    ) -> Answer:
        """Send a request on a new connection."""
        self._opened += 1
        number = request.MAX_VERSION if version is None else version
        peer = self._peers[node_id, self._opened] = Peer(self._opened, HOST, 1, listener)
        answer = self._asked[node_id, self._opened] = Answer(request, number)
        header = RequestHeader(
            request_api_key=request.API_KEY,
            request_api_version=number,
            correlation_id=7,
            client_id="test",
        )
        header_version = 2 if number >= type(request).FLEXIBLE_FROM else 1
        frame = bytearray(header.encode(header_version)) + request.encode(number)
        self._receive(node_id, peer, frame)
        self.drain(node_id)
        return answer

    # -- the pump --------------------------------------------------------------------------------

    def drain(self, node_id: int) -> None:
        """Carry out what a node asks for, and what others ask for because of that."""
        busy = deque([node_id])
        while busy:
            member = self.members[busy.popleft()]
            while member.node is not None and member.node.outputs:
                outputs, member.node.outputs = member.node.outputs, []
                for output in outputs:
                    if member.node is not None:  # its power may go in between
                        busy.extend(self._carry_out(member, output))
                if not self.keeps_flushes_back:
                    self._flush(member)

    def flush(self, node_id: int) -> None:
        """Carry out the flushes that a node ordered so far."""
        self._flush(self.members[node_id])
        self.drain(node_id)

    def _flush(self, member: Member) -> None:
        ordered, member.flushes = member.flushes, deque()
        for order in ordered:
            if member.node is not None:
                self._do(member.node_id, lambda node, order=order: self._flushed(node, order))  # type: ignore[misc]  # a default binds it

    def _flushed(self, node: Node, order: FlushLogs) -> None:
        assert order.run() is None
        node.flushed(order.flush_id, *self.clocks)

    def _carry_out(self, member: Member, output: Output) -> list[int]:
        """Do one thing; return the nodes that something happened to."""
        node_id = member.node_id
        match output:
            case Connect(link_id, _, port):
                self._connect(node_id, link_id, port)
                return [node_id]
            case SendBytes(link_id, buffers):
                return self._send(node_id, link_id, _joined(buffers))
            case Disconnect(link_id):
                return self._disconnect(node_id, link_id)
            case Reply(connection_id, buffers):
                return self._reply(node_id, connection_id, _joined(buffers))
            case Close(connection_id):
                return self._close(node_id, connection_id)
            case FlushLogs():
                member.flushes.append(output)
            case StopProcess(reason):
                assert reason is None or member.may_give_up, reason
                member.is_done, member.gave_up = True, reason
            case ServeClients():
                member.serves_clients = True
            case NoReply() | LimitsChanged() | Mute():
                raise AssertionError("nobody asks for silence or for other limits here")
        return []

    def _connect(self, node_id: int, link_id: int, port: int) -> None:
        """Connect to a controller's listener, or to a broker's, whose port is 1,000 higher."""
        listener, target = "PLAINTEXT" if port >= 10_000 else "CONTROLLER", port % 1_000
        other = self.members.get(target)
        if other is None or other.node is None or {node_id, target} & self.cut:
            self._do(node_id, lambda node: node.link_down(link_id, *self.clocks))
            return
        self._opened += 1
        self._links[node_id, link_id] = (target, self._opened)
        self._sources[target, self._opened] = (node_id, link_id)
        self._peers[target, self._opened] = Peer(self._opened, HOST, 1, listener)
        self._do(node_id, lambda node: node.link_up(link_id, *self.clocks))

    def _send(self, node_id: int, link_id: int, data: bytes) -> list[int]:
        if (node_id, link_id) not in self._links:
            return []
        target, connection_id = self._links[node_id, link_id]
        if {node_id, target} & self.cut:
            return []
        peer = self._peers[target, connection_id]
        for frame in _frames(data):
            if self.members[target].node is not None:
                self._receive(target, peer, bytearray(frame))
        return [target]

    def _receive(self, node_id: int, peer: Peer, frame: bytearray) -> None:
        self._do(node_id, lambda node: node.receive(peer, frame, *self.clocks))

    def _disconnect(self, node_id: int, link_id: int) -> list[int]:
        if (node_id, link_id) not in self._links:
            return []
        target, connection_id = self._links[node_id, link_id]
        self._forget(node_id, link_id)
        other = self.members[target]
        if other.node is not None:
            other.node.connection_closed(connection_id)
        return [target]

    def _reply(self, node_id: int, connection_id: int, data: bytes) -> list[int]:
        asked = self._asked.pop((node_id, connection_id), None)
        if asked is not None:
            asked.response = _decoded(asked, data)
            return []
        source = self._sources.get((node_id, connection_id))
        if source is None or {node_id, source[0]} & self.cut:
            return []
        for frame in _frames(data):
            if self.members[source[0]].node is not None:
                self._link_frame(*source, bytearray(frame))
        return [source[0]]

    def _link_frame(self, node_id: int, link_id: int, frame: bytearray) -> None:
        self._do(node_id, lambda node: node.link_frame(link_id, frame, *self.clocks))

    def _close(self, node_id: int, connection_id: int) -> list[int]:
        source = self._sources.get((node_id, connection_id))
        assert source is not None, "a test's own request was refused"
        self._forget(*source)
        self._do(source[0], lambda node: node.link_down(source[1], *self.clocks))
        return [source[0]]

    def _forget(self, node_id: int, link_id: int) -> None:
        target, connection_id = self._links.pop((node_id, link_id))
        del self._sources[target, connection_id]


def _joined(buffers: Iterable[Any]) -> bytes:
    return b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in buffers)


def _frames(data: bytes) -> list[bytes]:
    frames = []
    while data:
        size = int.from_bytes(data[:4], "big")
        frames.append(data[4 : 4 + size])
        data = data[4 + size :]
    return frames


def _decoded(asked: Answer, data: bytes) -> Message:
    (body,) = _frames(data)
    kind = response_class(asked.request.API_KEY)
    _, start = ResponseHeader.decode(body, 1 if asked.version >= kind.FLEXIBLE_FROM else 0)
    return kind.decode(body, asked.version, start)[0]
