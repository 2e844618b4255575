"""Kills of a secured cluster's nodes while `ann` writes and reads and `eve` may do nothing."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic, ResourceType

from tests.secured_clusters.cluster import BROKERS, SecuredCluster
from tests.secured_clusters.eve import Eve
from tests.waiting import until

__all__ = ["Verdict", "campaign"]

TOPIC, GROUP = "orders", "orders"
PARTITIONS = 3
_AWAY_S = (0.0, 3.0)
_PATIENCE_S = 60.0
_SEED = 1
_PAUSE_S = 0.005

Place = tuple[int, int]
"""Partition and offset."""


@dataclass
class Verdict:
    """What a campaign showed."""

    kills: Counter[str] = field(default_factory=Counter)
    """By role and make."""
    acknowledged: int = 0
    read_by_group: int = 0
    lost: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    got: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, eve got nothing, and both were really tried."""
        return not self.lost and not self.got and min(self.acknowledged, self.read_by_group) > 0


class Ann:
    """A producer and a member of a group, each in a thread of its own.

    Their first failure is that of the campaign.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self.acknowledged: dict[Place, bytes] = {}
        self.somewhere: set[bytes] = set()
        """Acknowledged as repeated, without a place."""
        self.read = 0
        self.problems: list[str] = []
        self._settings = settings
        self._ends = threading.Event()
        self._pool = ThreadPoolExecutor(2)
        self._work: list[Future[None]] = []

    def start(self) -> None:
        """Begin to write and to read."""
        self._work = [self._pool.submit(each) for each in (self._write, self._read)]

    def finish(self) -> None:
        """Stop, when all that was sent is acknowledged or refused; fails where that ended early."""
        self._ends.set()
        for each in self._work:
            each.result(2 * _PATIENCE_S)
        self._pool.shutdown()

    def _write(self) -> None:
        producer = Producer({**self._settings, "acks": "all", "enable.idempotence": True})
        number = 0
        while not self._ends.is_set():
            value = b"order %d" % number
            producer.produce(TOPIC, value, partition=number % PARTITIONS, on_delivery=self._told)
            producer.poll(_PAUSE_S)
            number += 1
        left = producer.flush(_PATIENCE_S)
        assert left == 0, f"{left} records without an answer"

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.problems.append(str(error))
            return
        partition, offset, value = message.partition(), message.offset(), message.value() or b""
        if partition is None or offset is None:
            self.somewhere.add(value)
        else:
            self.acknowledged[partition, offset] = value

    def _read(self) -> None:
        begin = {"group.id": GROUP, "auto.offset.reset": "earliest"}
        consumer = Consumer({**self._settings, **begin})
        consumer.subscribe([TOPIC])
        while not self._ends.is_set():
            message = consumer.poll(0.2)
            self.read += message is not None and message.error() is None
        consumer.close()


def campaign(cluster: SecuredCluster, kills: int, say: Callable[[str], None]) -> Verdict:
    """Kill and start nodes; return what was lost, and what eve got."""
    verdict, began = Verdict(), time.monotonic()
    with cluster.running():
        admin = AdminClient(cluster.librdkafka("admin"))
        _prepare(cluster, admin)
        ann = Ann(cluster.librdkafka("ann"))
        addresses = [cluster.nodes[each].address for each in BROKERS]
        topic_id = cluster.described(BROKERS[0], "ann", TOPIC).topic_id
        eve = Eve(addresses, cluster.security_of("eve"), TOPIC, topic_id, GROUP)
        ann.start()
        eve.start()
        try:
            until(lambda: ann.read > 0, lambda: "ann's group has read nothing")
            _kill(cluster, admin, kills, verdict, say)
        finally:
            ann.finish()
            eve.finish()
        cluster.await_whole(admin)
        verdict.acknowledged = len(ann.acknowledged) + len(ann.somewhere)
        verdict.read_by_group = ann.read
        verdict.refused, verdict.got = eve.refused, eve.got
        verdict.lost = [*_lost(cluster, ann), *ann.problems]
    verdict.seconds = time.monotonic() - began
    return verdict


def _prepare(cluster: SecuredCluster, admin: AdminClient) -> None:
    """Make the topic, and the entries of ann."""
    made = admin.create_topics([NewTopic(TOPIC, PARTITIONS, len(BROKERS))])
    made[TOPIC].result(_PATIENCE_S)
    cluster.allow(
        admin,
        "ann",
        (ResourceType.TOPIC, TOPIC, AclOperation.WRITE),
        (ResourceType.TOPIC, TOPIC, AclOperation.READ),
        (ResourceType.GROUP, GROUP, AclOperation.READ),
        (ResourceType.BROKER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE),
    )
    cluster.await_whole(admin)
    cluster.await_rights("ann", TOPIC)


def _kill(
    cluster: SecuredCluster,
    admin: AdminClient,
    kills: int,
    verdict: Verdict,
    say: Callable[[str], None],
) -> None:
    chance = random.Random(_SEED)
    for number in range(kills):
        is_controller = number % 2 == 1
        node_id = (
            cluster.active_controller() if is_controller else BROKERS[number // 2 % len(BROKERS)]
        )
        node = cluster.nodes[node_id]
        node.kill()
        time.sleep(chance.uniform(*_AWAY_S))
        node.start()
        cluster.await_whole(admin)
        verdict.kills[f"{'controller' if is_controller else 'broker'} {node.make}"] += 1
        say(f"  {number + 1}: node {node_id} ({node.make}) was killed")


def _lost(cluster: SecuredCluster, ann: Ann) -> list[str]:
    """Return acknowledged records that are not where they were acknowledged."""
    consumer = Consumer({**cluster.librdkafka("ann"), "group.id": GROUP})
    consumer.assign([TopicPartition(TOPIC, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])
    left, somewhere = dict(ann.acknowledged), set(ann.somewhere)
    lost: list[str] = []
    deadline = time.monotonic() + _PATIENCE_S
    while (left or somewhere) and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is None or message.error() is not None:
            continue
        somewhere.discard(message.value() or b"")
        place = message.partition(), message.offset()
        expected = left.pop(place, message.value())  # type: ignore[arg-type]  # both are there
        if expected != message.value():
            lost.append(f"{place}: {message.value()!r} in place of {expected!r}")
    consumer.close()
    lost += [f"{value!r} is gone" for value in somewhere]
    return lost + [f"{place}: {value!r} is gone" for place, value in left.items()]
