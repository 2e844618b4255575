"""What `kraft-wire cluster status` shows of one moment: a cell under each heading, and JSON."""

import io

import pytest
from rich.console import Console

from kraft_wire.cli.cluster.facts import BrokerFacts, ClusterFacts
from kraft_wire.cli.cluster.state import (
    BROKER,
    COMBINED,
    ClusterState,
    NetworkCut,
    NodeState,
)
from kraft_wire.cli.cluster.view import cluster_json, cluster_screen, cluster_table
from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts

NOW_MS = 1_700_000_000_000


def moment() -> tuple[ClusterState, ClusterFacts]:
    """A leader, a controller that lags, one that is down, a broker, and one that is fenced."""
    nodes = [
        NodeState(1, "ours", 9001, pid=11),
        NodeState(2, "apache", 9002, pid=12, is_paused=True),
        NodeState(3, "ours", 9003, note="killed"),
        NodeState(101, "ours", 9101, BROKER, pid=13),
        NodeState(102, "ours", 9102, BROKER, pid=14),
    ]
    state = ClusterState("c", nodes={each.node_id: each for each in nodes}, cuts=[NetworkCut(1, 3)])
    replicas = tuple(
        ReplicaFacts(node_id, None, end, at_ms, at_ms, ())
        for node_id, end, at_ms in ((1, 90, NOW_MS), (2, 70, NOW_MS - 1_500), (3, 0, None))
    )
    quorum = QuorumFacts("c", 1, 5, 88, replicas, ())
    broker = BrokerFacts(
        leads_count=4, replicas_count=9, in_sync_count=8, under_replicated_count=2, behind_count=33
    )
    facts = ClusterFacts(quorum, {101: broker}, 10, 2, 1)
    return state, facts


def rows(state: ClusterState, facts: ClusterFacts) -> dict[str, dict[str, str]]:
    """The table's cells by node and heading."""
    table = cluster_table(state, facts, NOW_MS)
    headings = [str(column.header) for column in table.columns]
    assert len(set(headings)) == len(headings)
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert {len(column) for column in cells} == {len(state.nodes)}
    return {row[0]: dict(zip(headings, row, strict=True)) for row in zip(*cells, strict=True)}


def test_each_cell_stands_under_its_heading() -> None:
    shown = rows(*moment())
    assert shown["1"] == {
        "node": "1",
        "make": "ours",
        "address": "127.0.0.1:9001",
        "process": "11",
        "state": "running",
        "role": "Leader",
        "log end": "90",
        "lag": "0",
        "last fetch": "0.0 s ago",
        "leads": "-",
        "in sync": "-",
        "behind": "-",
        "under-replicated": "-",
        "": "does not reach 3",
    }
    paused, dead, broker, fenced = (shown[node] for node in ("2", "3", "101", "102"))
    assert [paused[key] for key in ("make", "state", "role", "lag", "last fetch")] == [
        "apache",
        "paused",
        "Follower",
        "20",
        "1.5 s ago",
    ]
    assert [dead[key] for key in ("process", "state", "last fetch", "")] == [
        "-",
        "down",
        "never",
        "killed; no packets from 1",
    ]
    assert [broker[key] for key in ("role", "leads", "in sync", "behind", "under-replicated")] == [
        "Broker",
        "4",
        "8 of 9",
        "33",
        "2",
    ]
    assert (fenced["role"], fenced["leads"]) == ("Fenced", "-")


def test_title_names_leader_and_partitions() -> None:
    state, facts = moment()
    assert cluster_table(state, facts, NOW_MS).title == (
        "cluster c   leader 1   epoch 5   high watermark 88\n"
        "10 partitions, 2 under-replicated, 1 without a leader"
    )


def test_json_says_the_same() -> None:
    found = cluster_json(*moment())
    nodes = found.pop("nodes")
    assert found == {
        "cluster_id": "c",
        "bootstrap_controllers": "127.0.0.1:9001,127.0.0.1:9002,127.0.0.1:9003",
        "bootstrap_servers": "127.0.0.1:9101,127.0.0.1:9102",
        "leader_id": 1,
        "leader_epoch": 5,
        "high_watermark": 88,
        "partitions": 10,
        "under_replicated": 2,
        "leaderless": 1,
        "cuts": [{"sender": 1, "receiver": 3}],
    }
    assert isinstance(nodes, list)
    assert [(each["node_id"], each["state"], each["role"], each["lag"]) for each in nodes] == [
        (1, "running", "Leader", 0),
        (2, "paused", "Follower", 20),
        (3, "down", None, 90),
        (101, "running", "Broker", None),
        (102, "running", "Fenced", None),
    ]
    assert [nodes[3][key] for key in ("leads", "replicas", "in_sync", "behind")] == [4, 9, 8, 33]
    assert nodes[3]["under_replicated"] == 2


def test_nothing_is_made_up_while_nobody_answers() -> None:
    state, _ = moment()
    found = cluster_json(state, ClusterFacts())
    keys = ("leader_id", "leader_epoch", "high_watermark", "partitions", "under_replicated")
    assert [found[key] for key in (*keys, "leaderless")] == [None] * 6
    assert rows(state, ClusterFacts())["101"]["role"] == "-"


def test_leader_whose_process_is_gone_leads_nothing() -> None:
    """The other voters name it until they have elected another."""
    state, facts = moment()
    state.nodes[1].pid = None
    found = cluster_json(state, facts)
    assert [found[key] for key in ("leader_id", "leader_epoch")] == [None, None]
    assert str(cluster_table(state, facts, NOW_MS).title).startswith("cluster c   no leader\n")
    assert rows(state, facts)["1"]["role"] == "-"


def test_broker_that_is_down_is_fenced_once_the_controller_has_noticed() -> None:
    state, facts = moment()
    state.nodes[101].pid = state.nodes[102].pid = None
    found = rows(state, facts)
    assert [found[node]["role"] for node in ("101", "102")] == ["-", "Fenced"]


def test_combined_node_has_both_roles_and_both_addresses() -> None:
    state, facts = moment()
    state.nodes[1] = NodeState(1, "ours", 9001, COMBINED, pid=11, controller_port=9901)
    assert rows(state, facts)["1"]["role"] == "Leader, Fenced"
    found = cluster_json(state, facts)
    assert found["bootstrap_controllers"] == "127.0.0.1:9901,127.0.0.1:9002,127.0.0.1:9003"
    assert found["bootstrap_servers"] == "127.0.0.1:9001,127.0.0.1:9101,127.0.0.1:9102"
    nodes = found["nodes"]
    assert isinstance(nodes, list)
    addresses = [(each["address"], each["controller_address"]) for each in nodes]
    assert addresses[0] == ("127.0.0.1:9001", "127.0.0.1:9901")
    assert addresses[3] == ("127.0.0.1:9101", None)


@pytest.mark.parametrize("width", [80, 100, 120, 10_000])
def test_nothing_is_cut_at_any_width(width: int) -> None:
    state, facts = moment()
    state.nodes[3].note = "killed; to start it again: kraft-wire cluster start 3"
    out = io.StringIO()
    Console(width=width, file=out).print(cluster_screen(state, facts, NOW_MS, width))
    shown = out.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    for row in rows(state, facts).values():
        for cell in row.values():
            assert cell in shown
    headings = " ".join(next(iter(rows(state, facts).values())))
    assert all(word in shown for word in headings.split())
