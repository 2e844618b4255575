"""franz-go's own tests of exactly once, TestTxnEtl and TestGroupETL, against a broker.

``python -m tests.clients.transactions.franz_suite [--records N] [--cluster] [--apache]`` runs them
(at their full size by default); its published module carries them. They move records through four
topics with many members of groups that come and go. Exit code 0 means that all have passed.
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

from tests.apache.jars import CHECKOUT
from tests.clients.cluster import REPLICAS
from tests.clients.registry import HERE, prepare

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


def main() -> int:
    """Run both on one node or on a cluster."""
    from tests.clients.transactions.__main__ import ground_of

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=FULL)
    parser.add_argument("--cluster", action="store_true", help="three brokers, restarted in turn")
    parser.add_argument("--apache", action="store_true", help="Apache's brokers: the control")
    wanted = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="kraft-wire-franz-"))
    told = []
    with ground_of(wanted, home) as ground:
        for test in TESTS:
            replicas = REPLICAS if wanted.cluster else 1
            began = time.monotonic()
            told += run_suite(ground.bootstrap, wanted.records, replicas, home / test, test)
            print(*told[-9:], f"{test}: {time.monotonic() - began:.0f} s", sep="\n", flush=True)
    is_green = bool(told) and all(line.startswith(("--- PASS", "--- SKIP")) for line in told)
    if not is_green:
        print(f"kept: {home}", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
