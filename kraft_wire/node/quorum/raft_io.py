"""Hosts the raft core: performs its effects in order, and reports the results to it.

`take` is the only entry point: it steps the replica, performs its effects, and returns the results
(RecordsAppended, LogFlushed, SnapshotInstalled) to it in the same call. LogFlushed of a flush in
another thread follows when the flush is done. No effect after FlushLog in a list depends on it:
acknowledgements wait for `LogView.flushed_end_offset`.

Events for the state machine are left in `quorum_events`, answers in `answers`. The node takes them
after the call, so that the replica does not step while they are applied. `raft_disk` changes the
disk, `peer_channels` uses links.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from kraft_wire.broker.context import ReplyTo
from kraft_wire.frozen import slotted
from kraft_wire.model import (
    LeaderEpoch,
    RandomSource,
    ReportEvent,
    sooner,
)
from kraft_wire.node.events.quorum_events import QuorumEvents
from kraft_wire.node.outputs import Output
from kraft_wire.node.quorum.committed import CommittedMetadata
from kraft_wire.node.quorum.metadata_opening import OpenedMetadata
from kraft_wire.node.quorum.raft_disk import PendingAppend, RaftDisk
from kraft_wire.node.quorum.snapshot_arrival import SnapshotArrival
from kraft_wire.raft.config import RaftConfig
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
    LeaderChanged,
    LeadershipEnded,
    LeadershipEstablished,
    PersistElectionState,
    Reply,
    ReplyWithRecords,
    ReplyWithSnapshotSlice,
    SendRequest,
    ShutdownCompleted,
    TruncateLog,
    VersionUpgradeAnswered,
)
from kraft_wire.raft.events import (
    AppendRequested,
    Event,
    LogFlushed,
    RecordsAppended,
    Started,
    TimerFired,
)
from kraft_wire.raft.replica import RaftReplica
from kraft_wire.raft.roles import Role
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Buffer, DecodeLimits, Message

if TYPE_CHECKING:
    from kraft_wire.node.links.peer_channels import PeerChannels

__all__ = ["KraftVersionUpgrade", "QuorumEvent", "RaftIo"]

QuorumEvent: TypeAlias = (
    HighWatermarkAdvanced
    | LeaderChanged
    | LeadershipEstablished
    | LeadershipEnded
    | ShutdownCompleted
)
"""Events for the state machine, in order."""


@slotted(eq=False)
class KraftVersionUpgrade:
    """The ticket of a raise of kraft.version: it has the result once `take` has returned."""

    error_code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RaftIo:
    """One replica with its log, its peers and its clients; see the module."""

    def __init__(
        self,
        fs: FileSystem,
        directory: LogDirectory,
        opened: OpenedMetadata,
        config: RaftConfig,
        random_source: RandomSource,
        *,
        link_ids: Iterator[int],
        report: ReportEvent,
        decode_limits: DecodeLimits,
    ) -> None:
        """`start` must follow. `link_ids` gives out the node's link ids."""
        self.quorum_log = opened.log
        self.log = opened.log.log
        arrival = SnapshotArrival(opened.log.snapshots)
        self.committed = CommittedMetadata(opened.log, arrival, is_controller=config.is_controller)
        self.replica = RaftReplica(
            config, opened.log, opened.log.snapshots, random_source, opened.voters
        )
        self.disk = RaftDisk(fs, directory, opened.log, arrival, report)
        self.quorum_events: list[QuorumEvent] = []
        self.answers: list[tuple[ReplyTo, Message]] = []
        self.steps_count = 0
        """Number of calls of `take`: a change means that there may be events."""
        self.log_events = QuorumEvents(report)
        self._reported_role: Role | None = None
        self._election = opened.election
        self._channels: PeerChannels | None = None
        self._link_ids = link_ids
        self._report = report
        self._decode_limits = decode_limits
        self._events: deque[Event] = deque()
        self._is_stepping = False

    # -- the node's calls ------------------------------------------------------------------------

    def start(self, now_ms: int, wall_ms: int) -> None:
        """Start the replica with its durable state."""
        self.take(Started(self._election), now_ms, wall_ms)

    def take(self, event: Event, now_ms: int, wall_ms: int) -> None:
        """Step the replica and perform its effects until there is no result to report.

        `wall_ms` is the time of day for appended batches.
        """
        assert not self._is_stepping, event
        self._is_stepping = True
        self.steps_count += 1
        self._events.append(event)
        quorum = self.replica.quorum
        while self._events:
            for effect in self.replica.step(self._events.popleft(), now_ms):
                self._perform(effect, now_ms, wall_ms)
            if quorum.role is not self._reported_role:
                self._reported_role = quorum.role
                self.log_events.role_changed(quorum)
        self._is_stepping = False

    def write(
        self, write: PendingAppend, leader_epoch: LeaderEpoch, now_ms: int, wall_ms: int
    ) -> None:
        """Append records as the leader of an epoch; `write` gets the result."""
        assert write.next_offset is None, write
        self.take(AppendRequested(write, write.values, leader_epoch), now_ms, wall_ms)

    def tick(self, now_ms: int, wall_ms: int) -> None:
        """Do work that is due by time."""
        if self.disk.again_at_ms is not None and self.disk.again_at_ms <= now_ms:
            self.disk.again_at_ms = None
            self.take(RecordsAppended(), now_ms, wall_ms)
        self.take(TimerFired(), now_ms, wall_ms)
        if self._channels is not None:
            self._take_all(self._channels.tick(now_ms), now_ms, wall_ms)

    def deadline_ms(self) -> int | None:
        """Return when `tick` is needed next."""
        soonest_ms = sooner(self.replica.deadline_ms(), self.disk.again_at_ms)
        if self._channels is not None:
            soonest_ms = sooner(soonest_ms, self._channels.deadline_ms())
        return soonest_ms

    # -- flushing --------------------------------------------------------------------------------

    def flushed(self, flush_id: int, now_ms: int, wall_ms: int) -> bool:
        """Note a completed flush; return whether it was one of these."""
        if not self.disk.completed(flush_id):
            return False
        self.take(LogFlushed(), now_ms, wall_ms)
        return True

    def flush_now(self, now_ms: int, wall_ms: int) -> None:
        """Flush at once what is requested or ordered: a stop does not wait for another thread."""
        self.disk.flush_now()
        self.take(LogFlushed(), now_ms, wall_ms)

    # -- links -----------------------------------------------------------------------------------

    @property
    def channels(self) -> "PeerChannels":
        """The links to other replicas, made on first use."""
        if self._channels is None:
            from kraft_wire.node.links.peer_channels import ChannelLimits, PeerChannels

            config = self.replica.quorum.config
            self._channels = PeerChannels(
                f"raft-client-{config.key.id}",
                self._link_ids,
                self._report,
                ChannelLimits(request_timeout_ms=config.timing.request_timeout_ms),
                self._decode_limits,
            )
        return self._channels

    def link_up(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        """Handle a connected link."""
        self._take_all(self.channels.link_up(link_id, now_ms), now_ms, wall_ms)

    def link_frame(self, link_id: int, frame: Buffer, now_ms: int, wall_ms: int) -> None:
        """Handle a peer's frame; records in it stay slices of the frame."""
        self._take_all(self.channels.link_frame(link_id, frame, now_ms), now_ms, wall_ms)

    def link_down(self, link_id: int, now_ms: int, wall_ms: int) -> None:
        """Handle a link that was refused, closed or broken."""
        self._take_all(self.channels.link_down(link_id, now_ms), now_ms, wall_ms)

    def _take_all(self, events: Sequence[Event], now_ms: int, wall_ms: int) -> None:
        for event in events:
            self.take(event, now_ms, wall_ms)

    def take_outputs(self) -> list[Output]:
        """Return what the host must do for the links."""
        if self._channels is None or not self._channels.outputs:
            return []
        outputs, self._channels.outputs = self._channels.outputs, []
        return outputs

    # -- effects ---------------------------------------------------------------------------------

    def _perform(self, effect: Effect, now_ms: int, wall_ms: int) -> None:
        match effect:
            case (
                AppendRecords()
                | AppendControlRecords()
                | AppendFetched()
                | FlushLog()
                | PersistElectionState()
                | AppendSnapshotChunk()
                | InstallSnapshot()
            ):
                owed = self.disk.perform(effect, now_ms, wall_ms)
            case TruncateLog(end_offset):
                assert end_offset >= (self.replica.quorum.high_watermark or 0), effect
                owed = self.disk.perform(effect, now_ms, wall_ms)
            case _:
                self._tell(effect, now_ms)
                return
        if owed is not None:
            self._events.append(owed)

    def _tell(self, effect: Effect, now_ms: int) -> None:
        """Perform an effect without a disk: messages, and events for the state machine."""
        match effect:
            case SendRequest():
                self._events += self.channels.send(effect, now_ms)
            case Reply() | ReplyWithRecords() | ReplyWithSnapshotSlice():
                self._answer(effect)
            case VersionUpgradeAnswered(ticket, error_code):
                assert isinstance(ticket, KraftVersionUpgrade), ticket
                ticket.error_code = error_code
            case AppendRefused(ticket):
                assert isinstance(ticket, PendingAppend), ticket
                assert ticket.next_offset is None, ticket
            case HighWatermarkAdvanced(high_watermark):
                self.log.update_high_watermark(high_watermark)
                self.quorum_events.append(effect)
            case LeaderChanged() | LeadershipEstablished() | LeadershipEnded():
                self.quorum_events.append(effect)
            case ShutdownCompleted():
                self.quorum_events.append(effect)
            case _:
                raise AssertionError(effect)

    def _answer(self, effect: Reply | ReplyWithRecords | ReplyWithSnapshotSlice) -> None:
        """Leave an answer for the node, with its records or bytes."""
        response: Message = effect.response
        if isinstance(effect, ReplyWithRecords):
            records = self.quorum_log.whole_batches(effect.offset, effect.bytes_max)
            effect.response.responses[0].partitions[0].records = records
        elif isinstance(effect, ReplyWithSnapshotSlice):
            effect.response.topics[0].partitions[
                0
            ].unaligned_records = self.quorum_log.snapshots.slice(
                effect.snapshot_id, effect.position, effect.bytes_max
            )
        assert isinstance(effect.reply_to, ReplyTo), effect.reply_to
        self.answers.append((effect.reply_to, response))
