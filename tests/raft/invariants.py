"""What must never happen, judged from outside after every event (ids: docs/SIMULATION.md).

The ledger is the judge's own memory: who led, who voted for whom, which batch stands at which
epoch and offset, what is committed and what was acknowledged. It looks at disks and effects and
recomputes what it can in the most obvious way.
"""

from __future__ import annotations

from collections import Counter

from kraft_wire.model import NO_REPLICA, ReplicaKey
from kraft_wire.raft.effects import (
    AppendControlRecords,
    AppendFetched,
    AppendRecords,
    AppendSnapshotChunk,
    Effect,
    HighWatermarkAdvanced,
    InstallSnapshot,
    LeaderChanged,
    LeadershipEstablished,
    PersistElectionState,
    Reply,
    ReplyWithRecords,
    ReplyWithSnapshotSlice,
    SendRequest,
    TruncateLog,
)
from kraft_wire.raft.events import (
    ControlRecord,
    Event,
    RequestReceived,
    ResignRequested,
    ShutdownRequested,
)
from kraft_wire.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Role
from kraft_wire.raft.voters import VoterSet
from kraft_wire.wire.generated.begin_quorum_epoch import BeginQuorumEpochRequest
from kraft_wire.wire.generated.end_quorum_epoch import EndQuorumEpochRequest
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.fetch_snapshot import FetchSnapshotRequest
from kraft_wire.wire.generated.leader_change_message import LeaderChangeMessage
from kraft_wire.wire.generated.update_raft_voter import UpdateRaftVoterRequest
from kraft_wire.wire.generated.vote import PartitionData as AskedVote
from kraft_wire.wire.generated.vote import ResponsePartitionData as VoteAnswer
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.generated.voters_record import VotersRecord
from tests.raft.cluster import Cluster, Host, Judge
from tests.raft.memory import Batch, Snapshot, applied, control_records


class Broken(AssertionError):
    """An invariant does not hold; the first word is its id."""


def check(condition: bool, name: str, *facts: object) -> None:
    if not condition:
        raise Broken(f"{name} {facts}")


class Ledger(Judge):
    """All invariants over one memory; `seen` counts how often each was looked at."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.leaders: dict[int, int] = {}
        self.named: dict[int, int] = {}
        self.durable_epochs: dict[ReplicaKey, int] = {}
        self.votes: dict[tuple[int, ReplicaKey], tuple[int, bytes]] = {}
        self.granted: dict[tuple[int, ReplicaKey], tuple[int, bytes]] = {}
        """Candidates that answers granted a vote: id and directory."""
        self.asked: dict[object, VoteRequest] = {}
        """Vote requests that a replica works on."""
        self.batches: dict[tuple[int, int], tuple[int, int]] = {}
        self.committed: list[Batch] = []
        self.committed_ends: list[int] = []
        self.states: dict[int, tuple[int, int]] = {0: (0, 0)}
        """Committed offset -> (epoch of the record before it, state there)."""
        self.watermarks: dict[tuple[int, int], int] = {}

    @property
    def committed_end(self) -> int:
        return self.committed_ends[-1] if self.committed_ends else 0

    # -- after an event --------------------------------------------------------------------------

    def after(self, host: Host) -> None:
        if host.replica is None:
            return
        quorum = host.replica.quorum
        role, epoch = quorum.role, quorum.epoch
        self._one_leader(host, isinstance(role, Leader))
        stored = host.disk.election
        check(stored is not None and stored.leader_epoch == epoch, "S02 durable", host.id, epoch)
        if isinstance(role, Leader):
            self._leads_rightly(host, role)
        self._watermark(host)
        self._voters_in_force(host)
        start = host.disk.log.log_start_offset
        reaches = any(one.offset >= start for one in host.disk.snapshots.kept)
        check(start == 0 or reaches, "S14 SnapshotAtLogStart", host.id, start)
        if isinstance(role, Candidate | Prospective):
            is_voter = quorum.voters.latest.is_voter(host.key)
            check(is_voter, "S17 OnlyVotersCount", host.id, role)

    def _one_leader(self, host: Host, leads: bool) -> None:
        quorum = host.quorum().quorum
        epoch = quorum.epoch
        if quorum.leader_id != NO_REPLICA:
            named = self.named.setdefault(epoch, quorum.leader_id)
            check(named == quorum.leader_id, "S01 SingleLeaderPerEpoch named", host.id, epoch)
        if leads and self.leaders.get(epoch) is None:
            self.leaders[epoch] = host.id
            self._complete_and_elected(host, epoch)
        check(not leads or self.leaders[epoch] == host.id, "S01 SingleLeaderPerEpoch", epoch)

    def _complete_and_elected(self, host: Host, epoch: int) -> None:
        log, end = host.disk.log, self.committed_end
        check(log.log_end_offset >= end, "S06 LeaderCompleteness", host.id, epoch, end)
        if self.committed and end > log.log_start_offset:
            last = self.committed[-1]
            check(log.batch_at(end - 1) is last, "S06 LeaderCompleteness", host.id, epoch)
        voters = host.quorum().quorum.voters
        # The set it was elected by: a first batch of its own may have replaced descriptions only.
        members = [node.key for node in voters.latest.nodes.values()]
        votes = [key for key in members if self._voted_for(epoch, key, host.key)]
        check(2 * len(votes) > len(members), "S17 elected by voters", epoch, votes, members)

    def _voted_for(self, epoch: int, voter: ReplicaKey, leader: ReplicaKey) -> bool:
        for (at, key), (candidate, directory) in self.votes.items():
            same = key.id == voter.id and voter.directory_id in (bytes(16), key.directory_id)
            if at == epoch and same and candidate == leader.id:
                return directory in (bytes(16), leader.directory_id)
        return False

    def _watermark(self, host: Host) -> None:
        at = (host.id, host.incarnation)
        high_watermark = host.quorum().quorum.high_watermark
        known = self.watermarks.get(at)
        check(known is None or high_watermark is not None, "S04 MonotoneHighWatermark", at)
        if high_watermark is None:
            return
        check(known is None or high_watermark >= known, "S04 MonotoneHighWatermark", at)
        self.watermarks[at] = high_watermark
        end = host.disk.log.log_end_offset
        check(high_watermark <= end, "S04 beyond the log", host.id, high_watermark, end)
        check(high_watermark <= self.committed_end, "S26 CommittedReadOnly", at, high_watermark)
        self._as_committed(host, known or 0, high_watermark)

    def _as_committed(self, host: Host, low: int, high: int) -> None:
        """What a node calls committed is what the ledger has there."""
        log = host.disk.log
        if high > max(low, log.log_start_offset):
            batch = log.batch_at(high - 1)
            entry = self._entry(high - 1)
            check(batch is entry, "S09 CommittedIsForever", host.id, high, batch, entry)
        if host.applied_offset in self.states:
            state = self.states[host.applied_offset][1]
            check(host.state == state, "S16 StateMachineEquality", host.id, host.applied_offset)

    def _entry(self, offset: int) -> Batch | None:
        low, high = 0, len(self.committed)
        while low < high:
            middle = (low + high) // 2
            if self.committed_ends[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        return self.committed[low] if low < len(self.committed) else None

    def _voters_in_force(self, host: Host) -> None:
        """The dumb twin of the history: the last record on disk that says something."""
        voters, level = self.cluster.static or VoterSet({}), 0
        for record in host.disk.controls():
            if isinstance(record.message, VotersRecord):
                voters = VoterSet.from_record(record.message)
            else:
                level = record.message.kraft_version  # type: ignore[attr-defined]  # the other one
        history = host.quorum().quorum.voters
        check(history.latest == voters, "S18 set in force", host.id, history.latest, voters)
        check(history.kraft_version == level, "S18 level in force", host.id, level)

    def _leads_rightly(self, host: Host, role: Leader) -> None:
        start, reached = role.epoch_start_offset, role.high_watermark
        quorum = host.quorum().quorum
        first = host.disk.log.batch_at(start)
        if first is not None:
            is_change = first.controls and isinstance(first.controls[0], LeaderChangeMessage)
            is_first = first.base_offset == start and first.epoch == quorum.epoch
            check(bool(is_change) and is_first, "S19 LeaderChangeFirst", host.id, first)
        if reached is None:
            return
        check(reached > start, "S19 own epoch first", host.id, reached, start)
        check(reached <= self.committed_end, "S05 not announced", host.id, reached)
        changes = [
            record.offset
            for batch in host.disk.log.batches[-20:]
            for record in self._set_changes(batch)
            if record.offset >= reached
        ]
        check(len(changes) <= 1, "S18 OneVoterChange", host.id, changes, reached)

    @staticmethod
    def _set_changes(batch: Batch) -> list[ControlRecord]:
        """Changes of membership; what stands beside a LeaderChange only describes it anew."""
        is_lone = len(batch.controls) == 1
        return [one for one in control_records(batch) if is_lone]

    def _on_majority(self, host: Host, reached: int) -> None:
        """Whoever is the first to call something committed must be right about it."""
        last = host.disk.log.batch_at(reached - 1)
        members = host.quorum().quorum.voters.latest
        holding = [
            node.key
            for node in members.nodes.values()
            if self._holds(self.cluster.hosts.get(node.key.id), node.key, reached, last)
        ]
        check(2 * len(holding) > len(members), "S05 CommittedOnMajority", reached, holding)
        self._commit(host, reached)

    @staticmethod
    def _holds(host: Host | None, key: ReplicaKey, end: int, last: Batch | None) -> bool:
        if host is None:
            return False
        if key.directory_id not in (bytes(16), host.key.directory_id):
            return True  # its disk was lost since it acknowledged: no promise covers that
        log = host.disk.log
        if log.flushed < end:
            return False
        return log.log_start_offset >= end or log.batch_at(end - 1) is last

    def _commit(self, host: Host, end: int) -> None:
        while self.committed_end < end:
            batch = host.disk.log.batch_at(self.committed_end)
            check(batch is not None, "S09 a leader lacks committed records", host.id, end)
            assert batch is not None
            check(batch.base_offset == self.committed_end, "S11 BatchAtomicity", batch)
            state = applied(self.states[self.committed_end][1], batch)
            self.committed.append(batch)
            self.committed_ends.append(batch.end_offset)
            self.states[batch.end_offset] = (batch.epoch, state)
        check(self.committed_end in self.states, "S13 offsets", end)

    # -- before an effect ------------------------------------------------------------------------

    def event(self, host: Host, event: Event) -> None:
        if isinstance(event, RequestReceived) and isinstance(event.request, VoteRequest):
            self.asked[event.reply_to] = event.request

    def effect(self, host: Host, effect: Effect) -> None:
        quorum = host.quorum().quorum
        match effect:
            case PersistElectionState():
                self._persisted(host, effect)
            case TruncateLog(end_offset):
                low = quorum.high_watermark or 0
                check(end_offset >= low, "S08 NoTruncateBelowHighWatermark", end_offset, low)
            case InstallSnapshot(snapshot_id):
                check(not isinstance(quorum.role, Leader), "S15 LeaderNeverLoadsSnapshot")
                low = quorum.high_watermark or 0
                check(snapshot_id.offset >= low, "S08 snapshot", host.id, snapshot_id, low)
            case AppendRecords(_, base_offset, epoch) | AppendControlRecords(base_offset, epoch):
                end = host.disk.log.log_end_offset
                check(base_offset == end, "S12 OffsetContiguity", host.id, base_offset, end)
                check(epoch == quorum.epoch, "S27 StaleIsFenced", host.id, epoch)
            case SendRequest():
                self._sent(host, effect)
            case Reply() | ReplyWithRecords():
                self._replied(host, effect)
            case HighWatermarkAdvanced(high_watermark):
                known = self.watermarks.get((host.id, host.incarnation), -1)
                check(high_watermark > known, "S04 announced", host.id, high_watermark, known)
                end = host.disk.log.log_end_offset
                check(high_watermark <= end, "S04 beyond the log", host.id, high_watermark, end)
                if high_watermark > self.committed_end:
                    self._on_majority(host, high_watermark)
            case LeadershipEstablished(epoch, start):
                reached = quorum.high_watermark
                check(reached is not None and reached > start, "S26 leadership", epoch, start)

    def _persisted(self, host: Host, effect: PersistElectionState) -> None:
        state = effect.election
        known = self.durable_epochs.get(host.key, 0)
        check(state.leader_epoch >= known, "S02 EpochMonotone", host.id, known, state)
        self.durable_epochs[host.key] = state.leader_epoch
        if state.voted_id != NO_REPLICA:
            vote = (state.voted_id, state.voted_directory_id)
            counts = self.votes.setdefault((state.leader_epoch, host.key), vote)
            check(counts == vote, "S03 OneVotePerEpoch", host.id, counts, state)

    def _sent(self, host: Host, effect: SendRequest) -> None:
        stored = host.disk.election
        assert stored is not None
        match effect.request:
            case VoteRequest() as request:
                epoch = request.topics[0].partitions[0].replica_epoch
                if not request.topics[0].partitions[0].pre_vote:
                    own = stored.voted_id == host.id and stored.leader_epoch == epoch
                    check(own, "S03 votes for itself first", host.id, stored)
            case BeginQuorumEpochRequest() | EndQuorumEpochRequest() as request:
                epoch = request.topics[0].partitions[0].leader_epoch
                check(stored.leader_id == host.id, "S02 leads durably", host.id, stored)
            case FetchRequest() as request:
                partition = request.topics[0].partitions[0]
                epoch, offset = partition.current_leader_epoch, partition.fetch_offset
                flushed = host.disk.log.flushed
                is_flushed = not host.is_controller or offset <= flushed
                check(is_flushed, "S20 FetchIsFlushed", host.id, offset, flushed)
            case _:
                return
        check(epoch <= stored.leader_epoch, "S02 sent", host.id, epoch, stored)

    def _replied(self, host: Host, effect: Reply | ReplyWithRecords) -> None:
        stored = host.disk.election
        assert stored is not None
        response = effect.response
        if isinstance(response, VoteResponse) and response.topics:
            answer = response.topics[0].partitions[0]
            check(answer.leader_epoch <= stored.leader_epoch, "S02 answered", host.id, stored)
            asked = self.asked.pop(effect.reply_to).topics[0].partitions[0]
            if answer.vote_granted and not asked.pre_vote:
                self._granted(host, asked)

    def _granted(self, host: Host, asked: AskedVote) -> None:
        """An answer grants a vote: durable by now, and never granted to anybody else."""
        key = (asked.replica_epoch, host.key)
        candidate = (asked.replica_id, asked.replica_directory_id)
        for known in (self.votes.get(key), self.granted.setdefault(key, candidate)):
            check(known is not None, "S03 OneVotePerEpoch not durable", host.id, candidate)
            assert known is not None
            is_same = known[0] == candidate[0] and known[1] in (bytes(16), candidate[1])
            check(is_same, "S03 OneVotePerEpoch granted", host.id, known, candidate)

    # -- logs and snapshots ----------------------------------------------------------------------

    def append(self, host: Host, batch: Batch) -> None:
        log = host.disk.log
        check(batch.base_offset == log.log_end_offset, "S12 OffsetContiguity", host.id, batch)
        check(batch.epoch >= log.last_epoch, "S12 epochs grow", host.id, batch)
        place = (batch.epoch, batch.base_offset)
        before = int(log.last_epoch)
        known = self.batches.setdefault(place, (batch.number, before))
        check(known == (batch.number, before), "S07 LogMatching", host.id, place, known)

    def snapshot(self, snapshot: Snapshot) -> None:
        offset = snapshot.snapshot_id.offset
        known = self.states.get(offset)
        expected = (snapshot.snapshot_id.epoch, snapshot.state)
        check(known == expected, "S13 SnapshotIsReplay", snapshot.snapshot_id, known, expected)


class Patience(Judge):
    """Each request gets one answer in time (L6). A leader without followers resigns (L7)."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.parked: dict[tuple[int, int], dict[object, int]] = {}
        """By node and incarnation: requests without an answer, and until when one is due."""
        self.leading: dict[tuple[int, int], tuple[int, VoterSet, dict[int, int]]] = {}
        """By node and epoch: since when with this voter set, and when each voter was heard."""
        self.resigns: dict[tuple[int, int], bool] = {}
        """Leaderships that somebody asked to end."""
        self.unanswered: Counter[tuple[int, int, object]] = Counter()
        """By node and incarnation: how often each request came without an answer yet."""

    def event(self, host: Host, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self.unanswered[host.id, host.incarnation, event.reply_to] += 1
        match event:
            case RequestReceived(reply_to, FetchRequest() as request):
                waits_ms = max(0, request.max_wait_ms)
                self._parked(host)[reply_to] = self.cluster.now_ms + waits_ms
                self._hears(host, self._sender(request))
            case RequestReceived(_, FetchSnapshotRequest(replica_id=sender)):
                self._hears(host, sender)
            case RequestReceived(_, UpdateRaftVoterRequest(voter_id=sender)):
                self._hears(host, sender)
            case ResignRequested() | ShutdownRequested():
                self.resigns[host.id, host.quorum().quorum.epoch] = True
            case _:
                pass

    @staticmethod
    def _sender(request: FetchRequest) -> int:
        state = request.replica_state
        return state.replica_id if state is not None else request.replica_id

    def _parked(self, host: Host) -> dict[object, int]:
        return self.parked.setdefault((host.id, host.incarnation), {})

    def _hears(self, host: Host, sender: int) -> None:
        known = self.leading.get((host.id, host.quorum().quorum.epoch))
        if known is not None:
            known[2][sender] = self.cluster.now_ms

    def effect(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, Reply | ReplyWithRecords | ReplyWithSnapshotSlice):
            self._parked(host).pop(effect.reply_to, None)
            request = (host.id, host.incarnation, effect.reply_to)
            check(self.unanswered[request] > 0, "L6 answered once", host.id, effect.response)
            self.unanswered[request] -= 1

    def after(self, host: Host) -> None:
        if host.replica is not None:
            self._ended(host)
        for other in self.cluster.hosts.values():
            if other.replica is not None and isinstance(other.replica.quorum.role, Leader):
                self._leads_in_time(other)

    def _ended(self, host: Host) -> None:
        """Who does not lead has answered everybody; a leader without peers goes on for ever."""
        quorum = host.quorum().quorum
        leads = isinstance(quorum.role, Leader)
        parked = self._parked(host)
        check(leads or not parked, "L6 ParkedRequestsEnd with the leadership", host.id, parked)
        at = (host.id, int(quorum.epoch))
        if leads or at not in self.leading:
            return
        _, voters, _ = self.leading.pop(at)
        is_alone = len(voters) == 1 and voters.is_voter(host.key) and quorum.is_only_voter
        gave_up = isinstance(quorum.role, Resigned) and at not in self.resigns
        check(not (is_alone and gave_up), "L7 a sole voter resigned", host.id, at)

    def _leads_in_time(self, host: Host) -> None:
        now_ms, quorum = self.cluster.now_ms, host.quorum().quorum
        late = [until_ms for until_ms in self._parked(host).values() if until_ms < now_ms]
        check(not late, "L6 ParkedRequestsEnd in time", host.id, late, now_ms)
        at, voters = (host.id, int(quorum.epoch)), quorum.voters.latest
        since_ms, known, heard = self.leading.setdefault(at, (now_ms, voters, {}))
        if list(known.nodes) != list(voters.nodes):
            since_ms = now_ms  # another majority counts from here on
            self.leading[at] = (since_ms, voters, heard)
        needed = voters.majority() - voters.is_voter(host.key)
        if needed == 0:
            return
        others = [heard.get(voter, 0) for voter in voters.nodes if voter != host.id]
        majority_ms = max(since_ms, sorted(others, reverse=True)[needed - 1])
        # One period may pass before the one begins in which nobody is heard.
        bound_ms = majority_ms + 2 * quorum.config.timing.check_quorum_timeout_ms
        check(now_ms <= bound_ms, "L7 StaleLeaderResigns", host.id, at, majority_ms, now_ms)


class NamedLeaders(Judge):
    """S01: a host is told which leader its replica follows, at every start too."""

    def __init__(self) -> None:
        self.told: dict[tuple[int, int], tuple[int, int]] = {}
        """By node and incarnation: leader and epoch."""

    def effect(self, host: Host, effect: Effect) -> None:
        if isinstance(effect, LeaderChanged):
            self.told[host.id, host.incarnation] = (effect.leader_id, effect.leader_epoch)

    def after(self, host: Host) -> None:
        if host.replica is not None and isinstance(host.replica.quorum.role, Leader | Follower):
            quorum, told = host.replica.quorum, self.told.get((host.id, host.incarnation))
            known = (quorum.leader_id, quorum.epoch)
            check(told == known, "S01 SingleLeaderPerEpoch told", host.id, told, known)


class FetchTimeouts(Judge):
    """L5: a follower loses faith in its leader after a fetch timeout or EndQuorumEpoch, not before.

    An effect that takes in records or a chunk proves that an answer was good. Until the timeout has
    passed since then, the replica neither campaigns nor grants pre-votes. After EndQuorumEpoch it
    grants them to every log that is as good as its own: what comes of that leader afterwards was
    sent before, and proves nothing.
    """

    def __init__(self) -> None:
        self.roles: dict[tuple[int, int], Role] = {}
        """By node and incarnation: the role after the newest event."""
        self.heard: dict[tuple[int, int], tuple[Follower, int]] = {}
        """The follower's stay in which a good answer came last, and when."""
        self.ended: dict[tuple[int, int], tuple[int, int]] = {}
        """The newest epoch that its leader ended, and that leader."""
        self.asked: dict[object, VoteRequest] = {}

    def event(self, host: Host, event: Event) -> None:
        at, quorum = (host.id, host.incarnation), host.quorum().quorum
        match event:
            case RequestReceived(_, EndQuorumEpochRequest() as request) if request.topics:
                ended = request.topics[0].partitions[0]
                is_known = ended.leader_epoch == quorum.epoch and quorum.leader_id >= 0
                if ended.leader_epoch >= quorum.epoch and (
                    not is_known or ended.leader_id == quorum.leader_id
                ):
                    self.ended[at] = (ended.leader_epoch, ended.leader_id)
            case RequestReceived(reply_to, VoteRequest() as request):
                self.asked[reply_to] = request
            case _:
                pass

    def _has_ended(self, host: Host) -> bool:
        quorum = host.quorum().quorum
        return self.ended.get((host.id, host.incarnation)) == (quorum.epoch, quorum.leader_id)

    def effect(self, host: Host, effect: Effect) -> None:
        at, role = (host.id, host.incarnation), host.quorum().quorum.role
        if isinstance(effect, AppendFetched | AppendSnapshotChunk) and isinstance(role, Follower):
            self.heard[at] = (role, host.cluster.now_ms)
        elif isinstance(effect, Reply) and isinstance(effect.response, VoteResponse):
            request = self.asked.pop(effect.reply_to)
            if isinstance(role, Follower) and effect.response.topics:
                answer = effect.response.topics[0].partitions[0]
                self._answered(host, role, request.topics[0].partitions[0], answer)

    def _answered(self, host: Host, role: Follower, asked: AskedVote, answer: VoteAnswer) -> None:
        if answer.error_code != 0 or not asked.pre_vote:
            return
        log = host.disk.log
        own, theirs = (
            (log.last_epoch, log.log_end_offset),
            (asked.last_offset_epoch, asked.last_offset),
        )
        if answer.vote_granted:
            check(not self._believes(host, role), "L5 pre-vote against a leader", host.id, asked)
            check(theirs >= own, "L5 pre-vote for a worse log", host.id, asked, own)
        elif self._has_ended(host):
            check(theirs < own, "L5 no pre-vote after EndQuorumEpoch", host.id, asked, own)

    def _believes(self, host: Host, role: Role | None) -> bool:
        """Tell whether a good answer came in this stay of a follower, within the timeout.

        A step may take a follower to a newer epoch, and out of that one at once.
        """
        if self._has_ended(host):
            return False
        known, heard_ms = self.heard.get((host.id, host.incarnation), (None, 0))
        timeout_ms = host.cluster.setup.timing.fetch_timeout_ms
        return known is role and role is not None and host.cluster.now_ms < heard_ms + timeout_ms

    def after(self, host: Host) -> None:
        if host.replica is None:
            return
        at, role = (host.id, host.incarnation), host.replica.quorum.role
        before, self.roles[at] = self.roles.get(at), role
        if isinstance(role, Prospective) and isinstance(before, Follower):
            is_early = self._believes(host, before) and not host.quorum().quorum.is_only_voter
            check(not is_early, "L5 campaigns against a leader that answers", host.id, role)


class Canary(Judge):
    """False by design: nobody ever commits anything. It must be caught in every run."""

    def after(self, host: Host) -> None:
        if host.replica is not None:
            high_watermark = host.replica.quorum.high_watermark
            check(high_watermark is None, "S00 Canary", host.id, high_watermark)
