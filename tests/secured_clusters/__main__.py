"""``make secured``: secured clusters of both makes under kill -9.

``python -m tests.secured_clusters [--layout NAME]… [--protection NAME]… [--kills N] [--story]
[--keep DIR]``. With ``--story`` it is what `tests.guests` does, behind logins. Every second kill is
of the active controller, the others of brokers in turn. Meanwhile `ann` writes with acks=all and
reads in a group, and `eve` asks every broker for what she may not have. Exit code 0: every
acknowledged record is where it was acknowledged, and eve got nothing but errors.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.secured_clusters.campaign import Verdict, campaign
from tests.secured_clusters.cluster import LAYOUTS, PROTECTIONS, SecuredCluster
from tests.secured_clusters.story import told


def say(line: str) -> None:
    """Print a line with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, flush=True)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.secured_clusters", description=__doc__)
    parser.add_argument("--layout", action="append", choices=LAYOUTS)
    parser.add_argument("--protection", action="append", choices=PROTECTIONS)
    parser.add_argument("--story", action="store_true", help="the story of two Apache brokers")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--keep", type=Path, help="a folder for directories and logs")
    return parser.parse_args()


def tell_stories(protections: Sequence[str], home: Path) -> int:
    """Tell the guests' story under each protection; a step that fails ends it."""
    for protection in protections:
        say(f"two guests, {protection}")
        cluster = SecuredCluster(home / f"story-{protection[:5]}", "two guests", protection)
        say(told(cluster, say))
    return 0


def main() -> int:
    """Run what was asked for; the table comes last."""
    wanted = arguments()
    home = wanted.keep or Path(tempfile.mkdtemp(prefix="kraft-wire-secured-clusters-"))
    if wanted.story:
        return tell_stories(wanted.protection or PROTECTIONS, home)
    table = Table("cluster", "kills", "acknowledged", "lost", "eve", "seconds")
    verdicts: list[Verdict] = []
    for layout in wanted.layout or ("guests", "mixed"):
        for protection in wanted.protection or PROTECTIONS:
            say(f"{layout}, {protection}")
            cluster = SecuredCluster(home / f"{layout}-{protection[:5]}", layout, protection)
            verdict = campaign(cluster, wanted.kills, say)
            verdicts.append(verdict)
            table.add_row(
                f"{layout}, {protection}",
                str(dict(verdict.kills)),
                str(verdict.acknowledged),
                str(len(verdict.lost)),
                f"{sum(verdict.refused.values())} refused, {len(verdict.got)} got",
                f"{verdict.seconds:.0f}",
            )
    Console(width=160).print(table)
    refused: Counter[str] = sum((each.refused for each in verdicts), Counter())
    print(*(f"{count} x {name}" for name, count in refused.most_common()), sep="\n")
    for verdict in verdicts:
        print(*verdict.lost[:10], *verdict.got[:10], sep="\n")
    if all(each.is_good for each in verdicts):
        if wanted.keep is None:
            shutil.rmtree(home)
        return 0
    print(f"kept: {home}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
