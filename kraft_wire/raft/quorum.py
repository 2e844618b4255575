"""The state of a replica, and the only way to change its role.

All RPCs and timers read and change this object; `replica.RaftReplica` drives it. It has the durable
election state, the role with its timers, the voter sets along the log, the connections and the
parked fetches. It collects effects in the order in which the host must perform them.
"""

from dataclasses import replace

from kraft_wire.model import (
    NO_REPLICA,
    ElectionState,
    LeaderEpoch,
    Offset,
    RandomSource,
    ReplicaId,
    ReplicaKey,
)
from kraft_wire.raft.config import RaftConfig
from kraft_wire.raft.effects import (
    Effect,
    HighWatermarkAdvanced,
    LeaderChanged,
    LeadershipEnded,
    PersistElectionState,
)
from kraft_wire.raft.ignored import IgnoredCounts
from kraft_wire.raft.membership import PendingChange
from kraft_wire.raft.metrics import RaftMetrics
from kraft_wire.raft.parked import ParkedFetch, ParkedFetches
from kraft_wire.raft.peer_connections import PeerConnections
from kraft_wire.raft.ports import LogView, SnapshotView
from kraft_wire.raft.roles import (
    Candidate,
    Endpoints,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    SnapshotTransfer,
    Unattached,
)
from kraft_wire.raft.transitions import EpochStep, Trigger, rule_for
from kraft_wire.raft.voters import Address, VoterSetHistory

__all__ = ["EPOCH_MAX", "Quorum"]

EPOCH_MAX = (1 << 31) - 2
"""The last epoch after which another election is possible; a later one of a peer is invalid."""


class Quorum:
    """State of one replica; see the module."""

    def __init__(
        self,
        config: RaftConfig,
        log: LogView,
        snapshots: SnapshotView,
        random_source: RandomSource,
        voters: VoterSetHistory,
    ) -> None:
        assert config.key.id >= 0, config.key
        assert config.timing.request_timeout_ms > 0, config.timing
        self.config = config
        self.log = log
        self.snapshots = snapshots
        self.voters = voters
        self.election = ElectionState(LeaderEpoch(0))
        self.role: Role = Unattached(None)
        self.trigger: Trigger | None = None
        """Why this replica entered its role; None for the first one."""
        self.high_watermark: Offset | None = None
        """This replica's high watermark, kept over all roles; None until it is known."""
        self.peers = PeerConnections(
            config.timing.request_timeout_ms, config.timing.retry_backoff_ms
        )
        self.parked = ParkedFetches()
        self.ignored = IgnoredCounts()
        self.metrics = RaftMetrics()
        self.effects: list[Effect] = []
        self.fetched_from = Offset(0)
        """Base offset of the last fetched records."""
        self.log_is_changing = False
        """Whether an effect of this step changes the log: LogView is then out of date."""
        self.woken: list[ParkedFetch] = []
        """Parked fetches that this step must answer."""
        self.left_transfer: SnapshotTransfer | None = None
        """The snapshot transfer when this replica last stopped following: it may continue."""
        self.ended_epoch = LeaderEpoch(-1)
        """The newest epoch whose leader has sent EndQuorumEpoch."""
        self.abandoned_change: PendingChange | None = None
        """A voter change whose leadership ended in this step."""
        self.shutdown_deadline_ms: int | None = None
        self.shutdown_epoch = LeaderEpoch(0)
        """The epoch in which the graceful stop began."""
        self.random_source = random_source
        own = list(config.endpoints.values())
        self.bootstrap_nodes: list[tuple[int, Address]] = [
            (-2 - position, address)
            for position, address in enumerate(config.bootstrap_servers)
            if address not in own
        ]
        """The bootstrap servers without this replica, as nodes -2, -3, …"""

    # -- reading ---------------------------------------------------------------------------------

    @property
    def epoch(self) -> LeaderEpoch:
        """The current leader epoch."""
        return self.election.leader_epoch

    @property
    def leader_id(self) -> ReplicaId:
        """The leader of the epoch, -1 if unknown."""
        return self.election.leader_id

    @property
    def is_voter(self) -> bool:
        """Whether this replica is in the latest voter set; otherwise it is an observer."""
        return self.config.is_controller and self.voters.latest.is_voter(self.config.key)

    @property
    def is_only_voter(self) -> bool:
        """Whether it is the only voter."""
        return self.is_voter and len(self.voters.latest) == 1

    def is_me(self, replica_id: int, directory_id: bytes) -> bool:
        """Return whether a request's voter key is ours; an unset directory matches any."""
        assert len(directory_id) == 16, directory_id
        is_any_directory = not any(directory_id)
        is_ours = is_any_directory or directory_id == self.config.key.directory_id
        return replica_id == self.config.key.id and is_ours

    @property
    def has_leader_resigned(self) -> bool:
        """Whether this epoch's leader has sent EndQuorumEpoch: it does not lead the epoch again."""
        assert self.ended_epoch <= self.epoch, self.ended_epoch
        return self.ended_epoch == self.epoch

    def endpoints_of_leader(self) -> Endpoints:
        """Return the known leader's endpoints, empty if unknown."""
        if self.leader_id == self.config.key.id:
            return self.config.endpoints
        if isinstance(self.role, Follower | Prospective) and self.role.leader_endpoints:
            return self.role.leader_endpoints
        node = self.voters.latest.nodes.get(self.leader_id)
        assert node is None or node.key.id == self.leader_id
        return node.endpoints if node is not None else {}

    # -- the door between roles ------------------------------------------------------------------

    def become_unattached(
        self, trigger: Trigger, epoch: LeaderEpoch, now_ms: int, leader_id: ReplicaId = NO_REPLICA
    ) -> None:
        """Wait in an epoch for its leader, or for the time to campaign."""
        assert epoch <= EPOCH_MAX, epoch
        assert leader_id != self.config.key.id, leader_id
        election = self._election_at(epoch, leader_id)
        self._enter(
            trigger, Unattached(self._deadline_when_unattached(trigger, now_ms)), election, now_ms
        )

    def become_unattached_voted(self, candidate: ReplicaKey, now_ms: int) -> None:
        """Vote for another replica in this epoch; durable before the answer is sent."""
        assert isinstance(self.role, Unattached | Prospective), self.role
        assert self.election.voted_id == NO_REPLICA, self.election
        election = replace(
            self.election, voted_id=candidate.id, voted_directory_id=candidate.directory_id
        )
        deadline_ms = now_ms + self._draw_election_timeout_ms()
        role: Role = Unattached(deadline_ms if self.is_voter else None)
        if isinstance(self.role, Prospective):
            role = Prospective(deadline_ms, self.role.leader_endpoints, {self.config.key.id: True})
        self._enter(Trigger.VOTE_GRANTED, role, election, now_ms)

    def become_follower(
        self,
        trigger: Trigger,
        epoch: LeaderEpoch,
        leader_id: ReplicaId,
        endpoints: Endpoints,
        now_ms: int,
    ) -> None:
        """Follow a leader whose address is known."""
        assert leader_id not in (NO_REPLICA, self.config.key.id), leader_id
        assert self.config.listener in endpoints, endpoints
        timing = self.config.timing
        role = Follower(
            endpoints,
            fetch_deadline_ms=now_ms + timing.fetch_timeout_ms,
            voter_update_deadline_ms=now_ms,
        )
        self._enter(trigger, role, self._election_at(epoch, leader_id), now_ms)

    def become_prospective(self, trigger: Trigger, now_ms: int) -> None:
        """Ask the voters for pre-votes."""
        assert self.is_voter, "only members of the latest voter set campaign"
        endpoints = {} if self.leader_id == self.config.key.id else self.endpoints_of_leader()
        role = Prospective(
            now_ms + self._draw_election_timeout_ms(), endpoints, {self.config.key.id: True}
        )
        self._enter(trigger, role, self.election, now_ms)

    def become_candidate(self, trigger: Trigger, now_ms: int) -> None:
        """Raise the epoch and vote for itself; durable before the vote requests are sent."""
        assert self.is_voter, "only members of the latest voter set campaign"
        key = self.config.key
        election = ElectionState(
            LeaderEpoch(self.epoch + 1), voted_id=key.id, voted_directory_id=key.directory_id
        )
        self._enter(trigger, self._candidate(now_ms), election, now_ms)

    def become_leader(self, now_ms: int) -> None:
        """Lead the epoch after a won election; the caller appends the LeaderChange record."""
        assert isinstance(self.role, Candidate), self.role
        assert len(self.parked) == 0, "only a leader parks"
        role = Leader(
            self.log.log_end_offset,
            check_quorum_deadline_ms=now_ms + self.config.timing.check_quorum_timeout_ms,
            begin_quorum_deadline_ms=now_ms,
        )
        election = replace(self.election, leader_id=self.config.key.id)
        self._enter(Trigger.ELECTION_WON, role, election, now_ms)

    def become_resigned(self, preferred: list[ReplicaKey], now_ms: int) -> None:
        """Give up the leadership; no durable state changes."""
        assert isinstance(self.role, Leader), self.role
        deadline_ms = now_ms + self._draw_election_timeout_ms()
        self._enter(
            Trigger.LEADERSHIP_ENDED, Resigned(deadline_ms, preferred), self.election, now_ms
        )

    def restore(self, stored: ElectionState | None, now_ms: int) -> None:
        """Choose the first role (KIP-595 "Quorum State"), and persist the choice.

        First that applies: no stored state; an epoch below the log's; itself as leader, which it
        never is again in that epoch; its own candidacy; a leader with a known address; none of
        these.
        """
        self.election = stored or ElectionState(LeaderEpoch(0))
        if self.log.last_epoch > self.epoch:
            self.election = ElectionState(self.log.last_epoch)
        self.role = self._first_role(now_ms)
        self._persist(self.election)
        if self.leader_id != NO_REPLICA and isinstance(self.role, Follower):
            self.effects.append(LeaderChanged(self.leader_id, self.epoch))
        assert self.epoch >= self.log.last_epoch, (self.epoch, self.log.last_epoch)

    def raise_high_watermark(self, offset: Offset) -> None:
        """Raise the high watermark to `offset`; it never falls."""
        assert offset >= 0, offset
        if self.high_watermark is None or offset > self.high_watermark:
            self.high_watermark = offset
            self.effects.append(HighWatermarkAdvanced(offset))

    def apply_latest_voters(self, now_ms: int) -> None:
        """Adjust the role to a changed voter set: observers do not campaign, voters do."""
        if not isinstance(self.role, Unattached):
            return
        if not self.is_voter:
            self.role.election_deadline_ms = None
        elif self.role.election_deadline_ms is None:
            self.role.election_deadline_ms = now_ms + self._draw_election_timeout_ms()
        assert self.is_voter == (self.role.election_deadline_ms is not None)

    # -- private ---------------------------------------------------------------------------------

    def _enter(self, trigger: Trigger, role: Role, election: ElectionState, now_ms: int) -> None:
        rule = rule_for(self.role, trigger)
        assert type(role) in rule.targets, (type(self.role).__name__, trigger, role)
        raised = election.leader_epoch - self.epoch
        match rule.epoch:
            case EpochStep.STAYS:
                assert raised == 0, (trigger, self.epoch, election)
            case EpochStep.RISES:
                assert raised == 1, (trigger, self.epoch, election)
            case EpochStep.TAKEN:
                assert raised >= 0, (trigger, self.epoch, election)
        before = (self.leader_id, self.epoch)
        self._leave()
        self.role, self.trigger = role, trigger
        self._measure(role, now_ms)
        if election != self.election:
            self._persist(election)
        self.election = election
        if isinstance(role, Leader | Follower) or before != (self.leader_id, self.epoch):
            self.effects.append(LeaderChanged(self.leader_id, self.epoch))

    def _measure(self, role: Role, now_ms: int) -> None:
        """Time the search for a leader."""
        assert now_ms >= 0, now_ms
        if isinstance(role, Prospective | Candidate):
            self.metrics.began_election(now_ms)
        elif isinstance(role, Leader | Follower):
            self.metrics.found_leader(now_ms)

    def _leave(self) -> None:
        """Drop the state of the current role."""
        self.peers.forget_all()
        if isinstance(self.role, Follower) and self.role.transfer is not None:
            self.left_transfer = self.role.transfer
        if isinstance(self.role, Leader):
            self.metrics.appends.clear()
            self.effects.append(LeadershipEnded(self.epoch))
            assert self.abandoned_change is None, self.abandoned_change
            self.abandoned_change = self.role.pending_change

    def _persist(self, election: ElectionState) -> None:
        is_static = self.voters.kraft_version == 0
        voters = tuple(self.voters.latest.nodes) if is_static else ()
        assert election.leader_epoch >= 0, election
        stored = replace(election, static_voters=voters)
        self.effects.append(PersistElectionState(stored, 0 if is_static else 1))

    def _election_at(self, epoch: LeaderEpoch, leader_id: ReplicaId) -> ElectionState:
        """Return the state with a leader; a vote of the same epoch is kept, so none follows it."""
        assert epoch >= self.epoch, (epoch, self.epoch)
        if epoch > self.epoch:
            return ElectionState(epoch, leader_id)
        return replace(self.election, leader_id=leader_id)

    def _deadline_when_unattached(self, trigger: Trigger, now_ms: int) -> int | None:
        """Return when to campaign; a replica that waits for an election keeps its deadline."""
        assert trigger is not Trigger.VOTE_GRANTED, "the timeout is drawn again"
        if not self.is_voter:
            return None
        waits = isinstance(self.role, Unattached | Prospective | Candidate | Resigned)
        if waits and trigger is not Trigger.PRE_VOTE_LOST:
            assert not isinstance(self.role, Leader | Follower)
            if self.role.election_deadline_ms is not None:
                return self.role.election_deadline_ms
        return now_ms + self._draw_election_timeout_ms()

    def _draw_election_timeout_ms(self) -> int:
        drawn = self.config.timing.draw_election_timeout_ms(self.random_source)
        assert drawn > 0, drawn
        return drawn

    def _candidate(self, now_ms: int) -> Candidate:
        deadline_ms = now_ms + self._draw_election_timeout_ms()
        assert self.is_voter, self.config.key
        return Candidate(deadline_ms, {self.config.key.id: True})

    def _first_role(self, now_ms: int) -> Role:
        election, key = self.election, self.config.key
        deadline_ms = now_ms + self._draw_election_timeout_ms()
        if election.leader_id == key.id:
            return Resigned(deadline_ms, [])
        voted = (election.voted_id, election.voted_directory_id)
        is_own_vote = election.voted_id == key.id and self.is_me(*voted)
        if is_own_vote and self.is_voter and election.leader_id == NO_REPLICA:
            return self._candidate(now_ms)
        endpoints = self.endpoints_of_leader()
        if election.leader_id != NO_REPLICA and self.config.listener in endpoints:
            fetch_deadline_ms = now_ms + self.config.timing.fetch_timeout_ms
            return Follower(endpoints, fetch_deadline_ms, now_ms)
        assert election.leader_id != key.id, election
        return Unattached(deadline_ms if self.is_voter else None)
