"""``make clients``: the table scenario × client, against our node or, as a check, against Apache.

``python -m tests.clients [--cluster] [--apache] [--proxy] [--json] [--client NAME]…
[--scenario NAME]…``. With ``--proxy`` clients reach the node through ``kraft-wire proxy`` alone.
With ``--consumer-protocol`` it is the clients whose groups may have the protocol of KIP-848, and
the scenarios with groups.
With ``--cluster`` (``make clients-cluster``) it is three brokers on three controllers, three
replicas a topic, of which two must acknowledge, and one broker after the other is restarted, one
every 20 s; a broker that does not come back, or fewer than half of these restarts, are not green
either. The table so far is in a file of the run's folder, which is kept where all is not green.
Exit code 0 means all green, 1 that something is not, 2 that a client's program is missing (it is
listed as not run).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.table import Table

from kraft_wire.client import BrokerConnection
from kraft_wire.client.connection import BrokerConnectionError
from kraft_wire.wire.generated.list_groups import ListGroupsRequest, ListGroupsResponse
from tests import judges
from tests.apache.jars import RELEASE, JarsMissing
from tests.apache.java_process import JavaFailed
from tests.apache.node import ApacheNode
from tests.clients.cluster import REPLICAS, Cluster
from tests.clients.proxied import Proxied
from tests.clients.registry import (
    CLIENTS,
    CONSUMER_PROTOCOL,
    FIRST_SCENARIOS,
    GROUP_SCENARIOS,
    TABLE_ROWS,
    Client,
    HarnessNotBuilt,
)
from tests.clients.running import BROKEN, DETAIL_MAX, Broker, Result, run_all
from tests.clients.running import Table as Results
from tests.mixed.controller import OURS, FormatFailed
from tests.server_process import ServerProcess

LOG_LINES_SHOWN = 25
RESTART_EVERY_S = 20.0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("--apache", action="store_true", help="judge the harnesses, not our node")
    parser.add_argument("--cluster", action="store_true", help="three brokers, restarted in turn")
    parser.add_argument("--proxy", action="store_true", help="behind kraft-wire proxy")
    parser.add_argument("--consumer-protocol", action="store_true", help="groups of KIP-848")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--scenario", action="append", choices=FIRST_SCENARIOS)
    wanted = parser.parse_args()
    if wanted.proxy and wanted.cluster:
        parser.error("--proxy is for one node: it bootstraps at one address, which restarts")
    return wanted


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
    print(time.strftime("%H:%M:%S ") + line, file=sys.stderr, flush=True)


@dataclass
class Run:
    """What a run has shown."""

    title: str
    table: Results = field(default_factory=dict)
    not_run: list[str] = field(default_factory=list)
    """Clients without their program."""
    problems: list[str] = field(default_factory=list)
    """What is wrong beside the table."""
    seconds: float = 0.0
    restarts: int = 0
    slowest_restart_s: float = 0.0
    load: float = 0.0
    """The machine's average when it began."""
    log: Path | None = None

    @property
    def is_green(self) -> bool:
        """Whether everything that was run is as it should be."""
        results = [each for client in self.table.values() for each in client.values()]
        return bool(results) and not self.problems and all(each.green for each in results)

    def figures(self) -> dict[str, object]:
        """All of it for machines."""
        found = {"green": self.is_green, **asdict(self)}
        del found["log"]
        return found


def drive(wanted: argparse.Namespace, clients: Sequence[Client], home: Path, run: Run) -> None:
    """Run all clients and note what comes of them; what goes wrong meanwhile is noted too."""
    make = RELEASE if wanted.apache else OURS
    try:
        if wanted.cluster:
            with Cluster(home, make, say=say) as cluster:
                _drive_cluster(wanted, clients, cluster, run)
        else:
            with ApacheNode(home) if wanted.apache else ServerProcess(home) as broker:
                run.log = broker.log
                with Proxied(broker, home) if wanted.proxy else nullcontext(broker) as reached:
                    _run_all(wanted, clients, reached, run, lambda prefix: "")
    except (KeyboardInterrupt, JavaFailed, FormatFailed, *BROKEN) as problem:
        run.problems.append(f"{type(problem).__name__}: {problem}"[:DETAIL_MAX])


def _drive_cluster(
    wanted: argparse.Namespace, clients: Sequence[Client], cluster: Cluster, run: Run
) -> None:
    """Restart brokers meanwhile; who is through leaves no partitions for the others to carry."""

    def ended(prefix: str) -> str:
        cluster.delete_topics(prefix, but=f"{prefix}-restart")
        return cluster.problem

    began = time.monotonic()
    try:
        with cluster.restarting(RESTART_EVERY_S):
            _run_all(wanted, clients, cluster, run, ended)
    finally:
        run.log = cluster.log
        run.restarts, run.slowest_restart_s = cluster.restarts, round(cluster.slowest_restart_s, 1)
    seconds = time.monotonic() - began
    if run.restarts < seconds // (2 * RESTART_EVERY_S):
        run.problems.append(f"only {run.restarts} restarts in {seconds:.0f} s")


def _run_all(
    wanted: argparse.Namespace,
    clients: Sequence[Client],
    broker: Broker,
    run: Run,
    through: Callable[[str], str],
) -> None:
    def ended(prefix: str, table: Results) -> str:
        run.table = table
        (broker.log.parent / "table.json").write_text(json.dumps(run.figures()))
        return through(prefix)

    run.load = round(os.getloadavg()[0], 1)
    every = GROUP_SCENARIOS if wanted.consumer_protocol else FIRST_SCENARIOS
    scenarios = wanted.scenario or every
    replicas = REPLICAS if wanted.cluster else 1
    run_all(clients, broker, scenarios, replicas=replicas, say=say, ended=ended)
    if wanted.consumer_protocol:
        run.problems += _of_another_kind(broker.bootstrap.split(","))


def _of_another_kind(addresses: Sequence[str]) -> list[str]:
    """Say which groups are not of KIP-848, or that there are none: a client may not know how."""
    groups = []
    for address in addresses:
        with suppress(BrokerConnectionError), closing(BrokerConnection(address)) as broker:
            groups += broker.send(ListGroupsRequest(), ListGroupsResponse).groups
    others = [f"{each.group_id}: {each.group_type}" for each in groups]
    others = [
        each for each in others if not each.endswith(": consumer") and "-reading-" not in each
    ]
    return others if groups else ["there is no group"]


def show(console: Console, run: Run) -> None:
    """Print the table, and why it is not green."""
    restarts = f", {run.restarts} restarts, the slowest of {run.slowest_restart_s} s"
    title = f"clients against {run.title}, {run.seconds:.0f} s{restarts if run.restarts else ''}"
    print_table(console, title, run.table)
    console.print(*run.problems, sep="\n", markup=False)
    if not run.is_green and run.log is not None and run.log.exists():
        lines = run.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        console.print("the broker's log ends with:", *lines, sep="\n", markup=False)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def main() -> int:
    """Build the harnesses, start the broker, run, print."""
    wanted = arguments()
    console = Console(width=190, stderr=wanted.json)
    signal.signal(signal.SIGTERM, _interrupt)
    known = CONSUMER_PROTOCOL if wanted.consumer_protocol else CLIENTS
    chosen = [known[name] for name in wanted.client or known]
    ready = [client for client in chosen if available(client, console)]
    name = f"Apache Kafka {RELEASE}" if wanted.apache else "kraft-wire"
    if wanted.cluster:
        name = f"a cluster of {name}, one broker restarting every {RESTART_EVERY_S:.0f} s"
    if wanted.proxy:
        name += " behind kraft-wire proxy"
    run = Run(name, not_run=[client.name for client in chosen if client not in ready])
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-clients-"))
    started = time.monotonic()
    drive(wanted, ready, home, run)
    run.seconds = round(time.monotonic() - started, 1)
    show(console, run)
    if wanted.json:
        print(json.dumps(run.figures()))
    if not run.is_green:
        print(f"kept for whoever looks into it: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 2 if run.not_run else 0


if __name__ == "__main__":
    sys.exit(main())
