"""The simulated world: machines, the network between them, clients, time, and the judge.

One seed decides everything. What machines tell goes to the `onlooker`, what they send passes the
`mail`; both show it to judge and trace. Faults act on the world from outside (`faults`); `run`
lives through a plan. Read next: `machine`, `network`, `judge`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from kraft_wire.model import NO_REPLICA, ZERO_UUID, ReplicaId, ReplicaKey
from kraft_wire.raft.roles import Follower, Leader
from kraft_wire.raft.voters import Address, VersionRange, VoterNode, VoterSet
from kraft_wire.sim.addresses import Addresses
from kraft_wire.sim.administrators import Administrator
from kraft_wire.sim.clients import Admin, Client
from kraft_wire.sim.cluster import Cluster
from kraft_wire.sim.history import History
from kraft_wire.sim.invariants import SAFETY
from kraft_wire.sim.judge import Judge, Signals
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.mail import Mail
from kraft_wire.sim.network import Network
from kraft_wire.sim.onlooker import Onlooker
from kraft_wire.sim.paper_brokers import FIRST_PAPER_BROKER, PaperBroker
from kraft_wire.sim.scheduler import Scheduler, stream
from kraft_wire.sim.setup import CONTROLLER_PORT, LISTENER, Setup, host_of
from kraft_wire.sim.trace import Trace

__all__ = ["World"]


class World:
    """Everything there is."""

    def __init__(
        self,
        seed: int,
        setup: Setup,
        *,
        kinds: Sequence[Callable[[Judge], Signals]] = SAFETY,
        keeps_trace: bool = False,
    ) -> None:
        self.seed = seed
        self.setup = setup
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler, stream(seed, "network"))
        self.trace = Trace(keeps=keeps_trace)
        self.judge = Judge(kinds, setup.is_dynamic)
        self.history = History(self.judge.ledger)
        self.events = 0
        self.useful_events = 0
        """Those after which a disk, a role, a leader or a high watermark was another one."""
        self.late_us_max = 0
        self.is_garbled = False
        """Whether a frame with turned bits was sent: who leads may be any number from then on."""
        self.faults: Counter[str] = Counter()
        self.marks: Counter[str] = Counter()
        """What was reached: elections, truncations, installations, and so on."""
        self._late = stream(seed, "late")
        self.onlooker = Onlooker(self)
        self.mail = Mail(self, stream(seed, "mail"))
        self.judge.first_voters = _first_voters(setup)
        self.addresses = Addresses(self)
        self.machines = {node_id: Machine(self, node_id) for node_id in setup.nodes}
        for machine in self.machines.values():
            self.judge.watch(machine)
        self.clients = [Client(self, number + 1) for number in range(setup.clients)]
        self.operator = Admin(self, -1_000)
        self.cluster = Cluster(self) if setup.brokers else None
        """Brokers, partitions and their clients, where there are any."""
        count = range(setup.administrators)
        self.administrators = [Administrator(self, number) for number in count]
        last = FIRST_PAPER_BROKER + setup.paper_brokers
        self.paper_brokers = {n: PaperBroker(self, n) for n in range(FIRST_PAPER_BROKER, last)}
        self.judge.fenced = self._fenced
        if self.cluster is not None:
            self.judge.committed = self.cluster.judge.metadata_committed

    @property
    def now_us(self) -> int:
        """True time."""
        return self.scheduler.now_us

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

    def _fenced(self, epoch: int, broker_id: int, broker_epoch: int) -> None:
        broker = self.paper_brokers.get(broker_id)
        if broker is not None:
            broker.fenced(epoch, broker_epoch)

    def late_us(self) -> int:
        """Draw by how much a timer is late."""
        return int(self._late.random() * self.late_us_max) if self.late_us_max else 0

    # -- looking ---------------------------------------------------------------------------------

    def running(self) -> list[Machine]:
        """Machines whose process runs."""
        return [machine for machine in self.machines.values() if machine.node is not None]

    def leader(self) -> Machine | None:
        """The running leader of the highest epoch."""
        leaders = [m for m in self.running() if isinstance(m.quorum.role, Leader)]
        return max(leaders, key=lambda machine: machine.quorum.epoch, default=None)

    def is_settled(self) -> bool:
        """Whether all who run and are not astray follow one leader and have committed its log."""
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
        """Whether a turned bit took a node where it can only wait until the quorum comes by.

        An observer in an epoch that the quorum has not reached may not go back to a lower one, and
        cannot raise the others to its own. Who was named a leader that does not exist takes no
        other in the same epoch. Connections that check what they carry do neither.
        """
        leader = self.leader()
        if leader is None or not self.is_garbled:
            return False
        own, epoch = machine.quorum, leader.quorum.epoch
        if own.epoch > epoch:
            return not own.is_voter
        return own.epoch == epoch and own.leader_id not in (NO_REPLICA, *self.machines)


def _first_voters(setup: Setup) -> VoterSet:
    """Return the voters that a node knows before it has read anything: none of a dynamic set."""
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
