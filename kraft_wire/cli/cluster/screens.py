"""The output of `cluster up`: a table on a terminal, else one line per change, or JSON."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.live import Live

from kraft_wire.cli.cluster.facts import ClusterFacts
from kraft_wire.cli.cluster.state import ClusterState
from kraft_wire.cli.cluster.view import cluster_json, cluster_screen
from kraft_wire.server.clock import wall_ms

__all__ = ["Screen", "chosen_screen"]

_DRAW_SECONDS: Final = 0.5


class Screen(Protocol):
    """Where a cluster is shown."""

    def show(self, state: ClusterState, facts: ClusterFacts, news: list[str]) -> None:
        """Show the present state; `news` are the lines since the last call."""
        ...


class TableScreen:
    """A table on a terminal, drawn repeatedly."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._next = 0.0

    def show(self, state: ClusterState, facts: ClusterFacts, news: list[str]) -> None:
        now = time.monotonic()
        if not news and now < self._next:
            return
        self._next = now + _DRAW_SECONDS
        for line in news:
            self._live.console.print(line, highlight=False, markup=False)
        width = self._live.console.width
        self._live.update(cluster_screen(state, facts, wall_ms(), width), refresh=True)


class LineScreen:
    """A line for each change."""

    def __init__(self) -> None:
        self._leader: tuple[int, int] | None = None
        self._partitions: str | None = None

    def show(self, state: ClusterState, facts: ClusterFacts, news: list[str]) -> None:
        if facts.leader is not None and facts.leader != self._leader:
            self._leader = facts.leader
            news = [*news, f"leader {facts.leader[0]}, epoch {facts.leader[1]}"]
        if facts.partitions is not None and facts.partitions != self._partitions:
            self._partitions = facts.partitions
            news = [*news, facts.partitions]
        for line in news:
            print(f"kraft-wire cluster: {line}")
        sys.stdout.flush()


class JsonScreen:
    """A JSON line for each change: a process, the leader, or the state of partitions."""

    def __init__(self) -> None:
        self._shown: tuple[object, ...] = (None, None, None)

    def show(self, state: ClusterState, facts: ClusterFacts, news: list[str]) -> None:
        shown = (facts.leader, facts.partitions, facts.brokers)
        if news or shown != self._shown:
            self._shown = shown
            print(json.dumps({**cluster_json(state, facts), "news": news}))
            sys.stdout.flush()


@contextmanager
def chosen_screen(*, as_json: bool) -> Iterator[Screen]:
    """Choose where to show a cluster."""
    if as_json:
        yield JsonScreen()
    elif sys.stdout.isatty():
        with Live(auto_refresh=False) as live:
            yield TableScreen(live)
    else:
        yield LineScreen()
