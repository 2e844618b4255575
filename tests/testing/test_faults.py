"""Each fault, seen by confluent-kafka and aiokafka, with the handle that tells that it fired."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import CorruptRecordException, KafkaError, TopicAuthorizationFailedError
from confluent_kafka import Consumer

from kraft_wire.testing import Cluster, on_call, once, times, with_probability
from tests.testing.clients import PATIENCE_S, consume, consume_async, produce, produce_async

pytestmark = pytest.mark.client

TOPIC = "orders"


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    """The module's cluster, as it is after a start with one topic."""
    shared.reset()
    shared.create_topic(TOPIC)
    return shared


def test_error_fails_a_delivery_of_confluent_kafka(cluster: Cluster) -> None:
    rule = cluster.faults.inject_error("TOPIC_AUTHORIZATION_FAILED", api="Produce", topic=TOPIC)
    (error,) = produce(cluster.bootstrap_servers, TOPIC, b"a")
    assert error.name() == "TOPIC_AUTHORIZATION_FAILED"
    assert rule.fired == 1
    rule.remove()
    assert produce(cluster.bootstrap_servers, TOPIC, b"b") == []
    assert consume(cluster.bootstrap_servers, TOPIC, 1) == [b"b"], "the first was not handled"


async def test_error_fails_a_delivery_of_aiokafka(cluster: Cluster) -> None:
    rule = cluster.faults.inject_error("TOPIC_AUTHORIZATION_FAILED", api="Produce", when=once())
    with pytest.raises(TopicAuthorizationFailedError):
        await produce_async(cluster.bootstrap_servers, TOPIC, b"a")
    assert await asyncio.to_thread(rule.wait) == 1
    await produce_async(cluster.bootstrap_servers, TOPIC, b"b")


def test_passing_error_is_retried_so_many_times(cluster: Cluster) -> None:
    rule = cluster.faults.inject_error("NOT_LEADER_OR_FOLLOWER", api="Produce", when=times(3))
    settings = {"retry.backoff.ms": 10, "retry.backoff.max.ms": 20}
    assert produce(cluster.bootstrap_servers, TOPIC, b"a", **settings) == []
    assert rule.fired == 3


def test_error_for_one_partition_leaves_the_others_alone(cluster: Cluster) -> None:
    cluster.create_topic("wide", 2)
    rule = cluster.faults.inject_error("INVALID_REQUIRED_ACKS", topic="wide", partition=1)
    consumer_rule = cluster.faults.inject_error("OFFSET_OUT_OF_RANGE", topic=TOPIC, partition=7)
    values = [b"%d" % number for number in range(40)]
    errors = produce(cluster.bootstrap_servers, "wide", *values, **{"linger.ms": 50})
    assert {error.name() for error in errors} == {"INVALID_REQUIRED_ACKS"}
    assert 0 < len(errors) < 40
    rule.remove()
    kept = consume(cluster.bootstrap_servers, "wide", 40 - len(errors))
    assert len(kept) == 40 - len(errors)
    assert consumer_rule.fired == 0


def test_error_of_a_group_ends_a_join_of_confluent_kafka(cluster: Cluster) -> None:
    rule = cluster.faults.inject_error("GROUP_AUTHORIZATION_FAILED", api="FindCoordinator")
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "readers"})
    consumer.subscribe([TOPIC])
    try:
        assert consumer.poll(PATIENCE_S).error().name() == "GROUP_AUTHORIZATION_FAILED"
    finally:
        consumer.close()
    assert rule.fired


def test_disconnection_is_survived_by_confluent_kafka(cluster: Cluster) -> None:
    rule = cluster.faults.disconnect(api="Produce", when=once())
    assert produce(cluster.bootstrap_servers, TOPIC, b"a") == []
    assert rule.fired == 1
    assert consume(cluster.bootstrap_servers, TOPIC, 1) == [b"a"]


async def test_disconnection_is_survived_by_aiokafka(cluster: Cluster) -> None:
    rule = cluster.faults.disconnect(api="Fetch", when=once())
    await produce_async(cluster.bootstrap_servers, TOPIC, b"a")
    assert await consume_async(cluster.bootstrap_servers, TOPIC, 1) == [b"a"]
    assert rule.fired == 1


@pytest.mark.parametrize("is_idempotent", [False, True], ids=["plain", "idempotent"])
def test_lost_response_doubles_the_records_of_a_producer_that_is_not_idempotent(
    cluster: Cluster, is_idempotent: bool
) -> None:
    rule = cluster.faults.disconnect(api="Produce", after_handling=True, when=once())
    settings = {"enable.idempotence": is_idempotent}
    assert produce(cluster.bootstrap_servers, TOPIC, b"a", **settings) == []
    assert produce(cluster.bootstrap_servers, TOPIC, b"end") == []
    assert rule.fired == 1
    copies = 1 if is_idempotent else 2
    expected = [b"a"] * copies + [b"end"]
    assert consume(cluster.bootstrap_servers, TOPIC, len(expected)) == expected


def test_delay_holds_a_request_of_confluent_kafka(cluster: Cluster) -> None:
    rule = cluster.faults.delay(0.5, api="Produce", when=once())
    began = time.monotonic()
    assert produce(cluster.bootstrap_servers, TOPIC, b"a") == []
    assert time.monotonic() - began >= 0.5
    assert rule.fired == 1


async def test_delay_holds_a_response_to_aiokafka(cluster: Cluster) -> None:
    rule = cluster.faults.delay(0.5, api="Produce", after_handling=True, when=once())
    began = time.monotonic()
    await produce_async(cluster.bootstrap_servers, TOPIC, b"a")
    assert time.monotonic() - began >= 0.5
    assert rule.fired == 1


def test_black_hole_times_a_request_of_confluent_kafka_out(cluster: Cluster) -> None:
    rule = cluster.faults.blackhole(api="Produce")
    settings = {"socket.timeout.ms": 500, "request.timeout.ms": 400, "message.timeout.ms": 1_500}
    (error,) = produce(cluster.bootstrap_servers, TOPIC, b"a", **settings)
    assert error.name() == "_MSG_TIMED_OUT"
    assert rule.fired >= 1
    rule.remove()
    assert produce(cluster.bootstrap_servers, TOPIC, b"b") == []
    assert consume(cluster.bootstrap_servers, TOPIC, 1) == [b"b"]


async def test_black_hole_times_a_request_of_aiokafka_out(cluster: Cluster) -> None:
    rule = cluster.faults.blackhole(api="Produce")
    with pytest.raises(KafkaError):
        await produce_async(cluster.bootstrap_servers, TOPIC, b"a", request_timeout_ms=300)
    assert rule.fired >= 1


def test_throttle_time_is_told_to_confluent_kafka(cluster: Cluster) -> None:
    seen: list[float] = []
    rule = cluster.faults.throttle(0.25, api="Produce", when=once())
    told = {"throttle_cb": lambda event: seen.append(event.throttle_time)}
    produce(cluster.bootstrap_servers, TOPIC, b"a", **told)
    assert rule.fired == 1
    assert seen == [0.25]


def test_truncated_response_is_asked_for_again_by_confluent_kafka(cluster: Cluster) -> None:
    """The cut is inside of the throttle time.

    librdkafka 2.16.1 ends the process if it is before the number of brokers: it sorts -1 of them.
    """
    rule = cluster.faults.truncate_response(7, api="Metadata", when=once())
    assert produce(cluster.bootstrap_servers, TOPIC, b"a") == []
    assert rule.fired == 1


async def test_truncated_response_is_asked_for_again_by_aiokafka(cluster: Cluster) -> None:
    await produce_async(cluster.bootstrap_servers, TOPIC, b"a")
    rule = cluster.faults.truncate_response(20, api="Fetch", when=once())
    assert await consume_async(cluster.bootstrap_servers, TOPIC, 1) == [b"a"]
    assert rule.fired == 1


def test_corrupt_records_are_noticed_by_confluent_kafka(cluster: Cluster) -> None:
    produce(cluster.bootstrap_servers, TOPIC, b"a")
    rule = cluster.faults.corrupt_records(topic=TOPIC, when=once())
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
        "check.crcs": True,
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    try:
        message = consumer.poll(PATIENCE_S)
        assert message.error().name() == "_BAD_MSG"
    finally:
        consumer.close()
    assert rule.fired == 1


async def test_corrupt_records_are_noticed_by_aiokafka(cluster: Cluster) -> None:
    await produce_async(cluster.bootstrap_servers, TOPIC, b"a")
    rule = cluster.faults.corrupt_records(topic=TOPIC, when=once())
    async with AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        with pytest.raises(CorruptRecordException):
            await consumer.getone()
    assert rule.fired == 1


async def test_fetches_without_records_do_not_use_up_the_rule(cluster: Cluster) -> None:
    """The first fetch of a reader is often about a partition that is empty."""
    rule = cluster.faults.corrupt_records(topic=TOPIC, when=once())
    async with AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=20,
    ) as consumer:
        consumer.assign([TopicPartition(TOPIC, 0)])
        while len(cluster.requests(api="Fetch")) < 2:
            assert not await consumer.getmany(timeout_ms=50)
        await produce_async(cluster.bootstrap_servers, TOPIC, b"a")
        with pytest.raises(CorruptRecordException):
            await consumer.getone()
    assert rule.fired == 1


async def test_corrupt_records_that_are_produced_are_refused_by_the_node(cluster: Cluster) -> None:
    rule = cluster.faults.corrupt_records(api="Produce", topic=TOPIC, when=once())
    async with AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, client_id="shop"
    ) as producer:
        with pytest.raises(CorruptRecordException):
            await producer.send_and_wait(TOPIC, b"a")
        await producer.send_and_wait(TOPIC, b"a")
    assert rule.fired == 1
    first, second = cluster.requests(api="Produce", client_id="shop")
    codes = [
        each.response.responses[0].partition_responses[0].error_code for each in (first, second)
    ]
    assert codes == [2, 0], "CORRUPT_MESSAGE, and then none"
    assert (first.faults, second.faults) == (["corrupt_records"], [])


def test_rules_are_chosen_by_client_version_and_number_of_the_call(cluster: Cluster) -> None:
    other = cluster.faults.disconnect(api="Metadata", client_id="nobody")
    old = cluster.faults.disconnect(api="Produce", versions=(0, 2))
    second = cluster.faults.delay(0.01, api="Produce", client_id="shop", when=on_call(2))
    chance = cluster.faults.delay(0.0, api="Produce", when=with_probability(0.5, seed=1))
    for value in (b"a", b"b", b"c"):
        assert produce(cluster.bootstrap_servers, TOPIC, value, **{"client.id": "shop"}) == []
    assert (other.fired, old.fired, second.fired) == (0, 0, 1)
    drawn = random.Random(1)
    expected = [drawn.random() < 0.5 for _ in range(3)]
    assert chance.fired == sum(expected) == 1
    met = [each.faults for each in cluster.requests("Produce")]
    assert [len(each) for each in met] == [expected[0], 1 + expected[1], expected[2]]


def test_votes_that_disappear_keep_a_quorum_without_a_leader() -> None:
    with Cluster(roles=["controller", "controller", "controller", "broker"]) as cluster:
        rules = [cluster.faults.blackhole(api="Vote", node=node_id) for node_id in (1, 2, 3)]
        leader = next(
            node_id
            for node_id, each in cluster.in_process.nodes.items()
            if node_id < 4 and each.node.controller.is_active
        )
        cluster.kill_node(leader)
        cluster.advance(5)
        asked = [rule for rule in rules if rule.fired]
        assert asked
        for rule in rules:
            rule.remove()
        cluster.start_node(leader)
        cluster.create_topic("after")
