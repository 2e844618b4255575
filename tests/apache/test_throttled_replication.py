"""A new replica catches up under a throttle: our leader and follower, then Apache Kafka 4.3.1's.

A combined node of ours and a broker of Apache's are each other's followers. A topic of 3 MB gets a
second replica at 300 KB/s, which is bounded by the leader, or by the follower. What bounds it is
ours in one case and Apache's in the other; both take about the same time (KIP-73).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from kraft_wire.metadata.image import BROKER_RESOURCE
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tests.apache.test_following_apache import APACHE, OURS, TwoBrokers
from tests.server.connecting import set_of_broker
from tests.server.wire_client import WireClient
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.alone]
RECORDS, RECORD_BYTES = 60, 50_000
RATE = 300_000
LEAST_S = 0.5 * RECORDS * RECORD_BYTES / RATE
"""Of a throttled replica: the first second of a quota is not bounded, and a fetch is whole."""
TOPICS = count()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoBrokers]:
    folder: Path = tmp_path_factory.mktemp("brokers")
    with TwoBrokers(folder).running() as both:
        yield both


def seconds_to_catch_up(brokers: TwoBrokers, role: str, leader: int, follower: int) -> float:
    """Add a replica to a full topic, throttled by its leader or by its follower."""
    topic = f"by-{role}-{next(TOPICS)}"
    brokers.create(topic, [leader], **{f"{role}_replication_throttled_replicas": "*"})
    producer, chance = brokers.producer(), random.Random(1)
    for _ in range(RECORDS):
        producer.produce(topic, chance.randbytes(RECORD_BYTES))
    assert producer.flush(60) == 0
    with WireClient(brokers.quorum.client(OURS)) as client:
        set_of_broker(client, "", **{f"{role}__replication__throttled__rate": str(RATE)})
        until(lambda: shown_by_apache(brokers, f"{role}.replication.throttled.rate") == str(RATE))
        time.sleep(1)  # what is shown acts a moment later
        began = time.monotonic()
        wanted = ReassignablePartition(partition_index=0, replicas=[leader, follower])
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=[wanted])], timeout_ms=10_000
        )
        answer = client.call(request, 0, AlterPartitionReassignmentsResponse)
        assert answer.responses[0].partitions[0].error_code == 0, answer
        brokers.await_isr(topic, leader, {leader, follower})
        took = time.monotonic() - began
        set_of_broker(client, "", **{f"{role}__replication__throttled__rate": None})
    return took


def seconds_once_throttled(brokers: TwoBrokers, role: str, leader: int, follower: int) -> float:
    """The time under Apache's throttle, which acts some time after Apache shows it."""
    for _ in range(3):
        took = seconds_to_catch_up(brokers, role, leader, follower)
        if took > LEAST_S:
            break
    return took


def shown_by_apache(brokers: TwoBrokers, key: str) -> str | None:
    """The value of a broker's setting, as Apache's broker has it: it follows after the answer."""
    resource = DescribeConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=str(APACHE), configuration_keys=[key]
    )
    with WireClient(brokers.apache.bootstrap) as client:
        request = DescribeConfigsRequest(resources=[resource])
        answer = client.call(request, 4, DescribeConfigsResponse)
    return next((each.value for each in answer.results[0].configs), None)


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_new_replica_catches_up_at_the_same_rate(brokers: TwoBrokers, role: str) -> None:
    """SEC-QUOTA-20: within 30 %; a fetch of 1 MB is the grain of a throttle."""
    pairs = [(OURS, APACHE), (APACHE, OURS)]
    if role == "follower":
        pairs.reverse()
    of_ours, of_apache = pairs
    ours = seconds_to_catch_up(brokers, role, *of_ours)
    apache = seconds_once_throttled(brokers, role, *of_apache)
    print(f"throttled by the {role}: ours {ours:.1f} s, Apache's {apache:.1f} s")
    assert ours == pytest.approx(apache, rel=0.3)
    assert ours > LEAST_S
