"""Both generations of Java's transactions on three brokers, one after the other of which restarts.

`make transactions` runs all clients and scenarios there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.cluster import REPLICAS, Cluster
from tests.clients.transactions.__main__ import SESSIONS
from tests.clients.transactions.registry import CLIENTS
from tests.clients.transactions.running import NODE_SETTINGS, Ground, Size, run_all
from tests.mixed.controller import OURS

RESTART_EVERY_S = 6.0
SIZE = Size(moved=300, large=3_000)


@pytest.mark.client
@pytest.mark.java
def test_java_clients_keep_their_promises_while_brokers_restart(tmp_path: Path) -> None:
    clients = [client for client in CLIENTS.values() if client.judge == "java"]
    scenarios = ("commit", "abort", "move", "large")
    with Cluster(tmp_path, OURS, overrides={**NODE_SETTINGS, **SESSIONS}) as cluster:
        ground = Ground(cluster.bootstrap, tmp_path, REPLICAS)
        with cluster.restarting(RESTART_EVERY_S):
            table = run_all(clients, ground, scenarios, size=SIZE)
        assert cluster.restarts >= 2, "the scenarios are over too soon"
    failed = {name: each for name, each in table.items() if not all(r.green for r in each.values())}
    assert failed == {}
    assert [len(results) for results in table.values()] == [len(scenarios)] * 2
