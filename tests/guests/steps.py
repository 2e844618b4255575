"""What a cluster of Apache brokers is good for, step by step, through real clients and tools.

Each step asserts what it saw and returns a line for people. Records that were acknowledged are kept
by topic and partition, and looked for at the end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupState,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.apache.java_process import run_java
from tests.guests.cluster import BROKERS

TOPICS = [f"guest-{number:03}" for number in range(100)]
LOADED = TOPICS[:4]
PARTITIONS = 4
RECORDS = 4_000
PATIENCE_S = 90.0
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Stoppable(Protocol):
    """A broker."""

    def start(self) -> None:
        """Start it, and wait until it is ready."""

    def stop(self) -> int:
        """Stop it in order; return its exit code."""


class Stage(Protocol):
    """What a story needs of its cluster."""

    @property
    def directory(self) -> Path:
        """For files of tools."""

    @property
    def bootstrap(self) -> str:
        """Where clients begin."""

    @property
    def brokers(self) -> Mapping[int, Stoppable]:
        """The brokers `BROKERS`."""

    @property
    def client(self) -> dict[str, Any]:
        """librdkafka's settings of an ordinary client."""

    @property
    def admin(self) -> AdminClient:
        """A client for administration."""

    @property
    def tool_options(self) -> list[str]:
        """What administrators' tools need beside the address."""


class Story:
    """The steps over one cluster, in order."""

    def __init__(self, cluster: Stage) -> None:
        self.cluster = cluster
        self.acknowledged: dict[tuple[str, int], dict[int, bytes]] = {}
        self._consumers: list[Consumer] = []

    @property
    def steps(self) -> list[Callable[[], str]]:
        """All of them, in order."""
        return [
            self.brokers_run,
            self.topics_are_created,
            self.records_are_produced,
            self.records_are_consumed,
            self.classic_group_shares_and_commits,
            self.new_group_shares_and_commits,
            self.transactions_commit_and_abort,
            self.settings_change,
            self.replicas_are_reassigned,
            self.broker_shuts_down_in_order,
            self.broker_comes_back,
            self.preferred_leaders_lead_again,
            self.records_are_consumed,
        ]

    def brokers_run(self) -> str:
        """Both reach RUNNING: their ports answer only then."""
        for broker in self.cluster.brokers.values():
            broker.start()
        self._until("two brokers", lambda: len(self._metadata().brokers) == len(BROKERS))
        return f"brokers {BROKERS} are running"

    def topics_are_created(self) -> str:
        """A hundred, through a broker."""
        wanted = [NewTopic(name, PARTITIONS, len(BROKERS)) for name in TOPICS]
        asked = self.cluster.admin.create_topics(wanted, operation_timeout=60, request_timeout=60)
        for made in asked.values():
            try:
                made.result(PATIENCE_S)
            except KafkaException as error:  # asked once more, as the first answer was lost
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        self._until("all topics", lambda: set(TOPICS) <= self._metadata().topics.keys())
        self._until("leaders", lambda: all(each[0] >= 0 for each in self._replicas().values()))
        return f"{len(TOPICS)} topics of {PARTITIONS} partitions are created"

    def records_are_produced(self) -> str:
        """By an idempotent producer, acks=all, with every codec."""
        for codec in _CODECS:
            self._produce(RECORDS // len(_CODECS), codec)
        return f"{self._acknowledged_count} records are acknowledged"

    def records_are_consumed(self) -> str:
        """Every acknowledged record stands where it was acknowledged."""
        wanted = {key for key, records in self.acknowledged.items() if records}
        consumer = self._consumer("reader", group="none")
        consumer.assign([TopicPartition(*key, OFFSET_BEGINNING) for key in sorted(wanted)])
        left = {(*key, offset) for key in wanted for offset in self.acknowledged[key]}
        for message in self._messages(consumer, lambda: not left):
            topic, partition, offset = place = _place(message)
            if place in left:
                assert message.value() == self.acknowledged[topic, partition][offset], place
                left.discard(place)
        consumer.close()
        return f"{self._acknowledged_count} acknowledged records are read"

    def classic_group_shares_and_commits(self) -> str:
        """KIP-62 and older."""
        return self._group("classic")

    def new_group_shares_and_commits(self) -> str:
        """KIP-848."""
        return self._group("consumer")

    def transactions_commit_and_abort(self) -> str:
        """Who reads committed records sees one of two transactions."""
        producer = Producer(
            {
                **self.cluster.client,
                "transactional.id": f"guest-{time.monotonic_ns()}",
                "transaction.timeout.ms": 60_000,
            }
        )
        producer.init_transactions(PATIENCE_S)
        topic = TOPICS[10]
        for text in ("committed", "aborted", "committed"):
            producer.begin_transaction()
            for number in range(20):
                producer.produce(topic, f"{text}-{number}".encode(), partition=0)
            if text == "committed":
                producer.commit_transaction(PATIENCE_S)
            else:
                producer.abort_transaction(PATIENCE_S)
        consumer = self._consumer("committed", group="none")
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        seen: list[bytes] = []
        for message in self._messages(consumer, lambda: len(seen) >= 40):
            seen.append(message.value() or b"")
        consumer.close()
        assert len(seen) == 40, len(seen)
        assert all(each.startswith(b"committed") for each in seen), seen
        return "two transactions are read, an aborted one is not"

    def settings_change(self) -> str:
        """Of a topic and of a broker, and are described as they were changed."""
        resources = [
            (ResourceType.TOPIC, TOPICS[0], "retention.ms", "123456789"),
            (ResourceType.BROKER, str(BROKERS[0]), "log.cleaner.threads", "2"),
        ]
        admin = self.cluster.admin
        for kind, name, key, value in resources:
            entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            asked = ConfigResource(kind, name, incremental_configs=[entry])
            _done(admin.incremental_alter_configs([asked], request_timeout=60).values())

            def shows(kind: ResourceType = kind, name: str = name) -> str:
                found = admin.describe_configs([ConfigResource(kind, name)], request_timeout=30)
                return str(next(iter(found.values())).result()[key].value)  # noqa: B023  # called at once

            self._until(f"{key} of {name}", lambda: shows() == value)  # noqa: B023  # the same
        return "settings of a topic and of a broker are changed"

    def replicas_are_reassigned(self) -> str:
        """The replicas of one topic change places, and those of another are halved."""
        moves = {
            **{(TOPICS[1], number): [102, 101] for number in range(PARTITIONS)},
            **{(TOPICS[2], number): [101] for number in range(PARTITIONS)},
        }
        plan = self.cluster.directory / "reassignment.json"
        partitions = [
            {"topic": topic, "partition": number, "replicas": replicas}
            for (topic, number), replicas in moves.items()
        ]
        plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
        command = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        address = ["--bootstrap-server", self.cluster.bootstrap, *self.cluster.tool_options]
        file = ["--reassignment-json-file", str(plan)]
        done = run_java(command, [*address, *file, "--execute"])
        assert done.exit_code == 0, done.text
        self._until(
            "the reassignment",
            lambda: all(self._replicas()[key][1] == replicas for key, replicas in moves.items()),
        )
        return f"{len(moves)} partitions are reassigned"

    def broker_shuts_down_in_order(self) -> str:
        """It stops by itself, and the other one leads what it led."""
        exit_code = self.cluster.brokers[102].stop()
        assert exit_code in (0, 143), exit_code
        self._until(
            "leaders elsewhere",
            lambda: all(
                leader == 101 for leader, replicas, _ in self._replicas().values() if replicas
            ),
        )
        self._produce(RECORDS // 4, "lz4")
        return "broker 102 has shut down, 101 leads everything"

    def broker_comes_back(self) -> str:
        """Every ISR has it again."""
        self.cluster.brokers[102].start()
        self._until(
            "whole ISRs",
            lambda: all(
                sorted(isr) == sorted(replicas) for _, replicas, isr in self._replicas().values()
            ),
        )
        self._produce(RECORDS // 4, "zstd")
        return "broker 102 is back in every ISR"

    def preferred_leaders_lead_again(self) -> str:
        """Elected through Apache's tool."""
        arguments = ["--bootstrap-server", self.cluster.bootstrap, *self.cluster.tool_options]
        arguments += ["--election-type", "preferred", "--all-topic-partitions"]
        done = run_java("org.apache.kafka.tools.LeaderElectionCommand", arguments)
        assert done.exit_code == 0, done.text
        self._until(
            "preferred leaders",
            lambda: all(leader == replicas[0] for leader, replicas, _ in self._replicas().values()),
        )
        return "first replicas lead again"

    # -- clients ---------------------------------------------------------------------------------

    @property
    def _acknowledged_count(self) -> int:
        return sum(len(each) for each in self.acknowledged.values())

    def _produce(self, count: int, codec: str) -> None:
        producer = Producer(
            {
                **self.cluster.client,
                "enable.idempotence": True,
                "compression.type": codec,
                "delivery.timeout.ms": int(PATIENCE_S * 1000),
                "linger.ms": 5,
            }
        )

        def acknowledged(error: object, message: Message) -> None:
            assert error is None, error
            topic, partition, offset = _place(message)
            records = self.acknowledged.setdefault((topic, partition), {})
            assert offset not in records, "an offset is given once"
            records[offset] = message.value() or b""

        for number in range(count):
            value = f"{codec} {time.monotonic_ns()} {number} ".encode() * 3
            producer.produce(LOADED[number % len(LOADED)], value, on_delivery=acknowledged)
            producer.poll(0)
        assert producer.flush(PATIENCE_S) == 0, "everything is acknowledged in time"

    def _group(self, protocol: str) -> str:
        group, before = f"{protocol}-{time.monotonic_ns()}", self._acknowledged_count
        members = [self._consumer(protocol, group=group) for _ in range(2)]
        for member in members:
            member.subscribe(LOADED)
        deadline = time.monotonic() + PATIENCE_S
        while sum(map(_read, members)) < before or not all(map(Consumer.assignment, members)):
            assert time.monotonic() < deadline, (protocol, [*map(_read, members)], before)
            for member in members:
                member.consume(500, 0.2)
        committed: dict[tuple[str, int], int] = {}
        for member in members:
            read = [each for each in member.position(member.assignment()) if each.offset >= 0]
            for each in member.commit(offsets=read, asynchronous=False) or () if read else ():
                committed[each.topic, each.partition] = each.offset
            member.close()
        asked = [TopicPartition(*key) for key in committed]
        reader = self._consumer(protocol, group=group)
        found = {(each.topic, each.partition): each.offset for each in reader.committed(asked, 60)}
        reader.close()
        assert found == committed, (found, committed)
        assert sum(committed.values()) >= before, committed
        states = self.cluster.admin.describe_consumer_groups([group], request_timeout=60)
        state = states[group].result().state
        assert state in (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD), state
        return f"a group of the {protocol} protocol read {before} records and committed"

    def _consumer(self, name: str, *, group: str) -> Consumer:
        settings = {
            **self.cluster.client,
            "group.id": group,
            "client.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
        if name in ("classic", "consumer"):
            settings["group.protocol"] = name
        consumer = Consumer(settings)
        self._consumers.append(consumer)
        return consumer

    def close(self) -> None:
        """Close what a step that failed left open, which would keep the process from ending."""
        for consumer in self._consumers:
            consumer.close()

    def _messages(self, consumer: Consumer, is_over: Callable[[], bool]) -> Iterable[Message]:
        deadline = time.monotonic() + PATIENCE_S
        while not is_over():
            assert time.monotonic() < deadline, "everything is read in time"
            for message in consumer.consume(1_000, 0.5):
                if message.error() is None:
                    yield message

    # -- what the cluster says -------------------------------------------------------------------

    def _metadata(self) -> ClusterMetadata:
        return self.cluster.admin.list_topics(timeout=30)

    def _replicas(self) -> dict[tuple[str, int], tuple[int, list[int], list[int]]]:
        """Leader, replicas and ISR of every partition of ours."""
        return {
            (name, number): (each.leader, list(each.replicas), list(each.isrs))
            for name, topic in self._metadata().topics.items()
            if name in TOPICS
            for number, each in topic.partitions.items()
        }

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if holds():
                    return
            except Exception as problem:  # a broker that is on its way
                if time.monotonic() > deadline:
                    raise AssertionError(f"{what}: {problem}") from problem
            assert time.monotonic() < deadline, f"{what} in time"
            time.sleep(0.2)


def _done(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.result(PATIENCE_S)


def _read(member: Consumer) -> int:
    """How many records lie before a member's positions."""
    return sum(max(0, each.offset) for each in member.position(member.assignment()))


def _place(message: Message) -> tuple[str, int, int]:
    """Topic, partition and offset of a record that has all three."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None, message
    assert partition is not None, message
    assert offset is not None, message
    return topic, partition, offset
