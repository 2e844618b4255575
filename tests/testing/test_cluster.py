"""`kraft_wire.testing.Cluster`, seen by confluent-kafka and aiokafka."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.testing import Cluster, NodeFailed, RequestRefused
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataResponse
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.testing.clients import consume, consume_async, produce, produce_async
from tests.waiting import until

pytestmark = pytest.mark.client


def test_cluster_serves_both_clients_the_same_records() -> None:
    with Cluster(topics={"orders": 3}) as cluster:
        assert produce(cluster.bootstrap_servers, "orders", b"a", b"b") == []
        assert sorted(consume(cluster.bootstrap_servers, "orders", 2)) == [b"a", b"b"]


async def test_cluster_works_in_an_async_test() -> None:
    async with Cluster(topics=["orders"]) as cluster:
        await produce_async(cluster.bootstrap_servers, "orders", b"a", b"b")
        assert await consume_async(cluster.bootstrap_servers, "orders", 2) == [b"a", b"b"]


def test_reset_leaves_the_topics_of_the_start_without_records() -> None:
    with Cluster(topics=["orders"]) as cluster:
        servers = cluster.bootstrap_servers
        produce(servers, "orders", b"old")
        cluster.create_topic("more")
        cluster.faults.disconnect(api="Produce")
        cluster.reset()
        assert cluster.bootstrap_servers == servers
        admin = AdminClient({"bootstrap.servers": servers})
        assert list(admin.list_topics(timeout=30).topics) == ["orders"]
        produce(servers, "orders", b"new")
        assert consume(servers, "orders", 1) == [b"new"]


def test_nothing_is_left_when_a_cluster_in_memory_ends(tmp_path: Path) -> None:
    before = threading.active_count()
    with Cluster(topics=["orders"]) as cluster:
        produce(cluster.bootstrap_servers, "orders", b"a")
    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


def test_three_brokers_survive_the_death_of_one() -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("orders", 3, replication_factor=3)
        produce(cluster.bootstrap_servers, "orders", b"a", acks="all")
        cluster.kill_node(3)
        cluster.advance(10)  # the controller fences it, without a wait of nine seconds
        produce(cluster.bootstrap_servers, "orders", b"b", acks="all")
        cluster.start_node(3)
        assert sorted(consume(cluster.bootstrap_servers, "orders", 2)) == [b"a", b"b"]


def test_node_that_was_killed_does_nothing_any_more() -> None:
    with Cluster() as cluster:
        local = cluster.in_process
        host = local.nodes[1].host
        assert host is not None
        cluster.kill_node(1)
        assert local.thread is not None
        local.thread.call(host._arm_timer)
        cluster.advance(1)
        local.thread.call(host.tick)
        local.thread.call(host.settle_all)
        cluster.start_node(1)
    assert local.failures == []


def test_roles_make_controllers_and_brokers() -> None:
    with Cluster(roles=["controller", "broker", "broker"]) as cluster:
        assert len(cluster.bootstrap_servers.split(",")) == 2
        assert len(cluster.bootstrap_controllers.split(",")) == 1
        assert produce(cluster.bootstrap_servers, "orders", b"a") == []


def test_cluster_on_disk_keeps_its_records(tmp_path: Path) -> None:
    with Cluster(topics=["orders"], directory=tmp_path) as cluster:
        produce(cluster.bootstrap_servers, "orders", b"a")
        cluster.kill_node(1)
        cluster.start_node(1)
        assert consume(cluster.bootstrap_servers, "orders", 1) == [b"a"]
        with pytest.raises(ValueError, match="memory"):
            cluster.reset()
    assert [each.name for each in tmp_path.rglob(".kraft-wire-ballast")] == []
    with Cluster(directory=tmp_path) as cluster:
        assert consume(cluster.bootstrap_servers, "orders", 1) == [b"a"]


def test_cluster_of_processes_leaves_no_directory() -> None:
    with Cluster(topics=["orders"], in_process=False) as cluster:
        directory = cluster._temporary
        assert directory is not None
        produce(cluster.bootstrap_servers, "orders", b"a")
        cluster.kill_node(1)
        cluster.start_node(1)
        assert consume(cluster.bootstrap_servers, "orders", 1) == [b"a"]
        with pytest.raises(ValueError, match="in_process"):
            cluster.advance(1)
    assert not directory.exists()


def test_time_that_passes_at_once_lets_retention_run() -> None:
    with Cluster() as cluster:
        configs = {"retention.ms": 3_600_000, "segment.ms": 1_800_000}
        cluster.create_topic("orders", configs=configs)
        produce(cluster.bootstrap_servers, "orders", b"old")
        cluster.advance(2 * 3600)
        produce(cluster.bootstrap_servers, "orders", b"new")
        assert consume(cluster.bootstrap_servers, "orders", 1) == [b"new"]


def test_time_that_passes_at_once_lets_a_member_expire() -> None:
    with Cluster(topics=["orders"]) as cluster:
        servers = cluster.bootstrap_servers
        settings = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 40_000}
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", **settings})
        consumer.subscribe(["orders"])
        until(lambda: consumer.poll(0.05) is not None or bool(consumer.assignment()))
        admin = AdminClient({"bootstrap.servers": servers})
        assert len(_members(admin)) == 1
        cluster.advance(60)
        assert _members(admin) == []
        consumer.close()


def _members(admin: AdminClient) -> list[object]:
    described = admin.describe_consumer_groups(["readers"])["readers"]
    return list(described.result(timeout=30).members)


def test_request_without_a_response_is_over_before_the_next_one() -> None:
    batch = build_batch([Record(None, b"v")])
    data = PartitionProduceData(index=0, records=memoryview(batch))
    silent = ProduceRequest(topic_data=[TopicProduceData(name="orders", partition_data=[data])])
    with Cluster(topics=["orders"]) as cluster:
        servers = cluster.bootstrap_servers
        with BrokerConnection(servers, client_id="shop") as connection:
            connection._post(silent, 9)
            connection._posted.clear()
            connection.send(MetadataRequest(topics=[]), MetadataResponse)
        (exchange,) = cluster.requests(api="Produce", client_id="shop")
        assert (exchange.response_frame, exchange.took_ms is None) == (None, False)
        assert cluster.requests(api="Metadata", client_id="shop")[0].response is not None


def test_requests_are_decoded_and_chosen_by_api_and_client(tmp_path: Path) -> None:
    with Cluster(topics=["orders"]) as cluster:
        trace = tmp_path / "trace.jsonl"
        cluster.trace_to(trace)
        produce(cluster.bootstrap_servers, "orders", b"value", **{"client.id": "shop"})
        (exchange,) = cluster.requests(api="Produce", client_id="shop")
        assert exchange.request.topic_data[0].partition_data[0].index == 0
        assert exchange.response.responses[0].partition_responses[0].error_code == 0
        assert cluster.requests(client_id="nobody") == []
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    (line,) = [each for each in lines if each["header"]["api"] == "Produce"]
    assert line["header"]["client_id"] == "shop"
    assert line["client_software"].startswith("confluent-kafka-python")
    assert b"value" in exchange.request_frame
    assert line["response"]["responses"][0]["partitionResponses"][0]["errorCode"] == 0


def test_topic_that_exists_is_refused_with_its_name() -> None:
    with (
        Cluster(topics=["orders"]) as cluster,
        pytest.raises(RequestRefused, match="'orders' cannot be created: TOPIC_ALREADY_EXISTS"),
    ):
        cluster.create_topic("orders")


def test_full_disk_refuses_records_until_there_is_room() -> None:
    with Cluster(topics=["orders"]) as cluster:
        cluster.disk(1).is_full = True
        settings = {"message.timeout.ms": 1_000, "retries": 0}
        (error,) = produce(cluster.bootstrap_servers, "orders", b"a", **settings)
        assert error.name() in ("KAFKA_STORAGE_ERROR", "_MSG_TIMED_OUT")
        cluster.disk(1).is_full = False
        cluster.advance(60)
        assert produce(cluster.bootstrap_servers, "orders", b"b") == []


def test_broken_disk_ends_the_node_and_the_test_hears_of_it() -> None:
    cluster = Cluster(topics=["orders"]).start()
    cluster.disk(1).is_broken = True
    produce(cluster.bootstrap_servers, "orders", b"a", **{"message.timeout.ms": 500})
    until(lambda: bool(cluster.in_process.failures))
    with pytest.raises(NodeFailed):
        cluster.stop()


def test_node_that_its_disk_ended_is_started_again_like_one_that_was_killed() -> None:
    cluster = Cluster(3).start()
    cluster.disk(2).is_broken = True
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic("orders", 3, 3)])
    until(lambda: cluster.in_process.nodes[2].node is None)
    cluster.disk(2).is_broken = False
    cluster.start_node(2)
    cluster.reset()
    with pytest.raises(NodeFailed, match="input/output error"):
        cluster.stop()
    cluster.start().stop()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"roles": ["broker"]}, "needs a controller"),
        ({"roles": ["leader"]}, "no node has the roles 'leader'"),
    ],
)
def test_plan_that_no_cluster_can_have_is_refused(arguments: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Cluster(**arguments)
