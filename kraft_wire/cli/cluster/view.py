"""How a cluster of processes is shown: a table of its nodes, and the same as JSON."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from kraft_wire.cli.cluster.facts import BrokerFacts, ClusterFacts
from kraft_wire.cli.cluster.files import BROKER, ClusterState, NetworkCut, NodeState

__all__ = ["cluster_json", "cluster_table"]

_STYLES = {"running": "green", "paused": "yellow", "down": "red"}
_COLUMNS = ("node", "make", "address", "process", "state", "role", "log end", "lag", "last fetch")
_BROKER_COLUMNS = ("leads", "in sync", "behind", "under-replicated")
_NUMBERS = {"node", "log end", "lag", *_BROKER_COLUMNS}


def cluster_table(state: ClusterState, facts: ClusterFacts, wall_ms: int) -> Table:
    """Return a table of one moment."""
    title = f"cluster {state.cluster_id}   {_quorum_text(facts)}"
    if facts.partitions is not None:
        title += f"\n{facts.partitions}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in (*_COLUMNS, *(_BROKER_COLUMNS if state.brokers else ())):
        table.add_column(name, justify="right" if name in _NUMBERS else "left")
    table.add_column("", overflow="fold")
    for node in state.nodes.values():
        table.add_row(
            str(node.node_id),
            node.make,
            node.address,
            "-" if node.pid is None else str(node.pid),
            Text(node.condition, style=_STYLES[node.condition]),
            role_of(node, facts) or "-",
            *_metadata_cells(facts, node.node_id, wall_ms),
            *(_broker_cells(_broker(facts, node)) if state.brokers else ()),
            Text(_note(node, state.cuts), style="dim"),
        )
    return table


def cluster_json(state: ClusterState, facts: ClusterFacts) -> dict[str, object]:
    """Return what the table shows as a JSON object."""
    quorum, has_metadata = facts.quorum, facts.brokers is not None
    return {
        "cluster_id": state.cluster_id,
        "bootstrap_controllers": state.bootstrap,
        "bootstrap_servers": state.bootstrap_servers,
        "leader_id": None if quorum is None else quorum.leader_id,
        "leader_epoch": None if quorum is None else quorum.leader_epoch,
        "high_watermark": None if quorum is None else quorum.high_watermark,
        "partitions": facts.partitions_count if has_metadata else None,
        "under_replicated": facts.under_replicated_count if has_metadata else None,
        "leaderless": facts.leaderless_count if has_metadata else None,
        "cuts": [each._asdict() for each in state.cuts],
        "nodes": [_node_json(node, facts) for node in state.nodes.values()],
    }


def role_of(node: NodeState, facts: ClusterFacts) -> str | None:
    """Return Leader, Follower, Observer, Broker or Fenced; None where nobody knows."""
    if node.role == BROKER:
        if facts.brokers is None:
            return None
        return "Broker" if node.node_id in facts.brokers else "Fenced"
    replica = facts.replica(node.node_id)
    return None if facts.quorum is None or replica is None else facts.quorum.status(replica)


def _quorum_text(facts: ClusterFacts) -> str:
    quorum = facts.quorum
    if quorum is None:
        return "no leader"
    known = "?" if quorum.high_watermark is None else quorum.high_watermark
    return f"leader {quorum.leader_id}   epoch {quorum.leader_epoch}   high watermark {known}"


def _node_json(node: NodeState, facts: ClusterFacts) -> dict[str, object]:
    replica, broker = facts.replica(node.node_id), _broker(facts, node)
    return {
        "node_id": node.node_id,
        "make": node.make,
        "address": node.address,
        "pid": node.pid,
        "state": node.condition,
        "process_role": node.role,
        "role": role_of(node, facts),
        "log_end_offset": None if replica is None else replica.log_end_offset,
        "lag": None if facts.quorum is None or replica is None else facts.quorum.lag(replica),
        "leads": None if broker is None else broker.leads_count,
        "replicas": None if broker is None else broker.replicas_count,
        "in_sync": None if broker is None else broker.in_sync_count,
        "behind": None if broker is None else broker.behind_count,
        "under_replicated": None if broker is None else broker.under_replicated_count,
        "note": node.note,
    }


def _metadata_cells(facts: ClusterFacts, node_id: int, wall_ms: int) -> list[str]:
    """Return log end, lag and last fetch; a node that the leader does not know has none."""
    replica = facts.replica(node_id)
    if facts.quorum is None or replica is None:
        return ["-"] * 3
    lag, fetched_ms = facts.quorum.lag(replica), replica.last_fetch_ms
    ago = "never" if fetched_ms is None else f"{max(0, wall_ms - fetched_ms) / 1000:.1f} s ago"
    end = "-" if replica.log_end_offset is None else str(replica.log_end_offset)
    return [end, "-" if lag is None else str(lag), ago]


def _broker_cells(broker: BrokerFacts | None) -> list[str | Text]:
    """Return what it leads, what of its replicas is in sync, what they lack, who lacks others."""
    if broker is None:
        return ["-"] * len(_BROKER_COLUMNS)
    in_sync = f"{broker.in_sync_count} of {broker.replicas_count}"
    is_whole = broker.in_sync_count == broker.replicas_count
    under = broker.under_replicated_count
    return [
        str(broker.leads_count),
        Text(in_sync, style="" if is_whole else "red"),
        str(broker.behind_count),
        Text(str(under), style="red" if under else ""),
    ]


def _broker(facts: ClusterFacts, node: NodeState) -> BrokerFacts | None:
    return None if facts.brokers is None else facts.brokers.get(node.node_id)


def _note(node: NodeState, cuts: Sequence[NetworkCut]) -> str:
    """Return why a node is down, or what it is cut off from."""
    to = [str(each.receiver) for each in cuts if each.sender == node.node_id]
    of = [str(each.sender) for each in cuts if each.receiver == node.node_id]
    said = [node.note] if node.note else []
    said += [f"does not reach {', '.join(to)}"] if to else []
    said += [f"does not hear {', '.join(of)}"] if of else []
    return "; ".join(said)
