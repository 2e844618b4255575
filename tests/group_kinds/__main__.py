"""``make coordinators``: groups of all kinds whose coordinators are killed.

``python -m tests.group_kinds [--make ours|mixed|4.3.1] [--kills N] [--groups N] …``. There are as
many classic, consumer, share and streams groups. With ``--make 4.3.1`` it is Apache's own cluster:
the control; with ``mixed`` one broker of three is ours; with ``turns`` it is one node, whose
directory both makes take turns on. Exit code 0 means that committed offsets
never went back, every record was read by every group and accepted by every share group, and
accepted ones never came again.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.clients.cluster import Cluster
from tests.group_kinds.coordinators import SETTINGS, Campaign, Size
from tests.group_kinds.turns import TURNS, TakingTurns
from tests.mixed.controller import OURS

SHOWN = 4_000


def say(line: str) -> None:
    """Print a line with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, file=sys.stderr, flush=True)


def cluster_of(home: Path, make: str) -> Cluster | TakingTurns:
    """Return what is killed, not started yet."""
    if make == TURNS:
        return TakingTurns(home, overrides=SETTINGS, say=say)
    return Cluster(home, make, overrides=SETTINGS, say=say)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.group_kinds", description=__doc__)
    parser.add_argument("--make", default=OURS, help="ours, mixed, turns, or a release of Apache")
    parser.add_argument("--kills", type=int, default=10, help="kills of brokers")
    parser.add_argument("--groups", type=int, default=Size.groups, help="of each kind")
    parser.add_argument("--members", type=int, default=Size.members, help="of each group")
    parser.add_argument("--tools", action="store_true", help="Apache's tools look on meanwhile")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main() -> int:
    """Run one campaign."""
    wanted = arguments()
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-group-kinds-"))
    began = time.monotonic()
    size = Size(
        groups=wanted.groups,
        members=wanted.members,
        replaced=min(3, wanted.groups),
        has_tools=wanted.tools,
    )
    with cluster_of(home, wanted.make) as cluster:
        campaign = Campaign(cluster, home, size=size, seed=wanted.seed, say=say)
        try:
            outcome = campaign.run(wanted.kills)
        except BaseException:
            print(f"so far: {campaign.outcome}\nkept: {home}"[:SHOWN], file=sys.stderr)
            raise
    for line in outcome.wrong:
        print(line)
    print(
        f"{wanted.make}: {wanted.groups} groups of each kind, {outcome.records} records, "
        f"{outcome.kills} kills, {outcome.asked} committed offsets compared, "
        f"{outcome.streams_commits} commits of streams members, {outcome.twice} read twice, "
        f"delivery counts {outcome.counts}, {outcome.jumps} of them jumped, "
        f"{outcome.late} late deliveries, {outcome.late_beginnings} late beginnings, "
        f"commits refused {outcome.refused_commits}, {outcome.late_watermarks} late watermarks, "
        f"{len(outcome.wrong)} wrong, slowest round {outcome.slowest_round_s} s, "
        f"{time.monotonic() - began:.0f} s"
    )
    if outcome.wrong or not outcome.records:
        print(f"kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
