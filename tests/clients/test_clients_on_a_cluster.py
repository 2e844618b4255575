"""A real client against three brokers, one after the other of which restarts meanwhile.

Few scenarios of one client, with a restart every few seconds; `make clients-cluster` runs all with
all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.cluster import BROKERS, REPLICAS, Cluster
from tests.clients.registry import CLIENTS
from tests.clients.running import run_all
from tests.mixed.controller import OURS

SCENARIOS = ("idempotent", "group", "topics", "restart-before")
RESTART_EVERY_S = 10.0
SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A broker that comes back waits for the session of its former life to end, as in 4.3.1."""


@pytest.mark.client
def test_client_sees_no_error_while_one_broker_after_the_other_restarts(tmp_path: Path) -> None:
    with Cluster(tmp_path, OURS, overrides=SESSIONS) as cluster:
        with cluster.restarting(RESTART_EVERY_S):
            table = run_all([CLIENTS["confluent-kafka"]], cluster, SCENARIOS, replicas=REPLICAS)
        assert cluster.restarts >= len(BROKERS), "between the two halves of the last scenario"
    results = table["confluent-kafka"]
    assert {name: result.detail for name, result in results.items() if not result.green} == {}
    assert len(results) == len(SCENARIOS)
