"""Our broker on an Apache Kafka 4.3.1 node whose sessions last for two seconds.

Apache's node closes a connection that sends a request after the end of its session. The broker's
connections to it, by local port, have to stay the same over five sessions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.apache.secured_node import SecuredApache, sasl_settings
from tests.broker_process import BrokerProcess
from tests.ports import free_port
from tests.server.linked_nodes import MECHANISM
from tests.server.test_renewed_links import CLOSED, LOGGED_IN, RENEWED, SESSION_MS, counts
from tests.waiting import until

pytestmark = [pytest.mark.java, pytest.mark.slow]
BROKER = 2
PORT, INODE, ESTABLISHED = 1, 9, "01"
LISTENERS = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,"
    "SECURE:SASL_PLAINTEXT",
    "inter.broker.listener.name": "SECURE",
}
SETTINGS = {
    **LISTENERS,
    **{f"sasl.mechanism.{link}.protocol": name for link, name in MECHANISM.items()},
    **sasl_settings("CONTROLLER"),
    **sasl_settings("SECURE"),
    "connections.max.reauth.ms": str(SESSION_MS),
}


def local_ports(pid: int, address: str) -> set[str]:
    """Return the local ports of a process's connections to an address."""
    sockets = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            sockets.add(os.readlink(fd))
    remote = f"{int(address.rpartition(':')[2]):04X}"
    rows = [each.split() for each in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    return {
        row[1].split(":")[PORT]
        for row in rows
        if row[2].split(":")[PORT] == remote
        and row[3] == ESTABLISHED
        and f"socket:[{row[INODE]}]" in sockets
    }


@contextmanager
def both_makes(
    directory: Path, settings: dict[str, str]
) -> Iterator[tuple[SecuredApache, BrokerProcess]]:
    """Run a node of Apache's and a broker of ours that log in to each other at SECURE."""
    apache = SecuredApache(directory / "apache", "SASL_PLAINTEXT", settings)
    apache.directory.mkdir()
    (directory / "ours").mkdir()
    ours = BrokerProcess(
        directory / "ours",
        BROKER,
        cluster_id=apache.cluster_id,
        voters=f"1@{apache.controller_bootstrap}",
        overrides={**settings, "metrics.port": "-1"},
    )
    ours._settings["listeners"] = f"PLAINTEXT://{ours.bootstrap},SECURE://127.0.0.1:{free_port()}"
    with apache, ours:
        yield apache, ours


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[SecuredApache, BrokerProcess]]:
    with both_makes(tmp_path, SETTINGS) as started:
        yield started


def replicate(apache: SecuredApache) -> None:
    """Create topic t: each node leads one partition and follows the other."""
    assignments = [
        CreatableReplicaAssignment(partition_index=0, broker_ids=[1, BROKER]),
        CreatableReplicaAssignment(partition_index=1, broker_ids=[BROKER, 1]),
    ]
    topic = CreatableTopic(
        name="t", num_partitions=-1, replication_factor=-1, assignments=assignments
    )
    with BrokerConnection(apache.bootstrap) as connection:
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        answer = connection.send(request, CreateTopicsResponse)
    assert [each.error_code for each in answer.topics] == [0], answer


def in_sync(address: str) -> list[list[int]]:
    """Return the replicas in sync of each partition of topic t."""
    with BrokerConnection(address) as connection:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        answer = connection.send(request, MetadataResponse)
    return [sorted(each.isr_nodes) for topic in answer.topics for each in topic.partitions]


def test_links_between_our_broker_and_apaches_node_outlive_their_sessions(
    nodes: tuple[SecuredApache, BrokerProcess],
) -> None:
    """SEC-ENV-03: our links to the controller and the leader, and Apache's link to our leader."""
    apache, ours = nodes
    replicate(apache)
    peers = (apache.controller_bootstrap, apache.secure)

    def links() -> list[set[str]]:
        return [local_ports(ours.pid, peer) for peer in peers]

    until(lambda: counts(ours)[RENEWED, "SECURE"] >= 1)
    before, began_s, logins = links(), time.monotonic(), counts(ours)
    assert all(before), "links to the controller and to the leader"
    until(lambda: time.monotonic() > began_s + 5 * SESSION_MS / 1_000)
    assert links() == before
    after = counts(ours)
    assert after[LOGGED_IN, "SECURE"] == logins[LOGGED_IN, "SECURE"]
    assert after[RENEWED, "SECURE"] >= logins[RENEWED, "SECURE"] + 3
    assert after[CLOSED, "SECURE"] == 0
    assert in_sync(apache.bootstrap) == [[1, BROKER], [1, BROKER]]
    assert [line for line in ours.text.splitlines() if "peer_login_failed" in line] == []
    assert "ailed re-authentication" not in apache.text
