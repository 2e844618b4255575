"""franz-go's own tests of exactly once, TestTxnEtl and TestGroupETL, against a broker.

``python -m tests.clients.transactions.franz_suite [--records N] [--cluster] [--apache]`` runs them
(at their full size by default); its published module carries them. They move records through four
topics with many members of groups that come and go. They take each error of a poll for a failure,
so that brokers of either make may not restart meanwhile. Exit code 0 means that all have passed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.apache.jars import CHECKOUT, RELEASE
from tests.apache.node import ApacheNode
from tests.clients.cluster import REPLICAS, Cluster
from tests.clients.registry import HERE, prepare
from tests.clients.transactions.running import NODE_SETTINGS
from tests.mixed.controller import OURS
from tests.server_process import ServerProcess

__all__ = ["FULL", "run_suite"]

FULL = 500_000
TESTS = ("TestTxnEtl", "TestGroupETL")
SECONDS_MAX = 1_800


def suite() -> Path:
    """The program with all of franz-go's tests of its client, compiled."""
    program = CHECKOUT / "var" / "clients" / "kgo.test"
    program.parent.mkdir(parents=True, exist_ok=True)
    build = ["go", "test", "-c", "-o", str(program), "github.com/twmb/franz-go/pkg/kgo"]
    prepare(build, HERE / "go")
    return program


def run_suite(bootstrap: str, records: int, replicas: int, log: Path, test: str) -> list[str]:
    """Run one of the tests; return the lines that tell what passed and what failed."""
    environment = {
        **os.environ,
        "KGO_SEEDS": bootstrap,
        "KGO_TEST_RF": str(replicas),
        "KGO_TEST_RECORDS": str(records),
        "KGO_LOG_LEVEL": "none",
    }
    wanted = [f"-test.run=^{test}$", "-test.v", f"-test.timeout={SECONDS_MAX}s"]
    with log.open("ab") as output:
        subprocess.run(
            [str(suite()), *wanted],
            env=environment,
            stdout=output,
            stderr=output,
            check=False,
            timeout=SECONDS_MAX + 60,
        )
    lines = log.read_text(errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip().startswith(("--- ", "panic:", "FAIL"))]


def broker_of(wanted: argparse.Namespace, home: Path) -> Cluster | ApacheNode | ServerProcess:
    """What the tests run on."""
    if wanted.cluster:
        return Cluster(home, RELEASE if wanted.apache else OURS, overrides=NODE_SETTINGS)
    make_of = ApacheNode if wanted.apache else ServerProcess
    return make_of(home, overrides=NODE_SETTINGS)


def main() -> int:
    """Run both on one node or on a cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=FULL)
    parser.add_argument("--cluster", action="store_true", help="three brokers, none restarted")
    parser.add_argument("--apache", action="store_true", help="Apache's brokers: the control")
    wanted = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-franz-"))
    told = []
    replicas = REPLICAS if wanted.cluster else 1
    with broker_of(wanted, home) as broker:
        for test in TESTS:
            began = time.monotonic()
            lines = run_suite(broker.bootstrap, wanted.records, replicas, home / test, test)
            print(*lines, f"{test}: {time.monotonic() - began:.0f} s", sep="\n", flush=True)
            told += lines
    is_green = bool(told) and all(line.startswith(("--- PASS", "--- SKIP")) for line in told)
    if not is_green:
        print(f"kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
