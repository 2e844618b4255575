"""`python -m benchmarks.transactions [--quick] [--only NAME] [--json]`: beside Apache Kafka 4.3.1.

Both nodes run at once and take turns, as in `benchmarks.node`. Commits are transactions of ten
records over three partitions, by one producer and by sixteen; end to end is the same transaction
until a read_committed consumer has all of it, one after the other. The last two rows read one
topic, a tenth of whose transactions are aborted, with and without read_committed.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from rich.console import Console

from benchmarks import load
from benchmarks.bytecode import require_bytecode
from benchmarks.node import APACHE_FLAGS, Case, Row, Side, print_table, run_case
from tests.apache.node import ApacheNode
from tests.server_process import ServerProcess

PARTITIONS: Final = 3
RECORDS: Final = 10
SECONDS_MAX: Final = 60
TOPIC, FILLED = "bench-transactions", "bench-filled"
FILLED_TRANSACTIONS: Final = 1_000
ABORTED_EVERY: Final = 10
SETTINGS: Final = {
    "num.partitions": str(PARTITIONS),
    "transaction.state.log.num.partitions": "50",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


class Writer:
    """A transactional producer."""

    def __init__(self, bootstrap: str, name: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0}
        self._producer = Producer(settings)
        self._producer.init_transactions(SECONDS_MAX)

    def write(self, topic: str, value: bytes, *, commit: bool = True) -> None:
        """Write one transaction."""
        self._producer.begin_transaction()
        for number in range(RECORDS):
            self._producer.produce(topic, value, partition=number % PARTITIONS)
        if commit:
            self._producer.commit_transaction(SECONDS_MAX)
        else:
            self._producer.flush(SECONDS_MAX)  # or the records would never be sent
            self._producer.abort_transaction(SECONDS_MAX)


def commit_rate(bootstrap: str, seconds: float, producers: int) -> float:
    """Return committed transactions per second of some producers."""
    writers = [Writer(bootstrap, f"commits-{number}") for number in range(producers)]
    counts = [0] * producers
    begun = time.perf_counter()

    def work(number: int) -> None:
        while time.perf_counter() - begun < seconds:
            writers[number].write(TOPIC, b"v" * 100)
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(producers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begun)


def reader(bootstrap: str, topic: str, isolation: str, offset: int) -> Consumer:
    """Return a consumer of all partitions from an offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.assign([TopicPartition(topic, number, offset) for number in range(PARTITIONS)])
    return consumer


def end_to_end_rate(bootstrap: str, seconds: float) -> float:
    """Return transactions per second from their begin to their last record at a reader."""
    topic = f"{TOPIC}-{time.time_ns()}"
    load.await_topic(bootstrap, topic)
    writer = Writer(bootstrap, "end-to-end")
    consumer = reader(bootstrap, topic, "read_committed", OFFSET_BEGINNING)
    try:
        count, begun = 0, 0.0
        while count == 0 or time.perf_counter() - begun < seconds:
            writer.write(topic, b"v" * 100)
            left = RECORDS
            while left:
                left -= len(consumer.consume(left, timeout=SECONDS_MAX))
            count += 1
            begun = begun or time.perf_counter()  # the first one finds leaders and coordinator
        return (count - 1) / (time.perf_counter() - begun)
    finally:
        consumer.close()


def read_rate(bootstrap: str, seconds: float, isolation: str) -> float:
    """Return records per second that a reader gets, from the beginning again and again."""
    consumer = reader(bootstrap, FILLED, isolation, OFFSET_BEGINNING)
    wanted = FILLED_TRANSACTIONS * RECORDS
    if isolation == "read_committed":
        wanted -= wanted // ABORTED_EVERY
    try:
        received, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            left = wanted
            while left:
                found = consumer.consume(min(left, 5_000), timeout=SECONDS_MAX)
                assert found, f"{left} records are missing"
                left -= len(found)
            received += wanted
            for number in range(PARTITIONS):
                consumer.seek(TopicPartition(FILLED, number, 0))
        return received / (time.perf_counter() - begun)
    finally:
        consumer.close()


CASES: Final = (
    Case("commit, 1 producer", "txn/s", 1.0, lambda b, s: commit_rate(b, s, 1)),
    Case("commit, 16 producers", "txn/s", 1.0, lambda b, s: commit_rate(b, s, 16)),
    Case("end to end, read_committed", "txn/s", 1.0, end_to_end_rate),
    Case("read_committed", "msg/s", 1.0, lambda b, s: read_rate(b, s, "read_committed")),
    Case("read_uncommitted", "msg/s", 1.0, lambda b, s: read_rate(b, s, "read_uncommitted")),
)


def prepare(side: Side) -> None:
    """Create the topics, and fill the one that is read."""
    for topic in (TOPIC, FILLED):
        load.await_topic(side.bootstrap, topic)
    writer = Writer(side.bootstrap, "fill")
    for number in range(FILLED_TRANSACTIONS):
        writer.write(FILLED, b"v" * 1024, commit=number % ABORTED_EVERY > 0)


def measure_all(arguments: argparse.Namespace, folder: Path) -> list[Row]:
    """Start both nodes and run the chosen cases."""
    rounds, seconds = (2, 2.0) if arguments.quick else (7, 4.0)
    server = ServerProcess(folder / "ours", overrides=SETTINGS)
    server.directory.mkdir()
    apache = ApacheNode(folder / "apache", overrides=SETTINGS, heap_mb=1024, flags=APACHE_FLAGS)
    with server, apache:
        sides = (
            Side("ours", server.bootstrap, server.pid),
            Side("apache", apache.bootstrap, apache.pid),
        )
        for side in sides:
            prepare(side)
        rows = []
        for case in CASES:
            if arguments.only is None or arguments.only in case.name:
                rows.append(run_case(case, sides, rounds, seconds))
                print(rows[-1], file=sys.stderr, flush=True)
    console = Console(width=140, stderr=arguments.json, markup=False, highlight=False)
    print_table(rows, rounds, seconds, console)
    rates = {row.name: row for row in rows}
    if {"read_committed", "read_uncommitted"} <= rates.keys():
        for name in ("ours", "apache"):
            committed, all_of_it = (
                getattr(rates[each], name) for each in ("read_committed", "read_uncommitted")
            )
            console.print(f"{name}: read_committed at {committed / all_of_it:.2f}x of uncommitted")
    return rows


def main() -> int:
    """Print the table; return 0 also where a ratio is short of its goal: figures are not gates."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transactions")
    parser.add_argument("--quick", action="store_true", help="two short rounds")
    parser.add_argument("--only", help="cases whose name contains this text")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    require_bytecode()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-") as folder:
        rows = measure_all(arguments, Path(folder))
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
