"""Checks every node after every event, from outside, and reports changes to the invariants.

The judge keeps a `NodeWatch` per machine: the last seen state of the node's memory (role, epoch,
high watermark, voters, committed image) and of its disk (`log_watch`). After an event it compares,
and calls the invariants for changes only, because invariants of unchanged state still hold.
`Signals` names the changes; an invariant overrides those that it depends on.

Errors: `Violation`, whose first word is the id of the invariant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kraft_wire.model import NO_REPLICA
from kraft_wire.node.node import Node
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.roles import Leader, Role
from kraft_wire.raft.voters import VoterSet
from kraft_wire.sim.judge.ledger import Ledger
from kraft_wire.sim.judge.log_watch import Election, LogChanges, LogWatch, SeenBatch, SeenSnapshot
from kraft_wire.sim.judge.metadata_twin import Twin
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState
from kraft_wire.sim.stage import Stage
from kraft_wire.wire.generated.vote import VoteRequest
from kraft_wire.wire.message import Message

__all__ = ["Judge", "LogSignals", "NodeWatch", "Signals"]


class NodeWatch:
    """The last seen state of one machine."""

    def __init__(self, machine: MachineState) -> None:
        self.machine = machine
        self.id = machine.id
        self.log = LogWatch()
        self.role: Role | None = None
        self.epoch = 0
        self.leader_id = -1
        self.high_watermark: int | None = None
        self.voters: VoterSet | None = None
        self.applied_offset = 0
        self.vote_asked: VoteRequest | None = None
        """The request of the vote response that is about to leave."""
        self.has_led = False
        """Whether it led before or after the event in which its high watermark moved."""

    def forget_memory(self) -> None:
        """Begin without state, for a new process."""
        self.role, self.epoch, self.leader_id = None, 0, -1
        self.high_watermark, self.voters, self.applied_offset = None, None, 0

    @property
    def node(self) -> Node:
        """The running node."""
        assert self.machine.node is not None, self.id
        return self.machine.node

    @property
    def quorum(self) -> Quorum:
        """The state of its replica."""
        return self.node.raft.replica.quorum

    @property
    def role_name(self) -> str:
        """Its role in a word."""
        return type(self.role).__name__ if self.role is not None else "Down"


class Signals:
    """The events that an invariant can receive; each method is called before any consequence."""

    id = "S00"
    name = "Signals"

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.ledger = judge.ledger

    def _check(self, holds: bool, watch: NodeWatch, *facts: object) -> None:
        """Raise where the invariant does not hold."""
        if not holds:
            raise Violation(f"{self.id} {self.name}", watch.id, *facts)

    def started(self, watch: NodeWatch) -> None:
        """A process began on the remaining content of its disk."""

    def after(self, watch: NodeWatch) -> None:
        """A running node has taken an event."""

    def role(self, watch: NodeWatch, before: Role | None, epoch_before: int) -> None:
        """Role, epoch or known leader changed."""

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        """The node's high watermark moved."""

    def voters(self, watch: NodeWatch) -> None:
        """The voter set in force on a node may have changed."""

    def appended(self, watch: NodeWatch, batch: SeenBatch, before: SeenBatch | None) -> None:
        """A batch was appended to another one on a disk."""

    def cut(self, watch: NodeWatch, offset: int, is_reset: bool) -> None:
        """A log was cut at its end, or begins again at an offset, behind a snapshot."""

    def disk(self, watch: NodeWatch) -> None:
        """Something on a node's disk changed."""

    def election(self, watch: NodeWatch, before: Election | None, now: Election) -> None:
        """quorum-state was replaced, durably."""

    def snapshot(self, watch: NodeWatch, snapshot: SeenSnapshot) -> None:
        """A complete snapshot appeared on a disk."""

    def sent(self, watch: NodeWatch, message: Message, target: int) -> None:
        """A request or an answer of the quorum's is about to leave a node.

        `watch.vote_asked` is the request that a vote response answers, of any candidate.
        """

    def applied(self, watch: NodeWatch) -> None:
        """The committed image of a node reached another offset."""


class LogSignals(Signals):
    """The signals of an invariant that follows the committed log too."""

    def committed(self, watch: NodeWatch, batch: SeenBatch) -> None:
        """A batch of the metadata log is committed; the ledger has it already."""


_NAMES = [name for name in vars(Signals) if not name.startswith("_")]


class Judge:
    """Notices changes, and calls the invariants that depend on them."""

    def __init__(self, stage: Stage, kinds: Sequence[Callable[[Judge], Signals]]) -> None:
        self.stage = stage
        self.ledger = Ledger()
        self.twin = Twin()
        """The result of the committed metadata; `decision_invariants` replays them."""
        self.watches: dict[int, NodeWatch] = {}
        self.lost_disks: dict[tuple[int, bytes], LogWatch] = {}
        """Logs on disks that were lost; their records still count as once written."""
        self.is_dynamic = stage.setup.is_dynamic
        self.first_voters = VoterSet({})
        self.last_voter: int | None = None
        """The last replica that voted for another one."""
        self.committed: Callable[[SeenBatch], None] = lambda batch: None
        """Called with each committed batch of metadata."""
        self.fenced: Callable[[int, int, int, bool], None] = lambda *broker: None
        """Called for each fenced broker: the leader's epoch, the broker's id and its epoch, and
        whether it led a partition until then and was not about to stop."""
        self.marks: Counter[str] = Counter()
        """Counts of reached states, for the table of coverage."""
        self.invariants = [kind(self) for kind in kinds]
        self._listeners: dict[str, list[Signals]] = {}
        """The invariants that a signal concerns."""
        for name in _NAMES:
            base = getattr(Signals, name)
            if callable(base):
                concerned = [e for e in self.invariants if getattr(type(e), name) is not base]
                self._listeners[name] = concerned
        self._listeners["committed"] = [e for e in self.invariants if isinstance(e, LogSignals)]
        self._asked = {
            name: [getattr(each, name) for each in concerned]
            for name, concerned in self._listeners.items()
        }
        self._times = dict.fromkeys(self._asked, 0)

    @property
    def looked(self) -> Counter[str]:
        """How often each invariant was asked."""
        found: Counter[str] = Counter()
        for name, concerned in self._listeners.items():
            for each in concerned:
                found[f"{each.id} {each.name}"] += self._times[name]
        return found

    def _ask(self, signal: str, watch: NodeWatch, *facts: object) -> None:
        self._times[signal] += 1
        for listener in self._asked[signal]:
            listener(watch, *facts)

    # -- what the world tells --------------------------------------------------------------------

    def watch(self, machine: MachineState) -> None:
        """Begin to watch a machine."""
        self.watches[machine.id] = NodeWatch(machine)

    def started(self, machine: MachineState) -> None:
        """A process was opened: read its disk again, with every checksum."""
        watch = self.watches[machine.id]
        election = watch.log.election
        watch.log = LogWatch()
        watch.forget_memory()
        changes = watch.log.look(machine.fs)
        self._tell_disk(watch, changes, None, election)
        self._ask("started", watch)

    def wiped(self, machine: MachineState, directory_id: bytes) -> None:
        """A disk was taken away."""
        watch = self.watches[machine.id]
        self.lost_disks[machine.id, directory_id] = watch.log
        watch.log = LogWatch()

    def about_to_die(self, machine: MachineState) -> None:
        """A process dies, perhaps within an event: its changes until now count."""
        watch = self.watches[machine.id]
        if machine.node is not None:
            self._look_at_disk(watch)
            leads = isinstance(watch.role, Leader) or isinstance(watch.quorum.role, Leader)
            self._look_at_watermark(watch, watch.quorum, leads)

    def after(self, machine: MachineState) -> bool:
        """An event is over; return whether disk, role, leader or high watermark have changed."""
        node, watch = machine.node, self.watches[machine.id]
        is_other = not watch.log.is_unchanged(machine.fs)
        if node is None:
            return is_other
        if is_other:
            self._look_at_disk(watch)
        raft = node.raft
        quorum = raft.replica.quorum
        election = quorum.election
        was_leader = isinstance(watch.role, Leader)
        if (
            quorum.role is not watch.role
            or election.leader_epoch != watch.epoch
            or election.leader_id != watch.leader_id
        ):
            before, epoch_before, leader_before = watch.role, watch.epoch, watch.leader_id
            watch.role, watch.epoch = quorum.role, election.leader_epoch
            watch.leader_id = election.leader_id
            now = (watch.role, watch.epoch, watch.leader_id)
            is_other = is_other or now != (before, epoch_before, leader_before)
            if watch.role is not before:
                machine.leads_since_us = self.stage.now_us
                self.marks[f"became {watch.role_name}"] += 1
            self._ask("role", watch, before, epoch_before)
        if quorum.high_watermark != watch.high_watermark:
            is_other = True
            self._look_at_watermark(watch, quorum, was_leader or isinstance(watch.role, Leader))
        voters = quorum.voters.latest
        if voters is not watch.voters:
            watch.voters = voters
            self._ask("voters", watch)
        reached = raft.committed.next_offset
        if reached != watch.applied_offset:
            watch.applied_offset = reached
            self._ask("applied", watch)
        self._ask("after", watch)
        return is_other

    # -- changes ---------------------------------------------------------------------------------

    def _look_at_disk(self, watch: NodeWatch) -> None:
        log = watch.log
        if log.is_unchanged(watch.machine.fs):
            return
        last = log.batches[-1] if log.batches else None
        election = log.election
        self._tell_disk(watch, log.look(watch.machine.fs), last, election)

    def _tell_disk(
        self,
        watch: NodeWatch,
        changes: LogChanges,
        last: SeenBatch | None,
        election: Election | None,
    ) -> None:
        if changes.is_reset:
            last = None
            self.marks["snapshot installed"] += 1
            self._ask("cut", watch, watch.log.start_offset, True)
        if changes.truncated_to is not None:
            at = len(watch.log.batches) - len(changes.appended)
            last = watch.log.batches[at - 1] if at > 0 else None
            self.marks["log truncated"] += 1
            self._ask("cut", watch, changes.truncated_to, False)
        for batch in changes.appended:
            self._ask("appended", watch, batch, last)
            last = batch
        if changes.election is not None and changes.election != election:
            if changes.election.voted_id not in (NO_REPLICA, watch.id):
                self.last_voter = watch.id
            self._ask("election", watch, election, changes.election)
        for snapshot in changes.snapshots:
            self.marks["snapshot written or fetched"] += 1
            self._ask("snapshot", watch, snapshot)
        self._ask("disk", watch)

    def _look_at_watermark(self, watch: NodeWatch, quorum: Quorum, leads: bool) -> None:
        """`leads`: whether it led before the event or after it; committing may end a leadership."""
        before, now = watch.high_watermark, quorum.high_watermark
        if now == before:
            return
        watch.high_watermark, watch.has_led = now, leads
        self._ask("high_watermark", watch, before, now)
        if now is not None and now > self.ledger.committed_end and leads:
            self._commit(watch, now)

    def _commit(self, watch: NodeWatch, end: int) -> None:
        """Add the records that a leader rightly calls committed to the ledger."""
        ledger, log = self.ledger, watch.log
        while ledger.committed_end < end:
            batch = log.batch_before(ledger.committed_end + 1)
            if batch is None or batch.base_offset != ledger.committed_end:
                raise Violation("S09 CommittedIsForever", watch.id, "lacks", ledger.committed_end)
            ledger.commit(batch, watch.epoch)
            self._ask("committed", watch, batch)
            self.committed(batch)
        if ledger.committed_end != end:
            raise Violation("S11 BatchAtomicity", watch.id, end, "is inside a batch")

    # -- messages --------------------------------------------------------------------------------

    def sent(
        self, machine: MachineState, message: Message, target: int, asked: VoteRequest | None = None
    ) -> None:
        """A message of the quorum is about to leave; `asked` is the request of a vote response."""
        watch = self.watches[machine.id]
        watch.vote_asked = asked
        self._look_at_disk(watch)
        self._ask("sent", watch, message, target)
