"""`RaftReplica`: one replica of the metadata quorum, without sockets, files or clocks.

KIP-595, KIP-630, KIP-853, KIP-996, KIP-1166 as Apache Kafka 4.3.1 behaves. Events in, an ordered
list of effects out. Time is an argument, randomness comes from a seeded port, log and snapshots are
read through `ports`. The same inputs give the same effects. Read `roles` and `transitions` first,
then `rpc/vote` and `rpc/fetch`.

No message of any content raises: a peer's mistake is answered with an error code or ignored for a
named reason (`ignored`). A mistake of the host or of this package fails an assert.
"""

from typing import assert_never

from kraft_wire.model import RandomSource
from kraft_wire.raft import polling, version_upgrade, voter_changes
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.effects import Effect, SendRequest
from kraft_wire.raft.events import (
    AppendRequested,
    Event,
    LogFlushed,
    RecordsAppended,
    RequestFailed,
    RequestReceived,
    ResignRequested,
    ResponseReceived,
    ShutdownRequested,
    SnapshotInstalled,
    SnapshotRefused,
    SnapshotTaken,
    Started,
    TimerFired,
    VersionUpgradeRequested,
)
from kraft_wire.raft.following import (
    apply_control_records,
    install_snapshot,
    raise_to_leaders,
    refuse_snapshot,
)
from kraft_wire.raft.ignored import Ignored
from kraft_wire.raft.leading import append_records, resign, update_high_watermark
from kraft_wire.raft.ports import LogView, SnapshotView
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Follower, Leader
from kraft_wire.raft.rpc import (
    add_raft_voter,
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from kraft_wire.raft.transitions import Trigger
from kraft_wire.raft.voters import VoterSetHistory
from kraft_wire.wire.generated.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kraft_wire.wire.generated.describe_quorum import DescribeQuorumRequest
from kraft_wire.wire.generated.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from kraft_wire.wire.generated.fetch import FetchRequest, FetchResponse
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kraft_wire.wire.generated.remove_raft_voter import (
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from kraft_wire.wire.generated.update_raft_voter import (
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse

__all__ = ["RaftReplica"]


class RaftReplica:
    """A voter or observer; see the module. `voters` holds the sets of newest snapshot and log."""

    def __init__(
        self,
        config: RaftConfig,
        log: LogView,
        snapshots: SnapshotView,
        random_source: RandomSource,
        voters: VoterSetHistory,
    ) -> None:
        assert log.log_start_offset <= log.log_end_offset, config.key
        self.quorum = Quorum(config, log, snapshots, random_source, voters)
        """The state; read only."""
        self.stepped_ms = 0
        """Time of the latest step."""
        self._is_started = False

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event and return the effects, which the host must perform in this order.

        `now_ms` never falls. The host performs the whole list before the next step.
        """
        quorum = self.quorum
        assert now_ms >= self.stepped_ms, (now_ms, self.stepped_ms)
        assert isinstance(event, Started) is not self._is_started, event
        self.stepped_ms = now_ms
        quorum.log_is_changing = False
        quorum.peers.expire(now_ms)
        self._handle(event, now_ms)
        polling.act(quorum, now_ms)
        self._answer_waiting()
        effects, quorum.effects = quorum.effects, []
        return effects

    def deadline_ms(self) -> int | None:
        """Return when TimerFired is due, None if only a message can change anything."""
        assert self._is_started, "Started is the first event"
        return polling.deadline_ms(self.quorum, self.stepped_ms)

    # -- events ----------------------------------------------------------------------------------

    def _handle(self, event: Event, now_ms: int) -> None:
        quorum = self.quorum
        match event:
            case RequestReceived():
                self._on_request(event, now_ms)
            case ResponseReceived() | RequestFailed():
                self._on_answer(event, now_ms)
            case (
                Started()
                | TimerFired()
                | LogFlushed()
                | RecordsAppended()
                | SnapshotInstalled()
                | SnapshotRefused()
            ):
                self._on_own_progress(event, now_ms)
            case AppendRequested():
                append_records(quorum, event, now_ms)
            case SnapshotTaken():
                assert quorum.snapshots.size_bytes(event.snapshot_id) is not None, event
                quorum.voters.forgotten_below(event.snapshot_id.offset)
            case ResignRequested():
                if isinstance(quorum.role, Leader) and event.leader_epoch == quorum.epoch:
                    resign(quorum, quorum.role, now_ms)
            case VersionUpgradeRequested():
                version_upgrade.upgrade(quorum, event, now_ms)
            case ShutdownRequested():
                assert event.timeout_ms >= 0, event
                quorum.shutdown_deadline_ms = now_ms + event.timeout_ms
                quorum.shutdown_epoch = quorum.epoch
            case _:
                assert_never(event)

    def _on_own_progress(
        self,
        event: Started
        | TimerFired
        | LogFlushed
        | RecordsAppended
        | SnapshotInstalled
        | SnapshotRefused,
        now_ms: int,
    ) -> None:
        """Handle the results of effects, and the passing of time."""
        quorum = self.quorum
        assert not quorum.log_is_changing, event
        match event:
            case Started():
                self._is_started = True
                quorum.restore(event.election, now_ms)
                if quorum.is_only_voter and not polling.is_campaigning(quorum):
                    quorum.become_prospective(Trigger.ONLY_VOTER_STARTED, now_ms)
            case RecordsAppended():
                apply_control_records(quorum, event.control_records, now_ms)
            case SnapshotInstalled():
                install_snapshot(quorum, event.snapshot_id, event.control_records, now_ms)
            case SnapshotRefused():
                refuse_snapshot(quorum, now_ms)
            case TimerFired() | LogFlushed():
                pass
            case _:
                assert_never(event)
        role = quorum.role
        if isinstance(role, Leader):
            update_high_watermark(quorum, role, now_ms)
        elif isinstance(role, Follower):
            raise_to_leaders(quorum, role)

    def _on_answer(self, event: ResponseReceived | RequestFailed, now_ms: int) -> None:
        quorum = self.quorum
        sent = quorum.peers.take_answered(event.request_id)
        if sent is None:
            quorum.ignored.count(Ignored.LATE_ANSWER)
            return
        if isinstance(event, RequestFailed):
            quorum.peers.rest(sent.node_id, now_ms)
            if isinstance(sent.request, ApiVersionsRequest):
                add_raft_voter.on_failure(quorum, sent)
            return
        assert event.request_id == sent.request_id
        match (sent.request, event.response):
            case (VoteRequest(), VoteResponse() as response):
                vote.on_response(quorum, sent, response, now_ms)
            case (BeginQuorumEpochRequest(), BeginQuorumEpochResponse() as response):
                begin_quorum_epoch.on_response(quorum, sent, response, now_ms)
            case (EndQuorumEpochRequest(), EndQuorumEpochResponse() as response):
                end_quorum_epoch.on_response(quorum, sent, response, now_ms)
            case (FetchRequest(), FetchResponse() as response):
                fetch.on_response(quorum, sent, response, now_ms)
            case (FetchSnapshotRequest(), FetchSnapshotResponse() as response):
                fetch_snapshot.on_response(quorum, sent, response, now_ms)
            case _:
                self._on_membership_answer(event, sent, now_ms)

    def _on_membership_answer(
        self, event: ResponseReceived, sent: SendRequest, now_ms: int
    ) -> None:
        quorum = self.quorum
        assert event.request_id == sent.request_id
        match (sent.request, event.response):
            case (ApiVersionsRequest(), ApiVersionsResponse() as response):
                add_raft_voter.on_versions(quorum, sent, response, now_ms)
            case (AddRaftVoterRequest(), AddRaftVoterResponse() as response):
                add_raft_voter.on_response(quorum, sent, response, now_ms)
            case (RemoveRaftVoterRequest(), RemoveRaftVoterResponse() as response):
                remove_raft_voter.on_response(quorum, sent, response, now_ms)
            case (UpdateRaftVoterRequest(), UpdateRaftVoterResponse() as response):
                update_raft_voter.on_response(quorum, sent, response, now_ms)
            case _:
                quorum.ignored.count(Ignored.UNEXPECTED_KIND)
                quorum.peers.rest(sent.node_id, now_ms)

    def _on_request(self, event: RequestReceived, now_ms: int) -> None:
        quorum = self.quorum
        assert not quorum.log_is_changing, event
        match event.request:
            case VoteRequest() as request:
                vote.on_request(quorum, event, request, now_ms)
            case BeginQuorumEpochRequest() as request:
                begin_quorum_epoch.on_request(quorum, event, request, now_ms)
            case EndQuorumEpochRequest() as request:
                end_quorum_epoch.on_request(quorum, event, request, now_ms)
            case FetchRequest() as request:
                fetch.on_request(quorum, event, request, now_ms)
            case FetchSnapshotRequest() as request:
                fetch_snapshot.on_request(quorum, event, request, now_ms)
            case DescribeQuorumRequest() as request:
                describe_quorum.on_request(quorum, event, request, now_ms)
            case _:
                self._on_membership_request(event, now_ms)

    def _on_membership_request(self, event: RequestReceived, now_ms: int) -> None:
        quorum = self.quorum
        assert not quorum.log_is_changing, event
        match event.request:
            case AddRaftVoterRequest() as request:
                add_raft_voter.on_request(quorum, event, request, now_ms)
            case RemoveRaftVoterRequest() as request:
                remove_raft_voter.on_request(quorum, event, request, now_ms)
            case UpdateRaftVoterRequest() as request:
                update_raft_voter.on_request(quorum, event, request, now_ms)
            case _:
                quorum.ignored.count(Ignored.UNEXPECTED_KIND)

    def _answer_waiting(self) -> None:
        """Answer the fetches that this step woke, or all of them if the leadership is over."""
        quorum = self.quorum
        if not isinstance(quorum.role, Leader):
            for parked in [*quorum.woken, *quorum.parked.take_all()]:
                fetch.answer_without_leader(quorum, parked)
            voter_changes.abandon(quorum)
        else:
            for parked in quorum.woken:
                fetch.answer_parked(quorum, parked)
        quorum.woken = []
        assert quorum.abandoned_change is None, quorum.abandoned_change
