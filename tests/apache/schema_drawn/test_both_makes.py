"""Apache Kafka 4.3.1 and we answer drawn requests of every API alike, but for known differences."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache.schema_drawn.campaign import campaign, text_of
from tests.apache.schema_drawn.known import known_reason
from tests.apache.schema_drawn.nodes import both_brokers, our_log
from tests.apache.schema_drawn.pair import Broker, difference

pytestmark = pytest.mark.java

SEEDS = range(2)
REQUESTS = 600


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schema_drawn")


@pytest.fixture(scope="module")
def both(directory: Path) -> Iterator[tuple[Broker, Broker]]:
    """Two fresh nodes, which keep what the seeds change."""
    with both_brokers(directory) as brokers:
        yield brokers


@pytest.mark.parametrize("seed", SEEDS)
def test_drawn_requests_are_answered_alike(
    seed: int, both: tuple[Broker, Broker], directory: Path
) -> None:
    apache, ours = both
    found = campaign(apache, ours, seed, REQUESTS)
    unknown = [
        (each.api, each.version, text_of(each.request), each.difference)
        for each in found
        if known_reason(each) is None
        # What was late at one of the nodes is there by now.
        and difference(apache, ours, each.listener, each.request, each.version) is not None
    ]
    assert not unknown
    log = our_log(directory).read_text()
    assert " ERROR " not in log
    assert "unencodable" not in log, "no response of ours is one that cannot be encoded"
