"""``make streams``: Kafka Streams under SIGKILL of brokers and of itself.

``python -m tests.streams [--make ours|mixed|4.3.1] [--records N] [--brokers N] …``. With
``--make 4.3.1`` it is Apache's own cluster: the control; with ``mixed`` one broker of three is
ours, and coordinators and leaders are of both makes. With ``--proxy`` the application, its producer
and its readers reach the brokers through ``kraft-wire proxy`` alone. The full size is
``--records 1000000 --brokers 50 --applications 50``. Exit code 0 means that every count is exact;
with ``--guarantee at_least_once``, that none is too low.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from tests.clients.cluster import Cluster
from tests.mixed.controller import OURS
from tests.streams.application import Mode
from tests.streams.campaign import SETTINGS, Campaign
from tests.testing.proxy_process import ProxyProcess


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.streams", description=__doc__)
    parser.add_argument("--make", default=OURS, help="ours, mixed, or a release of Apache Kafka")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--brokers", type=int, default=10, help="kills of brokers")
    parser.add_argument("--applications", type=int, default=10, help="kills of the application")
    parser.add_argument("--protocol", default=Mode().protocol, choices=("classic", "streams"))
    parser.add_argument(
        "--guarantee", default=Mode().guarantee, choices=("exactly_once_v2", "at_least_once")
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--session-ms", default="3000", help="of a broker; 4.3.1's default is 9000")
    parser.add_argument("--proxy", action="store_true", help="behind kraft-wire proxy")
    return parser.parse_args()


def say(line: str) -> None:
    """Print a line with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, file=sys.stderr, flush=True)


def main() -> int:
    """Run one campaign."""
    wanted = arguments()
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-streams-"))
    settings = {**SETTINGS, "broker.session.timeout.ms": wanted.session_ms}
    with Cluster(home, wanted.make, overrides=settings, say=say) as cluster:
        proxy = ProxyProcess(home, cluster.bootstrap)
        mode = Mode(wanted.protocol, wanted.guarantee)
        with proxy if wanted.proxy else nullcontext():
            campaign = Campaign(
                cluster,
                home,
                records=wanted.records,
                seed=wanted.seed,
                bootstrap=proxy.bootstrap if wanted.proxy else "",
                mode=mode,
                say=say,
            )
            outcome = campaign.run(wanted.brokers, wanted.applications)
    make = f"{wanted.make} behind kraft-wire proxy" if wanted.proxy else wanted.make
    for line in outcome.wrong:
        print(line)
    print(
        f"{make}, {wanted.protocol}, {wanted.guarantee}: {outcome.records} records, "
        f"{outcome.broker_kills} kills of brokers and {outcome.application_kills} of the "
        f"application, {len(outcome.wrong)} counts wrong, {outcome.again} records counted again, "
        f"{outcome.seconds} s, slowest round {outcome.slowest_round_s} s"
    )
    if not outcome.is_green:
        print(f"kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
