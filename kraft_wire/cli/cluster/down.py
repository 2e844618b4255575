"""`cluster down`: ends the cluster of a directory from another shell, and removes it if asked.

A running `cluster up` is asked to end, and stops its nodes as after Ctrl-C. Remaining nodes of a
killed `up` are stopped directly: brokers first, because a broker asks the controllers before it
stops.
"""

import signal
from typing import Final

from kraft_wire.cli.cluster.files import ClusterFiles
from kraft_wire.cli.cluster.network import ClusterNetwork
from kraft_wire.cli.cluster.nodes import send, until_gone, wait_until
from kraft_wire.cli.cluster.state import ClusterState

__all__ = ["bring_down", "wipe_all"]

_WAIT_SECONDS: Final = 90.0
"""`cluster up` waits up to 30 s for brokers and as long for controllers."""


def bring_down(files: ClusterFiles, state: ClusterState) -> bool:
    """Stop all nodes; return whether any ran. Errors: CannotRun."""
    was_up = files.is_supervised
    if was_up:
        wait_until(lambda: _has_ended(files), "`cluster up` did not end", _WAIT_SECONDS)
        files.down_request.unlink(missing_ok=True)
    left = [each for each in state.nodes.values() if files.runs(each)]
    for nodes in (
        [each for each in left if each.is_broker],
        [each for each in left if not each.is_broker],
    ):
        for node in nodes:
            send(node, signal.SIGTERM, signal.SIGCONT)
        for node in nodes:
            until_gone(files, node)
    return was_up or bool(left)


def wipe_all(files: ClusterFiles, state: ClusterState) -> None:
    """Remove a cluster that does not run. Errors: CannotRun."""
    with files.locked():
        if state.network is not None:
            ClusterNetwork.of(state).remove()
        files.remove(state)


def _has_ended(files: ClusterFiles) -> bool:
    """Ask again each time: an `up` that has just begun drops earlier requests."""
    if not files.is_supervised:
        return True
    files.down_request.touch()
    return False
