"""What one replica of a simulated quorum promised to others before its power went.

A promise is what other nodes rely on: the epoch and the vote in its messages, the end of the log
that it acknowledged, the snapshot that it announced. It is taken from the messages that leave and,
for a leader, from the end that it calls durable when it commits: never from its disk.

Every story is run twice with the same seed and the same sectors. A `TruthRecorder` keeps the first
time's truth (what was ever written where, in the whole quorum, and when a log was rightly cut);
`PromiseKeeper` follows the second run and knows the promises at each change of the disk. The truth
does not apply to another story, so a `Replay` stops where the second run differs.

Not here: the judgement of a disk after a crash (`quorum`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from kraft_wire.raft.roles import Leader
from kraft_wire.sim.judge.judge import Judge, NodeWatch, Signals
from kraft_wire.sim.judge.log_watch import Election, SeenBatch, SeenSnapshot
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.generated.begin_quorum_epoch import BeginQuorumEpochRequest
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.vote import VoteRequest, VoteResponse
from kraft_wire.wire.message import Message

__all__ = ["Departed", "Promise", "PromiseKeeper", "QuorumTruth", "Replay", "TruthRecorder"]

_NOBODY: Final = (-1, -1)


@dataclass(frozen=True, slots=True)
class Promise:
    """The promises at a moment; equal ones are one object."""

    epoch: int = 0
    """The highest epoch in its messages."""
    vote: tuple[int, int] = _NOBODY
    """The newest vote in its messages: epoch and candidate."""
    led_epoch: int = -1
    """The newest one in which it spoke as the leader."""
    end_offset: int = 0
    """Everything below was acknowledged, or counted by it as the leader."""
    end_epoch: int = 0
    """Of the record before `end_offset`, which determines all records before it (LogMatching)."""
    snapshot_offset: int = 0
    """End of the newest snapshot that it announced."""


@dataclass(frozen=True, slots=True)
class LogCut:
    """A log was cut, or replaced by a snapshot, by changes of the disk from one number on."""

    life: int
    first_change: int
    offset: int


@dataclass(slots=True)
class QuorumTruth:
    """The truth of the whole quorum."""

    placed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(epoch, base offset) -> (CRC, epoch before, or -1): the batch of every log there."""
    snapshots: dict[tuple[int, int], set[bytes]] = field(default_factory=dict)
    """(end offset, epoch) -> the contents of that snapshot on any disk."""
    votes: dict[tuple[int, int], int] = field(default_factory=dict)
    """(epoch, voter) -> candidate."""
    cuts: dict[int, list[LogCut]] = field(default_factory=dict)
    """By node, in the order of time."""
    epoch_max: int = 0


class TruthRecorder(Signals):
    """Writes the truth down."""

    id, name = "", "TruthRecorder"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._seen: dict[int, int] = {}
        self.truth = QuorumTruth()

    def started(self, watch: NodeWatch) -> None:
        """Begin to count the changes of this life."""
        self._seen[watch.id] = watch.machine.fs.changes_count

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        """Store each batch with its place; LogMatching ensures that all disks have the same."""
        epoch_before = -1 if before is None else before.epoch
        place = (batch.epoch, batch.base_offset)
        self.truth.placed.setdefault(place, (batch.crc, epoch_before))

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        """Note since when less is owed."""
        cuts = self.truth.cuts.setdefault(watch.id, [])
        cuts.append(LogCut(watch.machine.life, self._seen.get(watch.id, 0), offset))

    def disk(self, watch: NodeWatch) -> None:
        """Store how far the disk was read, and the epoch on it."""
        self._seen[watch.id] = watch.machine.fs.changes_count
        election = watch.log.election
        if election is not None:
            self.truth.epoch_max = max(self.truth.epoch_max, election.epoch)
            if election.voted_id >= 0:
                self.truth.votes[election.epoch, watch.id] = election.voted_id

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        """Store the content of a snapshot."""
        contents = self.truth.snapshots.setdefault((snapshot.offset, snapshot.epoch), set())
        contents.add(snapshot.data)


class Departed(Violation):
    """The second time is another story than the first: nothing in it can be judged."""


class Replay(TruthRecorder):
    """Follows the second run; raises `Departed` at an event that the first run did not have.

    With the same seed a story departs only because of a disk that breaks its promises.
    """

    id, name = "", "Replay"

    def __init__(self, judge: Judge, recorded: QuorumTruth) -> None:
        super().__init__(judge)
        self._recorded = recorded

    def _expect(self, is_same: bool, watch: NodeWatch, *facts: object) -> None:
        if not is_same:
            raise Departed(self.name, watch.id, *facts)

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        """Compare the bytes."""
        super().appended(watch, batch, before)
        recorded = self._recorded.placed.get((batch.epoch, batch.base_offset), (None, -1))
        is_same = recorded[0] == batch.crc
        self._expect(is_same, watch, "appends", batch.identity, "instead of", recorded)

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        """Compare the truncations and their times."""
        super().cut(watch, offset, is_reset)
        cuts = self.truth.cuts[watch.id]
        recorded = self._recorded.cuts.get(watch.id, [])[: len(cuts)]
        self._expect(cuts == recorded, watch, "cuts", cuts, "instead of", recorded)

    def election(self, watch: NodeWatch, before: Election | None, now: Election) -> None:
        """Compare the votes."""
        recorded = self._recorded.votes.get((now.epoch, watch.id), -1)
        is_same = now.epoch <= self._recorded.epoch_max and now.voted_id in (-1, recorded)
        self._expect(is_same, watch, "has", now, "and voted for", recorded)

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        """Compare the contents."""
        place = (snapshot.offset, snapshot.epoch)
        is_same = snapshot.data in self._recorded.snapshots.get(place, ())
        self._expect(is_same, watch, "has another snapshot at", place)


class PromiseKeeper(Signals):
    """Follows one node."""

    id, name = "", "PromiseKeeper"

    def __init__(self, judge: Judge, victim_id: int, cuts: list[LogCut]) -> None:
        super().__init__(judge)
        self._victim_id = victim_id
        self._cuts = list(cuts)
        self._promise = Promise()

    def at(self, life: int, changes_count: int) -> Promise:
        """Return the promises before a change of the disk in an incarnation of the process."""
        while self._cuts and (self._cuts[0].life, self._cuts[0].first_change) <= (
            life,
            changes_count,
        ):
            cut = self._cuts.pop(0)
            if cut.offset < self._promise.end_offset:
                self._owe(end_offset=cut.offset, end_epoch=-1)
        return self._promise

    def forget(self) -> None:
        """The disk was lost: its replacement has another directory id."""
        self._promise = Promise()

    def _owe(self, **more: object) -> None:
        changed = replace(self._promise, **more)  # type: ignore[arg-type]  # fields by name
        if changed != self._promise:
            self._promise = changed

    def sent(self, watch: NodeWatch, message: Message, target: int) -> None:
        """Record a message that leaves."""
        if watch.id != self._victim_id:
            return
        match message:
            case VoteRequest():
                asked = message.topics[0].partitions[0]
                if not asked.pre_vote:
                    self._spoke(asked.replica_epoch)
                    self._voted(asked.replica_epoch, watch.id)
            case VoteResponse() if message.topics:
                self._answered_vote(watch, message, target)
            case BeginQuorumEpochRequest():
                epoch = message.topics[0].partitions[0].leader_epoch
                self._spoke(epoch)
                self._owe(led_epoch=max(self._promise.led_epoch, epoch))
            case FetchRequest() if message.topics:
                self._fetched(message)
            case _:
                pass

    def after(self, watch: NodeWatch) -> None:
        """The node announces its known snapshots with its next answer."""
        if watch.id == self._victim_id:
            newest = watch.quorum.snapshots.latest_id
            if newest is not None and newest.offset > self._promise.snapshot_offset:
                self._owe(snapshot_offset=int(newest.offset))

    def _answered_vote(self, watch: NodeWatch, response: VoteResponse, target: int) -> None:
        answered = response.topics[0].partitions[0]
        self._spoke(answered.leader_epoch)
        election = watch.quorum.election
        is_for_asker = (election.leader_epoch, election.voted_id) == (answered.leader_epoch, target)
        if answered.vote_granted and is_for_asker:  # a pre-vote gives nothing away
            self._voted(answered.leader_epoch, target)

    def _fetched(self, request: FetchRequest) -> None:
        """A fetch acknowledges everything below its offset."""
        asked = request.topics[0].partitions[0]
        self._spoke(asked.current_leader_epoch)
        if asked.fetch_offset > self._promise.end_offset or self._promise.end_epoch < 0:
            self._owe(end_offset=asked.fetch_offset, end_epoch=asked.last_fetched_epoch)

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        """A leader counts its own log up to the end that it calls durable."""
        if watch.id != self._victim_id or not isinstance(watch.role, Leader):
            return
        end = watch.quorum.log.flushed_end_offset
        last = watch.log.batch_before(end)
        if last is not None and end > self._promise.end_offset:
            self._owe(end_offset=int(end), end_epoch=last.epoch)

    def _spoke(self, epoch: int) -> None:
        if epoch > self._promise.epoch:
            self._owe(epoch=epoch)

    def _voted(self, epoch: int, candidate: int) -> None:
        if epoch > self._promise.vote[0]:
            self._owe(vote=(epoch, candidate))
