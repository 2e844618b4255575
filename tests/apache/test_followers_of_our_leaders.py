"""An Apache Kafka 4.3.1 broker follows partitions that a node of ours leads, dies, and comes back.

Everybody here is real: our node is broker and controller, producers and consumers are librdkafka's
and our own frames, and in the end the files of both brokers are compared byte by byte.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.apache.broker_only import ApacheBroker
from tests.quorum_processes import QuorumProcesses
from tests.server.wire_client import WireClient, one_batch
from tests.waiting import HANG_S

pytestmark = [pytest.mark.java, pytest.mark.client]

OURS, APACHE = 1, 101
LAG_MAX_S = 2.0
SESSION_S = 20.0
"""Long enough that it is the leader who leaves a dead follower out, not the controller."""
SECONDS_MAX = HANG_S
RECORDS = 300
PARTITIONS = 2
SETTINGS = {
    "replica.lag.time.max.ms": str(int(LAG_MAX_S * 1000)),
    "broker.session.timeout.ms": str(int(SESSION_S * 1000)),
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.replication.factor": "1",
    "broker.rack": "a",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}


class Cluster:
    """Our combined node, Apache's broker beside it, and what clients see of them."""

    def __init__(self, directory: Path) -> None:
        (directory / "ours").mkdir()
        self.quorum = QuorumProcesses(directory / "ours", 1, is_combined=True, overrides=SETTINGS)
        self.apache = ApacheBroker(
            directory / "apache",
            APACHE,
            cluster_id=self.quorum.cluster_id,
            voters=f"1@{self.quorum.controller(OURS)}",
            overrides={"broker.rack": "b"},
        )
        self.directories = (directory / "ours" / "node-1", self.apache.data)

    @property
    def bootstrap(self) -> str:
        return self.quorum.client(OURS)

    def create(self, topic: str, **config: str) -> None:
        """Make a topic that our node leads and Apache's follows."""
        new = NewTopic(topic, PARTITIONS, replica_assignment=[[OURS, APACHE]] * PARTITIONS)
        new.config = {name.replace("_", "."): value for name, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([new])[topic].result(SECONDS_MAX)

    def state(self, topic: str) -> list[tuple[int, list[int]]]:
        """Leader and ISR of each partition, as our node tells it."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        partitions = admin.list_topics(topic, timeout=SECONDS_MAX).topics[topic].partitions
        return [(each.leader, sorted(each.isrs)) for each in partitions.values()]

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is listed, as those are that no controller has fenced."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        return broker_id in admin.list_topics(timeout=SECONDS_MAX).brokers

    def await_isrs(self, topic: str, members: list[int], leader: int = OURS) -> None:
        wanted = [(leader, members)] * PARTITIONS
        wait_until(lambda: self.state(topic) == wanted, f"{leader} leads {members}")

    def lead_again(self, topic: str) -> None:
        """Have our node, the first replica, elected; Apache's had led meanwhile."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        answers = admin.elect_leaders(ElectionType.PREFERRED, places).result(SECONDS_MAX)
        assert list(answers.values()) == [None] * PARTITIONS, answers

    def produce(self, topic: str, first: int) -> None:
        """Produce records with acks=all by a real client; every one is acknowledged."""
        problems: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                problems.append(error)

        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "acks": "all", "enable.idempotence": True}
        )
        for number in range(first, first + RECORDS):
            value = f"{topic} {number}".encode()
            producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=delivered)
        assert producer.flush(SECONDS_MAX) == 0
        assert problems == []

    def one_error(self, topic: str, timeout_ms: int = 1_000) -> ErrorCode:
        """Produce one record with acks=all in one request; return what becomes of it."""
        data = PartitionProduceData(index=0, records=one_batch(b"alone"))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        with WireClient(self.bootstrap) as client:
            answer = client.call(request, 9, ProduceResponse)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def preferred(self, topic: str, rack: str) -> int:
        """Where our leader sends a consumer of a rack to read."""
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            rack_id=rack, max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=[asked])]
        )
        with WireClient(self.bootstrap) as client:
            answer = client.call(request, 12, FetchResponse)
        return answer.responses[0].partitions[0].preferred_read_replica

    def consumed(self, topic: str, rack: str = "") -> list[bytes]:
        """Every record that is committed, by partition."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "g", "client.rack": rack}
        consumer = Consumer(settings)
        values: list[bytes] = []
        for number in range(PARTITIONS):
            place = TopicPartition(topic, number, 0)
            end = end_of(consumer, place)
            consumer.assign([place])
            found: list[bytes] = []
            while len(found) < end:
                message = consumer.poll(SECONDS_MAX)
                assert message is not None
                assert message.error() is None, message.error()
                found.append(message.value())
            values += found
        consumer.close()
        return values

    def logs(self, topic: str) -> list[tuple[bytes, bytes]]:
        """Per partition the records' bytes on our disk and on Apache's."""
        return [
            tuple(  # type: ignore[misc]  # two of them
                b"".join(
                    file.read_bytes()
                    for file in sorted((directory / f"{topic}-{number}").glob("*.log"))
                )
                for directory in self.directories
            )
            for number in range(PARTITIONS)
        ]


def end_of(consumer: Consumer, place: TopicPartition) -> int:
    """Where what is committed ends, once a new leader has heard of its follower (KIP-207)."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=SECONDS_MAX)[1])
        except KafkaException as refused:
            is_expected = refused.args[0].code() == KafkaError.OFFSET_NOT_AVAILABLE
            if not is_expected or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def told(directory: Path, story: Callable[[Cluster], None], *topics: str) -> None:
    """Run a story; afterwards both brokers' files are the same, byte by byte."""
    cluster = Cluster(directory)
    cluster.apache.format()
    with cluster.quorum:
        cluster.quorum.leader()
        cluster.apache.start()
        try:
            story(cluster)
        finally:
            cluster.apache.stop()
    assert " ERROR " not in cluster.apache.log.read_text(errors="replace")
    for topic in topics:
        for ours, theirs in cluster.logs(topic):
            assert ours == theirs
            assert len(ours) > RECORDS // PARTITIONS * 10


def test_an_apache_follower_dies_and_comes_back_and_nothing_acknowledged_is_lost(
    tmp_path: Path,
) -> None:
    told(tmp_path, follower_dies, "loose", "strict")


def test_our_leader_dies_and_comes_back_as_a_follower_and_nothing_acknowledged_is_lost(
    tmp_path: Path,
) -> None:
    told(tmp_path, leader_dies, "loose")


def leader_dies(cluster: Cluster) -> None:
    cluster.create("loose")
    cluster.await_isrs("loose", [OURS, APACHE])
    for first in range(0, 3 * RECORDS, RECORDS):
        cluster.produce("loose", first)
        cluster.quorum.kill(OURS)
        cluster.quorum.start(OURS)
        cluster.await_isrs("loose", [OURS, APACHE], leader=APACHE)
        cluster.lead_again("loose")
        cluster.await_isrs("loose", [OURS, APACHE])
    assert cluster.consumed("loose") == in_order("loose", range(3 * RECORDS))


def follower_dies(cluster: Cluster) -> None:
    cluster.create("loose")
    cluster.create("strict", min_insync_replicas="2")
    for topic in ("loose", "strict"):
        cluster.await_isrs(topic, [OURS, APACHE])
        cluster.produce(topic, 0)
    cluster.apache.kill()
    # The first record waits for the dead follower, until it is left out of the ISR.
    began = time.monotonic()
    cluster.produce("loose", RECORDS)
    assert time.monotonic() - began > 0.5 * LAG_MAX_S
    cluster.await_isrs("loose", [OURS])
    assert cluster.is_alive(APACHE), "its leader has left it out, not the controller"
    wait_until(lambda: cluster.one_error("strict") is ErrorCode.NOT_ENOUGH_REPLICAS, "a refusal")
    cluster.await_isrs("strict", [OURS])
    cluster.apache.start()
    for topic in ("loose", "strict"):
        cluster.await_isrs(topic, [OURS, APACHE])
        cluster.produce(topic, 2 * RECORDS)
    assert cluster.consumed("loose") == in_order("loose", range(3 * RECORDS))
    assert [cluster.preferred("loose", rack) for rack in ("a", "b", "c")] == [-1, APACHE, -1]
    assert cluster.consumed("loose", rack="b") == in_order("loose", range(3 * RECORDS))
    # A record that was not acknowledged may be there all the same.
    strict = [value for value in cluster.consumed("strict") if value != b"alone"]
    both = [*range(RECORDS), *range(2 * RECORDS, 3 * RECORDS)]
    assert strict == in_order("strict", both)


def in_order(topic: str, numbers: Sequence[int]) -> list[bytes]:
    """The records of one partition after the other, as they were produced."""
    return [
        f"{topic} {number}".encode()
        for partition in range(PARTITIONS)
        for number in numbers
        if number % PARTITIONS == partition
    ]
