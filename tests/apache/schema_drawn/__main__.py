"""`make drawn-requests`: where Apache Kafka 4.3.1 and we answer drawn requests unlike each other.

`python -m tests.apache.schema_drawn --seed 7 --requests 2000 --only Fetch Produce`. Known
differences are left out unless `--all`. Exit code 1 if any is printed.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.apache.schema_drawn.campaign import campaign, text_of
from tests.apache.schema_drawn.known import known_reason
from tests.apache.schema_drawn.nodes import both_brokers


def main() -> int:
    """Run one campaign on fresh nodes."""
    parser = argparse.ArgumentParser(prog="python -m tests.apache.schema_drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--only", nargs="*", default=(), metavar="API")
    parser.add_argument("--all", action="store_true", help="also print known differences")
    arguments = parser.parse_args()
    with TemporaryDirectory() as directory, both_brokers(Path(directory)) as (apache, ours):
        found = campaign(apache, ours, arguments.seed, arguments.requests, arguments.only)
    shown = [each for each in found if arguments.all or known_reason(each) is None]
    for each in shown:
        print(f"{each.api}/{each.version} on the {each.listener.value}, {each.times} times")
        print(f"  {text_of(each.request)}")
        print(f"  {each.difference.path}")
        print(f"    Apache: {each.difference.apache!r}\n    ours:   {each.difference.ours!r}")
    print(f"{len(shown)} kinds of differences, {len(found) - len(shown)} known ones left out")
    return 1 if shown else 0


if __name__ == "__main__":
    sys.exit(main())
