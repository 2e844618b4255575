"""``kraft-wire topics describe`` beside ``kafka-topics --describe``, on two brokers of Apache's.

They stand on a controller of ours, as ``kraft-wire cluster up --apache-brokers`` starts them, with
eligible leader replicas (KIP-966).
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apache import jars
from tests.apache.java_process import run_java
from tests.cluster_command import ClusterCommand, kraft_wire

pytestmark = [pytest.mark.java, pytest.mark.slow]

ROW = re.compile(
    r"\tTopic: (\S+)\tPartition: (\d+)\tLeader: (\S+)\tReplicas: (\S*)\tIsr: (\S*)"
    r"\tElr: (\S*)\tLastKnownElr: (\S*)"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterCommand]:
    options = [
        *("--controllers", "1", "--brokers", "2", "--apache-brokers", "2"),
        *("--override", "broker.session.timeout.ms=3000"),
        *("--override", "broker.heartbeat.interval.ms=500"),
    ]
    environment = {"KRAFT_WIRE_APACHE_JARS": str(jars.jar_directory())}
    directory = tmp_path_factory.mktemp("home") / "cluster"
    with ClusterCommand(directory, *options, environment=environment) as running:
        running.until(lambda: told(running)["partitions"] == 0)
        running.until(
            lambda: [each["role"] for each in told(running)["nodes"]][1:] == ["Broker"] * 2
        )
        yield running


def told(cluster: ClusterCommand) -> Any:
    """What `cluster status` says."""
    return json.loads(cluster.run("status", "--json").stdout)


def ours(server: str, *options: str) -> list[tuple[object, ...]]:
    """The rows of our command."""
    done = kraft_wire("topics", "describe", "--json", *options, "-b", server)
    assert done.returncode == 0, done
    return [
        (
            topic["name"],
            *(each[key] for key in ("partition", "leader", "replicas", "isr")),
            *(each[key] for key in ("elr", "last_known_elr")),
        )
        for topic in json.loads(done.stdout)
        for each in topic["partitions"]
    ]


def apaches(server: str, *options: str) -> list[tuple[object, ...]]:
    """The rows of Apache's."""
    arguments = ["--bootstrap-server", server, "--describe", *options]
    done = run_java("org.apache.kafka.tools.TopicCommand", arguments)
    assert done.exit_code == 0, done.text
    rows: list[tuple[object, ...]] = []
    for topic, partition, leader, *lists in ROW.findall(done.stdout):
        ids = [[int(each) for each in text.split(",") if each] for text in lists]
        rows.append((topic, int(partition), -1 if leader == "none" else int(leader), *ids))
    return sorted(rows, key=lambda row: row[:2])


def test_describe_says_what_apaches_tool_says(cluster: ClusterCommand) -> None:
    """Broker 3 dies: with two replicas needed it stays eligible, out of the ISR."""
    server = told(cluster)["bootstrap_servers"].split(",")[0]
    needs = ("--config", "min.insync.replicas=2")
    made = ("create", "t", "--replicas", "2,3", "--replicas", "3,2", "--replicas", "2")
    assert kraft_wire("topics", *made, *needs, "-b", server).returncode == 1, "of one size"
    assert kraft_wire("topics", *made[:-2], *needs, "-b", server).returncode == 0
    cluster.until(lambda: told(cluster)["partitions"] == 2)
    assert ours(server) == apaches(server)
    cluster.did("kill", "3")
    cluster.until(lambda: told(cluster)["under_replicated"] == 2)
    shown = ours(server)
    assert [row[2:] for row in shown] == [(2, [2, 3], [2], [3], []), (2, [3, 2], [2], [3], [])]
    assert shown == apaches(server)
    assert ours(server, "--under-replicated") == apaches(server, "--under-replicated-partitions")
    table = kraft_wire("topics", "describe", "-b", server).stdout.splitlines()[1].split()
    assert table[:3] + table[4:] == ["t", "0", "2", "2", "3", "2", "3", "-", "under-replicated"]
