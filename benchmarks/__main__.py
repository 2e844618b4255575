"""`python -m benchmarks [--quick]`: every paired benchmark, one after another.

Each prints its table; what a peer needs and the machine lacks (Java, a Python package) is said by
the benchmark itself and counts as not run. The exit code is 1 when one of them could not run.
"""

import argparse
import subprocess
import sys

BENCHMARKS = ("codec", "columnar", "fetch_sessions", "node", "secured", "transactions", "recovery")


def main() -> int:
    """Run all benchmarks with the given arguments; return 0 when every one ran."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    arguments = parser.parse_args()
    extra = ["--quick"] if arguments.quick else []
    failed = 0
    for name in BENCHMARKS:
        command = [sys.executable, "-m", f"benchmarks.{name}", *extra]
        print(f"\n$ python -m benchmarks.{name} {' '.join(extra)}", flush=True)
        failed += subprocess.run(command, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
