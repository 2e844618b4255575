"""`kraft-wire proxy` in front of Apache Kafka: clients work, rules fire, a trace is decoded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.wire.generated.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from tests.apache.node import ApacheNode
from tests.testing.clients import consume, consume_async, produce, produce_async
from tests.testing.proxy_process import ProxyProcess

pytestmark = [pytest.mark.java, pytest.mark.client, pytest.mark.slow]


async def test_clients_of_apache_kafka_work_through_the_proxy(
    apache_node: ApacheNode, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    rules = tmp_path / "faults.yaml"
    rules.write_text(
        "- {inject_error: NOT_LEADER_OR_FOLLOWER, api: Produce, client_id: shop, when: once}\n"
        "- {corrupt_records: true, topic: through, client_id: reader, when: once}\n"
    )
    options = ("--faults", str(rules), "--trace", str(trace))
    with ProxyProcess(tmp_path, apache_node.bootstrap, *options) as proxy:
        assert produce(proxy.bootstrap, "through", b"a", **{"client.id": "shop"}) == []
        await produce_async(proxy.bootstrap, "through", b"b")
        settings = {"client.id": "reader", "check.crcs": True}
        assert sorted(consume(proxy.bootstrap, "through", 2, **settings)) == [b"a", b"b"]
        assert sorted(await consume_async(proxy.bootstrap, "through", 2)) == [b"a", b"b"]
        topic = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData()])
        with BrokerConnection(proxy.bootstrap) as connection:
            quorum = connection.send(DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
    (listener,) = [each for node in quorum.nodes for each in node.listeners]
    assert listener.port != int(apache_node.controller_bootstrap.rpartition(":")[2])
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    met = [effect for each in lines for effect in each["faults"]]
    assert sorted(met) == ["corrupt_records", "inject_error"]
    assert all(each["request"] is not None for each in lines)
    assert {each["header"]["api"] for each in lines} >= {"Produce", "Fetch", "JoinGroup"}
