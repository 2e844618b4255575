"""Finds a node of a cluster of processes, and starts, stops or pauses it, from another command.

It sends a signal, or, to start a node, a request to the running `cluster up`. Each function waits
until the change is done, and until `up` knows it, so that later commands can rely on it.
"""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from kraft_wire.cli.cluster.facts import ClusterFacts, ClusterQuestions
from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles
from kraft_wire.cli.cluster.securing import dial_as_admin
from kraft_wire.cli.cluster.state import ClusterState, NodeState

__all__ = [
    "WrongState",
    "asked",
    "chosen_node",
    "ended",
    "keep_down",
    "opened",
    "running",
    "send",
    "signalled",
    "start_again",
    "until_gone",
    "wait_until",
]

_WAIT_SECONDS: Final = 30.0
_STEP_SECONDS: Final = 0.05


class WrongState(Exception):
    """The node is not in the state that the verb is for; the text is one line."""


def opened(directory: Path) -> tuple[ClusterFiles, ClusterState]:
    """Return the cluster of a directory, without processes that are gone. Errors: CannotRun."""
    files = ClusterFiles(directory)
    state = files.load()
    if state is None:
        raise CannotRun(f"there is no cluster in {files.directory} (see --dir)")
    for node in state.nodes.values():
        if node.pid is not None and not files.runs(node):
            node.pid, node.is_paused = None, False
    dial_as_admin(files, state)
    return files, state


def asked(state: ClusterState) -> ClusterFacts:
    """Ask the nodes that run, and do not wait for an election."""
    return ClusterFacts() if _nobody_runs(state) else _questions(state, patience_s=0.0).ask()


def chosen_node(state: ClusterState, text: str) -> NodeState:
    """Return the node that a person means: an id, or `leader`. Errors: CannotRun, WrongState."""
    if text == "leader":
        facts = None if _nobody_runs(state) else _questions(state, patience_s=2.0).quorum()
        if facts is None or facts.leader_id not in state.nodes:
            raise WrongState("there is no leader")
        return state.nodes[facts.leader_id]
    if not text.isdecimal() or int(text) not in state.nodes:
        known = ", ".join(map(str, state.nodes))
        raise CannotRun(f"{text!r} is not a node of this cluster; its nodes are {known}")
    return state.nodes[int(text)]


def running(directory: Path, text: str) -> tuple[ClusterFiles, NodeState]:
    """Return a node that runs. Errors: CannotRun, WrongState."""
    files, state = opened(directory)
    node = chosen_node(state, text)
    if not files.runs(node):
        keep_down(files, node)
        raise WrongState(f"node {node.node_id} is down")
    return files, node


def keep_down(files: ClusterFiles, node: NodeState) -> None:
    """Cancel the restart for which a node that is down may wait."""
    if files.is_supervised:
        request = files.stop_request(node.node_id)
        request.touch()
        wait_until(lambda: not request.exists(), f"`cluster up` restarts node {node.node_id}")


def signalled(
    directory: Path, text: str, *numbers: signal.Signals
) -> tuple[ClusterFiles, NodeState]:
    """Send signals to a node that runs."""
    files, node = running(directory, text)
    send(node, *numbers)
    return files, node


def ended(files: ClusterFiles, node: NodeState, *numbers: signal.Signals) -> None:
    """End a node that runs, so that no policy of `up` starts it again."""
    if files.is_supervised:
        files.stop_request(node.node_id).touch()
    send(node, *numbers)
    until_gone(files, node)


def send(node: NodeState, *numbers: signal.Signals) -> None:
    """Send signals to a node that was just seen to run."""
    assert node.pid is not None, node
    for number in numbers:
        with suppress(ProcessLookupError):
            os.kill(node.pid, number)


def start_again(files: ClusterFiles, node_id: int) -> None:
    """Ask `up` for a node, and wait until it took the request."""
    if not files.is_supervised:
        raise CannotRun(f"no `kraft-wire cluster up` runs in {files.directory} to start the node")
    request = files.start_request(node_id)
    request.touch()
    wait_until(lambda: not request.exists(), f"`cluster up` did not start node {node_id}")


def until_gone(files: ClusterFiles, node: NodeState) -> None:
    """Wait until a process has ended, and until `up` knows it."""
    wait_until(lambda: not files.runs(node), f"node {node.node_id} does not exit")

    def is_known() -> bool:
        state = files.load()
        return state is None or state.nodes[node.node_id].pid != node.pid

    if files.is_supervised:
        wait_until(is_known, "`cluster up` does not respond")


def _nobody_runs(state: ClusterState) -> bool:
    return all(each.condition != "running" for each in state.nodes.values())


def _questions(state: ClusterState, *, patience_s: float) -> ClusterQuestions:
    return ClusterQuestions(state, patience_s=patience_s, answer_s=1.0)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = _WAIT_SECONDS) -> None:
    """Wait for a condition. Errors: CannotRun, after so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise CannotRun(f"{what} within {seconds:g} s")
        time.sleep(_STEP_SECONDS)
