"""``make clients``: the table scenario × client, against our node or, as a check, against Apache.

``python -m tests.clients [--cluster] [--apache] [--client NAME]… [--scenario NAME]…``. With
``--cluster`` (``make clients-cluster``) it is three brokers on three controllers, three replicas a
topic, of which two must acknowledge, and one broker after the other is restarted, one every 20 s.
Exit code 0 means all green, 1 that something is not, 2 that a client's program is missing (it is
listed as not run).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests import judges
from tests.apache.jars import RELEASE, JarsMissing
from tests.apache.java_process import JavaFailed
from tests.apache.node import ApacheNode
from tests.clients.cluster import REPLICAS, Cluster
from tests.clients.registry import CLIENTS, FIRST_SCENARIOS, TABLE_ROWS, Client, HarnessNotBuilt
from tests.clients.running import Broker, Result, run_all
from tests.mixed.controller import OURS
from tests.server_process import ServerProcess

LOG_LINES_SHOWN = 25
RESTART_EVERY_S = 20.0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("--apache", action="store_true", help="judge the harnesses, not our node")
    parser.add_argument("--cluster", action="store_true", help="three brokers, restarted in turn")
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--scenario", action="append", choices=FIRST_SCENARIOS)
    return parser.parse_args()


def available(client: Client, console: Console) -> bool:
    """Whether the client's harness can be built here; says why not."""
    missing = judges.missing_programs([client.judge] if client.judge else [])
    if missing:
        console.print(f"{client.name}: {judges.not_run_reason(missing)}", markup=False)
        return False
    try:
        client.command()
    except (HarnessNotBuilt, JavaFailed, JarsMissing, subprocess.TimeoutExpired) as problem:
        console.print(f"{client.name}: not run: {problem}", markup=False)
        return False
    return True


def print_table(console: Console, title: str, table: dict[str, dict[str, Result]]) -> None:
    """One row per scenario, one column per client, then every failure in words."""
    shown = Table(title=title)
    shown.add_column("scenario")
    for name in table:
        shown.add_column(name, justify="right")
    for row in TABLE_ROWS:
        if any(row in results for results in table.values()):
            shown.add_row(row, *(cell(results.get(row)) for results in table.values()))
    console.print(shown)
    for name, results in table.items():
        for row, result in results.items():
            if not result.green:
                console.print(f"{name} {row}: {result.detail}", markup=False)
            elif result.status == "not applicable":
                console.print(f"{name} {row}: – {result.detail}", markup=False)


def cell(result: Result | None) -> str:
    """One cell: seconds in green, a red word, or a dash."""
    if result is None:
        return ""
    if result.status == "ok":
        return f"[green]ok[/] {result.seconds:.1f}s"
    return "–" if result.green else "[red]FAIL[/]"


def say(line: str) -> None:
    """Print a line with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, flush=True)


@contextmanager
def driven(wanted: argparse.Namespace, folder: Path) -> Iterator[Broker]:
    """What the clients are to talk to."""
    if not wanted.cluster:
        with ApacheNode(folder) if wanted.apache else ServerProcess(folder) as broker:
            yield broker
        return
    with Cluster(folder, RELEASE if wanted.apache else OURS, say=say) as cluster:
        with cluster.restarting(RESTART_EVERY_S):
            yield cluster
        say(f"{cluster.restarts} restarts of brokers")


def main() -> int:
    """Build the harnesses, start the broker, run, print."""
    wanted = arguments()
    console = Console(width=190)
    chosen = [CLIENTS[name] for name in wanted.client or CLIENTS]
    ready = [client for client in chosen if available(client, console)]
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="clients-") as folder,
        driven(wanted, Path(folder)) as broker,
    ):
        scenarios = wanted.scenario or FIRST_SCENARIOS
        replicas = REPLICAS if wanted.cluster else 1
        table = run_all(ready, broker, scenarios, replicas=replicas, say=say)
        log = broker.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    name = "Apache Kafka 4.3.1" if wanted.apache else "kraft-wire"
    if wanted.cluster:
        name = f"a cluster of {name}, one broker restarting every {RESTART_EVERY_S:.0f} s"
    title = f"clients against {name}, {time.monotonic() - started:.0f} s"
    print_table(console, title, table)
    green = all(result.green for results in table.values() for result in results.values())
    if not green:
        console.print("the broker's log ends with:", *log, sep="\n", markup=False)
        return 1
    return 0 if len(ready) == len(chosen) else 2


if __name__ == "__main__":
    sys.exit(main())
