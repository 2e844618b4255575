"""``make histories``: what transactional clients see of a cluster under faults, judged.

``python -m tests.histories [--make ours|mixed|4.3.1] [--faults N] [--client NAME]… [--seed N] …``.
With ``--make 4.3.1`` it is Apache's own cluster: the control; with ``mixed`` one broker of three is
ours, and coordinators and leaders are of both makes. Exit code 0 means no anomaly. The clients are,
if none is named, those of transaction.version 2: what a delayed EndTxn of the older protocol may do
(KAFKA-17754) is no fault of a broker's. One-way cuts need root and network namespaces.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from kraft_wire.cli.cluster.network import missing
from tests.apache.jars import RELEASE
from tests.chaos.network import Network
from tests.clients.cluster import BROKERS, CONTROLLERS, Cluster
from tests.clients.transactions.registry import CLIENTS
from tests.histories.campaign import SETTINGS, Verdict, judge_under_faults
from tests.mixed.controller import OURS

DEFAULT = (f"java-{RELEASE}", "franz-go")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--make", default=OURS, help="ours, mixed, or a release of Apache Kafka")
    parser.add_argument("--no-network", action="store_true", help="no one-way cuts")
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--client", action="append", choices=CLIENTS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--session-ms", default="3000", help="of a broker; 4.3.1's default is 9000")
    return parser.parse_args()


def show(verdict: Verdict, make: str, seconds: float) -> None:
    """Print the figures, and some anomalies of each kind."""
    for kind, number in Counter(each.kind for each in verdict.anomalies).items():
        first = [each.detail for each in verdict.anomalies if each.kind == kind][:5]
        print(f"{kind}: {number}", *first, sep="\n  ")
    print(*verdict.problems, sep="\n")
    print(
        f"{make}: {sum(verdict.faults.values())} faults {verdict.faults}, transactions "
        f"{verdict.transactions}, {verdict.records} records read in the end, "
        f"{len(verdict.anomalies)} anomalies, {seconds:.0f} s"
    )


def main() -> int:
    """Run one campaign."""
    wanted = arguments()
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-histories-"))
    clients = [CLIENTS[name] for name in wanted.client or DEFAULT]
    began = time.monotonic()
    settings = {**SETTINGS, "broker.session.timeout.ms": wanted.session_ms}
    with ExitStack() as stack:
        why = "asked for" if wanted.no_network else missing()
        if why is not None:
            print(f"no one-way cuts, kills and pauses only: {why}", file=sys.stderr)
        network = stack.enter_context(Network((*CONTROLLERS, *BROKERS))) if why is None else None
        cluster = Cluster(home, wanted.make, overrides=settings, network=network)
        stack.enter_context(cluster)
        verdict = judge_under_faults(cluster, home, clients, wanted.faults, wanted.seed)
    show(verdict, wanted.make, time.monotonic() - began)
    if not verdict.is_green:
        print(f"kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
