"""`python -m benchmarks.recovery [--quick] [--mib N] [--json]`: the start after a kill.

One partition holds a segment of small batches, written by no node but valid for both Apache's and
ours. Each side starts over it as after `kill -9` (no clean marker, no recovery point), so that
every batch has to be verified, and as after a clean stop; the difference is what recovery costs. A
row is the median over the rounds, and the ratio is Apache's time / ours.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.bytecode import require_bytecode
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.apache.node import ApacheNode
from tests.server.wire_client import WireClient
from tests.server_process import ServerProcess

TOPIC = "recovered"
CASES = {
    "100 B batches": (27, -1),
    "100 B batches, idempotent": (27, 7),
    "1 KiB batches": (949, -1),
    "16 KiB batches": (16_308, -1),
}
"""Bytes of the one value in a batch, and the producer id."""
SETTINGS = {"num.partitions": "1", "log.segment.bytes": str(2_000_000_000)}


@dataclass(frozen=True)
class Row:
    """One kind of batches."""

    name: str
    mib: int
    batches: int
    ours_s: float
    apache_s: float
    ratio: float
    ours_us_per_batch: float


class Node:
    """One side: a directory with the topic, and how it is started and stopped."""

    def __init__(self, node: ServerProcess | ApacheNode) -> None:
        self.node = node
        self.partition = node.data / f"{TOPIC}-0"

    def prepare(self) -> None:
        """Have the topic created."""
        self.node.start()
        with WireClient(self.node.bootstrap) as client:
            client.topic(TOPIC)
        self.node.stop()

    def start_seconds(self, *, is_clean: bool) -> float:
        """Start over the data and stop again; the time until the listener answers."""
        if not is_clean:
            (self.node.data / ".kafka_cleanshutdown").unlink(missing_ok=True)
            (self.node.data / "recovery-point-offset-checkpoint").write_text("0\n0\n")
            for snapshot in self.partition.glob("*.snapshot"):
                snapshot.unlink()
        started = time.perf_counter()
        self.node.start()
        seconds = time.perf_counter() - started
        self.node.stop()
        return seconds

    def fill(self, segment: Path) -> None:
        """Put a segment in place of the partition's first; recovery makes everything else."""
        for path in self.partition.iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        shutil.copyfile(segment, self.partition / f"{0:020d}.log")


def write_segment(path: Path, mib: int, value_bytes: int, producer_id: int) -> int:
    """Write batches of one record each; return how many."""
    batch = bytearray(
        build_batch(
            [Record(None, b"v" * value_bytes, timestamp=int(time.time() * 1000))],
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
        )
    )
    count = (mib << 20) // len(batch)
    with path.open("wb", buffering=1 << 20) as file:
        head = RecordBatch(memoryview(batch))
        for offset in range(count):
            head.assign(offset, 0)
            file.write(batch)
    return count


def recovery_seconds(node: Node, rounds: int) -> float:
    """The median of what a start after a kill takes longer than one after a clean stop."""
    node.start_seconds(is_clean=False)
    return statistics.median(
        node.start_seconds(is_clean=False) - node.start_seconds(is_clean=True)
        for _ in range(rounds)
    )


def measure(home: Path, mib: int, rounds: int, tell: Callable[[str], None]) -> list[Row]:
    """Run every case on both sides."""
    (home / "ours").mkdir()
    ours = Node(ServerProcess(home / "ours", overrides=SETTINGS))
    apache_node = ApacheNode(home / "apache", overrides=SETTINGS, heap_mb=1024)
    apache_node.format()
    apache = Node(apache_node)
    for side in (ours, apache):
        side.prepare()
    rows = []
    for name, (value_bytes, producer_id) in CASES.items():
        tell(name)
        batches = write_segment(home / "segment", mib, value_bytes, producer_id)
        seconds = []
        for side in (ours, apache):
            side.fill(home / "segment")
            seconds.append(recovery_seconds(side, rounds))
        ours_s, apache_s = seconds
        ratio = apache_s / ours_s
        rows.append(Row(name, mib, batches, ours_s, apache_s, ratio, ours_s / batches * 1e6))
    return rows


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery")
    parser.add_argument("--quick", action="store_true", help="64 MiB, one round")
    parser.add_argument("--mib", type=int, default=512, help="size of the segment")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    require_bytecode()
    mib, rounds = (64, 1) if arguments.quick else (arguments.mib, 3)
    console = Console(stderr=arguments.json)
    with tempfile.TemporaryDirectory() as directory, console.status("preparing") as status:
        rows = measure(Path(directory), mib, rounds, status.update)
    table = Table(title=f"Recovery of one segment of {mib} MiB")
    for column in ("batches", "count", "ours s", "Apache s", "ratio", "ours µs each"):
        table.add_column(column, justify="left" if column == "batches" else "right")
    for row in rows:
        figures = (f"{row.ours_s:.2f}", f"{row.apache_s:.2f}", f"{row.ratio:.2f}")
        table.add_row(row.name, f"{row.batches:,}", *figures, f"{row.ours_us_per_batch:.2f}")
    console.print(table)
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
