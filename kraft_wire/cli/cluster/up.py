"""`cluster up` at work: starts the processes, shows them until a signal, stops them.

The cluster is asked in a thread of its own, because a paused node makes whoever asks it wait; the
main one only looks after its children.
"""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from kraft_wire.cli.cluster.facts import ClusterFacts, ClusterQuestions
from kraft_wire.cli.cluster.files import APACHE, CannotRun, ClusterFiles, ClusterState
from kraft_wire.cli.cluster.network import ClusterNetwork, missing
from kraft_wire.cli.cluster.processes import ClusterProcesses
from kraft_wire.cli.cluster.screens import Screen, chosen_screen
from kraft_wire.cli.cluster.setup import apache_jars

__all__ = ["run_up"]

_LOOK_SECONDS: Final = 0.1
_ASK_SECONDS: Final = 0.5
_ANSWER_SECONDS: Final = 1.0
_ASK_SECONDS_MAX: Final = 2.0
_REST_FACTOR: Final = 9
"""A cluster of many partitions is asked less often, so that asking takes a tenth of the time."""
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The last one comes when the terminal is closed."""


class _Asking(threading.Thread):
    """Asks the cluster until it is told to stop; `facts` is the newest answer."""

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


def run_up(files: ClusterFiles, state: ClusterState, jars: str | None, *, as_json: bool) -> None:
    """Run a cluster until a signal. Errors: CannotRun, before anything is started."""
    _check_nobody_runs(files, state)
    is_mixed = any(each.make == APACHE for each in state.nodes.values())
    folder = apache_jars(jars) if is_mixed else None
    with _signals() as signalled, _network(files, state) as network:
        processes = ClusterProcesses(files, state, folder, network)
        if not as_json:
            print(_welcome(files, state))
            sys.stdout.flush()
        with chosen_screen(as_json=as_json) as screen:
            _run(processes, state, screen, signalled)


def _check_nobody_runs(files: ClusterFiles, state: ClusterState) -> None:
    for node in state.nodes.values():
        if files.runs(node):
            raise CannotRun(
                f"node {node.node_id} still runs as process {node.pid}, left by an `up` that was "
                f"killed: `kraft-wire cluster kill {node.node_id}` ends it"
            )
        node.pid, node.is_paused, node.note = None, False, ""
        files.start_request(node.node_id).unlink(missing_ok=True)


@contextmanager
def _network(files: ClusterFiles, state: ClusterState) -> Iterator[ClusterNetwork | None]:
    """Make the nodes' own network, where they have one, with nothing cut, and take it away."""
    if state.network is None:
        yield None
        return
    why = missing()
    if why is not None:
        raise CannotRun(f"the nodes of {files.directory} have networks of their own: {why}")
    for cut in files.cuts():
        files.cut(cut).unlink()
    network = ClusterNetwork.of(state)
    try:
        network.make()
        yield network
    finally:
        network.remove()


def _welcome(files: ClusterFiles, state: ClusterState) -> str:
    count = _counted(len(state.controllers), "controller")
    if state.brokers:
        count += f" and {_counted(len(state.brokers), 'broker')}"
    lines = [f"{count} in {files.directory}", f"try  kraft-wire quorum watch -c {state.bootstrap}"]
    if state.brokers:
        lines.append(f"try  kraft-wire topics describe -b {state.brokers[0].address}")
    lines.append("Ctrl-C stops them all")
    return "\n".join(f"kraft-wire cluster: {line}" for line in lines)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _run(
    processes: ClusterProcesses, state: ClusterState, screen: Screen, signalled: list[int]
) -> None:
    """Start everybody, show them until a signal, and stop everybody; a second one: at once.

    Controllers are started first and stopped last: brokers look for them, and ask them before they
    go (controlled shutdown).
    """
    asking = _Asking(state)
    try:
        for node in (*state.controllers, *state.brokers):
            if not signalled:
                processes.start(node.node_id)
        asking.start()
        while not signalled:
            processes.look()
            news, processes.news = processes.news, []
            screen.show(state, asking.facts, news)
            time.sleep(_LOOK_SECONDS)
        screen.show(state, asking.facts, ["stopping"])
    finally:
        asking.stopped.set()
        try:
            processes.heal()
        finally:  # a network that cannot be healed leaves nobody running
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
