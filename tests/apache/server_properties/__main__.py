"""`make drawn-properties`: drawn files of settings, read by 4.3.1 and by us.

Prints each kind of difference once, with how many files show it and what the first of them sets.
Exit code 1 if there is one.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from random import Random

from tests.apache.server_properties.comparing import (
    Difference,
    Entries,
    answers_of_apache,
    differences,
)
from tests.apache.server_properties.drawing import drawn_entries
from tests.apache.server_properties.pools import NODES

_AT_A_TIME = 5_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.apache.server_properties")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=_AT_A_TIME)
    options = parser.parse_args(arguments)
    chance, left = Random(options.seed), options.files
    counts: Counter[str] = Counter()
    while left > 0:
        files = [drawn_entries(chance) for _ in range(min(left, _AT_A_TIME))]
        left -= len(files)
        for entries, answer in zip(files, answers_of_apache(files), strict=True):
            for each in differences(entries, answer):
                kind = f"{each.what}: {str(each.ours or each.apaches)[:60]}"
                if not counts[kind]:
                    _show(each)
                counts[kind] += 1
    print(f"{options.files:,} files, {counts.total():,} differences of {len(counts)} kinds")
    return int(bool(counts))


def _show(difference: Difference) -> None:
    print(f"{difference.what}: {_changes(difference.entries)}")
    print(f"  ours   {difference.ours}\n  4.3.1  {difference.apaches}")


def _changes(entries: Entries) -> str:
    """Return what differs from the node that a file was drawn from."""
    found = (_from(node, entries) for node in NODES)
    return " ".join(min(found, key=len)) or "nothing"


def _from(node: Entries, entries: Entries) -> list[str]:
    keys = sorted({*node, *entries})
    return [f"{key}={entries.get(key)!r}" for key in keys if node.get(key) != entries.get(key)]


if __name__ == "__main__":
    sys.exit(main())
