"""The simulated world: machines, the network between them, clients, time, and the judge.

One seed decides everything. Parts get the `stage` and their partners, never the world. Events of
machines go to the `observer`, their messages pass the `traffic`, and both report to judge and
trace. Faults act on the world from outside (`faults`); `run` runs a plan. Read next: `stage`,
`machine`, `judge`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kraft_wire.model import NO_REPLICA, ZERO_UUID, ReplicaId, ReplicaKey
from kraft_wire.raft.roles import Follower
from kraft_wire.raft.voters import Address, VersionRange, VoterNode, VoterSet
from kraft_wire.sim.clients.administrators import Administrator
from kraft_wire.sim.clients.link import ClientLink
from kraft_wire.sim.clients.register_client import RegisterClient
from kraft_wire.sim.clients.stub_brokers import FIRST_STUB_BROKER, StubBroker
from kraft_wire.sim.cluster import Cluster
from kraft_wire.sim.judge.data_judge import DataJudge
from kraft_wire.sim.judge.history import History
from kraft_wire.sim.judge.invariants import SAFETY
from kraft_wire.sim.judge.judge import Judge, Signals
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.machine_state import newest_leader, running
from kraft_wire.sim.observer import Observer
from kraft_wire.sim.odd_answers import OddAnswers
from kraft_wire.sim.scheduler import stream
from kraft_wire.sim.setup import CONTROLLER_PORT, LISTENER, Setup, host_of
from kraft_wire.sim.stage import Stage
from kraft_wire.sim.trace import Trace
from kraft_wire.sim.traffic import Traffic

__all__ = ["World"]


class World(Stage):
    """The stage with everything on it."""

    def __init__(
        self,
        seed: int,
        setup: Setup,
        *,
        kinds: Sequence[Callable[[Judge], Signals]] = SAFETY,
        keeps_trace: bool = False,
    ) -> None:
        self.machines: dict[int, Machine] = {}
        super().__init__(seed, setup, self.machines)
        self.trace = Trace(keeps=keeps_trace)
        self.judge = Judge(self, kinds)
        self.judge.first_voters = _first_voters(setup)
        self.history = History(self.judge.ledger)
        self.faults: Counter[str] = Counter()
        data_judge = DataJudge(self) if setup.brokers else None
        odd_answers = OddAnswers(stream(seed, "odd answers"))
        self.traffic = Traffic(self, self.judge, self.trace, stream(seed, "mail"), odd_answers)
        self.observer = Observer(self, self.judge, data_judge, self.trace, self.traffic)
        for node_id in setup.nodes:
            machine = self.machines[node_id] = Machine(self, self.observer, self.traffic, node_id)
            self.judge.watch(machine)
        numbers = range(1, setup.clients + 1)
        self.clients = [
            RegisterClient(self, self.traffic, self.history, number) for number in numbers
        ]
        self.operator = ClientLink(self, self.traffic, -1_000)
        self.cluster: Cluster | None = None
        """Brokers, partitions and their clients, if there are any."""
        if data_judge is not None:
            self.cluster = Cluster(self, self.traffic, data_judge)
            self.judge.committed = data_judge.metadata_committed
        self.administrators = [
            Administrator(self, self.traffic, self.judge, number)
            for number in range(setup.administrators)
        ]
        last = FIRST_STUB_BROKER + setup.paper_brokers
        self.paper_brokers = {
            node_id: StubBroker(self, self.traffic, self.judge, node_id)
            for node_id in range(FIRST_STUB_BROKER, last)
        }
        self.judge.fenced = self._fenced

    def start(self) -> None:
        """Start every machine and every client."""
        for machine in self.machines.values():
            machine.start()
        for client in self.clients:
            client.start()
        for administrator in self.administrators:
            administrator.start()
        for broker in self.paper_brokers.values():
            broker.start()
        if self.cluster is not None:
            self.cluster.start()

    def rest(self) -> None:
        """Let clients, administrators and brokers on paper ask for nothing more."""
        for client in self.clients:
            client.is_done = True
        for administrator in self.administrators:
            administrator.is_done = True
        for broker in self.paper_brokers.values():
            broker.is_done = True

    def _fenced(self, epoch: int, broker_id: int, broker_epoch: int, led: bool) -> None:
        broker = self.paper_brokers.get(broker_id)
        if broker is not None:
            broker.fenced(epoch, broker_epoch, led=led)

    # -- looking ---------------------------------------------------------------------------------

    def running(self) -> list[Machine]:
        """Machines whose process runs."""
        return running(self.machines.values())

    def leader(self) -> Machine | None:
        """The running leader of the highest epoch."""
        return newest_leader(self.machines.values())

    def is_settled(self) -> bool:
        """Whether all running nodes, except those astray, have one leader and commit its log."""
        leader = self.leader()
        if leader is None:
            return False
        quorum = leader.quorum
        end = self.judge.watches[leader.id].log.end_offset
        for machine in self.running():
            own = machine.quorum
            log = self.judge.watches[machine.id].log
            same = own.epoch == quorum.epoch and own.high_watermark == end == log.end_offset
            follows = machine is leader or isinstance(own.role, Follower)
            if not (same and follows) and not self.is_astray(machine):
                return False
        return True

    def is_astray(self, machine: Machine) -> bool:
        """Whether a flipped bit took a node to an epoch where it can only wait for the quorum.

        An observer in an epoch that the quorum has not reached may not go back to a lower one, and
        cannot raise the others to its own. A node with a leader id that does not exist takes no
        other leader in the same epoch. Connections with checksums cause neither.
        """
        leader = self.leader()
        if leader is None or not self.is_garbled:
            return False
        own, epoch = machine.quorum, leader.quorum.epoch
        if own.epoch > epoch:
            return not own.is_voter
        return own.epoch == epoch and own.leader_id not in (NO_REPLICA, *self.machines)


def _first_voters(setup: Setup) -> VoterSet:
    """Return the voters that a node knows before it reads its log: none of a dynamic set."""
    if setup.is_dynamic:
        return VoterSet({})
    return VoterSet.of(
        VoterNode(
            ReplicaKey(ReplicaId(node), ZERO_UUID),
            {LISTENER: Address(host_of(node), CONTROLLER_PORT)},
            VersionRange(0, 1),
        )
        for node in setup.voters
    )
