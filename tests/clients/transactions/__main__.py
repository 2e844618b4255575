"""``make transactions``: the table scenario × client, on our node or on three restarting brokers.

``python -m tests.clients.transactions [--cluster] [--apache] [--client NAME]… [--scenario NAME]…``.
With ``--apache`` it judges the drivers, not our node. Exit code 0 means that all is green, 1 that
something is not, 2 that a client's program is missing (it is listed as not run).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from tests.apache.jars import RELEASE
from tests.apache.node import ApacheNode
from tests.clients.__main__ import available, cell
from tests.clients.cluster import REPLICAS, Cluster
from tests.clients.transactions.registry import CLIENTS
from tests.clients.transactions.running import NODE_SETTINGS, Ground, Size, run_all
from tests.clients.transactions.scenarios import SCENARIOS
from tests.mixed.controller import OURS
from tests.server_process import ServerProcess

RESTART_EVERY_S = 10.0
SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
FULL = Size(moved=300, large=12_000)
FULL_ON_A_CLUSTER = Size(moved=500, large=6_000, rounds=2)


def arguments() -> argparse.Namespace:
    """The command line."""
    name = "python -m tests.clients.transactions"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--apache", action="store_true", help="judge the drivers, not our node")
    parser.add_argument("--cluster", action="store_true", help="three brokers, restarted in turn")
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS)
    parser.add_argument("--rounds", type=int, help="of all scenarios, one after the other")
    return parser.parse_args()


def say(line: str) -> None:
    """Print a line with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, file=sys.stderr, flush=True)


@contextmanager
def ground_of(wanted: argparse.Namespace, home: Path) -> Iterator[Ground]:
    """What the clients run on; brokers of a cluster restart meanwhile."""
    if wanted.cluster:
        make = RELEASE if wanted.apache else OURS
        with Cluster(home, make, overrides={**NODE_SETTINGS, **SESSIONS}, say=say) as cluster:
            with cluster.restarting(RESTART_EVERY_S):
                yield Ground(cluster.bootstrap, home, REPLICAS)
            say(f"{cluster.restarts} restarts")
    else:
        make_of = ApacheNode if wanted.apache else ServerProcess
        with make_of(home, overrides=NODE_SETTINGS) as node:
            yield Ground(node.bootstrap, home)


def main() -> int:
    """Build the drivers, run, print."""
    wanted = arguments()
    console = Console(width=150)
    chosen = [CLIENTS[name] for name in wanted.client or CLIENTS]
    ready = [client for client in chosen if available(client, console)]
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-transactions-"))
    began, load = time.monotonic(), os.getloadavg()[0]
    size = FULL_ON_A_CLUSTER if wanted.cluster else FULL
    size = replace(size, rounds=wanted.rounds or size.rounds)
    with ground_of(wanted, home) as ground:
        table = run_all(ready, ground, wanted.scenario or tuple(SCENARIOS), size=size, say=say)
    for name, results in table.items():
        cells = "  ".join(f"{scenario} {cell(result)}" for scenario, result in results.items())
        console.print(f"{name:16} {cells}")
    every = [result for results in table.values() for result in results.values()]
    green = sum(result.green for result in every)
    print(f"{green} of {len(every)} green in {time.monotonic() - began:.0f} s, load {load:.1f}")
    if green < len(every):
        print(f"kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 2 if len(ready) < len(chosen) else 0


if __name__ == "__main__":
    sys.exit(main())
