"""What `cluster status` shows in red: replicas that lack something, and nothing else."""

import pytest

from kraft_wire.cli.cluster.facts import BrokerFacts, ClusterFacts
from kraft_wire.cli.cluster.files import BROKER, ClusterState, NodeState
from kraft_wire.cli.cluster.view import cluster_table


@pytest.mark.parametrize(
    ("replicas", "in_sync", "under", "behind", "red"),
    [
        (9, 9, 0, 0, []),
        (9, 9, 0, 33, []),
        (0, 0, 0, 5, []),
        (9, 8, 0, 8, ["8 of 9"]),
        (9, 9, 2, 0, ["2"]),
        (9, 8, 2, 8, ["8 of 9", "2"]),
    ],
)
def test_what_lacks_something_is_red(
    replicas: int, in_sync: int, under: int, behind: int, red: list[str]
) -> None:
    broker = BrokerFacts(
        leads_count=1,
        replicas_count=replicas,
        in_sync_count=in_sync,
        under_replicated_count=under,
        behind_count=behind,
    )
    state = ClusterState("c", nodes={101: NodeState(101, "ours", 9101, BROKER, pid=13)}, cuts=[])
    table = cluster_table(state, ClusterFacts(None, {101: broker}, 1, 0, 0), 0)
    cells = [cell for column in table.columns for cell in column.cells]
    found = [str(cell) for cell in cells if getattr(cell, "style", "") == "red"]
    assert found == red
