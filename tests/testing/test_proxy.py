"""`kraft-wire proxy` in front of a cluster: real clients, addresses replaced, faults and traces."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.testing import Cluster
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kraft_wire.wire.header import RequestHeader, encode_request_header
from tests.process import KRAFT_WIRE
from tests.testing.clients import consume, consume_async, produce, produce_async
from tests.testing.proxy_process import ProxyProcess

pytestmark = pytest.mark.client


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        running.create_topic("orders", 6, replication_factor=1)
        yield running


@pytest.fixture
def proxy(cluster: Cluster, tmp_path: Path) -> Iterator[ProxyProcess]:
    with ProxyProcess(tmp_path, cluster.bootstrap_servers) as running:
        yield running


def ports(addresses: str) -> set[int]:
    return {int(each.rpartition(":")[2]) for each in addresses.split(",")}


def test_client_reaches_every_broker_through_the_proxy_alone(
    cluster: Cluster, proxy: ProxyProcess
) -> None:
    values = [b"%d" % number for number in range(200)]
    assert produce(proxy.bootstrap, "orders", *values) == []
    assert sorted(consume(proxy.bootstrap, "orders", 200)) == sorted(values)
    brokers = AdminClient({"bootstrap.servers": proxy.bootstrap}).list_topics(timeout=30).brokers
    assert len(brokers) == 3
    assert not {each.port for each in brokers.values()} & ports(cluster.bootstrap_servers)


async def test_aiokafka_reaches_it_too(cluster: Cluster, proxy: ProxyProcess) -> None:
    cluster.create_topic("async")
    await produce_async(proxy.bootstrap, "async", b"a")
    assert await consume_async(proxy.bootstrap, "async", 1) == [b"a"]


def test_cluster_is_described_by_the_proxys_addresses(
    cluster: Cluster, proxy: ProxyProcess
) -> None:
    with BrokerConnection(proxy.bootstrap) as connection:
        answer = connection.send(DescribeClusterRequest(), DescribeClusterResponse)
    assert not {each.port for each in answer.brokers} & ports(cluster.bootstrap_servers)


def test_what_names_no_address_is_passed_byte_for_byte(
    cluster: Cluster, proxy: ProxyProcess
) -> None:
    header = RequestHeader(ApiVersionsRequest.API_KEY, 4, 77, "shop")
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    frame = encode_request_header(header) + request.encode(4)
    seen = set()
    for address in (cluster.bootstrap_servers.split(",")[0], proxy.bootstrap):
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port))) as sock, sock.makefile("rb") as stream:
            sock.sendall(len(frame).to_bytes(4, "big") + frame)
            head = stream.read(4)
            seen.add(head + stream.read(int.from_bytes(head, "big")))
    assert len(seen) == 1


def test_rules_and_trace_work_in_front_of_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    rules = tmp_path / "faults.json"
    rules.write_text(
        json.dumps(
            [
                {"inject_error": "NOT_LEADER_OR_FOLLOWER", "api": "Produce", "when": {"times": 2}},
                {"disconnect": True, "api": "Produce", "when": "once", "after_handling": True},
                {"delay": 0.05, "api": "Fetch", "when": "once"},
                {"truncate_response": 7, "api": "Metadata", "when": {"on_call": 2}},
            ]
        )
    )
    cluster.create_topic("rules")
    trace = tmp_path / "trace.jsonl"
    options = ("--faults", str(rules), "--trace", str(trace))
    with ProxyProcess(tmp_path, cluster.bootstrap_servers, *options) as proxy:
        settings = {"enable.idempotence": True, "retry.backoff.ms": 10, "client.id": "shop"}
        assert produce(proxy.bootstrap, "rules", b"a", b"b", **settings) == []
        assert consume(proxy.bootstrap, "rules", 2) == [b"a", b"b"]
    assert not proxy.ready_file.exists()
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    produced = [each for each in lines if each["header"]["api"] == "Produce"]
    assert [each["faults"] for each in produced][:3] == [
        ["inject_error"],
        ["inject_error"],
        ["disconnect"],
    ]
    assert {each["header"]["client_id"] for each in produced} == {"shop"}
    assert {each["node"] for each in produced} <= {1, 2, 3}


def test_proxy_whose_ready_file_is_gone_ends_as_well(cluster: Cluster, tmp_path: Path) -> None:
    """A test that cleans up its directory first is no failure of the proxy."""
    proxy = ProxyProcess(tmp_path, cluster.bootstrap_servers)
    with proxy:
        proxy.ready_file.unlink()
        assert proxy.stop() == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--upstream", "nowhere:x"], "is not an address"),
        (["--upstream", "127.0.0.1:9", "--listen", "here"], "--listen here is not an address"),
        (["--upstream", "127.0.0.1:9", "--faults", "/no/file"], "No such file"),
        (["--upstream", "127.0.0.1:9", "--listen", "203.0.113.1:0"], "annot assign"),
    ],
)
def test_proxy_that_cannot_run_says_why(options: list[str], reason: str) -> None:
    done = subprocess.run(
        [KRAFT_WIRE, "proxy", *options], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
