"""A secured cluster of ours under two kills, and that a user who is served is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_wire.client.connection import BrokerConnection
from kraft_wire.login.client_config import Security
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.secured_clusters.campaign import GROUP, TOPIC, campaign
from tests.secured_clusters.cluster import PROTECTIONS, SecuredCluster
from tests.secured_clusters.eve import Eve
from tests.server_process import ServerProcess
from tests.waiting import until

pytestmark = pytest.mark.slow
ANSWERS = 8
"""Questions that eve asks of each broker."""


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_nothing_is_lost_and_nothing_is_served_without_a_right(
    tmp_path: Path, protection: str
) -> None:
    verdict = campaign(SecuredCluster(tmp_path / "c", "ours", protection), 2, lambda _: None)
    assert verdict.lost == []
    assert verdict.got == []
    assert verdict.is_good
    assert len({name.split()[0] for name in verdict.refused}) == ANSWERS, verdict.refused


def test_what_an_open_broker_gives_is_seen(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        with BrokerConnection(server.bootstrap) as connection:
            wanted = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
            request = CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)
            made = connection.send(request, CreateTopicsResponse).topics[0]
        eve = Eve([server.bootstrap], Security(), TOPIC, made.topic_id, GROUP)
        eve.start()
        until(lambda: len(eve.got) >= ANSWERS)
        eve.finish()
    assert any(each.startswith("ProduceRequest") for each in eve.got)
