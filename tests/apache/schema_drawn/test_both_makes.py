"""Apache Kafka 4.3.1 and we answer drawn requests of every API alike, but for known differences."""

from collections.abc import Iterator

import pytest

from tests.apache.schema_drawn.campaign import campaign, text_of
from tests.apache.schema_drawn.known import known_reason
from tests.apache.schema_drawn.nodes import both_brokers
from tests.apache.schema_drawn.pair import Broker

pytestmark = pytest.mark.java

SEEDS = range(2)
REQUESTS = 600


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    """Two fresh nodes, which keep what the seeds change."""
    with both_brokers(tmp_path_factory.mktemp("schema_drawn")) as brokers:
        yield brokers


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_requests_are_answered_alike(seed: int, both: tuple[Broker, Broker]) -> None:
    apache, ours = both
    found = campaign(apache, ours, seed, REQUESTS)
    unknown = [
        (each.api, each.version, text_of(each.request), each.difference)
        for each in found
        if known_reason(each) is None
    ]
    assert not unknown
