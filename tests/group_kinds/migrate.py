"""``make migration``: members of a group that change their protocol while they read.

``python -m tests.group_kinds.migrate [--make ours|4.3.1|both] [--rounds N] [--members N]``. A
round restarts all members one by one, from the classic to the consumer protocol or back. With
`both` the same runs on Apache's node and on ours. In a downgrade both deliver some records twice:
those that a member has polled when its commit is refused. Exit code 0 means that no record was
skipped, and that our median of a round is at most 1.5 times Apache's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.apache.jars import RELEASE
from tests.apache.node import ApacheNode
from tests.group_kinds.__main__ import say
from tests.group_kinds.members import ASSIGNOR
from tests.group_kinds.migration import MEMBERS, SETTINGS, Migration, Outcome
from tests.mixed.controller import OURS
from tests.server_process import ServerProcess

MAKES: dict[str, Any] = {RELEASE: ApacheNode, OURS: ServerProcess}

TWICE_MOST = 1.5


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.group_kinds.migrate", description=__doc__
    )
    parser.add_argument("--make", default="both", choices=[*MAKES, "both"])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--members", type=int, default=MEMBERS)
    parser.add_argument(
        "--assignor", default=ASSIGNOR, help="of classic members, a class of Apache"
    )
    return parser.parse_args()


def run(make: str, wanted: argparse.Namespace) -> Outcome:
    """Run on one node, and print what was shown."""
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-migration-") as home,
        MAKES[make](Path(home), overrides=SETTINGS) as node,
    ):
        outcome = Migration(
            node.bootstrap,
            Path(home),
            members=wanted.members,
            assignor=wanted.assignor,
            say=say,
        ).run(wanted.rounds)
    for line in outcome.wrong:
        print(line)
    print(
        f"{make}: {outcome.rounds} changes of {wanted.members} members, {outcome.records} records, "
        f"{outcome.twice} delivered twice, "
        f"{statistics.median(outcome.twice_by_round or [0])} in the median of downgrades, "
        f"commits refused {outcome.refused_commits}, "
        f"{len(outcome.wrong)} wrong, slowest change {outcome.slowest_round_s} s, "
        f"{time.monotonic() - began:.0f} s"
    )
    return outcome


def main() -> int:
    """Run on one node or on both."""
    wanted = arguments()
    makes = list(MAKES) if wanted.make == "both" else [wanted.make]
    outcomes = [run(make, wanted) for make in makes]
    twice = [statistics.median(each.twice_by_round or [0]) for each in outcomes]
    is_wrong = any(each.wrong or not each.records for each in outcomes)
    return 1 if is_wrong or twice[-1] > TWICE_MOST * twice[0] else 0


if __name__ == "__main__":
    sys.exit(main())
