"""`cluster up` at work: starts the processes, shows them until a signal, stops them.

The quorum is asked in a thread of its own, because a paused node makes whoever asks it wait; the
main one only looks after its children. On a terminal a table is drawn over and over, elsewhere each
change is a line.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Protocol

from rich.live import Live

from kraft_wire.cli.cluster_files import ClusterState
from kraft_wire.cli.cluster_processes import ClusterProcesses
from kraft_wire.cli.cluster_view import cluster_json, cluster_table
from kraft_wire.cli.quorum_admin import Entry, QuorumAdmin, QuorumRefused
from kraft_wire.cli.quorum_facts import QuorumFacts
from kraft_wire.client import CannotTalk
from kraft_wire.server.clock import wall_ms
from kraft_wire.wire.message import UnencodableMessage

__all__ = ["JsonScreen", "LineScreen", "Screen", "TableScreen", "run_cluster"]

_LOOK_SECONDS: Final = 0.1
_DRAW_SECONDS: Final = 0.5
_ASK_SECONDS: Final = 0.5
_ANSWER_SECONDS: Final = 1.0
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The last one comes when the terminal is closed."""


class Screen(Protocol):
    """Where a cluster is shown."""

    def show(self, state: ClusterState, facts: QuorumFacts | None, news: list[str]) -> None:
        """Show how things stand; `news` are the lines since the last time."""
        ...


class TableScreen:
    """A table on a terminal, drawn over and over."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._next = 0.0

    def show(self, state: ClusterState, facts: QuorumFacts | None, news: list[str]) -> None:
        now = time.monotonic()
        if not news and now < self._next:
            return
        self._next = now + _DRAW_SECONDS
        for line in news:
            self._live.console.print(line, highlight=False, markup=False)
        self._live.update(cluster_table(state, facts, wall_ms()), refresh=True)


class LineScreen:
    """A line for each change."""

    def __init__(self) -> None:
        self._leader: tuple[int, int] | None = None

    def show(self, state: ClusterState, facts: QuorumFacts | None, news: list[str]) -> None:
        leader = None if facts is None else (facts.leader_id, facts.leader_epoch)
        if leader is not None and leader != self._leader:
            news = [*news, f"leader {leader[0]}, epoch {leader[1]}"]
            self._leader = leader
        for line in news:
            print(f"kraft-wire cluster: {line}")
        sys.stdout.flush()


class JsonScreen:
    """A JSON line when something changes: a process, or who leads."""

    def __init__(self) -> None:
        self._leader: tuple[int, int] | None = None

    def show(self, state: ClusterState, facts: QuorumFacts | None, news: list[str]) -> None:
        leader = None if facts is None else (facts.leader_id, facts.leader_epoch)
        if news or leader != self._leader:
            self._leader = leader
            print(json.dumps({**cluster_json(state, facts), "news": news}))
            sys.stdout.flush()


class _Asking(threading.Thread):
    """Asks the quorum until it is told to stop; `facts` is the newest answer."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(name="quorum", daemon=True)
        addresses = tuple(each.address for each in state.nodes.values())
        self._admin = QuorumAdmin(
            Entry(addresses, are_controllers=True), patience_s=0.0, connection_s=_ANSWER_SECONDS
        )
        self.facts: QuorumFacts | None = None
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                self.facts = self._admin.describe()
            except (CannotTalk, QuorumRefused, UnencodableMessage):
                self.facts = None
            self.stopped.wait(_ASK_SECONDS)


def run_cluster(processes: ClusterProcesses, state: ClusterState, screen: Screen) -> None:
    """Start everybody, show them until a signal, and stop everybody; a second one: at once."""
    with _signals() as signalled:
        asking = _Asking(state)
        try:
            for node_id in state.nodes:
                processes.start(node_id)
            asking.start()
            while not signalled:
                processes.look()
                news, processes.news = processes.news, []
                screen.show(state, asking.facts, news)
                time.sleep(_LOOK_SECONDS)
            screen.show(state, asking.facts, ["stopping"])
        finally:
            asking.stopped.set()
            processes.stop_all(is_urgent=lambda: len(signalled) > 1)
        screen.show(state, None, ["all nodes have stopped"])


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
