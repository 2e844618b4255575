"""Three controllers and three brokers as processes; brokers restart in turn meanwhile.

All are of one make. In a mixed cluster the controllers and two brokers are Apache's, and the broker
between them is ours. With a network each lives in a namespace of its own, so that one direction may
be cut.

Every topic is replicated to all three brokers, and two must have what is acknowledged. A restart is
a controlled one: SIGTERM, a clean end, and a start over the same data and port when the others know
that it is gone. The next one comes when the broker is in every ISR again, so that there are two
others at any time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import cycle
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic

from tests.chaos.network import Network, host_of
from tests.mixed.controller import OURS, Controller
from tests.mixed.quorum import MixedQuorum
from tests.ports import free_port
from tests.replicas.layouts import LAYOUTS

MIXED = "mixed"
CONTROLLERS = (1, 2, 3)
BROKERS = (101, 102, 103)
REPLICAS = len(BROKERS)
SETTINGS = {
    "min.insync.replicas": "2",
    "default.replication.factor": str(REPLICAS),
    "num.partitions": "4",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "offsets.topic.replication.factor": str(REPLICAS),
    "group.initial.rebalance.delay.ms": "0",
    "controller.quorum.fetch.timeout.ms": "10000",
    "controller.quorum.election.timeout.ms": "2000",
    "controller.quorum.request.timeout.ms": "5000",
}
"""Controllers have time, because this is about brokers: a busy machine would hold elections."""
PATIENCE_S = 120.0
SIGTERM_CODES = (0, 143)
"""Ours says that it ended as it was asked to; a Java virtual machine names the signal."""
LOG_TAIL = 4_000
ASKING_AGAIN_S = 0.3
BROKER_HEAP_MB = 384
"""Of Apache's, whose log cleaner takes 128 of it."""


class _Broker(Controller):
    """A broker, which may have many partitions to hand over."""

    heap_mb = BROKER_HEAP_MB


class Cluster:
    """Format, start, restart and stop it; what fails in a restart is raised at the end of all."""

    def __init__(
        self,
        home: Path,
        make: str,
        *,
        overrides: Mapping[str, str] | None = None,
        network: Network | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        """`make` is `ours`, `mixed` or a release of Apache; `overrides` are for every node."""
        settings = {**SETTINGS, **(overrides or {})}
        is_mixed = make == MIXED
        controllers = LAYOUTS[MIXED].controllers if is_mixed else (make,) * len(CONTROLLERS)
        brokers = LAYOUTS[MIXED].brokers if is_mixed else (make,) * len(BROKERS)
        self.home = home
        self.network = network
        self.quorum = MixedQuorum(
            home,
            dict(zip(CONTROLLERS, controllers, strict=True)),
            voters=CONTROLLERS,
            overrides=settings,
            network=network,
        )
        self._formatted_by = OURS if is_mixed else None
        """None is each node's own tool; Apache's finalises what no broker of ours supports."""
        self.brokers = {
            each: self._broker(each, make, settings)
            for each, make in zip(BROKERS, brokers, strict=True)
        }
        self.restarts = 0
        self.slowest_restart_s = 0.0
        self.problem = ""
        """Why nobody is restarted any more."""
        self._say = say
        self._lock = threading.Lock()

    def _broker(self, node_id: int, make: str, settings: Mapping[str, str]) -> Controller:
        port = free_port()
        shared = self.quorum[CONTROLLERS[0]].properties
        properties = {
            **{
                key: shared[key]
                for key in ("controller.listener.names", "controller.quorum.voters")
            },
            "process.roles": "broker",
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://{host_of(node_id, self.network)}:{port}",
            "log.dirs": str(self.home / f"node-{node_id}"),
            **settings,
        }
        broker = _Broker(node_id, make, self.home, port, properties)
        broker.live_in(self.network)
        return broker

    @property
    def bootstrap(self) -> str:
        """All brokers."""
        return ",".join(each.address for each in self.brokers.values())

    @property
    def data(self) -> Path:
        """The directory above those of all nodes."""
        return self.home

    @property
    def log(self) -> Path:
        """A file with what everybody wrote last."""
        told = self.home / "everybody.log"
        nodes = [*self.quorum.nodes.values(), *self.brokers.values()]
        told.write_text("\n".join(f"--- {n.node_id}\n{n.text[-LOG_TAIL:]}" for n in nodes))
        return told

    def restart(self) -> None:
        """One broker after the other."""
        for node_id in self.brokers:
            self.restart_broker(node_id)

    def restart_broker(self, node_id: int) -> None:
        """Stop it in order and start it again, and wait until it is in every ISR."""
        with self._lock:
            began = time.monotonic()
            code = self.brokers[node_id].stop()
            assert code in SIGTERM_CODES, (
                f"broker {node_id} ended with {code}\n{self.log.read_text()}"
            )
            away = time.monotonic()
            self._until(lambda found: _still_there(found, node_id))
            self.brokers[node_id].start()
            self._until(lacking)
            self.restarts += 1
            self.slowest_restart_s = max(self.slowest_restart_s, time.monotonic() - began)
            took = f"{away - began:.1f} s, in every ISR {time.monotonic() - away:.1f} s later"
        self._say(f"broker {node_id}: stopped in {took}")

    def kill_broker(self, node_id: int, away_s: float = 0.0) -> None:
        """End it with SIGKILL and start it again, and wait until it is in every ISR."""
        with self._lock:
            self.brokers[node_id].kill()
            time.sleep(away_s)
            self.brokers[node_id].start()
            self._until(lacking)

    def await_whole(self) -> None:
        """Wait until every broker is there, and in every ISR."""
        self._until(lacking)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create one with a replica on each broker."""
        wanted = [NewTopic(name, partitions, REPLICAS)]
        self._admin.create_topics(wanted)[name].result(PATIENCE_S)

    def delete_topics(self, prefix: str, *, but: str) -> None:
        """Delete the topics of a prefix but one: what nobody needs makes restarts slow."""
        try:
            found = self._admin.list_topics(timeout=10).topics
            names = [each for each in found if each.startswith(prefix) and each != but]
            for deleted in self._admin.delete_topics(names).values() if names else ():
                deleted.result(PATIENCE_S)
        except (KafkaException, TimeoutError) as error:
            self._say(f"topics {prefix}… stay: {error}")  # which is nothing that clients promise

    @contextmanager
    def restarting(self, every_s: float) -> Iterator[None]:
        """Restart one broker after the other, one every so many seconds."""
        is_over = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            restarts = pool.submit(self._restart_until, is_over, every_s)
            try:
                yield
            finally:
                is_over.set()
            restarts.result()

    def _restart_until(self, is_over: threading.Event, every_s: float) -> None:
        due = time.monotonic() + every_s
        for node_id in cycle(self.brokers):
            if is_over.wait(max(0.0, due - time.monotonic())):
                return
            due = time.monotonic() + every_s
            try:
                self.restart_broker(node_id)
            except BaseException as error:
                self.problem = f"broker {node_id} did not restart: {error!r}"[:500]
                self._say(self.problem)
                raise

    # -- how it stands ---------------------------------------------------------------------------

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _until(self, lacking: Callable[[ClusterMetadata], str | None]) -> None:
        """Ask for the metadata of everything until nothing is lacking in them."""
        deadline = time.monotonic() + PATIENCE_S
        while (what := self._asked(lacking)) is not None:
            nodes = [*self.quorum.nodes.values(), *self.brokers.values()]
            died = [each.node_id for each in nodes if each.died]
            if died or time.monotonic() > deadline:
                raise AssertionError(f"{what}; died: {died}\n{self.log.read_text()}")
            time.sleep(ASKING_AGAIN_S)

    def _asked(self, lacking: Callable[[ClusterMetadata], str | None]) -> str | None:
        try:
            return lacking(self._admin.list_topics(timeout=10))
        except KafkaException as error:
            return str(error)

    # -- its life --------------------------------------------------------------------------------

    def __enter__(self) -> Cluster:
        nodes = [*self.quorum.nodes.values(), *self.brokers.values()]
        try:
            for node in nodes:
                node.format(make=self._formatted_by)
            self.quorum.start()
            self.quorum.leader()
            for broker in self.brokers.values():
                broker.start()
            self._until(lacking)
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill()

    def _kill(self) -> None:
        for broker in self.brokers.values():
            broker.kill()
        for controller in self.quorum.nodes.values():
            controller.kill()


def lacking(found: ClusterMetadata, broker_ids: Collection[int] = BROKERS) -> str | None:
    """Return which broker is not there, or not in an ISR; None where all is as it should be."""
    if set(found.brokers) != set(broker_ids):
        return f"brokers {sorted(found.brokers)}"
    for topic in found.topics.values():
        for partition in topic.partitions.values():
            if len(partition.isrs) != len(partition.replicas):
                return f"{topic.topic}-{partition.id}: ISR {partition.isrs}"
    return None


def _still_there(found: ClusterMetadata, node_id: int) -> str | None:
    """Whether a broker that has stopped is still shown."""
    return f"broker {node_id} has stopped and is shown" if node_id in found.brokers else None
