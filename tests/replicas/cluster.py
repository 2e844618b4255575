"""Controllers and brokers of either make as processes, and what the brokers tell of a topic.

Controllers are nodes 1 to 3, brokers 101 to 103. With a network each lives in a namespace of its
own, else all share the loopback. Does not look inside, but for the data directories.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice, permutations
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from tests.chaos.network import Network, host_of
from tests.mixed.controller import OURS, Controller
from tests.mixed.quorum import SHORT, MixedQuorum
from tests.ports import free_port
from tests.replicas.layouts import Layout
from tests.server.wire_client import WireClient

BROKERS_FROM = 101
TOPIC = "replicated"
PARTITIONS = 12
"""Every order of three replicas, twice: each broker is to lead four."""
MIN_INSYNC = 2
QUORUM_SECONDS_MAX = 600.0
ASKING_AGAIN_S = 0.3
QUESTIONS_MAX = 600
"""Three minutes at least, and more where the host is so busy that asking takes long too."""
UNTIL_SECONDS_MAX = 900.0
"""However long asking takes."""
BROKER_HEAP_MB = 384
"""Of Apache's, whose log cleaner takes 128 of it."""
SETTINGS = {
    **SHORT,
    "broker.heartbeat.interval.ms": "500",
    "initial.broker.registration.timeout.ms": "600000",
    "leader.imbalance.check.interval.seconds": "10",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
}
_ENDING = (signal.SIGINT, signal.SIGTERM)
OF_TOPIC = {"min.insync.replicas": str(MIN_INSYNC), "segment.bytes": str(1 << 20)}


class Node(Controller):
    """A controller or a broker, in a group of its own, so that Ctrl-C is the harness's alone."""

    is_apart = True


class ReplicaCluster:
    """All nodes of a layout; see the module."""

    def __init__(self, home: Path, layout: Layout, network: Network | None) -> None:
        self.home = home
        self.network = network
        self.session_s = layout.session_s
        session_ms = str(int(layout.session_s * 1000))
        self._settings = {
            **SETTINGS,
            "broker.session.timeout.ms": session_ms,
            "replica.lag.time.max.ms": session_ms,
            **layout.settings,
        }
        controllers = dict(enumerate(layout.controllers, 1))
        self.quorum = MixedQuorum(home, controllers, voters=controllers)
        self.quorum.seconds_max = QUORUM_SECONDS_MAX
        self._hosts = {each: host_of(each, network) for each in ids(layout)}
        self._ports = {each: free_port() for each in ids(layout)}
        self.controllers = {
            each: self._node(each, make, "controller") for each, make in controllers.items()
        }
        self.quorum.nodes = dict(self.controllers)
        self.brokers = {
            each: self._node(each, make, "broker")
            for each, make in enumerate(layout.brokers, BROKERS_FROM)
        }
        self.nodes = {**self.controllers, **self.brokers}

    def _node(self, node_id: int, make: str, role: str) -> Node:
        voters = (f"{each}@{self._place(each)}" for each in self._hosts if each < BROKERS_FROM)
        listener = "CONTROLLER" if role == "controller" else "PLAINTEXT"
        properties = {
            "process.roles": role,
            "node.id": str(node_id),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(voters),
            "listeners": f"{listener}://{self._place(node_id)}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": str(self.home / f"node-{node_id}"),
            **self._settings,
        }
        node = Node(node_id, make, self.home, self._ports[node_id], properties)
        node.live_in(self.network)
        if role == "broker":
            node.heap_mb = BROKER_HEAP_MB
        return node

    def _place(self, node_id: int) -> str:
        return f"{self._hosts[node_id]}:{self._ports[node_id]}"

    @property
    def bootstrap(self) -> str:
        """Where clients begin."""
        return ",".join(each.address for each in self.brokers.values())

    @property
    def died(self) -> list[Node]:
        """Whose process ended although nobody ended it."""
        return [each for each in self.nodes.values() if each.died]

    def begin(self) -> None:
        """Format all, start all, and make the topic."""
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(_format, self.nodes.values()))
        for node in self.controllers.values():
            node.start()
        self.quorum.leader()
        for node in self.brokers.values():
            node.start()
        self.until("all brokers are known", self._knows_all)
        orders = [list(each) for each in permutations(self.brokers)]
        new = NewTopic(
            TOPIC, PARTITIONS, replica_assignment=list(islice(cycle(orders), PARTITIONS))
        )
        new.config = OF_TOPIC
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([new], operation_timeout=60, request_timeout=60)[TOPIC].result(90)
        self.until_whole()

    def end(self) -> None:
        """Let nobody stay behind, however impatient whoever runs this is."""
        before = {each: signal.signal(each, signal.SIG_IGN) for each in _ENDING}
        for node in self.nodes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):  # slow to die, and dead by now
                node.kill()
        for number, handler in before.items():
            signal.signal(number, handler)

    # -- asking ----------------------------------------------------------------------------------

    def view(self, node_id: int) -> dict[int, MetadataResponsePartition]:
        """The topic's partitions as one broker knows them; nothing where it does not answer."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
        try:
            with WireClient(self.brokers[node_id].address) as client:
                client.sock.settimeout(2)
                answer = client.call(request, 12, MetadataResponse)
        except (OSError, AssertionError):
            return {}
        found = {each.partition_index: each for each in answer.topics[0].partitions}
        return dict(sorted(found.items()))

    def leaders(self) -> dict[int, int]:
        """Leader by partition, as the broker knows that knows most of the newest leaders."""
        views = [self.view(each.node_id) for each in self.brokers.values() if each.answers]
        newest = max(views, key=lambda view: sum(p.leader_epoch for p in view.values()), default={})
        return {number: each.leader_id for number, each in newest.items()}

    def is_whole(self) -> bool:
        """Whether every broker says of each partition that it has a leader and all in its ISR."""
        views = [self.view(node_id) for node_id in self.brokers]
        states = [
            [(each.leader_id, each.leader_epoch, sorted(each.isr_nodes)) for each in view.values()]
            for view in views
        ]
        isr = list(self.brokers)
        return all(
            len(state) == PARTITIONS
            and state == states[0]
            and all(leader in isr and members == isr for leader, _, members in state)
            for state in states
        )

    def until_whole(self) -> float:
        """Wait until it is, and no controller is behind; return the seconds that it took."""
        began = time.monotonic()
        for node_id in self.controllers:
            self.quorum.has_caught_up(node_id)
        self.until("the ISR of every partition is whole", self.is_whole)
        return time.monotonic() - began

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Ask until it is so; AssertionError after many times, or when somebody has died."""
        began = time.monotonic()
        for _ in range(QUESTIONS_MAX):
            if holds():
                return
            if time.monotonic() - began > UNTIL_SECONDS_MAX:
                break
            dead = [each.node_id for each in self.died]
            assert not dead, f"{dead} ended by themselves"
            time.sleep(ASKING_AGAIN_S)
        raise AssertionError(f"{what}: not within {time.monotonic() - began:.0f} s")

    def told(self) -> str:
        """What each broker says of the topic, for whoever has to find out what went wrong."""
        return "\n".join(
            f"{node_id}: "
            + "; ".join(
                f"{number}: leader {each.leader_id} epoch {each.leader_epoch} "
                f"isr {sorted(each.isr_nodes)}"
                for number, each in self.view(node_id).items()
            )
            for node_id in self.brokers
        )

    def _knows_all(self) -> bool:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        try:
            return set(admin.list_topics(timeout=10).brokers) == set(self.brokers)
        except KafkaException:
            return False


def ids(layout: Layout) -> list[int]:
    """The node ids of a layout."""
    controllers = range(1, len(layout.controllers) + 1)
    return [*controllers, *range(BROKERS_FROM, BROKERS_FROM + len(layout.brokers))]


def _format(node: Node) -> None:
    """By our tool, whoever's the node is: Apache's would finalise what no broker of ours serves."""
    node.format(make=OURS)
