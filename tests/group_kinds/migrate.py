"""``make migration``: members of a group that change their protocol while they read.

``python -m tests.group_kinds.migrate [--make ours|4.3.1|both] [--rounds N] [--members N]``. A
round restarts all members one by one, from the classic to the consumer protocol or back. With
`both` the same runs on Apache's node and on ours, in turns, so that the load of the machine is the
same for both; what goes wrong on Apache's is shown only. In a downgrade both deliver some records
twice: those that a member has polled when its commit is refused. Exit code 0 means that on ours no
record was skipped, and that ours has not delivered more of them in a downgrade: a difference as
large as the one found, or larger, has a probability of at least 1 % if the makes are alike.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.apache.jars import RELEASE
from tests.apache.node import ApacheNode
from tests.group_kinds.__main__ import SHOWN, say
from tests.group_kinds.members import ASSIGNOR
from tests.group_kinds.migration import MEMBERS, SETTINGS, Migration, Outcome
from tests.mixed.controller import OURS
from tests.server_process import ServerProcess

__all__ = ["probability_of"]

MAKES: dict[str, Any] = {RELEASE: ApacheNode, OURS: ServerProcess}

PROBABILITY_LEAST = 0.01
SHUFFLES = 20_000
ROUNDS_OF_A_TURN = 8


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.group_kinds.migrate", description=__doc__
    )
    parser.add_argument("--make", default="both", choices=[*MAKES, "both"])
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--members", type=int, default=MEMBERS)
    parser.add_argument(
        "--assignor", default=ASSIGNOR, help="of classic members, a class of Apache"
    )
    return parser.parse_args()


def run(make: str, rounds: int, wanted: argparse.Namespace) -> Outcome:
    """Run on one node."""
    with (
        tempfile.TemporaryDirectory(prefix="kraft-wire-migration-") as home,
        MAKES[make](Path(home), overrides=SETTINGS) as node,
    ):
        migration = Migration(
            node.bootstrap,
            Path(home),
            members=wanted.members,
            assignor=wanted.assignor,
            say=lambda line: say(f"{make}: {line}"),
        )
        try:
            return migration.run(rounds)
        except AssertionError as error:  # too late: what was shown before counts
            migration.outcome.wrong.append(f"{make}: {error}"[:SHOWN])
            return migration.outcome


def show(make: str, outcome: Outcome, members: int, took_s: float) -> None:
    """Print what was shown on a make."""
    for line in outcome.wrong:
        print(line)
    by_round = sorted(outcome.twice_by_round) or [0]
    print(
        f"{make}: {outcome.rounds} changes of {members} members, {outcome.records} records, "
        f"{outcome.twice} delivered twice, {statistics.median(by_round)} in the median of "
        f"{len(outcome.twice_by_round)} downgrades, {by_round[-1]} at most, "
        f"commits refused {dict(outcome.refused_commits)}, "
        f"{len(outcome.wrong)} wrong, slowest change {outcome.slowest_round_s} s, {took_s:.0f} s"
    )


def probability_of(theirs: Sequence[int], ours: Sequence[int]) -> float:
    """Return how probable it is that ours are so many more by chance: a permutation test."""
    drawn = random.Random(1)
    every, count, found = [*theirs, *ours], len(ours), sum(ours)
    hits = sum(sum(drawn.sample(every, count)) >= found for _ in range(SHUFFLES))
    return hits / SHUFFLES


def main() -> int:
    """Run on one node, or on both in turns."""
    wanted = arguments()
    makes = list(MAKES) if wanted.make == "both" else [wanted.make]
    outcomes = {make: Outcome() for make in makes}
    took_s = dict.fromkeys(makes, 0.0)
    for start in range(0, wanted.rounds, ROUNDS_OF_A_TURN):
        for make in makes:
            began = time.monotonic()
            rounds = min(ROUNDS_OF_A_TURN, wanted.rounds - start)
            outcomes[make].add(run(make, rounds, wanted))
            took_s[make] += time.monotonic() - began
    for make, outcome in outcomes.items():
        show(make, outcome, wanted.members, took_s[make])
    judged = outcomes[makes[-1]]
    is_wrong = bool(judged.wrong) or not judged.records
    if len(makes) == 1 or is_wrong:
        return int(is_wrong)
    probability = probability_of(*(each.twice_by_round for each in outcomes.values()))
    print(f"as many more of ours by chance: probability {probability:.3f}")
    return int(probability < PROBABILITY_LEAST)


if __name__ == "__main__":
    sys.exit(main())
