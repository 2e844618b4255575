"""`python -m tests.cli.screens`: write docs/SCREENS.md, tables on terminals of 80 and 120 columns.

The facts are made up, the tables are those of the verbs. `tests/cli/test_screens.py` compares.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from kraft_wire.cli.cluster.facts import BrokerFacts, ClusterFacts
from kraft_wire.cli.cluster.state import BROKER, ClusterState, NodeState
from kraft_wire.cli.cluster.view import cluster_table
from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts
from kraft_wire.cli.quorum.views import watch_table
from kraft_wire.cli.tables import fitted
from tests.tidiness import CHECKOUT

__all__ = ["PAGE", "WIDTHS", "page", "screen"]

PAGE = CHECKOUT / "docs" / "SCREENS.md"
WIDTHS = (80, 120)
PAGES = """## Pages

The pages of `kraft-wire audit --output DIR` and `kraft-wire sim --html FILE`, in light and dark
colors. `python -m tests.audit.pictures` takes the pictures with Chromium.

| pixels | audit | simulation |
|---|---|---|
| 390, light | ![audit](pages/audit-390.png) | ![simulation](pages/simulation-390.png) |
| 1280, dark | ![audit](pages/audit-1280.png) | ![simulation](pages/simulation-1280.png) |
| 1400, light | ![audit](pages/audit-1400.png) | ![simulation](pages/simulation-1400.png) |
"""
NOW_MS = 1_769_860_800_000
CLUSTER_ID = "eeMTA431Q1iPhP8lobipKg"
HEAD = """# Screens

Tables on terminals of 80 and 120 columns. A table that is wider than the terminal is shown in
blocks of columns, each with the first one; a file or a pipe gets whole lines.
`python -m tests.cli.screens` writes this page from the code that the verbs use.
"""


def quorum() -> QuorumFacts:
    """Three voters, of which node 1 was killed, and three brokers that observe."""
    ends = {1: (41, 9_800), 2: (48, 0), 3: (48, 120), 4: (48, 110), 5: (48, 95), 6: (45, 1_900)}
    replicas = {
        node: ReplicaFacts(
            node,
            f"{node}xWcJsTvQ1iPhP8lobipKg",
            end,
            NOW_MS - ago,
            NOW_MS - ago,
            (f"CONTROLLER://127.0.0.1:{9094 + node}",) if node <= 3 else (),
        )
        for node, (end, ago) in ends.items()
    }
    voters = tuple(replicas[node] for node in (1, 2, 3))
    return QuorumFacts(CLUSTER_ID, 2, 7, 48, voters, tuple(replicas[node] for node in (4, 5, 6)))


def cluster() -> tuple[ClusterState, ClusterFacts]:
    """Three controllers and three brokers; a controller and a broker do not serve."""
    nodes = [NodeState(node, "kraft-wire", 9094 + node, pid=4_100 + node) for node in (1, 2, 3)]
    nodes += [
        NodeState(node, "kraft-wire", 9088 + node, BROKER, pid=4_100 + node) for node in (4, 5, 6)
    ]
    nodes[0].pid = None
    nodes[0].note = "killed; to start it again: kraft-wire cluster start 1"
    nodes[5].is_paused = True
    brokers = {
        4: BrokerFacts(27, 54, 54, 27),
        5: BrokerFacts(27, 54, 54, 27),
    }
    state = ClusterState(CLUSTER_ID, nodes={each.node_id: each for each in nodes})
    return state, ClusterFacts(quorum(), brokers, 54, 54, 0)


def screens() -> Iterator[tuple[str, Table]]:
    """Yield commands and what they show."""
    yield "kraft-wire cluster status", cluster_table(*cluster(), NOW_MS)
    yield "kraft-wire quorum watch", watch_table(quorum(), NOW_MS)


def screen(table: Table, width: int) -> str:
    """Return what a terminal shows, without colours."""
    out = io.StringIO()
    Console(width=width, file=out, highlight=False).print(fitted(table, width))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for command, table in screens():
        for width in WIDTHS:
            shown = screen(table, width)
            parts.append(f"## {command}, {width} columns\n\n```text\n{shown}```\n")
    return "\n".join([*parts, PAGES])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
