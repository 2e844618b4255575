"""librdkafka's own tests of transactions against a broker, and of share groups that read them.

``python -m tests.clients.transactions.librdkafka_suite --source DIR [--cluster] [--apache]
[--test NNNN]…``. DIR is a checkout of librdkafka 2.15 or later, with its test program built where
RapidJSON is installed: ``./configure && make libs && make -C tests build``. 0098 has Apache's Java
producer write as well; 0098 and 0103 need three brokers. Exit code 0 means that all have passed and
none was skipped, 2 that the program is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.apache.jars import RELEASE, jar_directory
from tests.apache.node import ApacheNode
from tests.clients.cluster import Cluster
from tests.clients.transactions.running import NODE_SETTINGS
from tests.mixed.controller import OURS
from tests.server_process import ServerProcess

__all__ = ["judged"]

TESTS = ("0129", "0177")
TESTS_OF_A_CLUSTER = ("0098", "0103", "0129", "0177")
CLUSTER_SETTINGS = {**NODE_SETTINGS, "num.partitions": "4"}
"""As many partitions as librdkafka's own clusters have in its tests."""
SINGLE_SETTINGS = {
    **CLUSTER_SETTINGS,
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
SECONDS_MAX = 900
RUN_CLASS = """#!/bin/sh
exec java -cp "$CLASSPATH:{jars}/*" "$@"
"""
COLOUR = re.compile(r"\x1b\[\d+m")
TOLD = re.compile(r": PASS|: FAIL|\bSKIP|^### Test .* failed|\b(PASSED|FAILED) =")


def program_of(source: Path) -> Path:
    """Return the test program of a checkout."""
    return source / "tests" / "test-runner"


def run_test(source: Path, bootstrap: str, home: Path, test: str) -> tuple[bool, list[str]]:
    """Run one test; return whether all of it passed, and what it printed of its parts."""
    settings = home / "librdkafka.conf"
    settings.write_text(f"bootstrap.servers={bootstrap}\ntest.topic.random=true\n")
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{source / 'src'}:{source / 'src-cpp'}",
        "RDKAFKA_TEST_CONF": str(settings),
        "KAFKA_PATH": str(_kafka_folder(home)),
        "BROKERS": bootstrap,
        "TEST_KAFKA_VERSION": RELEASE,
        "TESTS": test,
    }
    log = home / f"{test}.log"
    with log.open("ab") as output:
        done = subprocess.run(
            [str(program_of(source)), "-p1"],
            cwd=source / "tests",
            env=environment,
            stdout=output,
            stderr=output,
            check=False,
            timeout=SECONDS_MAX,
        )
    return judged(done.returncode, log.read_text(errors="replace"))


def judged(exit_code: int, output: str) -> tuple[bool, list[str]]:
    """Return whether all parts of a test passed, and what it printed of them."""
    lines = COLOUR.sub("", output).splitlines()
    told = [line.strip() for line in lines if TOLD.search(line)]
    is_skipped = not told or any("SKIP" in line for line in told)
    return exit_code == 0 and not is_skipped, told


def _kafka_folder(home: Path) -> Path:
    """A folder as Apache's releases have it, with what the Java producer of 0098 needs."""
    folder, jars = home / "kafka", jar_directory()
    script = folder / "bin" / "kafka-run-class.sh"
    if not script.exists():
        script.parent.mkdir(parents=True)
        (folder / "libs").symlink_to(jars)
        script.write_text(RUN_CLASS.format(jars=jars))
        script.chmod(0o755)
    return folder


def arguments() -> argparse.Namespace:
    """The command line."""
    name = "python -m tests.clients.transactions.librdkafka_suite"
    parser = argparse.ArgumentParser(prog=name, description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="checkout of librdkafka, built")
    parser.add_argument("--cluster", action="store_true", help="three brokers instead of one node")
    parser.add_argument("--apache", action="store_true", help="Apache's brokers: the control")
    parser.add_argument("--test", action="append", metavar="NNNN", help="a test; repeatable")
    return parser.parse_args()


def broker_of(wanted: argparse.Namespace, home: Path) -> Cluster | ApacheNode | ServerProcess:
    """What the tests run on."""
    if wanted.cluster:
        return Cluster(home, RELEASE if wanted.apache else OURS, overrides=CLUSTER_SETTINGS)
    return (ApacheNode if wanted.apache else ServerProcess)(home, overrides=SINGLE_SETTINGS)


def main() -> int:
    """Run the tests on one node or on a cluster."""
    wanted = arguments()
    source = wanted.source.resolve()
    if not program_of(source).exists():
        print(f"{program_of(source)} is missing; build it", file=sys.stderr)
        return 2
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-librdkafka-"))
    failed = []
    with broker_of(wanted, home) as broker:
        for test in wanted.test or (TESTS_OF_A_CLUSTER if wanted.cluster else TESTS):
            began = time.monotonic()
            has_passed, lines = run_test(source, broker.bootstrap, home, test)
            took = f"{time.monotonic() - began:.0f} s"
            print(*lines, f"{test}: {'passed' if has_passed else 'failed'}, {took}", sep="\n")
            sys.stdout.flush()
            failed += [] if has_passed else [test]
    if failed:
        print(f"failed: {', '.join(failed)}; kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
