"""How a cluster of processes is shown: a table of its nodes, and the same as JSON."""

from collections.abc import Sequence
from typing import TypeAlias

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kraft_wire.cli.cluster.facts import BrokerFacts, ClusterFacts
from kraft_wire.cli.cluster.state import ClusterState, NetworkCut, NodeState
from kraft_wire.cli.quorum.facts import QuorumFacts
from kraft_wire.cli.tables import fitted, new_table

__all__ = ["cluster_json", "cluster_screen", "cluster_table"]

_STYLES = {"running": "green", "paused": "yellow", "down": "red"}
_PROCESS_COLUMNS = ("node", "make", "address", "process", "state", "role")
_METADATA_COLUMNS = ("log end", "lag", "last fetch")
_BROKER_COLUMNS = ("leads", "in sync", "behind", "under-replicated")
_NOTE = ""
_NUMBERS = {"node", "log end", "lag", *_BROKER_COLUMNS}

Row: TypeAlias = dict[str, str | Text]


def cluster_screen(
    state: ClusterState, facts: ClusterFacts, wall_ms: int, width: int
) -> RenderableType:
    """Return one moment as a screen of a width shows it."""
    return fitted(cluster_table(state, facts, wall_ms), width)


def cluster_table(state: ClusterState, facts: ClusterFacts, wall_ms: int) -> Table:
    """Return a table of one moment."""
    columns = (*_PROCESS_COLUMNS, *_METADATA_COLUMNS, *_broker_columns(state), _NOTE)
    table = _table(columns, _rows(state, facts, wall_ms))
    table.title = f"cluster {state.cluster_id}   {_quorum_text(state, facts)}"
    if facts.partitions is not None:
        table.title += f"\n{facts.partitions}"
    return table


def _table(columns: Sequence[str], rows: Sequence[Row]) -> Table:
    table = new_table(*columns)
    for column in table.columns:
        column.justify = "right" if column.header in _NUMBERS else "left"
    for row in rows:
        table.add_row(*(row[name] for name in columns))
    return table


def _rows(state: ClusterState, facts: ClusterFacts, wall_ms: int) -> list[Row]:
    """Return the cells of each node by heading."""
    return [
        {
            "node": str(node.node_id),
            "make": node.make,
            "address": node.address,
            "process": "-" if node.pid is None else str(node.pid),
            "state": Text(node.condition, style=_STYLES[node.condition]),
            "role": role_of(node, facts) or "-",
            **dict(zip(_METADATA_COLUMNS, _metadata_cells(facts, node, wall_ms), strict=True)),
            **dict(zip(_BROKER_COLUMNS, _broker_cells(_broker(facts, node)), strict=True)),
            _NOTE: Text(_note(node, state.cuts), style="dim"),
        }
        for node in state.nodes.values()
    ]


def _broker_columns(state: ClusterState) -> tuple[str, ...]:
    return _BROKER_COLUMNS if state.brokers else ()


def cluster_json(state: ClusterState, facts: ClusterFacts) -> dict[str, object]:
    """Return the content of the table as a JSON object."""
    quorum, has_metadata = _led(state, facts), facts.brokers is not None
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
    """Return Leader, Follower, Observer, Broker or Fenced, for a combined node two of them.

    None if unknown. A node that is down has no role, even if other nodes still report one, except
    Fenced: the controller has noticed that the broker is down.
    """
    is_fenced = node.is_broker and facts.brokers is not None and node.node_id not in facts.brokers
    if node.pid is None:
        return "Fenced" if is_fenced else None
    roles = []
    replica = facts.replica(node.node_id)
    if node.is_controller and facts.quorum is not None and replica is not None:
        roles.append(facts.quorum.status(replica))
    if node.is_broker and facts.brokers is not None:
        roles.append("Fenced" if is_fenced else "Broker")
    return ", ".join(roles) or None


def _led(state: ClusterState, facts: ClusterFacts) -> QuorumFacts | None:
    """Return the quorum while its leader's process is there."""
    quorum = facts.quorum
    leader = None if quorum is None else state.nodes.get(quorum.leader_id)
    return None if leader is not None and leader.pid is None else quorum


def _quorum_text(state: ClusterState, facts: ClusterFacts) -> str:
    quorum = _led(state, facts)
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
        "controller_address": node.controller_address if node.is_controller else None,
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


def _metadata_cells(facts: ClusterFacts, node: NodeState, wall_ms: int) -> list[str]:
    """Return log end, lag and last fetch; none for a node that the leader does not know."""
    replica = facts.replica(node.node_id)
    if facts.quorum is None or replica is None:
        return ["-"] * 3
    lag, fetched_ms = facts.quorum.lag(replica), replica.last_fetch_ms
    ago = "never" if fetched_ms is None else f"{max(0, wall_ms - fetched_ms) / 1000:.1f} s ago"
    end = "-" if replica.log_end_offset is None else str(replica.log_end_offset)
    return [end, "-" if lag is None else str(lag), ago]


def _broker_cells(broker: BrokerFacts | None) -> list[str | Text]:
    """Return counts: led, in-sync and under-replicated partitions, and offsets behind."""
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
    """Return why a node is down, or the nodes that it is cut off from."""
    to = [str(each.receiver) for each in cuts if each.sender == node.node_id]
    of = [str(each.sender) for each in cuts if each.receiver == node.node_id]
    said = [node.note] if node.note else []
    said += [f"does not reach {', '.join(to)}"] if to else []
    said += [f"no packets from {', '.join(of)}"] if of else []
    return "; ".join(said)
