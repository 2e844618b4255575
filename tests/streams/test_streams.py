"""Kafka Streams with exactly_once_v2 on three brokers of ours, one killed, and killed itself.

`make streams` does the same with more of everything, and on Apache's brokers as the control.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.cluster import Cluster
from tests.mixed.controller import OURS
from tests.streams.campaign import SETTINGS, Campaign

RECORDS = 6_000


@pytest.mark.java
@pytest.mark.client
@pytest.mark.timeout(900)
def test_counts_are_exact_over_kills_of_a_broker_and_of_the_application(tmp_path: Path) -> None:
    with Cluster(tmp_path, OURS, overrides=SETTINGS) as cluster:
        outcome = Campaign(cluster, tmp_path, records=RECORDS).run(1, 1)
    assert outcome.wrong == []
    assert (outcome.records, outcome.broker_kills, outcome.application_kills) == (RECORDS, 1, 1)
