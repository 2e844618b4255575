"""Our broker follows Apache's: it gets into the ISR, takes over, and is cut back where it differs.

A combined node of ours and a broker of Apache's share partitions. The judges are Apache's leader,
which admits a follower to the ISR only by what it fetches, librdkafka's producer and consumer, and
the log files of both sides, which must be the same bytes.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from tests.apache.broker_only import ApacheBroker
from tests.quorum_processes import QuorumProcesses
from tests.server.wire_client import WireClient
from tests.waiting import HANG_S

pytestmark = pytest.mark.java

OURS, APACHE = 1, 101
SECONDS_MAX = HANG_S
QUICK = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.replication.factor": "2",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class TwoBrokers:
    """A combined node of ours and a broker of Apache's on it."""

    def __init__(self, directory: Path, overrides: Mapping[str, str] = QUICK) -> None:
        (directory / "ours").mkdir()
        self.quorum = QuorumProcesses(
            directory / "ours",
            1,
            is_combined=True,
            overrides=overrides,
            format_options=["--feature", "transaction.version=0"],
        )
        self.apache = ApacheBroker(
            directory / "apache",
            APACHE,
            cluster_id=self.quorum.cluster_id,
            voters=f"1@{self.quorum.controller(OURS)}",
            overrides={**overrides, "num.partitions": "1"},
        )

    @contextmanager
    def running(self) -> Iterator[TwoBrokers]:
        """Start both; the end is that of the with block."""
        with self.quorum:
            self.apache.format()
            self.apache.start()
            try:
                yield self
            finally:
                self.apache.kill()

    def create(self, topic: str, replicas: list[int], partitions: int = 1, **configs: str) -> None:
        """Create a topic whose partitions all have these replicas, the leader first."""
        assignments = [
            CreatableReplicaAssignment(partition_index=at, broker_ids=replicas)
            for at in range(partitions)
        ]
        values = [
            CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in configs.items()
        ]
        wanted = CreatableTopic(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=values,
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=10_000)
        with WireClient(self.quorum.client(OURS)) as client:
            (created,) = client.call(request, 7, CreateTopicsResponse).topics
        assert created.error_code == ErrorCode.NONE, (created.error_code, created.error_message)

    def partitions(self, topic: str) -> list[MetadataResponsePartition]:
        """The partitions as our node knows them."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        with WireClient(self.quorum.client(OURS)) as client:
            (found,) = client.call(request, 12, MetadataResponse).topics
        return list(found.partitions)

    def await_partitions(
        self, topic: str, wanted: Callable[[MetadataResponsePartition], bool]
    ) -> None:
        """Wait until each partition is as wanted."""
        deadline = time.monotonic() + SECONDS_MAX
        while not all(wanted(each) for each in self.partitions(topic)):
            assert time.monotonic() < deadline, (self.partitions(topic), self.quorum.log(OURS))
            time.sleep(0.05)

    def await_isr(self, topic: str, leader: int, members: set[int]) -> None:
        self.await_partitions(
            topic, lambda each: each.leader_id == leader and set(each.isr_nodes) == members
        )

    def logs(self, topic: str, partition: int = 0) -> tuple[bytes, bytes]:
        """The bytes of the log at Apache's broker, and at ours."""
        return tuple(  # type: ignore[return-value]  # two of them
            b"".join(
                file.read_bytes() for file in sorted((at / f"{topic}-{partition}").glob("*.log"))
            )
            for at in (self.apache.data, self.quorum.directory / "node-1")
        )

    def await_same_logs(self, topic: str, partition: int = 0) -> bytes:
        """Wait until both logs are the same bytes, and return them."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            apaches, ours = self.logs(topic, partition)
            if apaches == ours:
                return ours
            assert time.monotonic() < deadline, (len(apaches), len(ours), self.quorum.log(OURS))
            time.sleep(0.05)

    @property
    def bootstrap(self) -> str:
        return f"{self.apache.bootstrap},{self.quorum.client(OURS)}"

    def producer(self, **settings: object) -> Producer:
        return Producer({"bootstrap.servers": self.bootstrap, "acks": "all", **settings})

    def consumer(self, group: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[TwoBrokers]:
    with TwoBrokers(tmp_path).running() as both:
        yield both


def send(producer: Producer, topic: str, values: list[str], partition: int = 0) -> None:
    """Produce, and wait until everything is acknowledged."""
    errors: list[object] = []
    for value in values:
        producer.produce(
            topic,
            value.encode(),
            partition=partition,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(SECONDS_MAX) == 0
    assert errors == [None] * len(values), errors


def read(consumer: Consumer, topic: str, count: int, partition: int = 0) -> list[str]:
    """The first records of a partition, and what comes within half a second behind them."""
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[str] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(values) < count and time.monotonic() < deadline:
        values += [
            each.value().decode() for each in consumer.consume(1_000, 0.5) if not each.error()
        ]
    values += [each.value().decode() for each in consumer.consume(1_000, 0.5) if not each.error()]
    return values


def committed(consumer: Consumer, topic: str) -> int:
    """What a group committed, asked again while its coordinator moves."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
            return int(found.offset)
        except KafkaException:
            assert time.monotonic() < deadline


def test_follows_apache_gets_into_the_isr_and_takes_over(brokers: TwoBrokers) -> None:
    """Every codec, byte for byte; then the leader dies: nothing acknowledged is lost or doubled."""
    brokers.create("t", [APACHE, OURS], len(CODECS))
    brokers.create("__consumer_offsets", [APACHE, OURS], cleanup_policy="compact")
    brokers.await_isr("t", APACHE, {APACHE, OURS})
    values = [f"{at}-{'x' * (at % 300)}" for at in range(500)]
    for number, codec in enumerate(CODECS):
        send(brokers.producer(**{"compression.type": codec}), "t", values, number)
        assert len(brokers.await_same_logs("t", number)) > 1_000
    steady = brokers.producer(**{"enable.idempotence": True, "linger.ms": 0})
    send(steady, "t", [f"before-{at}" for at in range(200)])
    reader = brokers.consumer("g")
    (done,) = reader.commit(offsets=[TopicPartition("t", 0, 321)], asynchronous=False)
    assert done.error is None
    brokers.await_isr("__consumer_offsets", APACHE, {APACHE, OURS})
    brokers.await_same_logs("__consumer_offsets")
    for number in range(200):
        steady.produce("t", f"while-{number}".encode(), partition=0)
    brokers.apache.kill()
    brokers.await_isr("t", OURS, {OURS})
    send(steady, "t", [f"after-{at}" for at in range(200)])
    expected = [f"{when}-{at}" for when in ("before", "while", "after") for at in range(200)]
    assert read(brokers.consumer("r"), "t", 1_100) == values + expected
    for number in range(1, len(CODECS)):
        assert read(brokers.consumer("r"), "t", 500, number) == values
    assert committed(brokers.consumer("g"), "t") == 321
    assert "Error" not in brokers.quorum.log(OURS)


def test_records_that_only_we_had_are_cut(brokers: TwoBrokers) -> None:
    """We led, wrote what nobody fetched, died: Apache leads, and our log becomes its log."""
    brokers.create("d", [OURS, APACHE])
    brokers.await_isr("d", OURS, {APACHE, OURS})
    kept = [f"kept-{at}" for at in range(20)]
    send(brokers.producer(), "d", kept)
    brokers.await_same_logs("d")
    os.kill(brokers.apache.pid, signal.SIGSTOP)
    ours = brokers.producer(**{"bootstrap.servers": brokers.quorum.client(OURS), "acks": "1"})
    send(ours, "d", ["caught"])  # it answers the fetch that waits
    send(ours, "d", [f"lost-{at}" for at in range(20)])
    brokers.quorum.kill(OURS)
    os.kill(brokers.apache.pid, signal.SIGCONT)
    assert b"lost-19" in brokers.logs("d")[1]
    brokers.quorum.start(OURS)
    brokers.await_partitions("d", lambda each: each.leader_id == APACHE)
    fresh = [f"fresh-{at}" for at in range(20)]
    send(brokers.producer(), "d", fresh)
    brokers.await_isr("d", APACHE, {APACHE, OURS})
    assert b"lost" not in brokers.await_same_logs("d")
    found = read(brokers.consumer("r"), "d", 40)
    assert [value for value in found if value != "caught"] == kept + fresh
