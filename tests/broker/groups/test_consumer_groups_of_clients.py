"""Consumer groups (KIP-848) of real clients, on Apache's node and on ours: the same story twice.

Two tests compare the records that both wrote for the same requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kraft_wire.wire.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kraft_wire.wire.generated.consumer_protocol_assignment import ConsumerProtocolAssignment
from kraft_wire.wire.generated.consumer_protocol_assignment import TopicPartition as AssignedTopic
from kraft_wire.wire.generated.group_metadata_value import GroupMetadataValue
from kraft_wire.wire.records.record_batch import parse_batches
from tests.apache.brokers import NAMES
from tests.apache.node import ApacheNode
from tests.apache.tools import run_tool
from tests.broker.groups.doors import SocketDoor
from tests.broker.groups.requests import Member, moments
from tests.clients.running import Broker
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow]

SETTINGS = {"num.partitions": "4", "offsets.topic.num.partitions": "1"}
COUNT = 200
DRAWN = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    rb"|(?:(?<=\x00\x16)|^)[\w-]{22}$"
)
"""Ends of member ids: a UUID, or a whole id in base64."""
ASSIGNMENT = b"\x00\x03" + bytes(
    ConsumerProtocolAssignment(
        assigned_partitions=[AssignedTopic(topic="topic", partitions=[0, 1, 2, 3])]
    ).encode(3)
)


def node(name: str, directory: Path) -> Any:
    kind: Any = ApacheNode if name == "apache" else ServerProcess
    return kind(directory, overrides=SETTINGS)


@pytest.fixture(params=NAMES)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    with node(request.param, tmp_path) as running:
        yield running


def tool(broker: Broker, name: str, *arguments: str) -> str:
    done = run_tool(name, ["--bootstrap-server", broker.bootstrap, *arguments])
    assert done.exit_code == 0, done.text
    return done.stdout


def listed(broker: Broker, kind: str) -> list[str]:
    """Return the groups of a type that kafka-consumer-groups shows, below the names of columns."""
    shown = tool(broker, "kafka-consumer-groups", "--list", "--type", kind)
    return [line.split()[0] for line in shown.splitlines()[1:] if kind.title() in line]


def produce(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(COUNT):
        producer.produce(topic, str(number), partition=number % 4)
    assert producer.flush(60) == 0


def consumer_of(broker: Broker, **settings: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "modern",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def test_librdkafka_shares_a_topic_and_kafkas_tools_show_the_group(broker: Broker) -> None:
    """848-HB-01, 848-ADMIN-01, 848-ADMIN-04, 848-ADMIN-06."""
    tool(broker, "kafka-topics", "--create", "--topic", "topic", "--partitions", "4")
    produce(broker, "topic")
    first, second = consumer_of(broker), consumer_of(broker, client_id="second")
    read: set[str] = set()
    for each in (first, second):
        each.subscribe(["^top.*"] if each is second else ["topic"])
    for _ in moments():
        for each in (first, second):
            message = each.poll(0.05)
            if message is not None and message.error() is None:
                read.add((message.value() or b"").decode())
        shares = (len(first.assignment()), len(second.assignment()))
        if shares == (2, 2) and len(read) == COUNT:
            break
    assert (shares, len(read)) == ((2, 2), COUNT)
    for each in (first, second):
        owned = [TopicPartition(one.topic, one.partition, COUNT // 4) for one in each.assignment()]
        each.commit(offsets=owned, asynchronous=False)
    group = ["--group", "modern"]
    state = tool(broker, "kafka-consumer-groups", "--describe", "--state", "--verbose", *group)
    assert re.search(r"modern\s.*\suniform\s+Stable\s", state), state
    members = tool(broker, "kafka-consumer-groups", "--describe", "--members", "--verbose", *group)
    assert len(re.findall(r"^modern\s.*topic:", members, re.M)) == 2, members
    assert listed(broker, "consumer") == ["modern"]
    assert listed(broker, "classic") == []
    offsets = tool(broker, "kafka-consumer-groups", "--describe", *group)
    assert len(re.findall(r"modern\s+topic\s+\d\s+50\s+50\s+0\s", offsets)) == 4, offsets
    for each in (first, second):
        each.close()
    for _ in moments():
        empty = tool(broker, "kafka-consumer-groups", "--describe", "--state", *group)
        if re.search(r"modern.*Empty\s+0", empty):
            break
    tool(broker, "kafka-consumer-groups", "--delete", *group)
    assert tool(broker, "kafka-consumer-groups", "--list").split() == []


def test_javas_consumer_of_the_new_protocol_reads_all(broker: Broker) -> None:
    """848-FEAT-01, 848-FEAT-04: Java's client picks the versions by itself."""
    tool(broker, "kafka-topics", "--create", "--topic", "topic", "--partitions", "4")
    produce(broker, "topic")
    arguments = ["--topic", "topic", "--from-beginning", "--max-messages", str(COUNT)]
    arguments += ["--group", "java", "--command-property", "group.protocol=consumer"]
    lines = tool(broker, "kafka-console-consumer", "--timeout-ms", "60000", *arguments)
    assert sorted(map(int, lines.split())) == list(range(COUNT))
    assert listed(broker, "consumer") == ["java"]


# --- The same heartbeats ---------------------------------------------------------------------


def walked(door: SocketDoor, topic_id: bytes) -> list[Any]:
    """Two members join, share, and leave; each answer without its topic id."""
    group, names = "walked", ["topic"]
    answers: list[Any] = []

    def beat(member: str, epoch: int, **fields: Any) -> Any:
        nothing = {"rebalance_timeout_ms": -1, "subscribed_topic_names": None}
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            **({"topic_partitions": None} | nothing | fields),
        )
        answer = door.send(request, 1).response
        given = answer.assignment
        parts = (
            None if given is None else [list(each.partitions) for each in given.topic_partitions]
        )
        answers.append((answer.error_code, answer.error_message, answer.member_epoch, parts))
        return answer

    def owning(*partitions: int) -> list[TopicPartitions]:
        return [TopicPartitions(topic_id=topic_id, partitions=list(partitions))]

    full = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": names, "topic_partitions": []}
    beat("a", 0, **full)
    beat("a", 9)
    beat("b", 0, **full, server_assignor="range", rack_id="north")
    beat("a", 2)
    beat("b", 3)
    beat("a", 2, topic_partitions=owning(0, 1))
    beat("b", 3)
    beat("b", 4, instance_id="unknown")
    beat("b", -1)
    beat("a", 3)
    beat("a", -1)
    return answers


def records_of(data: Path, topic_id: bytes) -> list[tuple[bytes, bytes | None]]:
    """Return the consumer group's records; ids, times and hashes of a node are left out."""
    (directory,) = data.rglob("__consumer_offsets-0")
    found = []
    for segment in sorted(directory.glob("*.log")):
        for batch in parse_batches(segment.read_bytes()):
            for record in batch.records():
                assert record.key is not None
                value = None if record.value is None else bytes(record.value)
                if value is not None:
                    value = value.replace(topic_id, b"(topic id of it)")
                    value = value[:6] if record.key[1] in (3, 6) else value
                found.append((bytes(record.key), value))
    return found


def test_both_makes_write_the_same_records_for_the_same_heartbeats(tmp_path: Path) -> None:
    """848-REC-01, 848-REC-05, 848-REC-06."""
    seen = []
    for name in NAMES:
        directory = tmp_path / name
        directory.mkdir()
        settings = SETTINGS | {"group.consumer.assignment.interval.ms": "0"}
        kind: Any = ApacheNode if name == "apache" else ServerProcess
        with kind(directory, overrides=settings) as running:
            tool(running, "kafka-topics", "--create", "--topic", "topic", "--partitions", "4")
            with closing(SocketDoor(running.bootstrap)) as door:
                topic_id = bytes(door.create_topic("topic"))
                door.await_coordinator("walked")
                answers = walked(door, topic_id)
            running.stop()
            seen.append((answers, records_of(running.data, topic_id)))
    apache, ours = seen
    assert ours[0] == apache[0]
    assert ours[1] == apache[1]
    assert len(apache[1]) > 20


# --- Groups that change their protocol -------------------------------------------------------

REBALANCED = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)


class Reads(dict[tuple[str, int, int], int]):
    """How often each record was read."""

    def __init__(self) -> None:
        super().__init__()
        self.uncommitted: set[tuple[str, int, int]] = set()
        """Records whose commit met a rebalance: they may be read again."""


def read_by(consumers: list[Consumer], read: Reads) -> None:
    """Poll each consumer once, count what it reads, and commit it."""
    for each in consumers:
        message = each.poll(0.05)
        if message is not None and message.error() is None:
            at = (message.topic() or "", message.partition() or 0, message.offset() or 0)
            read[at] = read.get(at, 0) + 1
            try:
                each.commit(message=message, asynchronous=False)
            except KafkaException as refused:
                if refused.args[0].code() not in REBALANCED:
                    raise
                read.uncommitted.add(at)


def until_shared(consumers: list[Consumer], read: Reads, share: int) -> None:
    """Read until each consumer has as many partitions."""
    for _ in moments():
        read_by(consumers, read)
        if [len(each.assignment()) for each in consumers] == [share] * len(consumers):
            return
    raise AssertionError([len(each.assignment()) for each in consumers])


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_of_librdkafka_rolls_up_and_down(broker: Broker, strategy: str) -> None:
    """848-MIG-01, 848-MIG-07, 848-MIG-08, 848-MIG-09, 848-MIG-12: each record is read once."""
    tool(broker, "kafka-topics", "--create", "--topic", "topic", "--partitions", "4")
    classic = consumer_of(
        broker,
        group_protocol="classic",
        partition_assignment_strategy=strategy,
        session_timeout_ms="10000",
        heartbeat_interval_ms="300",
    )
    modern = consumer_of(broker, client_id="modern")
    read = Reads()
    classic.subscribe(["topic"])
    until_shared([classic], read, 4)
    assert listed(broker, "classic") == ["modern"]
    produce(broker, "topic")
    read_by([classic] * 20, read)
    modern.subscribe(["topic"])
    until_shared([classic, modern], read, 2)
    assert listed(broker, "consumer") == ["modern"]
    group = ["--group", "modern"]
    members = tool(broker, "kafka-consumer-groups", "--describe", "--members", *group)
    assert len(re.findall(r"^modern\s", members, re.M)) == 2, members
    read_by([classic, modern] * 20, read)
    modern.close()
    until_shared([classic], read, 4)
    assert listed(broker, "classic") == ["modern"]
    for _ in moments():
        read_by([classic], read)
        if len(read) == COUNT:
            break
    classic.close()
    again = {at for at, count in read.items() if count > 1}
    assert (len(read), again - read.uncommitted) == (COUNT, set())


def mixed(door: SocketDoor, topic_id: bytes) -> list[Any]:
    """A classic member and one of the consumer protocol: up, share, down; static ones switch."""
    answers: list[Any] = []
    classic = Member(door, group_id="mixed", instance_id="static", protocols=("range",))

    def beat(member: str, epoch: int, **fields: Any) -> None:
        nothing = {"rebalance_timeout_ms": -1, "subscribed_topic_names": None}
        request = ConsumerGroupHeartbeatRequest(
            group_id="mixed",
            member_id=member,
            member_epoch=epoch,
            **({"topic_partitions": None} | nothing | fields),
        )
        answer = door.send(request, 1).response
        given = answer.assignment
        parts = (
            None if given is None else [list(each.partitions) for each in given.topic_partitions]
        )
        answers.append((answer.error_code, answer.error_message, answer.member_epoch, parts))

    def joined() -> None:
        answer = classic.join_once().response
        classic.member_id, classic.generation_id = answer.member_id, answer.generation_id
        answers.append(
            (answer.error_code, answer.generation_id, answer.protocol_name, len(answer.members))
        )

    def synced(assignments: dict[str, bytes] | None = None) -> None:
        answer = classic.sync(assignments).response
        answers.append((answer.error_code, bytes(answer.assignment)))

    full = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["topic"],
        "topic_partitions": [],
    }
    joined()
    synced({classic.member_id: ASSIGNMENT})
    beat("modern", 0, **full)
    answers.append(classic.heartbeat())
    joined()
    synced()
    answers.append(classic.heartbeat())
    answers.append(classic.commit(version=8))
    beat("modern", 2)
    answers.append(classic.heartbeat(generation_id=9))
    beat("modern", -1)
    answers.append(classic.heartbeat())
    joined()
    synced({classic.member_id: ASSIGNMENT})
    beat("switched", 0, **full, instance_id="static")
    answers.append(classic.heartbeat())
    classic.member_id = ""
    joined()
    synced()
    answers.append([each.error_code for each in classic.leave().response.members])
    return answers


def ids_replaced(records: list[tuple[bytes, bytes | None]]) -> list[tuple[bytes, Any]]:
    """Leave out what a coordinator draws: member ids, and the order that follows from them;
    the time in a group's record.
    """
    found = []
    for key, value in records:
        plain = value
        if key[1] == 2 and value is not None:
            group = GroupMetadataValue.decode(value, 3, 2)[0]
            group.current_state_timestamp = 0
            group.leader = DRAWN.sub(b"(id)", (group.leader or "").encode()).decode()
            for each in group.members:
                each.member_id = DRAWN.sub(b"(id)", each.member_id.encode()).decode()
            plain = repr(group).encode()
        found.append((DRAWN.sub(b"(id)", key), plain))
    runs = groupby(found, key=lambda each: each[0][:2])
    return [each for _, run in runs for each in sorted(run, key=repr)]


def test_both_makes_convert_a_group_up_and_down_with_the_same_records(tmp_path: Path) -> None:
    """848-MIG-01, 848-MIG-05, 848-MIG-07, 848-MIG-08, 848-MIG-09, 848-MIG-12, 848-MIG-13."""
    seen = []
    for name in NAMES:
        directory = tmp_path / name
        directory.mkdir()
        settings = SETTINGS | {
            "group.consumer.assignment.interval.ms": "0",
            "group.initial.rebalance.delay.ms": "0",
        }
        kind: Any = ApacheNode if name == "apache" else ServerProcess
        with kind(directory, overrides=settings) as running:
            tool(running, "kafka-topics", "--create", "--topic", "topic", "--partitions", "4")
            with closing(SocketDoor(running.bootstrap)) as door:
                topic_id = bytes(door.create_topic("topic"))
                door.await_coordinator("mixed")
                answers = mixed(door, topic_id)
            running.stop()
            records = records_of(running.data, topic_id)
            groups = [each for each in records if each[0][1] not in (0, 1)]
            seen.append((answers, ids_replaced(groups)))
    apache, ours = seen
    assert ours[0] == apache[0]
    assert ours[1] == apache[1]
    kinds = [key[1] for key, _ in apache[1]]
    assert (kinds.count(2) > 4, kinds.count(3) > 4) == (True, True)
