"""``make shares``: members of a share group under SIGKILL of brokers.

``python -m tests.share_groups [--make ours|mixed|4.3.1] [--client NAME] [--kills N] …``. With
``--make 4.3.1`` it is Apache's own cluster: the control; with ``mixed`` one broker of three is
ours. Exit code 0 means that every record was accepted, and none came again after the broker had
confirmed that.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.clients.cluster import Cluster
from tests.mixed.controller import OURS
from tests.share_groups.campaign import SETTINGS, Campaign
from tests.share_groups.drivers import DRIVERS, JAVA


def say(line: str) -> None:
    """Print a line with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, file=sys.stderr, flush=True)


def main() -> int:
    """Run one campaign."""
    parser = argparse.ArgumentParser(prog="python -m tests.share_groups", description=__doc__)
    parser.add_argument("--make", default=OURS, help="ours, mixed, or a release of Apache Kafka")
    parser.add_argument("--client", default=JAVA, choices=DRIVERS)
    parser.add_argument("--kills", type=int, default=10, help="kills of brokers")
    parser.add_argument("--records", type=int, default=2_000, help="before each kill, and at last")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-shares-"))
    began = time.monotonic()
    with Cluster(home, wanted.make, overrides=SETTINGS, say=say) as cluster:
        campaign = Campaign(cluster, home, seed=wanted.seed, client=wanted.client, say=say)
        seen = campaign.run(wanted.kills, wanted.records)
    for line in seen.wrong:
        print(line)
    print(
        f"{wanted.make}, {wanted.client}: {len(seen.accepted)} records accepted, "
        f"{seen.deliveries} deliveries, "
        f"{len(seen.unconfirmed)} more perhaps, {wanted.kills} kills, "
        f"{len(seen.wrong)} wrong, {time.monotonic() - began:.1f} s"
    )
    if seen.wrong or not seen.accepted:
        print(f"kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
