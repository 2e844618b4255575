"""`cluster partition` and `heal`: which directions between nodes are cut, and made whole again.

A file for each direction lists the cuts, so that `up` and `status` can show it; the packets
themselves are `cluster_network`'s.
"""

from collections.abc import Sequence

from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles
from kraft_wire.cli.cluster.network import ClusterNetwork, missing
from kraft_wire.cli.cluster.state import ClusterState, NetworkCut, NodeState

__all__ = ["cut_off", "healed"]


def cut_off(
    files: ClusterFiles,
    state: ClusterState,
    node: NodeState,
    others: Sequence[NodeState],
    only: str,
) -> list[NetworkCut]:
    """Cut a node off from others, none meaning all; return the directions. Errors: CannotRun."""
    network = _network(files, state)
    if only not in ("", "in", "out"):
        raise CannotRun(f"--only {only}: expected `in` or `out`")
    ids = [each.node_id for each in others or state.nodes.values() if each is not node]
    if not ids:
        raise CannotRun(f"node {node.node_id} cannot be cut off from itself")
    cuts = [NetworkCut(node.node_id, each) for each in ids if only != "in"]
    cuts += [NetworkCut(each, node.node_id) for each in ids if only != "out"]
    for cut in cuts:  # first: healing too much is harmless, a lost cut is not
        files.cut(cut).touch()
    network.cut(cuts)
    return cuts


def healed(files: ClusterFiles, state: ClusterState, node: NodeState | None) -> list[NetworkCut]:
    """Heal the cuts of a node, or all cuts; return the directions. Errors: CannotRun."""
    network = _network(files, state)
    cuts = [each for each in files.cuts() if node is None or node.node_id in each]
    network.heal(cuts)
    for cut in cuts:
        files.cut(cut).unlink(missing_ok=True)
    return cuts


def _network(files: ClusterFiles, state: ClusterState) -> ClusterNetwork:
    if state.network is None:
        raise CannotRun(
            "these nodes share this machine's network and cannot be partitioned: "
            "`kraft-wire cluster up --netns` in a new --dir gives each its own (Linux, "
            "root)"
        )
    if not files.is_supervised:
        raise CannotRun(f"no `kraft-wire cluster up` runs in {files.directory}")
    why = missing()
    if why is not None:
        raise CannotRun(f"nodes cannot be partitioned: {why}")
    return ClusterNetwork.of(state)
