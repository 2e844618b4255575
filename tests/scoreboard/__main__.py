"""``make scoreboard``: published suites on kraft-wire and Apache Kafka, as a table.

``python -m tests.scoreboard [--suite NAME]… [--write]``. Apache's own tests, which need hours, run
only if they are named. Each suite has a new node of each make with the same settings. kafka-go's
tests know their broker as localhost:9092, so each suite runs in a network namespace of its own.
``--write`` puts the table into docs/COMPATIBILITY.md, with what was found before of suites that are
not run. Exit code 1 if a test fails on kraft-wire alone, except those that race (`suites.RACING`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.apache.jars import CHECKOUT
from tests.scoreboard.java_suite import OWN_TESTS
from tests.scoreboard.results import FAILED, MAKES, Results, table, written
from tests.scoreboard.suites import RACING, SUITES

PAGE = CHECKOUT / "docs" / "COMPATIBILITY.md"
HELD = CHECKOUT / "var" / "clients" / "scoreboard.json"
NAMESPACE = [
    "unshare",
    "--net",
    "--map-root-user",
    "sh",
    "-c",
    'ip link set lo up; exec "$@"',
    "sh",
]
Found = dict[str, dict[str, Results]]


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.scoreboard", description=__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--make", action="append", choices=MAKES)
    parser.add_argument("--write", action="store_true", help="into docs/COMPATIBILITY.md")
    parser.add_argument("--inside", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def inside(name: str, make: str, home: Path) -> None:
    """Run a suite on a node, both in this namespace, and leave the results in a file."""
    found = SUITES[name].run_on(make, home)
    (home / "results.json").write_text(json.dumps(found))


def outside(name: str, make: str, home: Path) -> Results:
    """Run a suite in a namespace of its own; nothing where it could not run."""
    home.mkdir()
    command = [sys.executable, "-m", "tests.scoreboard", "--inside", name, make, str(home)]
    began = time.monotonic()
    subprocess.run([*NAMESPACE, *command], cwd=CHECKOUT, check=False)
    report = home / "results.json"
    found: Results = json.loads(report.read_text()) if report.exists() else {}
    bad = sorted(each for each, verdict in found.items() if verdict == FAILED)
    seconds = time.monotonic() - began
    print(f"{name} on {make}: {len(found)} tests in {seconds:.0f} s, failed {bad}", flush=True)
    return found


def main() -> int:
    """Build, run, print, and write if asked to."""
    wanted = arguments()
    if wanted.inside:
        inside(*wanted.inside[:2], Path(wanted.inside[2]))
        return 0
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-scoreboard-"))
    held: Found = json.loads(HELD.read_text("utf-8")) if HELD.exists() else {}
    found: Found = {}
    for name in wanted.suite or [each for each in SUITES if each not in OWN_TESTS]:
        SUITES[name].prepare()
        of_makes = found[SUITES[name].title()] = {
            make: outside(name, make, home / f"{name}-{make.replace(' ', '-')}")
            for make in wanted.make or MAKES
        }
        held[SUITES[name].title()] = held.get(SUITES[name].title(), {}) | of_makes
        HELD.write_text(json.dumps(held), "utf-8")
    titles = [each.title() for each in SUITES.values()]
    lines = table({each: held[each] for each in titles if each in held})
    print(lines, end="")
    if wanted.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), lines), "utf-8")
    ours_alone = [
        test
        for of_makes in found.values()
        for test, verdict in of_makes.get(MAKES[0], {}).items()
        if verdict == FAILED and of_makes.get(MAKES[1], {}).get(test) != FAILED
        if test not in RACING
    ]
    if ours_alone:
        print(f"kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
