"""librdkafka's transactions on one broker, and on three that restart in turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.transactions.consume_transform_produce import Loop
from tests.clients.cluster import Cluster
from tests.mixed.controller import OURS
from tests.server_process import ServerProcess

pytestmark = pytest.mark.client

RESTART_EVERY_S = 8.0
SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A broker that comes back waits for the session of its former life to end, as in 4.3.1."""


def test_every_number_arrives_once(module_server: ServerProcess) -> None:
    loop = Loop(module_server.bootstrap, "one")
    loop.fill(100)
    loop.run(100)
    assert loop.aborts > 0
    assert loop.arrived("read_committed") == list(range(100))
    assert len(loop.arrived("read_uncommitted")) > 100, "aborted records are there to be seen"


@pytest.mark.slow
def test_every_number_arrives_once_while_brokers_restart(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, OURS, overrides=SESSIONS)
    with cluster, cluster.restarting(RESTART_EVERY_S):
        loop = Loop(cluster.bootstrap, "three", replicas=3)
        loop.fill(2_000)
        loop.run(2_000)
        assert loop.arrived("read_committed") == list(range(2_000))
