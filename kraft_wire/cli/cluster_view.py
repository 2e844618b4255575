"""How a cluster of processes is shown: a table of its nodes, and the same as JSON."""

from rich.table import Table
from rich.text import Text

from kraft_wire.cli.cluster_files import ClusterState, NodeState
from kraft_wire.cli.quorum_facts import QuorumFacts, ReplicaFacts

__all__ = ["cluster_json", "cluster_table"]

_STYLES = {"running": "green", "paused": "yellow", "down": "red"}


def cluster_table(state: ClusterState, facts: QuorumFacts | None, wall_ms: int) -> Table:
    """Return a table of one moment; `facts` is what the leader says, if anybody leads."""
    quorum = "no leader"
    if facts is not None:
        known = "?" if facts.high_watermark is None else facts.high_watermark
        quorum = f"leader {facts.leader_id}   epoch {facts.leader_epoch}   high watermark {known}"
    title = f"cluster {state.cluster_id}   {quorum}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in ("node", "make", "address", "process", "state", "role", "log end", "lag"):
        table.add_column(name, justify="right" if name in ("node", "log end", "lag") else "left")
    table.add_column("last fetch")
    table.add_column("", overflow="fold")
    for node in state.nodes.values():
        replica = _replica(facts, node)
        table.add_row(
            str(node.node_id),
            node.make,
            node.address,
            "-" if node.pid is None else str(node.pid),
            Text(node.condition, style=_STYLES[node.condition]),
            *_quorum_cells(facts, replica, wall_ms),
            Text(node.note, style="dim"),
        )
    return table


def cluster_json(state: ClusterState, facts: QuorumFacts | None) -> dict[str, object]:
    """Return what the table shows as a JSON object."""
    return {
        "cluster_id": state.cluster_id,
        "bootstrap_controllers": state.bootstrap,
        "leader_id": None if facts is None else facts.leader_id,
        "leader_epoch": None if facts is None else facts.leader_epoch,
        "high_watermark": None if facts is None else facts.high_watermark,
        "nodes": [_node_json(node, facts) for node in state.nodes.values()],
    }


def _node_json(node: NodeState, facts: QuorumFacts | None) -> dict[str, object]:
    replica = _replica(facts, node)
    return {
        "node_id": node.node_id,
        "make": node.make,
        "address": node.address,
        "pid": node.pid,
        "state": node.condition,
        "role": None if facts is None or replica is None else facts.status(replica),
        "log_end_offset": None if replica is None else replica.log_end_offset,
        "note": node.note,
    }


def _quorum_cells(
    facts: QuorumFacts | None, replica: ReplicaFacts | None, wall_ms: int
) -> list[str]:
    """Return role, log end, lag and last fetch; a node that nobody knows has none."""
    if facts is None or replica is None:
        return ["-"] * 4
    lag, fetched_ms = facts.lag(replica), replica.last_fetch_ms
    ago = "never" if fetched_ms is None else f"{max(0, wall_ms - fetched_ms) / 1000:.1f} s ago"
    end = "-" if replica.log_end_offset is None else str(replica.log_end_offset)
    return [facts.status(replica), end, "-" if lag is None else str(lag), ago]


def _replica(facts: QuorumFacts | None, node: NodeState) -> ReplicaFacts | None:
    """Return a node's replica; where its disk was replaced, the one that fetched last."""
    found = (
        [] if facts is None else [each for each in facts.replicas if each.node_id == node.node_id]
    )
    return max(found, key=lambda each: each.last_fetch_ms or 0, default=None)
