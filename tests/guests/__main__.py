"""`python -m tests.guests [--only NAME] [--keep DIR]`: Apache's brokers on controllers of ours.

Two brokers of Apache Kafka 4.3.1 on three controllers: ours, two of ours with one of Apache's, and
for comparison Apache's own. At each step the active controller is killed. Exit code 1 when a step
failed, a record was lost, or a broker wrote an error that it does not write on Apache's own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from traceback import print_exception

from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table

from tests.guests.cluster import Cluster
from tests.guests.steps import Story

QUORUMS = {"ours": (), "ours and one of Apache's": (3,), "Apache's": (1, 2, 3)}
HOME = "Apache's"


def say(line: str) -> None:
    """Print a step with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, flush=True)


def tell(name: str, home: Path) -> tuple[str, Counter[str]]:
    """Take every step on one kind of quorum; its figures, and the errors of the brokers."""
    cluster = Cluster(home, QUORUMS[name], say)
    with cluster.running():
        story = Story(cluster)
        try:
            for step in story.steps:
                cluster.while_active_controller_dies(step)
        finally:
            story.close()
        kills = ", ".join(f"{count} x {make}" for make, count in cluster.kills.items())
        said = f"{len(story.steps)} steps, the active controller killed at each: {kills}"
    return said, cluster.errors()


def main() -> int:
    """Run what is asked for; the table comes last."""
    parser = argparse.ArgumentParser(prog="make guests")
    parser.add_argument("--only", action="append", choices=QUORUMS)
    parser.add_argument("--keep", type=Path, help="a folder for directories and logs")
    arguments = parser.parse_args()
    table = Table("controllers", "held", "seconds", "figures")
    errors: dict[str, Counter[str]] = {}
    is_good = True
    with tempfile.TemporaryDirectory(prefix="guests-") as scratch:
        for number, name in enumerate(arguments.only or QUORUMS):
            began = time.monotonic()
            say(f"== controllers: {name}")
            try:
                figures, errors[name] = tell(name, (arguments.keep or Path(scratch)) / str(number))
                held = True
            except (AssertionError, KafkaException) as problem:
                figures, held = f"{type(problem).__name__}: {problem}"[:1_500], False
                print_exception(problem)
            is_good &= held
            seconds = time.monotonic() - began
            table.add_row(name, "yes" if held else "NO", f"{seconds:.0f}", figures)
    for name, found in errors.items():
        own = errors.get(HOME, Counter[str]())
        for line, count in found.items():
            is_new = HOME in errors and line not in own
            is_good &= not is_new
            table.add_row(name, "NO" if is_new else "", "", f"error x{count}: {line}")
    Console(width=150).print(table)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
