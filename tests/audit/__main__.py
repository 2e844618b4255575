"""`python -m tests.audit [--spark] [--seeds A:B] [NODE_DIR…]`: damage after damage, named once.

Without directories the clean set of our own storage is damaged; with directories of real nodes a
copy of those is. Each seed is audited, and its replicas are read with `onCorrupt` set to `skip` and
`report`. With `--spark` Spark does both, and its findings must be those of the plain audit, field
by field. Prints a line for every seed that went wrong, and the figures by kind.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.audit.campaign import Campaign, Judged, Verdict
from tests.audit.clean_set import write_clean_set

PROGRESS_SEEDS = 100


def main() -> int:
    """Run the campaign; 1 where a fault was not found, or not once, or misnamed, or misread."""
    parser = argparse.ArgumentParser(prog="python -m tests.audit")
    parser.add_argument("--seeds", default="0:1800", help="A:B")
    parser.add_argument("--spark", action="store_true", help="through Spark (needs Java)")
    parser.add_argument("directories", nargs="*", type=Path)
    given = parser.parse_args()
    seeds = range(*map(int, given.seeds.split(":")))
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        directories = []
        for number, real in enumerate(given.directories, 1):
            copy = scratch / f"copy-{number}"
            shutil.copytree(real, copy)
            directories.append(copy)
        campaign = Campaign(directories or write_clean_set(scratch / "clean"))
        if given.spark:
            return report(judged_by_spark(campaign, seeds, scratch), len(seeds))
        return report(map(campaign.run, seeds), len(seeds))


def report(all_judged: Iterator[Judged], count: int) -> int:
    """Print what went wrong while it does, then the figures; return the exit code."""
    figures = Counter[tuple[str, Verdict]]()
    started = time.monotonic()
    for judged in all_judged:
        damage = judged.damage
        figures[damage.kind, judged.verdict] += 1
        if judged.verdict is not Verdict.NAMED:
            place = f"{damage.topic}-{damage.partition} node {damage.node}: {damage.detail}"
            print(f"seed {judged.seed}: {damage.kind} {judged.verdict.value}, {place}")
            for each in (*judged.findings, *filter(None, [judged.reason])):
                print("   ", each)
        if figures.total() % PROGRESS_SEEDS == 0:
            seconds = time.monotonic() - started
            print(f"{figures.total()} of {count} seeds, {seconds:.0f} s", file=sys.stderr)
    for (kind, verdict), times in sorted(figures.items(), key=lambda each: each[0][0]):
        print(f"{kind:20} {verdict.value:10} {times}")
    wrong = sum(times for (_, verdict), times in figures.items() if verdict is not Verdict.NAMED)
    print(f"{count} faults, {wrong} of them not found and named once, or not read around")
    return 1 if wrong or figures.total() != count else 0


def judged_by_spark(campaign: Campaign, seeds: range, scratch: Path) -> Iterator[Judged]:
    """The same seeds through one session."""
    from kraft_wire.spark import session
    from tests.spark.conftest import CONF
    from tests.spark.damage_frames import run_by_spark

    conf = CONF | {"spark.local.dir": str(scratch / "spark")}
    with errors_to(scratch / "workers.txt"):  # `report` says a line for each piece of damage
        spark = session("local[2]", conf=conf, app_name="damage")
    try:
        yield from run_by_spark(spark, campaign, seeds, scratch)
    finally:
        spark.stop()


@contextmanager
def errors_to(path: Path) -> Iterator[None]:
    """Have what is started now write its standard error to a file, for as long as it lives."""
    sys.stderr.flush()
    own = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


if __name__ == "__main__":
    sys.exit(main())
