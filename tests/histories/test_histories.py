"""Java and franz-go on three brokers of ours under faults: their history is sound.

Faults are kills and pauses, and one-way cuts where nodes can have networks of their own.
`make histories` has more faults, and runs on Apache's brokers as the control.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from kraft_wire.cli.cluster.network import missing
from tests.chaos.network import Network
from tests.clients.cluster import BROKERS, CONTROLLERS, Cluster
from tests.clients.transactions.registry import CLIENTS
from tests.histories.campaign import SETTINGS, judge_under_faults
from tests.mixed.controller import OURS

FAULTS = 3


@pytest.mark.java
@pytest.mark.go
@pytest.mark.client
def test_what_clients_see_has_no_anomaly(tmp_path: Path) -> None:
    clients = [CLIENTS["java-4.3.1"], CLIENTS["franz-go"]]
    with ExitStack() as stack:
        has_cuts = missing() is None
        network = stack.enter_context(Network((*CONTROLLERS, *BROKERS))) if has_cuts else None
        cluster = Cluster(tmp_path, OURS, overrides=SETTINGS, network=network)
        stack.enter_context(cluster)
        verdict = judge_under_faults(cluster, tmp_path, clients, FAULTS, seed=3)
    assert verdict.anomalies == []
    assert verdict.problems == []
    assert sum(verdict.faults.values()) == FAULTS
    assert verdict.transactions["committed"] > 0
    assert verdict.records > 100
