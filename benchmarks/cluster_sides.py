"""Both sides of `benchmarks.cluster`: three brokers on three controllers, of ours and of Apache's.

Same properties, Kafka's own timeouts, the same client to ask them. Apache's brokers have the heap
and the collector that its own script sets.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from types import TracebackType

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.admin import ClusterMetadata as Metadata

from benchmarks.node import APACHE_FLAGS, command_of, cpu_seconds, resident_bytes
from benchmarks.quorum_sides import Measured, Side
from tests.chaos.failover import SIDES
from tests.ports import free_port

__all__ = ["BROKERS", "HEAP_MB", "PARTITION_SETTINGS", "ClusterSide", "cluster_sides"]

BROKERS = (101, 102, 103)
HEAP_MB = 1024
"""Of a broker: what Apache's script gives it."""
CONTROLLER_HEAP_MB = 256
SETTINGS = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "broker.session.timeout.ms": "9000",
    "broker.heartbeat.interval.ms": "2000",
    "replica.fetch.wait.max.ms": "500",
    "replica.lag.time.max.ms": "30000",
    "num.replica.fetchers": "1",
    "log.segment.delete.delay.ms": "1000",
}
"""Kafka's own but for replicas and for deleted files, which would fill the disk."""
ANSWER_REST_S_MAX = 1.0
PARTITION_SETTINGS = {"min.insync.replicas": "2"}


class ClusterSide(Side):
    """Three controllers and three brokers of one make, formatted and not started."""

    def __init__(self, name: str, home: Path) -> None:
        super().__init__(name, home, overrides=SETTINGS, heap_mb=CONTROLLER_HEAP_MB)
        self.brokers = {each: self._broker(each, home) for each in BROKERS}
        self._restarted = 0

    def _broker(self, node_id: int, home: Path) -> Measured:
        port = free_port()
        shared = self[1].properties
        names = ("controller.listener.names", "controller.quorum.voters")
        properties = {
            **{key: shared[key] for key in names},
            "process.roles": "broker",
            "node.id": str(node_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(home / f"node-{node_id}"),
            **SETTINGS,
        }
        broker = Measured(node_id, SIDES[self.name], home, port, properties)
        broker.heap_mb, broker.flags = HEAP_MB, APACHE_FLAGS
        broker.format()
        return broker

    @property
    def bootstrap(self) -> str:
        """All brokers."""
        return ",".join(each.address for each in self.brokers.values())

    @cached_property
    def admin(self) -> AdminClient:
        """Whoever asks how the cluster stands."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def boot_seconds(self) -> float:
        """Start everything; until all brokers are there."""
        begun = time.perf_counter()
        self.start()
        for broker in self.brokers.values():
            broker.start()
        self.until_whole()
        return time.perf_counter() - begun

    def stop(self) -> None:
        """Stop brokers and then controllers in order, as far as they run."""
        for broker in self.brokers.values():
            broker.stop()
        super().stop()

    def next_broker(self) -> Measured:
        """One after the other."""
        self._restarted += 1
        return self.brokers[BROKERS[self._restarted % len(BROKERS)]]

    def make_whole(self) -> None:
        """Start whoever does not run, and wait until every broker is in every ISR."""
        for node in (*self.measured.values(), *self.brokers.values()):
            if node.died:
                node.kill()  # so that it counts as ended
            if not node.is_running:
                node.start()
        self.until_whole()

    def restart(self, broker: Measured, pause_s: float) -> tuple[float, float]:
        """Stop a broker and start it when it is gone and a pause is over; how long each took."""
        begun = time.perf_counter()
        broker.stop()
        stop_s = time.perf_counter() - begun
        self.until_gone(broker)
        time.sleep(pause_s)
        begun = time.perf_counter()
        broker.start()
        self.until_whole()
        return stop_s, time.perf_counter() - begun

    # -- topics ----------------------------------------------------------------------------------

    def create(self, topic: str, partitions: int) -> float:
        """Create a topic of three replicas; return the seconds until that was answered."""
        begun = time.perf_counter()
        wanted = NewTopic(topic, partitions, len(BROKERS), config=PARTITION_SETTINGS)
        asked = self.admin.create_topics([wanted], operation_timeout=60, request_timeout=120)
        self._done(asked[topic])
        return time.perf_counter() - begun

    def has(self, topic: str) -> bool:
        """Whether there is such a topic."""
        return topic in self.until_metadata("any metadata", lambda _: True).topics

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until no broker shows it."""
        asked = self.admin.delete_topics([topic], operation_timeout=60, request_timeout=120)
        self._done(asked[topic])
        self.until_metadata(f"{topic} is gone", lambda found: topic not in found.topics)

    def _done(self, asked: Future[None]) -> None:
        try:
            asked.result()
        except KafkaException as error:
            raise AssertionError(f"{self.name}: {error}\n{self.logs()}") from error

    def leader_of(self, topic: str) -> Measured:
        """Who leads its first partition."""
        found = self.until_metadata(
            f"a leader of {topic}",
            lambda told: topic in told.topics and told.topics[topic].partitions[0].leader >= 0,
        )
        return self.brokers[found.topics[topic].partitions[0].leader]

    def until_gone(self, broker: Measured) -> None:
        """Wait until a broker is shown to nobody."""
        self.until_metadata(
            f"{broker.node_id} is gone", lambda found: broker.node_id not in found.brokers
        )

    def until_whole(self) -> None:
        """Wait until every broker is there and every replica is in its ISR."""
        self.until_metadata("all brokers in every ISR", is_whole)

    def until_metadata(self, what: str, is_so: Callable[[Metadata], bool]) -> Metadata:
        """Ask a broker for the metadata of everything until they are so.

        Between two questions it has four times as long as it took to answer.
        """

        def asked() -> Metadata | None:
            begun = time.perf_counter()
            try:
                found: Metadata = self.admin.list_topics(timeout=10)
            except KafkaException:
                return None
            if is_so(found):
                return found
            time.sleep(min(4 * (time.perf_counter() - begun), ANSWER_REST_S_MAX))
            return None

        return self.until(what, asked)

    # -- figures ---------------------------------------------------------------------------------

    def cpu_seconds(self) -> float:
        """Processor time of the three brokers so far."""
        return sum(cpu_seconds(each.pid) for each in self.brokers.values())

    def resident_bytes(self) -> int:
        """Memory of a broker, of the three the one that has most."""
        return max(resident_bytes(each.pid) for each in self.brokers.values())

    def command(self) -> str:
        """How a broker was started."""
        return command_of(self.brokers[BROKERS[0]].pid)

    def logs(self) -> str:
        """The ends of all logs."""
        told = [f"--- broker {each.node_id}\n{each.text[-3000:]}" for each in self.brokers.values()]
        return "\n".join([super().logs(), *told])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for broker in self.brokers.values():
            broker.kill()
        super().__exit__(kind, error, trace)


def is_whole(found: Metadata) -> bool:
    """Whether all brokers are there, in every ISR."""
    return set(found.brokers) == set(BROKERS) and all(
        len(partition.isrs) == len(BROKERS)
        for topic in found.topics.values()
        for partition in topic.partitions.values()
    )


def cluster_sides(home: Path) -> dict[str, ClusterSide]:
    """Both of them."""
    return {name: ClusterSide(name, home / name) for name in SIDES}
