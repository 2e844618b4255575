"""`python -m tests.audit [--seeds A:B] [NODE_DIR…]`: damage after damage, each named once.

Without directories the clean set of our own storage is damaged; with directories of real nodes a
copy of those is. Prints a line for every seed that went wrong, and the figures by kind.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.audit.campaign import Campaign, Verdict
from tests.audit.clean_set import write_clean_set


def main() -> int:
    """Run the campaign; 1 where a fault was not found, or not once, or misnamed."""
    parser = argparse.ArgumentParser(prog="python -m tests.audit")
    parser.add_argument("--seeds", default="0:1800", help="A:B")
    parser.add_argument("directories", nargs="*", type=Path)
    given = parser.parse_args()
    first, last = map(int, given.seeds.split(":"))
    with tempfile.TemporaryDirectory() as scratch:
        directories = []
        for number, real in enumerate(given.directories, 1):
            copy = Path(scratch) / f"copy-{number}"
            shutil.copytree(real, copy)
            directories.append(copy)
        campaign = Campaign(directories or write_clean_set(Path(scratch) / "clean"))
        judged = Counter[tuple[str, Verdict]]()
        for seed in range(first, last):
            damage, verdict, findings = campaign.run(seed)
            judged[damage.kind, verdict] += 1
            if verdict is not Verdict.NAMED:
                place = f"{damage.topic}-{damage.partition} node {damage.node}: {damage.detail}"
                print(f"seed {seed}: {damage.kind} {verdict.value}, {place}")
                for finding in findings:
                    print("   ", finding)
    for (kind, verdict), count in sorted(judged.items(), key=lambda each: each[0][0]):
        print(f"{kind:20} {verdict.value:10} {count}")
    wrong = sum(count for (_, verdict), count in judged.items() if verdict is not Verdict.NAMED)
    print(f"{last - first} faults, {wrong} of them not found and named once")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
