"""The safety invariants that a metadata quorum must keep, one small class each.

docs/SIMULATION.md explains the ids. Not here, because they speak of data
partitions: S21, S22, S23 and S30; of start-up on damaged disks: S29, which the crash campaign
judges, and which shows here as S28 where a node neither starts nor says why. L1 to L6 are in
`run`, S10 and the histories of clients in `history`.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from kraft_wire.metadata.image_records import snapshot_values
from kraft_wire.model import NO_REPLICA, ZERO_UUID, ReplicaKey, uuid_to_text
from kraft_wire.raft.roles import Candidate, Leader, Prospective, Role
from kraft_wire.raft.voters import VoterSet
from kraft_wire.sim.decision_invariants import DECISIONS
from kraft_wire.sim.judge import Judge, NodeWatch, Signals
from kraft_wire.sim.ledger import Register, changes_of
from kraft_wire.sim.log_watch import Election, LogWatch, SeenBatch, SeenSnapshot, newest_voters
from kraft_wire.sim.model_invariant import EveryStepIsInModel, StepsAreInModel
from kraft_wire.sim.upkeep_invariants import UPKEEP
from kraft_wire.wire.control_records import ControlRecordType
from kraft_wire.wire.generated.begin_quorum_epoch import BeginQuorumEpochRequest
from kraft_wire.wire.generated.end_quorum_epoch import EndQuorumEpochRequest
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.vote import PartitionData as AskedVote
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.message import Message

__all__ = ["SAFETY", "Canary", "kinds_of"]

_CONNECTIONS_MAX: Final = 200
_SLACK_US: Final = 200_000
_IMAGE_EVERY: Final = 16
_NO_DIRECTORY: Final = uuid_to_text(ZERO_UUID)


class StaleLeaderResigns(Signals):
    """A leader that no majority speaks to any more resigns within two check-quorum times."""

    id, name = "L7", "StaleLeaderResigns"

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        watch.machine.heard_us = watch.machine.world.now_us

    def after(self, watch: NodeWatch) -> None:
        voters, machine = watch.voters, watch.machine
        world = machine.world
        if voters is None or len(voters.nodes) < 2:
            machine.heard_us = world.now_us  # the first period begins with the one who joins
            return
        if not isinstance(watch.role, Leader):
            return
        rate = machine.clock.rate_permille
        period_us = machine.setup.fetch_timeout_ms * 1_500_000 // rate
        others = [node for node in voters.nodes if node != watch.id]
        needed = len(voters.nodes) // 2 + 1 - (watch.id in voters.nodes)
        heard = sorted((machine.heard.get(node, 0) for node in others), reverse=True)
        silent_us = world.now_us - max(machine.heard_us, heard[needed - 1])
        bound_us = 2 * period_us + world.late_us_max + _SLACK_US
        self._check(silent_us <= bound_us, watch, "leads, heard no majority for", silent_us)


class SingleLeaderPerEpoch(Signals):
    """In one epoch at most one replica leads, and all that name a leader name the same.

    Turned bits can name anybody, and nothing on the wire tells: then only who leads is judged.
    """

    id, name = "S01", "SingleLeaderPerEpoch"

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        if watch.leader_id != NO_REPLICA and not watch.machine.world.is_garbled:
            named = self.ledger.named.setdefault(watch.epoch, watch.leader_id)
            self._check(named == watch.leader_id, watch, watch.epoch, named, watch.leader_id)
        if isinstance(watch.role, Leader):
            own = (watch.id, watch.machine.directory_id)
            leader = self.ledger.leaders.setdefault(watch.epoch, own)
            self._check(leader == own, watch, watch.epoch, leader)


class EpochMonotone(Signals):
    """A durable epoch never falls; no message carries an epoch above the durable one."""

    id, name = "S02", "EpochMonotone"

    def election(self, watch: NodeWatch, before: Election | None, now: Election) -> None:
        self._check(before is None or now.epoch >= before.epoch, watch, before, now)

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        stored = watch.log.election
        self._check(stored is not None and stored.epoch == watch.epoch, watch, stored, watch.epoch)

    def sent(self, watch: NodeWatch, message: Message, target: int) -> None:
        epoch = _epoch_of(message)
        stored = watch.log.election
        if epoch is not None:
            self._check(stored is not None and epoch <= stored.epoch, watch, epoch, stored)
        if isinstance(message, BeginQuorumEpochRequest | EndQuorumEpochRequest):
            # One of an older epoch may have waited for its link; its receiver fences it.
            leads = stored is not None and (epoch != stored.epoch or stored.leader_id == watch.id)
            self._check(leads, watch, "speaks as leader", stored)


class OneVotePerEpoch(Signals):
    """A replica votes for one candidate (id and directory) in an epoch, durably before it says so.

    Answers are judged too: a vote that is granted again leaves no trace on the disk. A candidate
    that names no directory, as before KIP-853, is known by its id. Pre-votes are not recorded.
    """

    id, name = "S03", "OneVotePerEpoch"

    def election(self, watch: NodeWatch, before: Election | None, now: Election) -> None:
        if now.voted_id != NO_REPLICA:
            key = (now.epoch, watch.id, watch.machine.directory_id)
            vote = (now.voted_id, now.voted_directory)
            given = self.ledger.votes.setdefault(key, vote)
            self._check(given == vote, watch, now.epoch, given, vote)

    def sent(self, watch: NodeWatch, message: Message, target: int) -> None:
        if isinstance(message, VoteRequest):
            asked = message.topics[0].partitions[0]
            stored = watch.log.election
            if stored is not None and not asked.pre_vote and asked.replica_epoch == stored.epoch:
                self._check(stored.voted_id == watch.id, watch, "asks before its own vote", stored)
        elif isinstance(message, VoteResponse) and message.topics and watch.vote_asked is not None:
            asked = watch.vote_asked.topics[0].partitions[0]
            answer = message.topics[0].partitions[0]
            if answer.vote_granted and not asked.pre_vote:
                self._check(answer.leader_epoch == asked.replica_epoch, watch, asked, answer)
                self._granted(watch, asked)

    def _granted(self, watch: NodeWatch, asked: AskedVote) -> None:
        key = (asked.replica_epoch, watch.id, watch.machine.directory_id)
        candidate = (asked.replica_id, uuid_to_text(asked.replica_directory_id))
        given = self.ledger.granted.setdefault(key, candidate)
        self._check(_is_same_candidate(given, candidate), watch, "grants", key, given, candidate)
        stored = self.ledger.votes.get(key)
        is_durable = stored is not None and _is_same_candidate(stored, candidate)
        self._check(is_durable, watch, "votes for", candidate, "on its disk is", stored)


class MonotoneHighWatermark(Signals):
    """The high watermark never falls, and stays within the log."""

    id, name = "S04", "MonotoneHighWatermark"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        self._check(before is None or (now is not None and now >= before), watch, before, now)
        if now is not None:
            self._check(now <= watch.log.end_offset, watch, now, watch.log.end_offset)


class CommittedOnMajority(Signals):
    """What a leader calls committed is durable on a majority of the voters in force."""

    id, name = "S05", "CommittedOnMajority"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        if now is None or now <= self.ledger.committed_end or not watch.has_led:
            return
        quorum = watch.quorum
        last = watch.log.batch_before(now)
        members = [node.key for node in quorum.voters.latest.nodes.values()]
        holding = [key.id for key in members if self._holds(key, now, last)]
        self._check(2 * len(holding) > len(members), watch, now, holding, "of", members)

    def _holds(self, key: ReplicaKey, end: int, last: SeenBatch | None) -> bool:
        log = self._log_of(key)
        if log is None or log.durable_end < end:
            return False
        if log.start_offset >= end:
            return True
        own = log.batch_before(end)
        return own is not None and last is not None and own.identity == last.identity

    def _log_of(self, key: ReplicaKey) -> LogWatch | None:
        watch = self.judge.watches.get(key.id)
        if watch is None:
            return None
        if key.directory_id in (ZERO_UUID, watch.machine.directory_id):
            return watch.log
        return self.judge.lost_disks.get((key.id, key.directory_id))


class LeaderCompleteness(Signals):
    """The leader of an epoch has every record that was committed before it was elected."""

    id, name = "S06", "LeaderCompleteness"

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        if not isinstance(watch.role, Leader) or watch.role is before:
            return
        # One that was stopped as a candidate may still win its old epoch, behind the others' backs.
        end = self.ledger.end_before(watch.epoch)
        self._check(watch.log.end_offset >= end, watch, watch.log.end_offset, end)
        if end > watch.log.start_offset:
            own, committed = watch.log.batch_before(end), self.ledger.batch_before(end)
            assert committed is not None, end
            self._check(own is not None and own.identity == committed.identity, watch, end)


class LogMatching(Signals):
    """Equal epoch and offset on two disks mean equal bytes there and before it."""

    id, name = "S07", "LogMatching"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        place = (batch.epoch, batch.base_offset)
        is_first = before is None
        known = self.ledger.placed.get(place)
        if known is None:
            self.ledger.placed[place] = (batch.crc, -1 if before is None else before.epoch)
            return
        same_before = is_first or known[1] == -1 or before is None or known[1] == before.epoch
        self._check(known[0] == batch.crc and same_before, watch, place, known, batch.crc)


class NoTruncateBelowHighWatermark(Signals):
    """Nothing that a node knows to be committed is cut from its log."""

    id, name = "S08", "NoTruncateBelowHighWatermark"

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        low = watch.high_watermark or 0
        self._check(offset >= low, watch, offset, "below", low, "anew" if is_reset else "")


class CommittedIsForever(Signals):
    """No node calls anything committed but what was committed there first."""

    id, name = "S09", "CommittedIsForever"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        if now is None or now <= watch.log.start_offset or now > self.ledger.committed_end:
            return
        own, committed = watch.log.batch_before(now), self.ledger.batch_before(now)
        same = own is not None and committed is not None and own.identity == committed.identity
        self._check(same, watch, now, own and own.identity, committed and committed.identity)


class BatchAtomicity(Signals):
    """After a start the log holds whole batches with valid checksums and nothing else."""

    id, name = "S11", "BatchAtomicity"

    def started(self, watch: NodeWatch) -> None:
        left = watch.log.unread_bytes
        self._check(left == 0, watch, left, "bytes behind the last whole batch")


class OffsetContiguity(Signals):
    """Batches follow each other without a gap, and epochs never fall along the log."""

    id, name = "S12", "OffsetContiguity"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        end = watch.log.start_offset if before is None else before.end_offset
        self._check(batch.base_offset == end, watch, batch.identity, "at", end)
        if before is not None:
            self._check(batch.epoch >= before.epoch, watch, batch.identity, before.identity)


class SnapshotIsReplay(Signals):
    """A snapshot is named after a committed record, and holds what a replay up to it gives."""

    id, name = "S13", "SnapshotIsReplay"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._read: dict[bytes, dict[Register, str | None]] = {}

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        if snapshot.offset == 0:
            return
        before = self.ledger.batch_before(snapshot.offset)
        self._check(before is not None, watch, snapshot.offset, "is not committed")
        assert before is not None
        at_end = before.end_offset == snapshot.offset and before.epoch == snapshot.epoch
        self._check(at_end, watch, snapshot.offset, snapshot.epoch, before.identity)
        found = self._registers_in(snapshot)
        expected = self.ledger.registers_at(snapshot.offset)
        if found != expected:
            self._check(False, watch, snapshot.offset, _difference(found, expected))

    def _registers_in(self, snapshot: SeenSnapshot) -> dict[Register, str | None]:
        """Return what a snapshot's bytes say; equal bytes, on whatever disk, are read once."""
        found = self._read.get(snapshot.data)
        if found is None:
            found = {}
            for batch in snapshot.batches():
                for entry in changes_of(batch):
                    found[entry.register] = entry.value
            self._read[snapshot.data] = found
        return found


class SnapshotAtLogStart(Signals):
    """A log that does not begin at 0 begins within what a complete snapshot holds."""

    id, name = "S14", "SnapshotAtLogStart"

    def disk(self, watch: NodeWatch) -> None:
        start = watch.log.start_offset
        if start > 0:
            newest = max((offset for offset, _ in watch.log.snapshots), default=0)
            self._check(newest >= start, watch, "starts at", start, "newest snapshot", newest)


class LeaderNeverLoadsSnapshot(Signals):
    """A leader never replaces its log by a snapshot."""

    id, name = "S15", "LeaderNeverLoadsSnapshot"

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        node = watch.machine.node
        leads = node is not None and isinstance(watch.quorum.role, Leader)
        self._check(not (leads and is_reset), watch, offset)


class StateMachineEquality(Signals):
    """Two images at the same offset are equal."""

    id, name = "S16", "StateMachineEquality"

    def applied(self, watch: NodeWatch) -> None:
        offset = watch.applied_offset
        if offset % _IMAGE_EVERY and offset not in self.ledger.images:
            return
        digest = _digest(watch)
        known = self.ledger.images.setdefault(offset, digest)
        self._check(known == digest, watch, offset, known, digest)


class OnlyVotersCount(Signals):
    """Only members of the voter set campaign, and a leader was elected by a majority of it."""

    id, name = "S17", "OnlyVotersCount"

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        role, quorum = watch.role, watch.quorum
        if isinstance(role, Candidate | Prospective):
            self._check(quorum.is_voter, watch, "campaigns as an observer in epoch", watch.epoch)
        elif isinstance(role, Leader) and role is not before:
            members = [node.key for node in quorum.voters.latest.nodes.values()]
            own = ReplicaKey(quorum.config.key.id, quorum.config.key.directory_id)
            votes = [key for key in members if self._voted(watch.epoch, key, own)]
            facts = "leads epoch", watch.epoch, "by votes of", [key.id for key in votes], "of"
            self._check(2 * len(votes) > len(members), watch, *facts, [key.id for key in members])

    def _voted(self, epoch: int, voter: ReplicaKey, leader: ReplicaKey) -> bool:
        for (at, node_id, directory), (candidate, named) in self.ledger.votes.items():
            is_member = node_id == voter.id and voter.directory_id in (ZERO_UUID, directory)
            if at == epoch and is_member and candidate == leader.id:
                return named in ("", _NO_DIRECTORY, uuid_to_text(leader.directory_id))
        return False


class OneVoterChange(Signals):
    """A voter set applies from its append; at most one change is uncommitted at a time."""

    id, name = "S18", "OneVoterChange"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._due: dict[int, bool] = {}

    def after(self, watch: NodeWatch) -> None:
        """A disk whose control records changed must be obeyed when the event is over."""
        if self._due and self._due.pop(watch.id, False):
            self.voters(watch)

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        self._due[watch.id] = True

    def voters(self, watch: NodeWatch) -> None:
        expected, offset = voters_on_disk(self.judge, watch)
        facts = _difference_of_sets(watch.voters, expected)
        self._check(watch.voters == expected, watch, *facts, "at", offset)

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        if not batch.is_control:
            return
        self._due[watch.id] = True
        if not isinstance(watch.role, Leader):
            return
        reached = watch.high_watermark or 0
        changes = [
            one.base_offset
            for one in reversed(watch.log.batches)
            if one.end_offset > reached and one.is_control and _is_lone_voters(one)
        ]
        self._check(len(changes) <= 1, watch, changes, "above", reached)


class LeaderChangeFirst(Signals):
    """An epoch begins with LeaderChange; nothing of it is committed before that."""

    id, name = "S19", "LeaderChangeFirst"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        if before is None or batch.epoch == before.epoch:
            return
        first = next(iter(batch.controls()), None)
        is_change = first is not None and first[1] is ControlRecordType.LEADER_CHANGE
        self._check(is_change and first is not None and first[0] == batch.base_offset, watch, batch)

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        role = watch.quorum.role if watch.machine.node is not None else None
        if isinstance(role, Leader) and role.high_watermark is not None:
            start = role.epoch_start_offset
            self._check(role.high_watermark > start, watch, role.high_watermark, start)


class FetchIsFlushed(Signals):
    """The offset that a controller fetches from is durable: it acknowledges everything before."""

    id, name = "S20", "FetchIsFlushed"

    def sent(self, watch: NodeWatch, message: Message, target: int) -> None:
        if not isinstance(message, FetchRequest) or not message.topics:
            return
        if watch.machine.is_broker_only:
            return  # nobody counts on it
        asked = message.topics[0].partitions[0]
        stored = watch.log.election
        # One for an older epoch, or for somebody who does not lead, may have waited for its link:
        # it was true when it was made, and acknowledges nothing to its receiver. Nor does one that
        # the leader's log contradicts, however late it leaves.
        if stored is None or _epoch_of(message) != stored.epoch or target != stored.leader_id:
            return
        offset = asked.fetch_offset
        end = max(watch.log.durable_end, _snapshot_end(watch.log))
        if offset > end:
            last = self.judge.watches[target].log.batch_before(offset)
            counts = last is not None and last.epoch == asked.last_fetched_epoch
            self._check(not counts, watch, "fetches from", offset, "durable", end)


class BoundedMemory(Signals):
    """Nothing that a node keeps for others grows without a limit."""

    id, name = "S25", "BoundedMemory"

    def after(self, watch: NodeWatch) -> None:
        wires = watch.machine.wires
        for name, count in (("links", wires.links_count), ("connections", wires.served_count)):
            if count > _CONNECTIONS_MAX:
                self._check(False, watch, name, count)


class CommittedReadOnly(Signals):
    """Nobody takes anything for committed, or shows it, before it is."""

    id, name = "S26", "CommittedReadOnly"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        if now is None or now <= self.ledger.committed_end:
            return
        self._check(watch.has_led, watch, now, "beyond", self.ledger.committed_end)

    def after(self, watch: NodeWatch) -> None:
        if watch.node.quorum.host.is_active:
            # Whoever answers as the controller leads, and has read up to its own epoch's start.
            role = watch.role
            has_read = isinstance(role, Leader) and watch.applied_offset > role.epoch_start_offset
            self._check(has_read, watch, "is active as", watch.role_name, watch.applied_offset)

    def applied(self, watch: NodeWatch) -> None:
        end = self.ledger.committed_end
        self._check(watch.applied_offset <= end, watch, watch.applied_offset, "beyond", end)


class StaleIsFenced(Signals):
    """A leader appends in its own epoch only, and nobody appends a later one than it is in."""

    id, name = "S27", "StaleIsFenced"

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        stored = watch.log.election
        if watch.machine.node is not None and stored is not None:
            self._check(batch.epoch <= stored.epoch, watch, batch.identity, stored)


class Canary(Signals):
    """False by design: nobody ever commits anything. Each run must catch it."""

    id, name = "S00", "Canary"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        self._check(now is None or now == 0, watch, "committed up to", now)


SAFETY: Final = (
    StaleLeaderResigns,
    SingleLeaderPerEpoch,
    EpochMonotone,
    OneVotePerEpoch,
    MonotoneHighWatermark,
    CommittedOnMajority,
    LeaderCompleteness,
    LogMatching,
    NoTruncateBelowHighWatermark,
    CommittedIsForever,
    BatchAtomicity,
    OffsetContiguity,
    SnapshotIsReplay,
    SnapshotAtLogStart,
    LeaderNeverLoadsSnapshot,
    StateMachineEquality,
    OnlyVotersCount,
    OneVoterChange,
    LeaderChangeFirst,
    FetchIsFlushed,
    BoundedMemory,
    CommittedReadOnly,
    StaleIsFenced,
    StepsAreInModel,
    *UPKEEP,
    *DECISIONS,
)
"""In the order of their ids, L7 among them, which needs no healed network.

S10, S24 and S28 are raised by `history`, `machine` and `run`.
"""


def kinds_of(*, canary: bool, model: bool) -> tuple[type[Signals], ...]:
    """Return what to judge: with `canary` a false invariant too, with `model` every seed by it."""
    judged = EveryStepIsInModel if model else StepsAreInModel
    kinds = [judged if kind is StepsAreInModel else kind for kind in SAFETY]
    return (*kinds, Canary) if canary else tuple(kinds)


def _epoch_of(message: Message) -> int | None:
    """Return the epoch that a message says its sender is in."""
    match message:
        case VoteRequest():
            asked = message.topics[0].partitions[0]
            return None if asked.pre_vote else asked.replica_epoch
        case BeginQuorumEpochRequest() | EndQuorumEpochRequest():
            return message.topics[0].partitions[0].leader_epoch
        case VoteResponse() if message.topics:
            return message.topics[0].partitions[0].leader_epoch
        case FetchRequest() if message.topics:
            return message.topics[0].partitions[0].current_leader_epoch
        case _:
            return None


def _is_same_candidate(voted: tuple[int, str], asker: tuple[int, str]) -> bool:
    """Tell whether a vote for one candidate may be granted to the other: same id and directory."""
    return voted[0] == asker[0] and voted[1] in ("", _NO_DIRECTORY, asker[1])


def _difference(found: dict[Register, str | None], expected: dict[Register, str]) -> str:
    keys = [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
    return ", ".join(f"{key}: {found.get(key)} instead of {expected.get(key)}" for key in keys)


def _is_lone_voters(batch: SeenBatch) -> bool:
    """Tell whether a batch changes membership; beside a LeaderChange it only describes it anew."""
    kinds = [kind for _, kind, _ in batch.controls()]
    return kinds == [ControlRecordType.KRAFT_VOTERS]


def _snapshot_end(log: LogWatch) -> int:
    return max((offset for offset, _ in log.snapshots), default=0)


def voters_on_disk(judge: Judge, watch: NodeWatch) -> tuple[VoterSet, int]:
    """Return the last voter set that a disk speaks of, and where: the dumb twin of the history."""
    found = newest_voters(watch.log)
    if found is None:
        return judge.first_voters, -1
    record, offset = found
    return VoterSet.from_record(record), offset


def _difference_of_sets(obeyed: VoterSet | None, written: VoterSet) -> tuple[object, ...]:
    """Say which voters are obeyed and which are written; in full where the ids are the same."""
    ids, wanted = list(obeyed.nodes) if obeyed else [], list(written.nodes)
    if ids == wanted:
        return "obeys", obeyed, "on disk", written
    return "obeys voters", ids, "on disk", wanted


def _digest(watch: NodeWatch) -> str:
    """Return a digest of everything in a node's image."""
    digest = blake2b(digest_size=8)
    for value in snapshot_values(watch.node.raft.committed.image):
        digest.update(value)
    return digest.hexdigest()
