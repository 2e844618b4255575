"""Apache Kafka 4.3.1 and we answer every probe alike, field by field, in every version."""

from collections.abc import Iterator

import pytest

from tests.apache.differential.catalogue import PROBES
from tests.apache.differential.probes import Probe, disagreements
from tests.apache.differential.side import Side
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess

pytestmark = pytest.mark.java

SETTINGS = {
    "num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.retention.check.interval.ms": "86400000",
}
"""Those of `ApacheNode`."""


@pytest.fixture(scope="module")
def both(
    apache_node: ApacheNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    """Apache's broker and ours, started alike."""
    with ServerProcess(tmp_path_factory.mktemp("differential"), overrides=SETTINGS) as server:
        theirs, ours = Side(apache_node.bootstrap, "diff"), Side(server.bootstrap, "diff")
        yield theirs, ours
        theirs.close()
        ours.close()


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.id)
def test_apache_and_we_answer_alike(probe: Probe, both: tuple[Side, Side]) -> None:
    assert disagreements(probe, *both) == []
