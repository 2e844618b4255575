"""`cluster up` at work: starts the processes, shows them until a signal, stops them.

A separate thread queries the cluster, because a paused node blocks its caller; the main one only
looks after its children.
"""

import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from kraft_wire.cli.cluster.facts import ClusterFacts, ClusterQuestions
from kraft_wire.cli.cluster.files import CannotRun, ClusterFiles, shell_line
from kraft_wire.cli.cluster.network import ClusterNetwork, missing
from kraft_wire.cli.cluster.processes import ClusterProcesses
from kraft_wire.cli.cluster.restarts import RestartPolicy, Restarts
from kraft_wire.cli.cluster.screens import Screen, chosen_screen
from kraft_wire.cli.cluster.securing import dial_as_admin
from kraft_wire.cli.cluster.setup import apache_jars
from kraft_wire.cli.cluster.state import APACHE, COMBINED, ClusterState
from kraft_wire.cli.output import counted

__all__ = ["run_up"]

_LOOK_SECONDS: Final = 0.1
_ASK_SECONDS: Final = 0.5
_ANSWER_SECONDS: Final = 1.0
_ASK_SECONDS_MAX: Final = 2.0
_REST_FACTOR: Final = 9
"""A cluster of many partitions is asked less often, so that asking takes a tenth of the time."""
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The last one is sent when the terminal is closed."""


class _Asking(threading.Thread):
    """Queries the cluster until it is stopped; `facts` is the newest answer."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(name="questions", daemon=True)
        self._questions = ClusterQuestions(state, patience_s=0.0, answer_s=_ANSWER_SECONDS)
        self.facts = ClusterFacts()
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            began = time.monotonic()
            self.facts = self._questions.ask()
            spent = time.monotonic() - began
            self.stopped.wait(min(max(_REST_FACTOR * spent, _ASK_SECONDS), _ASK_SECONDS_MAX))


def run_up(
    files: ClusterFiles,
    state: ClusterState,
    jars: str | None,
    policy: RestartPolicy,
    *,
    as_json: bool,
) -> None:
    """Run a cluster until a signal or `down`. Errors: CannotRun, before anything is started."""
    _check_nobody_runs(files, state)
    is_mixed = any(each.make == APACHE for each in state.nodes.values())
    folder = apache_jars(jars) if is_mixed else None
    dial_as_admin(files, state)
    with _signals() as signalled, _network(files, state) as network:
        processes = ClusterProcesses(files, state, folder, network, Restarts(policy))
        if not as_json:
            print(_welcome(files, state))
            sys.stdout.flush()
        with chosen_screen(as_json=as_json) as screen:
            _run(files, processes, state, screen, signalled)


def _check_nobody_runs(files: ClusterFiles, state: ClusterState) -> None:
    files.down_request.unlink(missing_ok=True)
    for node in state.nodes.values():
        if files.runs(node):
            raise CannotRun(
                f"node {node.node_id} still runs as process {node.pid}, left by an `up` that was "
                f"killed; to stop what is left: {shell_line(files, 'down')}"
            )
        node.pid, node.is_paused, node.note = None, False, ""
        files.start_request(node.node_id).unlink(missing_ok=True)
        files.stop_request(node.node_id).unlink(missing_ok=True)


@contextmanager
def _network(files: ClusterFiles, state: ClusterState) -> Iterator[ClusterNetwork | None]:
    """Make the nodes' own network, where they have one, with nothing cut, and take it away."""
    if state.network is None:
        yield None
        return
    why = missing()
    if why is not None:
        raise CannotRun(f"the nodes of {files.directory} have their own networks: {why}")
    for cut in files.cuts():
        files.cut(cut).unlink()
    network = ClusterNetwork.of(state)
    try:
        network.make()
        yield network
    finally:
        network.remove()


def _welcome(files: ClusterFiles, state: ClusterState) -> str:
    """Return the nodes and their addresses, and commands for another shell, one per line."""
    lines = [f"kraft-wire cluster: {_counts(state)} in {files.directory}; Ctrl-C stops all"]
    as_client, as_admin = (
        f" --command-config {shlex.quote(str(path))}" if state.is_secured else ""
        for path in (files.secrets.client_config, files.secrets.admin_config)
    )
    if state.brokers:
        lines.append(f"export KRAFT_WIRE_BOOTSTRAP_SERVER={state.bootstrap_servers}")
        lines.append(f"kraft-wire topics create orders --partitions 3{as_client}")
        lines.append(f"kraft-wire topics describe orders{as_client}")
    if state.brokers and state.is_secured:
        lines.append(f"kraft-wire acls list{as_admin}")
    lines.append(f"kraft-wire quorum watch -c {state.bootstrap}{as_admin}")
    lines.append(shell_line(files, "status"))
    return "\n".join(lines)


def _counts(state: ClusterState) -> str:
    combined = [each for each in state.nodes.values() if each.role == COMBINED]
    kinds = (
        (len(combined), "combined node"),
        (len(state.controllers) - len(combined), "controller"),
        (len(state.brokers) - len(combined), "broker"),
    )
    return " and ".join(counted(number, kind) for number, kind in kinds if number)


def _run(
    files: ClusterFiles,
    processes: ClusterProcesses,
    state: ClusterState,
    screen: Screen,
    signalled: list[int],
) -> None:
    """Start all nodes, show them until a signal, and stop all; a second signal stops at once.

    Controllers are started first and stopped last: brokers need them to start, and to stop
    (controlled shutdown).
    """
    asking = _Asking(state)
    try:
        for node in state.nodes.values():
            if not signalled:
                processes.start(node.node_id)
        asking.start()
        while not signalled and not files.down_request.exists():
            processes.look()
            news, processes.news = processes.news, []
            screen.show(state, asking.facts, news)
            time.sleep(_LOOK_SECONDS)
        screen.show(state, asking.facts, ["stopping"])
    finally:
        asking.stopped.set()
        try:
            processes.heal()
        finally:  # all nodes stop even if the network cannot be healed
            processes.stop_all(is_urgent=lambda: len(signalled) > 1)
    screen.show(state, ClusterFacts(), ["all nodes have stopped"])


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect the signals that end a cluster."""
    signalled: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        signalled.append(number)

    former = {each: signal.signal(each, note) for each in _ENDING}
    try:
        yield signalled
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
