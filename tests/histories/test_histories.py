"""Java and franz-go on three brokers of ours, some killed and paused: their history is sound.

`make histories` has more faults, and runs on Apache's brokers as the control.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.cluster import Cluster
from tests.clients.transactions.registry import CLIENTS
from tests.histories.campaign import SETTINGS, judge_under_faults
from tests.mixed.controller import OURS

FAULTS = 3


@pytest.mark.java
@pytest.mark.go
@pytest.mark.client
def test_what_clients_see_has_no_anomaly(tmp_path: Path) -> None:
    clients = [CLIENTS["java-4.3.1"], CLIENTS["franz-go"]]
    with Cluster(tmp_path, OURS, overrides=SETTINGS) as cluster:
        verdict = judge_under_faults(cluster, tmp_path, clients, FAULTS, seed=3)
    assert verdict.anomalies == []
    assert verdict.problems == []
    assert sum(verdict.faults.values()) == FAULTS
    assert verdict.transactions["committed"] > 20
    assert verdict.records > 100
