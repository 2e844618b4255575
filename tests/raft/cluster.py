"""A whole quorum in one process: dumb hosts over memory disks, a bad network, a virtual clock.

The host does what it is told, effect by effect, and nothing else; it may be killed between two
effects. Everything is drawn from one seed. `judge` looks on after every event. Scripts and the
seeds of `swarm` drive the same class.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kraft_wire.model import (
    ZERO_UUID,
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    ReplicaId,
    ReplicaKey,
    Uuid,
)
from kraft_wire.raft import RaftConfig, RaftReplica, RaftTiming
from kraft_wire.raft.divergence import snapshot_refusal
from kraft_wire.raft.effects import (
    AppendControlRecords,
    AppendFetched,
    AppendRecords,
    AppendRefused,
    AppendSnapshotChunk,
    Effect,
    FlushLog,
    HighWatermarkAdvanced,
    InstallSnapshot,
    LeadershipEnded,
    LeadershipEstablished,
    PersistElectionState,
    Reply,
    ReplyWithRecords,
    ReplyWithSnapshotSlice,
    SendRequest,
    ShutdownCompleted,
    TruncateLog,
)
from kraft_wire.raft.events import (
    AppendRequested,
    ControlRecord,
    Event,
    LogFlushed,
    RecordsAppended,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotTaken,
    Started,
    TimerFired,
)
from kraft_wire.raft.roles import Follower, Leader
from kraft_wire.raft.voters import Address, VersionRange, VoterNode, VoterSet
from kraft_wire.sim.judge.model.watch import ModelWatch
from kraft_wire.wire.generated.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.kraft_version_record import KRaftVersionRecord
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.message import Message, UnencodableMessage
from tests.raft.memory import (
    BATCH_BYTES,
    Batch,
    Disk,
    Shelf,
    Snapshot,
    applied,
    control_records,
)

CLUSTER_ID = "kraft-wire-cluster-id."
LISTENER = "CONTROLLER"
OLD_VERSIONS = {1: 17, 52: 1}
"""What a 3.9 controller knows of Fetch and Vote; the rest is what 4.3 knows."""


def directory_id(node_id: int, generation: int = 0) -> Uuid:
    """The id of a node's metadata directory; a new one after each loss of its disk."""
    return Uuid(bytes([0xD0, generation]) + node_id.to_bytes(14, "big"))


def address_of(node_id: int) -> Address:
    return Address("host", 9000 + node_id)


def voter_node(node_id: int, directory: Uuid) -> VoterNode:
    key = ReplicaKey(ReplicaId(node_id), directory)
    return VoterNode(key, {LISTENER: address_of(node_id)}, VersionRange(0, 1))


class Drawn:
    """The chance port over a seeded generator."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


@dataclass(frozen=True)
class Setup:
    """How a cluster is made."""

    voters: tuple[int, ...] = (1, 2, 3)
    observers: tuple[int, ...] = ()
    is_dynamic: bool = False
    joins_by_itself: bool = False
    brokers: tuple[int, ...] = ()
    """Observers without the controller role: they do not flush before they fetch."""
    old: tuple[int, ...] = ()
    """Nodes that know the protocol as 3.9 does."""
    encodes: bool = False
    """Whether every message goes through its bytes."""
    timing: RaftTiming = field(default_factory=RaftTiming)
    snapshot_bytes: int = 24
    flush_ms: int = 0
    """How long a flush may take at most, while everything else goes on; 0: it is over at once."""
    spoilt: float = 0.0
    """How often a chunk of a snapshot arrives with a wrong bit."""


@dataclass
class Links:
    """What the network does to a message."""

    lost: float = 0.0
    doubled: float = 0.0
    delay_ms: tuple[int, int] = (1, 3)
    cut: dict[tuple[int, int], bool] = field(default_factory=dict)
    """One-way: (from, to)."""


class Host:
    """One node: its disk, and the replica while it runs."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.cluster = cluster
        self.id = node_id
        self.generation = 0
        self.disk = Disk(cluster.formatted if node_id in cluster.setup.voters else None)
        self.incarnation = 0
        self.replica: RaftReplica | None = None
        self.deadline_ms: int | None = None
        self.effects_until_crash: int | None = None
        self.dies_within_installation = False
        self.dies_after_vote = False
        self.applied_offset = 0
        self.state = 0
        self.leads_epoch: int | None = None
        """The epoch that its state machine acts as leader of."""
        self.is_stopped = False

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(ReplicaId(self.id), directory_id(self.id, self.generation))

    @property
    def is_controller(self) -> bool:
        return self.id not in self.cluster.setup.brokers

    def quorum(self) -> RaftReplica:
        assert self.replica is not None, f"node {self.id} is down"
        return self.replica

    def max_version(self, message: Message) -> int:
        old = OLD_VERSIONS.get(message.API_KEY) if self.id in self.cluster.setup.old else None
        return message.MAX_VERSION if old is None else old

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        setup = self.cluster.setup
        config = RaftConfig(
            self.key,
            CLUSTER_ID,
            LISTENER,
            {LISTENER: address_of(self.id)} if self.is_controller else {},
            self.cluster.bootstrap_servers(),
            VersionRange(0, 1),
            self.is_controller,
            setup.joins_by_itself,
            setup.timing,
        )
        self.incarnation += 1
        self.is_stopped = False
        self._recover()
        random_source = Drawn(f"{self.cluster.seed}/{self.id}/{self.incarnation}")
        self.replica = RaftReplica(
            config,
            self.disk.log,
            self.disk.snapshots,
            random_source,
            self.disk.history(self.cluster.static),
        )
        self.applied_offset = self.disk.log.start.offset
        self.state = self._state_at_start()
        self.leads_epoch = None
        if self.cluster.holds_against_model:
            ModelWatch(self.replica, self.cluster.count_step).intercept_steps()
        self.take(Started(self.disk.election))

    def _recover(self) -> None:
        """Bring log and snapshots in line: the second half of an installation may be missing."""
        kept, log = self.disk.snapshots.kept, self.disk.log
        latest = self.disk.snapshots.latest_id
        if latest is None or log.start == latest:
            return
        before = log.batch_at(latest.offset - 1)
        if before is None or before.epoch != latest.epoch:
            log.reset_to(latest)
            self.disk.snapshots.kept = {latest: kept[latest]}

    def _state_at_start(self) -> int:
        kept = self.disk.snapshots.kept.get(self.disk.log.start)
        return kept.state if kept is not None else 0

    def crash(self) -> None:
        """Lose power: the replica and everything unflushed are gone."""
        self.replica = None
        self.deadline_ms = None
        self.effects_until_crash = None
        self.leads_epoch = None
        self.disk.lose_power()

    def wipe(self) -> None:
        """Lose the disk as well, and get a new directory."""
        self.crash()
        self.generation += 1
        self.disk = Disk(None)

    # -- events and effects ----------------------------------------------------------------------

    def take(self, event: Event) -> None:
        """Hand an event to the replica and do what it wants; the host's own reports follow."""
        reports: list[Event] = [event]
        while reports and self.replica is not None:
            self.cluster.judge_event(self, reports[0])
            effects = self.replica.step(reports.pop(0), self.cluster.now_ms)
            for effect in effects:
                if self._dies_now():
                    self.cluster.note(f"node {self.id} loses power between two effects")
                    self.crash()
                    return
                report = self.perform(effect)
                if self.replica is None:
                    return
                reports += [report] if report is not None else []
        if self.replica is not None:
            self.deadline_ms = self.replica.deadline_ms()
            is_ahead = self.deadline_ms is None or self.deadline_ms > self.cluster.now_ms
            assert is_ahead, f"S24 NoBusyLoop: node {self.id}"

    def _dies_now(self) -> bool:
        if self.effects_until_crash is None:
            return False
        self.effects_until_crash -= 1
        return self.effects_until_crash < 0

    def perform(self, effect: Effect) -> Event | None:
        """Do one thing; the event is what the host owes afterwards."""
        self.cluster.judge_effect(self, effect)
        log = self.disk.log
        match effect:
            case PersistElectionState():
                self.disk.election = effect.election
                self._perhaps_die_after_vote()
            case AppendRecords():
                self._append(effect.base_offset, effect.leader_epoch, effect.values)
                self.cluster.appended(self, effect)
            case AppendControlRecords():
                self._append(effect.base_offset, effect.leader_epoch, (), effect.messages)
            case AppendFetched():
                return RecordsAppended(tuple(self._append_fetched(effect)))
            case FlushLog():
                return self._flush()
            case TruncateLog():
                log.truncate(effect.end_offset)
                return LogFlushed()
            case AppendSnapshotChunk():
                self._write_chunk(effect)
            case InstallSnapshot():
                return self._install(effect.snapshot_id)
            case _:
                self._tell(effect)
        return None

    def _perhaps_die_after_vote(self) -> None:
        assert self.disk.election is not None
        if self.dies_after_vote and self.disk.election.voted_id not in (-1, self.id):
            self.dies_after_vote = False
            self.cluster.note(f"node {self.id} loses power before it answers")
            self.crash()

    def _flush(self) -> Event | None:
        """Flush now, or beside all else: then it covers what is in the log as it begins."""
        log, cluster = self.disk.log, self.cluster
        if cluster.setup.flush_ms == 0:
            log.flush()
            return LogFlushed()
        incarnation, covered, cuts = self.incarnation, log.log_end_offset, log.cuts

        def done() -> int:
            if self.replica is not None and self.incarnation == incarnation:
                if log.cuts == cuts:
                    log.flushed = max(log.flushed, covered)
                self.take(LogFlushed())
            return self.id

        cluster.later(done, cluster.flush_chance.randint(0, cluster.setup.flush_ms))
        return None

    def _tell(self, effect: Effect) -> None:
        """Do what changes no disk: messages, and news for the state machine."""
        match effect:
            case SendRequest():
                self.cluster.send_request(self, effect)
            case Reply():
                self.cluster.send_reply(self, effect.reply_to, effect.response)
            case ReplyWithRecords():
                self._reply_with_records(effect)
            case ReplyWithSnapshotSlice():
                self._reply_with_slice(effect)
            case HighWatermarkAdvanced():
                self._apply(effect.high_watermark)
            case LeadershipEstablished():
                self.leads_epoch = effect.leader_epoch
            case LeadershipEnded():
                self.leads_epoch = None
            case AppendRefused():
                self.cluster.refused(effect)
            case ShutdownCompleted():
                self.is_stopped = True

    def _append(
        self,
        base_offset: int,
        epoch: int,
        values: tuple[bytes, ...] = (),
        controls: tuple[Message, ...] = (),
    ) -> None:
        batch = self.cluster.shelf.new_batch(base_offset, epoch, values, controls)
        self.cluster.judge_append(self, batch)
        self.disk.log.append(batch)

    def _append_fetched(self, effect: AppendFetched) -> Iterator[ControlRecord]:
        log = self.disk.log
        assert isinstance(effect.records, bytes | memoryview)
        for batch in self.cluster.shelf.read(bytes(effect.records)):
            if batch is None or batch.base_offset != log.log_end_offset:
                return
            if not log.last_epoch <= batch.epoch <= effect.leader_epoch:
                return
            self.cluster.judge_append(self, batch)
            log.append(batch)
            yield from control_records(batch)

    def _write_chunk(self, effect: AppendSnapshotChunk) -> None:
        held = b""
        if effect.position > 0:
            assert self.disk.partial is not None, effect
            assert self.disk.partial[0] == effect.snapshot_id, effect
            held = self.disk.partial[1]
        assert len(held) == effect.position, (len(held), effect)
        assert isinstance(effect.data, bytes | memoryview)
        self.disk.partial = (effect.snapshot_id, held + bytes(effect.data))

    def _install(self, snapshot_id: OffsetAndEpoch) -> Event:
        assert self.disk.partial is not None, snapshot_id
        snapshot = self.cluster.shelf.snapshots.get(self.disk.partial[1])
        self.disk.partial = None
        if snapshot is None:
            return SnapshotRefused(snapshot_id)
        assert snapshot.snapshot_id == snapshot_id, (snapshot, snapshot_id)
        self.disk.snapshots.kept[snapshot_id] = snapshot
        if self.dies_within_installation or self._dies_now():
            self.cluster.note(f"node {self.id} loses power within the installation of a snapshot")
            self.dies_within_installation = False
            self.crash()
            return SnapshotInstalled(snapshot_id)  # nobody is left to hear of it
        self.disk.log.reset_to(snapshot_id)
        self.disk.snapshots.kept = {snapshot_id: snapshot}
        self.applied_offset, self.state = snapshot_id.offset, snapshot.state
        self.cluster.judge_snapshot(snapshot)
        return SnapshotInstalled(snapshot_id, snapshot.controls)

    def _reply_with_records(self, effect: ReplyWithRecords) -> None:
        data: list[bytes] = []
        at = int(effect.offset)
        while (batch := self.disk.log.batch_at(at)) is not None:
            if data and (len(data) + 1) * BATCH_BYTES > effect.bytes_max:
                break
            data.append(batch.bytes)
            at = batch.end_offset
        effect.response.responses[0].partitions[0].records = b"".join(data)
        self.cluster.send_reply(self, effect.reply_to, effect.response)

    def _reply_with_slice(self, effect: ReplyWithSnapshotSlice) -> None:
        data = self.disk.snapshots.kept[effect.snapshot_id].data
        chunk = data[effect.position : effect.position + effect.bytes_max]
        if chunk and self.cluster.spoil_chance.random() < self.cluster.setup.spoilt:
            chunk = bytes([chunk[0] ^ 1]) + chunk[1:]
        effect.response.topics[0].partitions[0].unaligned_records = chunk
        self.cluster.send_reply(self, effect.reply_to, effect.response)

    def _apply(self, high_watermark: int) -> None:
        while self.applied_offset < high_watermark:
            batch = self.disk.log.batch_at(self.applied_offset)
            assert batch is not None, (self.id, self.applied_offset, high_watermark)
            if batch.end_offset > high_watermark:
                return
            self.state = applied(self.state, batch)
            self.applied_offset = batch.end_offset

    # -- snapshots -------------------------------------------------------------------------------

    def take_snapshot(self) -> OffsetAndEpoch | None:
        """Write a snapshot of what the state machine has; None where it would be refused."""
        quorum = self.quorum().quorum
        end = self.applied_offset
        before = self.disk.log.batch_at(end - 1) if end > 0 else None
        if before is None:
            return None
        snapshot_id = OffsetAndEpoch(Offset(end), LeaderEpoch(before.epoch))
        log, kept = self.disk.log, self.disk.snapshots
        if snapshot_refusal(snapshot_id, quorum.high_watermark, log, kept) is not None:
            return None
        level = quorum.voters.version_at(Offset(end))
        controls: tuple[Message, ...] = ()
        if level >= 1:
            voters = quorum.voters.set_at(Offset(end))
            controls = (KRaftVersionRecord(kraft_version=level), voters.to_record())
        text = f"{snapshot_id}{self.state:08x}{self.id}{controls}"
        digest = hashlib.sha256(text.encode()).digest()
        size = self.cluster.setup.snapshot_bytes
        data = (digest * (size // len(digest) + 1))[:size]
        snapshot = Snapshot(snapshot_id, self.state, controls, data)
        self.cluster.shelf.snapshots[data] = snapshot
        kept.kept[snapshot_id] = snapshot
        self.cluster.judge_snapshot(snapshot)
        self.take(SnapshotTaken(snapshot_id))
        return snapshot_id

    def trim(self) -> None:
        """Let the log start at the newest snapshot, and forget older ones."""
        latest = self.disk.snapshots.latest_id
        if latest is not None and self.disk.log.start.offset < latest.offset <= self.applied_offset:
            self.disk.log.forget_below(latest)
            self.disk.snapshots.kept = {latest: self.disk.snapshots.kept[latest]}


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """Where an answer goes: the request of one incarnation of a node, or a client's ticket."""

    node_id: int
    incarnation: int
    request_id: int
    version: int


class Cluster:
    """All nodes, the network between them, and time."""

    def __init__(self, seed: int, setup: Setup | None = None) -> None:
        self.seed = seed
        self.setup = setup or Setup()
        self.random = random.Random(f"{seed}/network")
        self.flush_chance = random.Random(f"{seed}/flush")
        self.spoil_chance = random.Random(f"{seed}/spoil")
        self.links = Links()
        self.shelf = Shelf()
        self.now_ms = 0
        self.events = 0
        self.holds_against_model = False
        """Whether each step of a replica has to be one that the model allows."""
        self.steps_in_model = 0
        self.judges: list[Judge] = []
        self.trace = hashlib.sha256()
        self.notes: list[str] = []
        self._queue: list[tuple[int, int, Callable[[], int]]] = []
        self._sent = 0
        self.client_answers: dict[int, Message] = {}
        self.tickets: dict[int, str] = {}
        self.ticket_ends: dict[int, tuple[int, int, int]] = {}
        voters = self.setup.voters
        if self.setup.is_dynamic:
            self.formatted: VoterSet | None = VoterSet.of(
                voter_node(node, directory_id(node)) for node in voters
            )
            self.static: VoterSet | None = None
        else:
            self.formatted = None
            self.static = VoterSet.of(voter_node(node, ZERO_UUID) for node in voters)
        ids = sorted({*voters, *self.setup.observers, *self.setup.brokers})
        self.hosts = {node_id: Host(self, node_id) for node_id in ids}

    def bootstrap_servers(self) -> tuple[Address, ...]:
        """Every controller, as an operator would list them; none where the set is static."""
        controllers = [host.id for host in self.hosts.values() if host.is_controller]
        return tuple(map(address_of, controllers)) if self.setup.is_dynamic else ()

    # -- time ------------------------------------------------------------------------------------

    def start(self) -> None:
        for host in self.hosts.values():
            host.start()
            self._judged(host.id)

    def advance(self) -> bool:
        """Let the next thing happen; False where nothing ever will."""
        timers = [
            (host.deadline_ms, host.id)
            for host in self.hosts.values()
            if host.deadline_ms is not None
        ]
        due = min(timers, default=None)
        if self._queue and (due is None or self._queue[0][0] <= due[0]):
            self.now_ms, _, deliver = heapq.heappop(self._queue)
            node_id = deliver()
        elif due is not None:
            self.now_ms = max(self.now_ms, due[0])
            node_id = due[1]
            self.hosts[node_id].take(TimerFired())
        else:
            return False
        self.events += 1
        self._judged(node_id)
        return True

    def run(self, for_ms: int) -> None:
        """Let time pass."""
        end_ms = self.now_ms + for_ms
        while (at_ms := self.next_ms()) is not None and at_ms <= end_ms:
            self.advance()
        self.now_ms = end_ms

    def run_until(self, condition: Callable[[], bool], within_ms: int = 60_000) -> bool:
        end_ms = self.now_ms + within_ms
        while not condition():
            at_ms = self.next_ms()
            if at_ms is None or at_ms > end_ms:
                return False
            self.advance()
        return True

    def next_ms(self) -> int | None:
        timers = [h.deadline_ms for h in self.hosts.values() if h.deadline_ms is not None]
        queued = [self._queue[0][0]] if self._queue else []
        return min([*timers, *queued], default=None)

    def take(self, node_id: int, event: Event) -> None:
        """Hand an event to a node that runs, and have it judged."""
        self.hosts[node_id].take(event)
        self._judged(node_id)

    def _judged(self, node_id: int) -> None:
        host = self.hosts[node_id]
        if host.replica is not None:
            quorum = host.replica.quorum
            line = (
                f"{self.now_ms} {node_id} {type(quorum.role).__name__} {quorum.epoch} "
                f"{quorum.leader_id} {host.disk.log.log_end_offset} {quorum.high_watermark}\n"
            )
            self.trace.update(line.encode())
        for judge in self.judges:
            judge.after(host)

    def note(self, text: str) -> None:
        """Tell the story's reader."""
        self.notes.append(f"{self.now_ms:>7} {text}")

    # -- network ---------------------------------------------------------------------------------

    def later(self, deliver: Callable[[], int], delay_ms: int | None = None) -> None:
        low, high = self.links.delay_ms
        delay = self.random.randint(low, high) if delay_ms is None else delay_ms
        self._sent += 1
        heapq.heappush(self._queue, (self.now_ms + delay, self._sent, deliver))

    def _carry(self, source: int, target: int, deliver: Callable[[], int]) -> None:
        if self.links.cut.get((source, target)) or self.random.random() < self.links.lost:
            return
        self.later(deliver)
        if self.random.random() < self.links.doubled:
            self.later(deliver)

    def send_request(self, host: Host, sent: SendRequest) -> None:
        target = self.hosts.get(sent.address.port - 9000)
        reply = ReplyTo(host.id, host.incarnation, sent.request_id, 0)
        if target is None or (target.replica is None and self.random.random() < 0.5):
            self.later(lambda: self._fail(reply))
            return
        version = min(host.max_version(sent.request), target.max_version(sent.request))
        reply = ReplyTo(host.id, host.incarnation, sent.request_id, version)
        try:
            request = self._through_bytes(sent.request, version)
        except UnencodableMessage:
            response = response_class(sent.request.API_KEY)(
                error_code=ErrorCode.UNSUPPORTED_VERSION
            )
            self.later(lambda: self._arrive(reply, response))
            return
        self._carry(host.id, target.id, lambda: self._receive(target, request, reply, sent.node_id))

    def _through_bytes(self, message: Message, version: int) -> Message:
        if not self.setup.encodes and version == message.MAX_VERSION:
            return message
        decoded, _ = type(message).decode(message.encode(version), version)
        return decoded

    def _receive(self, target: Host, request: Message, reply: ReplyTo, meant_for: int) -> int:
        if target.replica is None:
            self.later(lambda: self._fail(reply))
        elif isinstance(request, ApiVersionsRequest):
            feature = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            self.send_reply(target, reply, ApiVersionsResponse(supported_features=[feature]))
        else:
            event = RequestReceived(reply, request, reply.version, LISTENER, self.now_ms)
            target.take(event)
        return target.id

    def send_reply(self, host: Host, reply_to: object, response: Message) -> None:
        assert isinstance(reply_to, ReplyTo), reply_to
        if reply_to.node_id < 0:
            self.client_answers[reply_to.request_id] = response
            return
        response = self._through_bytes(response, reply_to.version)
        self._carry(host.id, reply_to.node_id, lambda: self._arrive(reply_to, response))

    def _arrive(self, reply: ReplyTo, response: Message) -> int:
        host = self.hosts[reply.node_id]
        if host.replica is not None and host.incarnation == reply.incarnation:
            host.take(ResponseReceived(reply.request_id, response))
        return host.id

    def _fail(self, reply: ReplyTo) -> int:
        host = self.hosts[reply.node_id]
        if host.replica is not None and host.incarnation == reply.incarnation:
            host.take(RequestFailed(reply.request_id))
        return host.id

    # -- clients ---------------------------------------------------------------------------------

    def ask(self, node_id: int, request: Message, version: int | None = None) -> int:
        """Send a client's request; `client_answers` gets the answer under the number returned."""
        self._sent += 1
        ticket = self._sent
        number = request.MAX_VERSION if version is None else version
        reply = ReplyTo(-1, 0, ticket, number)
        event = RequestReceived(reply, request, number, LISTENER, self.now_ms)
        self.take(node_id, event)
        return ticket

    def append(self, node_id: int, count: int = 1) -> int | None:
        """Have a node's state machine append records; the ticket, None where it does not lead."""
        host = self.hosts[node_id]
        if host.replica is None or host.leads_epoch is None:
            return None
        self._sent += 1
        ticket = self._sent
        values = tuple(f"{ticket}.{part}".encode() for part in range(count))
        self.take(node_id, AppendRequested(ticket, values, host.leads_epoch))
        return ticket

    def appended(self, host: Host, effect: AppendRecords) -> None:
        assert isinstance(effect.ticket, int)
        end = effect.base_offset + len(effect.values)
        self.ticket_ends[effect.ticket] = (host.id, effect.leader_epoch, end)

    def refused(self, effect: AppendRefused) -> None:
        assert isinstance(effect.ticket, int)
        self.tickets[effect.ticket] = "refused"

    # -- judging ---------------------------------------------------------------------------------

    def count_step(self) -> None:
        """A step was one that the model allows."""
        self.steps_in_model += 1

    def judge_event(self, host: Host, event: Event) -> None:
        for judge in self.judges:
            judge.event(host, event)

    def judge_effect(self, host: Host, effect: Effect) -> None:
        for judge in self.judges:
            judge.effect(host, effect)

    def judge_append(self, host: Host, batch: Batch) -> None:
        for judge in self.judges:
            judge.append(host, batch)

    def judge_snapshot(self, snapshot: Snapshot) -> None:
        for judge in self.judges:
            judge.snapshot(snapshot)

    # -- looking ---------------------------------------------------------------------------------

    def running(self) -> list[Host]:
        return [host for host in self.hosts.values() if host.replica is not None]

    def leader(self) -> Host | None:
        """The running leader of the highest epoch."""
        leaders = [h for h in self.running() if isinstance(h.quorum().quorum.role, Leader)]
        return max(leaders, key=lambda host: host.quorum().quorum.epoch, default=None)

    def established(self) -> bool:
        """Whether the newest leader may act as one."""
        leader = self.leader()
        return leader is not None and leader.leads_epoch is not None

    def is_settled(self) -> bool:
        """Whether every running node follows one leader and has committed all that it has."""
        leader = self.leader()
        if leader is None or leader.leads_epoch is None:
            return False
        end, epoch = leader.disk.log.log_end_offset, leader.quorum().quorum.epoch
        return all(
            host.quorum().quorum.high_watermark == end == host.disk.log.log_end_offset
            and host.quorum().quorum.epoch == epoch
            and (host is leader or isinstance(host.quorum().quorum.role, Follower))
            for host in self.running()
        )

    def cut(self, one: Iterable[int], other: Iterable[int], *, one_way: bool = False) -> None:
        """Let nothing pass between two groups."""
        others = list(other)
        for source in one:
            for target in others:
                self.links.cut[source, target] = True
                if not one_way:
                    self.links.cut[target, source] = True

    def heal(self) -> None:
        self.links.cut = {}


class Judge:
    """Looks on; raises where something is wrong."""

    def after(self, host: Host) -> None:
        """One node has taken an event."""

    def event(self, host: Host, event: Event) -> None:
        """A node is about to take an event."""

    def effect(self, host: Host, effect: Effect) -> None:
        """A node is about to perform an effect."""

    def append(self, host: Host, batch: Batch) -> None:
        """A node is about to append a batch."""

    def snapshot(self, snapshot: Snapshot) -> None:
        """A snapshot was written or installed."""
