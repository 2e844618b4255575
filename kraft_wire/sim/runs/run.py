"""Runs one plan: faults first, then everything is healed and the quorum must settle.

Phase one runs under faults for a number of events. Phase two ends the faults and requires, within
bounds of virtual time: a leader (L1), every operation resolved (L2), every replica at the committed
end (L3), voter changes over (L4), no change of leadership while nothing disturbs (L5), every
request answered (L6). L7 is judged all the time (`invariants`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kraft_wire.model import ZERO_UUID
from kraft_wire.raft.roles import Leader
from kraft_wire.raft.voters import VoterNode
from kraft_wire.sim.cluster import Cluster
from kraft_wire.sim.faults.directory_faults import DirectoryFaults
from kraft_wire.sim.faults.quorum_faults import QuorumFaults
from kraft_wire.sim.faults.relocation import why_unknown
from kraft_wire.sim.judge.invariants import SAFETY, Canary
from kraft_wire.sim.judge.judge import Judge, Signals
from kraft_wire.sim.judge.log_watch import newest_voters
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine import NodeBroke, SpinningNode
from kraft_wire.sim.plans.plan import Plan
from kraft_wire.sim.setup import LISTENER
from kraft_wire.sim.trace import Trace
from kraft_wire.sim.world import World

__all__ = ["Failure", "Result", "Run", "run_plan"]

_SETTLES_WITHIN_US: Final = 120_000_000
_EVENTS_TO_SETTLE_MAX: Final = 60_000
_UNDISTURBED_US: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Failure:
    """Which invariant broke, where, and how."""

    invariant: str
    """Its id and name; S24 and S28 come without a judge."""
    text: str
    events: int
    """After how many events."""
    now_us: int


@dataclass(slots=True)
class Result:
    """The result of one run; small, so that processes can send it."""

    seed: int
    events: int = 0
    useful_events: int = 0
    virtual_us: int = 0
    failure: Failure | None = None
    trace_hash: str = ""
    faults: Counter[str] = field(default_factory=Counter)
    marks: Counter[str] = field(default_factory=Counter)
    looked: Counter[str] = field(default_factory=Counter)
    """How often each invariant was asked."""
    committed: int = 0
    """Records committed."""
    operations: Counter[str] = field(default_factory=Counter)
    registers: int = 0
    """Histories that an order was found for."""


def run_plan(plan: Plan, *, kinds: Sequence[Callable[[Judge], Signals]] = SAFETY) -> Result:
    """Run a plan and return the result."""
    return Run(plan, kinds=kinds).result()


class NoElectionPossible(Exception):
    """Voter changes that were in progress left a voter set that cannot elect a leader."""


class Run:
    """One plan on one world."""

    def __init__(
        self,
        plan: Plan,
        *,
        kinds: Sequence[Callable[[Judge], Signals]] = SAFETY,
        keeps_trace: bool = False,
    ) -> None:
        self.plan = plan
        has_canary = Canary in kinds and bool(plan.setup.brokers)
        if has_canary:  # the partitions have one of their own
            kinds = [kind for kind in kinds if kind is not Canary]
        self.world = World(plan.seed, plan.setup, kinds=kinds, keeps_trace=keeps_trace)
        if self.world.cluster is not None:
            self.world.cluster.judge.has_canary = has_canary
        kind = QuorumFaults if self.world.cluster is None else DirectoryFaults
        self.faults = kind(self.world, plan.habits)
        self.registers = 0
        self.healed_us = 0
        self._healed_voters: set[tuple[int, bytes]] = set()

    @property
    def trace(self) -> Trace:
        """The trace of the run."""
        return self.world.trace

    def result(self) -> Result:
        """Run both phases, and return the result."""
        failure = self._failure()
        world, cluster = self.world, self.world.cluster
        found = Result(
            seed=self.plan.seed,
            events=world.events,
            useful_events=world.useful_events,
            virtual_us=world.now_us,
            failure=failure,
            trace_hash=world.trace.hexdigest(),
            faults=world.faults,
            marks=world.marks + world.judge.marks,
            looked=world.judge.looked,
            committed=world.judge.ledger.committed_end,
            operations=Counter(world.history.counts),
            registers=self.registers,
        )
        if cluster is not None:
            found.marks += cluster.judge.marks + cluster.truth.marks
            found.looked += cluster.judge.looked
            found.operations += cluster.history.counts
        return found

    def _failure(self) -> Failure | None:
        try:
            self.live()
        except (Violation, SpinningNode, NodeBroke) as broken:
            return self._failed(broken.invariant, str(broken))
        return None

    def _failed(self, invariant: str, text: str) -> Failure:
        world = self.world
        world.observer.note(None, f"VIOLATION {text}")
        return Failure(invariant, text, world.events, world.now_us)

    # -- the two phases --------------------------------------------------------------------------

    def live(self) -> None:
        """Both phases; Violation, NodeBroke or SpinningNode where something is wrong."""
        plan, world = self.plan, self.world
        self.faults.schedule(plan.faults)
        world.start()
        scheduler = world.scheduler
        while world.events < plan.events and scheduler.now_us < plan.chaos_us:
            if not scheduler.step():
                break
        self.faults.heal()
        self.healed_us = world.now_us
        self._settle()

    def _settle(self) -> None:
        world = self.world
        world.rest()
        if world.cluster is not None:
            world.cluster.rest()
        world.observer.note(None, "everything is healed")
        if not self.can_elect():
            world.marks["no election possible"] += 1
            return
        try:
            self._settle_quorum()
        except NoElectionPossible:
            world.marks["voters changed until nobody could be elected"] += 1

    def _settle_quorum(self) -> None:
        world = self.world
        self._healed_voters = self._newest_voters()
        self._come_to_rest()
        world.marks["settled"] += 1
        if any(map(world.is_astray, world.running())):
            world.marks["observer astray"] += 1
        if not self._until(lambda: not any(client.link.is_busy for client in world.clients)):
            raise Violation("L6 ParkedRequestsEnd", 0, "a client still waits")
        if not self._until(self._no_voter_change):
            raise Violation("L4 ReconfigResolves", 0, self._states())
        if not self._until(self.faults.is_quorum_upgraded):
            raise Violation("L12 UpgradeSucceeds", 0, self._states())
        if not self._until(lambda: why_unknown(world) is None):
            raise Violation("L8 AddressIsKnown", 0, why_unknown(world))
        self._come_to_rest()  # a leader that the last change removed resigns first
        if world.cluster is not None:
            self._settle_cluster(world.cluster)
        self._answers_all(world.now_us)
        self._stays_undisturbed()
        self.registers = world.history.judge_registers()

    def _come_to_rest(self) -> None:
        """L1, L3: one leader, and every replica at its end.

        A voter change that was in progress at the healing may leave a set without a majority, as a
        removal does beside a lost disk.
        """
        if self._until(self.world.is_settled):
            return
        if self._newest_voters() != self._healed_voters and not self.can_elect():
            raise NoElectionPossible
        raise Violation("L1 LeaderElected", 0, self._states())

    def _newest_voters(self) -> set[tuple[int, bytes]]:
        """Return the members of the newest voter set on any disk, by the judge's own reading."""
        watches = (self.world.judge.watches[machine.id] for machine in self.world.running())
        found = [each for watch in watches if (each := newest_voters(watch.log)) is not None]
        newest = max(found, key=lambda each: each[1], default=None)
        members = [] if newest is None else newest[0].voters
        return {(each.voter_id, each.voter_directory_id) for each in members}

    def _settle_cluster(self, cluster: Cluster) -> None:
        """Every replica gets in sync, every record is read, and offsets are unchanged."""
        if not self._until(cluster.is_settled):
            raise Violation("L3 ReplicasCatchUp", 0, cluster.why_unsettled())
        upkeep = cluster.judge.upkeep
        if upkeep is not None and not self._until(lambda: upkeep.why_overdue() is None):
            raise Violation("L9 LogsAreKeptSmall", 0, upkeep.why_overdue())
        if not self._until(lambda: cluster.why_group_moves() is None):
            raise Violation("L11 GroupRests", 0, cluster.why_group_moves())
        moves = cluster.judge.moves
        if moves is not None and not self._until(lambda: moves.why_unplaced() is None):
            raise Violation("L13 MovesEnd", 0, moves.why_unplaced())
        cluster.read_offsets()
        if not self._until(lambda: cluster.reader.has_read_offsets):
            raise Violation("L6 ParkedRequestsEnd", 0, "nobody tells which offsets are committed")
        cluster.finish()
        if not self._until(cluster.is_quiet):
            raise Violation("L6 ParkedRequestsEnd", 0, "a client of the brokers still waits")
        cluster.judge.compare_everything()
        if cluster.transactions is not None:
            cluster.transactions.judge_everything()
        self.world.marks["cluster settled"] += 1

    def _no_voter_change(self) -> bool:
        roles = [machine.quorum.role for machine in self.world.running()]
        pending = [each for each in roles if isinstance(each, Leader) and each.pending_change]
        return not pending and not self.world.operator.is_busy

    def _answers_all(self, until_us: int) -> None:
        """L6: each request that a node took is answered, or its connection is closed."""

        def why() -> str | None:
            found = (each.wires.why_unanswered(until_us) for each in self.world.running())
            return next((each for each in found if each is not None), None)

        if not self._until(lambda: why() is None):
            raise Violation("L6 ParkedRequestsEnd", 0, why())

    def _stays_undisturbed(self) -> None:
        """L5: no replica campaigns without a fault. L10: no replica leaves an ISR.

        A follower of a leader that was paused until the healing may have waited for it for almost a
        fetch timeout, though all agree: campaigns that began before are over when that time has
        passed. An ISR change may wait longer, for a connection that was dialled while the network
        was cut.
        """
        world = self.world
        fetch_timeout_us = world.setup.fetch_timeout_ms * 1_000
        self._pass(self.healed_us + fetch_timeout_us - world.now_us)
        if not self._until(self._isrs_are_whole):
            raise Violation("L10 IsrRests", 0, "an ISR change is not answered", self._isrs())
        self._come_to_rest()
        leader = world.leader()
        assert leader is not None, "settled"
        epoch = leader.quorum.epoch
        isrs = self._isrs()
        self._pass(_UNDISTURBED_US)
        now = world.leader()
        if now is not leader or leader.quorum.epoch != epoch:
            raise Violation("L5 StableLeader", leader.id, "epoch", epoch, self._states())
        if self._isrs() != isrs:
            raise Violation("L10 IsrRests", 0, self._isrs(), "instead of", isrs)

    def _isrs_are_whole(self) -> bool:
        """Return whether every replica is in its ISR, and no leader has requested another ISR."""
        nodes = (each.node for each in self.world.running() if each.is_broker_only)
        brokers = [node.broker for node in nodes if node is not None]
        led = (each.leadership for broker in brokers for each in broker.partitions.values())
        is_asking = any(each is not None and each.change is not None for each in led)
        cluster = self.world.cluster  # its clients have ended, and read no marker that comes now
        return not is_asking and (cluster is None or cluster.why_not_replicated() is None)

    def _isrs(self) -> dict[str, int]:
        """Return how often the ISR of each partition has changed."""
        cluster = self.world.cluster
        if cluster is None:
            return {}
        return {each.name: each.isr_changes for each in cluster.truth.existing()}

    def _pass(self, span_us: int) -> None:
        """Let a span of time pass, none if it is negative."""
        scheduler = self.world.scheduler
        end_us = self.world.now_us + span_us
        while (at_us := scheduler.next_us()) is not None and at_us <= end_us:
            scheduler.step()

    def _until(self, condition: Callable[[], bool]) -> bool:
        """Let time pass until a condition holds; False if it does not within the bound."""
        world = self.world
        end_us = world.now_us + _SETTLES_WITHIN_US
        events_max = world.events + _EVENTS_TO_SETTLE_MAX
        looked_at = -1
        while True:
            if world.events != looked_at:
                looked_at = world.events
                if condition():
                    return True
            at_us = world.scheduler.next_us()
            if at_us is None or at_us > end_us or world.events > events_max:
                return condition()
            world.scheduler.step()

    def can_elect(self) -> bool:
        """Return whether a leader can be elected at all.

        Not if the majority lost its disks. Nor if the longest log belongs to a replica that this
        log removes, by a record that no other replica has: as an observer it cannot be a candidate,
        and it must not vote for a shorter log. KIP-853 does not resolve this.
        """
        machines = self.world.running()
        watches = self.world.judge.watches
        newest = max(
            machines,
            key=lambda m: (
                watches[m.id].log.last_epoch,
                watches[m.id].log.end_offset,
                m.quorum.is_voter,
            ),
            default=None,
        )
        if newest is None:
            return False
        quorum = newest.quorum
        offset = quorum.voters.latest_offset
        is_committed = offset is None or offset < self.world.judge.ledger.committed_end
        if not quorum.is_voter and not is_committed:
            return False
        members = quorum.voters.latest.nodes.values()
        alive = [node for node in members if self._is_there(node.key.id, node.key.directory_id)]
        found = [node for node in alive if not self._has_moved(node)]
        return 2 * len(found) > len(members)

    def _has_moved(self, voter: VoterNode) -> bool:
        """Return whether the others use an outdated address of a voter."""
        address = voter.endpoints.get(LISTENER)
        return address is not None and self.world.addresses.is_stale(voter.key.id, address.host)

    def _is_there(self, node_id: int, directory_id: bytes) -> bool:
        machine = self.world.machines[node_id]
        return directory_id in (ZERO_UUID, machine.directory_id)

    def _states(self) -> str:
        return "; ".join(
            f"{m.id} {type(m.quorum.role).__name__} epoch {m.quorum.epoch} "
            f"leader {m.quorum.leader_id} high watermark {m.quorum.high_watermark} "
            f"log {self.world.judge.watches[m.id].log.end_offset}"
            + (" leads" if isinstance(m.quorum.role, Leader) else "")
            for m in self.world.running()
        )
