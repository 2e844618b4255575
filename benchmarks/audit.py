"""`python -m benchmarks.audit [--gigabytes N] [NODE_DIR…]`: bytes a second of `kraft-wire audit`.

Three equal replicas of some partitions are written (or the given directories taken), read once so
that they are in the page cache, and audited by the command as a user runs it, start of the process
included. Printed are wall time and processor time of the best round, and the load of the machine:
wall time says something only where the cores are free. Judged are bytes read and findings.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

NODES = 3
PARTITIONS = 4
SEGMENT_BYTES = 128 << 20
BATCH_BYTES = 16 << 10
VALUE_BYTES = 140
ROUNDS = 3
SEED = 5


def write(home: Path, size_bytes: int) -> list[Path]:
    """Write three node directories of some size together."""
    random_source = random.Random(SEED)
    first = home / "node-1"
    share = size_bytes // NODES // PARTITIONS
    values = [random_source.randbytes(VALUE_BYTES) for _ in range(BATCH_BYTES // VALUE_BYTES)]
    for partition in range(PARTITIONS):
        directory = first / f"orders-{partition}"
        directory.mkdir(parents=True)
        offset, left = 0, share
        while left > 0:
            size, offset = _segment(directory, offset, min(left, SEGMENT_BYTES), values)
            left -= size
    found = [first]
    for number in range(2, NODES + 1):
        shutil.copytree(first, home / f"node-{number}")
        found.append(home / f"node-{number}")
    for number, node in enumerate(found, 1):
        text = f"version=1\ncluster.id=5L6g3nShT-eMCtK--X86sw\nnode.id={number}\n"
        (node / "meta.properties").write_text(text)
    return found


def _segment(directory: Path, base: int, size: int, values: list[bytes]) -> tuple[int, int]:
    """Write one segment; return its size and the offset that follows."""
    written = 0
    with (directory / f"{base:020d}.log").open("wb") as file:
        while written < size:
            records = [
                Record(b"k", value, offset, 1_700_000_000_000 + offset)
                for offset, value in enumerate(values, base)
            ]
            data = build_batch(records, base_offset=base, partition_leader_epoch=0)
            written += file.write(data)
            base += len(records)
    return written, base


def measure(directories: list[Path]) -> tuple[float, float, dict[str, int]]:
    """Return wall and processor seconds of one run, and its summary."""
    program = "from kraft_wire.cli.main import main; main()"
    command = [sys.executable, "-c", program, "audit", "--json", *map(str, directories)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    summary: dict[str, int] = json.loads(done.stdout.splitlines()[-1])["summary"]
    return wall, cpu, summary


def main() -> int:
    """Print one line a round and the best; return 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit")
    parser.add_argument("--gigabytes", type=float, default=2.2)
    parser.add_argument("directories", nargs="*", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directories = given.directories or write(Path(scratch), int(given.gigabytes * 1e9))
        logs = sorted(path for node in directories for path in node.glob("*/*.log"))
        total = sum(len(path.read_bytes()) for path in logs)
        best = (0.0, 0.0)
        for _ in range(ROUNDS):
            wall, cpu, summary = measure(directories)
            assert summary["bytes"] == total, (summary, total)
            assert summary["errors"] == 0, summary
            load = os.getloadavg()[0]
            best = max(best, (total / wall / 1e9, total / cpu / 1e9))
            print(
                f"{total / 1e9:.2f} GB, {summary['batches']:,} batches: {wall:.2f} s wall,"
                f" {cpu:.2f} s of processor time, load {load:.1f}",
                flush=True,
            )
        print(f"best: {best[0]:.2f} GB/s, {best[1]:.2f} GB a second of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
