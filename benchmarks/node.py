"""`python -m benchmarks.node [--quick] [--only NAME] [--json]`: our node beside Apache Kafka 4.3.1.

Both nodes run at once on this machine, one under load at a time, taking turns; who goes first
changes with each round, and a first round warms both up and does not count: Apache's compiler needs
it. A row has the medians over the rounds; its ratio is the median of the rounds' own ratios, ours /
Apache's, because a shared machine changes its pace more between rounds than within one; its spread
is (highest - lowest) / median of the side that varied more. CPU per unit is what the server process
used. The commands of both sides are printed.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import confluent_kafka
from rich.console import Console
from rich.table import Table

from benchmarks import load
from benchmarks.bytecode import require_bytecode
from tests.apache.jars import RELEASE
from tests.apache.node import ApacheNode
from tests.attack import frames
from tests.server_process import ServerProcess

SCRIPT_FLAGS = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
"""The collector that Apache's own script sets."""
APACHE_FLAGS = ("-Xms1g", *SCRIPT_FLAGS)


_WORD_MAX = 200


@dataclass
class Side:
    """One of the two nodes."""

    name: str
    bootstrap: str
    pid: int


@dataclass(frozen=True)
class Case:
    """One row: a figure where more is better, and the ratio that is asked for."""

    name: str
    unit: str
    goal: float
    measure: Callable[[str, float], float]


@dataclass
class Row:
    """The outcome of one case."""

    name: str
    unit: str
    ours: float
    apache: float
    ratio: float
    goal: float
    spread: float
    our_cpu_us: float = 0.0
    """Processor time of our server per unit of work."""
    cpu_ratio: float = 0.0
    """Apache's processor time per unit of work over ours: above 1 we use less."""


def _produce(value_bytes: int, connections: int, in_flight: int) -> Callable[[str, float], float]:
    def measure(bootstrap: str, seconds: float) -> float:
        return load.produce_rate(
            bootstrap,
            "bench",
            value_bytes=value_bytes,
            connections=connections,
            in_flight=in_flight,
            seconds=seconds,
        )

    return measure


def _fetch(fetch_bytes: int, connections: int) -> Callable[[str, float], float]:
    def measure(bootstrap: str, seconds: float) -> float:
        return load.fetch_rate(
            bootstrap,
            "bench-fetch",
            fetch_bytes=fetch_bytes,
            connections=connections,
            seconds=seconds,
        )

    return measure


def librdkafka_produce(bootstrap: str, seconds: float) -> float:
    """Messages of 1 KiB per second through confluent-kafka's producer, all of them delivered."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 200_000}
    )
    value = b"v" * 1024
    delivered = 0

    def count(error: object, _message: object) -> None:
        nonlocal delivered
        assert error is None, error
        delivered += 1

    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for _ in range(500):
            try:
                producer.produce("bench-rdkafka", value, on_delivery=count)
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    producer.flush(60)
    return delivered / (time.perf_counter() - begun)


def librdkafka_consume(bootstrap: str, seconds: float) -> float:
    """Messages of 1 KiB per second through confluent-kafka's consumer, from the beginning."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
        }
    )
    try:
        start = confluent_kafka.OFFSET_BEGINNING
        consumer.assign([confluent_kafka.TopicPartition("bench-rdkafka", 0, start)])
        received = len(consumer.consume(1, timeout=20))
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            got = len(consumer.consume(5000, timeout=1.0))
            received += got
            if got == 0:
                break
        return received / (time.perf_counter() - begun)
    finally:
        consumer.close()


CASES = (
    Case("produce 100 B, 1 connection", "req/s", 1.0, _produce(100, 1, 1)),
    Case("produce 16 KiB, 5 in flight", "req/s", 2.0, _produce(16 << 10, 1, 5)),
    Case("produce 100 B, 64 connections", "req/s", 0.85, _produce(100, 64, 1)),
    Case("fetch 64 KiB, 1 connection", "req/s", 1.2, _fetch(64 << 10, 1)),
    Case("fetch 1 MiB, 4 connections", "req/s", 0.8, _fetch(1 << 20, 4)),
    Case("librdkafka produce 1 KiB", "msg/s", 0.8, librdkafka_produce),
    Case("librdkafka consume 1 KiB", "msg/s", 0.8, librdkafka_consume),
)


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Return a process's resident set."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def prepare(side: Side) -> None:
    """Create the topics and fill the one that is fetched."""
    for topic in ("bench", "bench-fetch", "bench-rdkafka"):
        load.await_topic(side.bootstrap, topic)
    host, _, port = side.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        record = frames.batch(frames.one_record(b"f" * (60 << 10)), 1)
        for _ in range(40):
            connection.sendall(frames.produce_v3("bench-fetch", record))
            load.read_frame(connection)


def run_case(case: Case, sides: tuple[Side, Side], rounds: int, seconds: float) -> Row:
    """Let both sides take turns, once to warm up; return the medians of the other rounds."""
    rates: dict[str, list[float]] = {side.name: [] for side in sides}
    costs: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(rounds + 1):
        for side in sides if number % 2 else reversed(sides):
            before = cpu_seconds(side.pid)
            begun = time.perf_counter()
            rate = case.measure(side.bootstrap, seconds)
            work = rate * (time.perf_counter() - begun)
            if number:
                rates[side.name].append(rate)
                costs[side.name].append((cpu_seconds(side.pid) - before) / max(work, 1.0))
    ours, apache = (rates[side.name] for side in sides)
    our_costs, apache_costs = (costs[side.name] for side in sides)
    our_cost = statistics.median(our_costs)
    return Row(
        case.name,
        case.unit,
        round(statistics.median(ours), 1),
        round(statistics.median(apache), 1),
        round(_median_ratio(ours, apache), 2),
        case.goal,
        max(spread(each) for each in rates.values()),
        round(our_cost * 1e6, 2),
        round(_median_ratio(apache_costs, our_costs), 2) if our_cost else 0.0,
    )


def _median_ratio(above: list[float], below: list[float]) -> float:
    """Return the median of what each round gives by itself."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def spread(samples: list[float]) -> float:
    """Return (highest - lowest) / median."""
    return round((max(samples) - min(samples)) / statistics.median(samples), 2)


def start_seconds(start: Callable[[], str]) -> float:
    """Return the time from the start of a process to its first answered ApiVersions."""
    begun = time.perf_counter()
    answered = threading.Event()
    bootstrap = start()
    host, _, port = bootstrap.rpartition(":")
    while not answered.is_set():
        try:
            with socket.create_connection((host, int(port)), timeout=5) as connection:
                connection.sendall(frames.api_versions_v0())
                if load.read_frame(connection) is not None:
                    answered.set()
        except OSError:
            time.sleep(0.002)
    return time.perf_counter() - begun


def print_table(rows: list[Row], rounds: int, seconds: float, console: Console) -> None:
    """Print the rows for people."""
    table = Table(
        "case", "ours", f"Apache {RELEASE}", "ratio", "goal", "spread", "our CPU", "CPU ratio"
    )
    for row in rows:
        is_rate = row.unit.endswith("/s")
        table.add_row(
            row.name,
            f"{row.ours:,.1f} {row.unit}",
            f"{row.apache:,.1f} {row.unit}",
            f"{row.ratio:.2f}x",
            f"{row.goal:.2f}x {'reached' if row.ratio >= row.goal else 'NOT reached'}",
            f"{row.spread:.0%}",
            f"{row.our_cpu_us:.1f} µs" if is_rate else "-",
            f"{row.cpu_ratio:.2f}x" if is_rate else "-",
        )
    console.print(table)
    console.print(f"medians of {rounds} rounds of {seconds} s a side, taking turns, after one more")


def command_of(pid: int) -> str:
    """Return the command line of a process; a long class path is cut."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    return " ".join(word if len(word) < _WORD_MAX else f"{word[:_WORD_MAX]}..." for word in words)


def start_rows(server: ServerProcess, apache: ApacheNode, starts: int) -> list[Row]:
    """Start both nodes some times, with data from the second time on; leave them running."""

    def start_ours() -> str:
        server.start()
        return server.bootstrap

    def start_apache() -> str:
        apache.start()
        return apache.bootstrap

    times: dict[str, list[float]] = {"ours": [], "apache": []}
    for number in range(starts):
        if number:
            server.stop()
            apache.stop()
        times["ours"].append(start_seconds(start_ours))
        times["apache"].append(start_seconds(start_apache))
    time.sleep(3.0)
    ours, theirs = (statistics.median(samples) * 1e3 for samples in times.values())
    idle = [resident_bytes(pid) / 2**20 for pid in (server.pid, apache.pid)]
    return [
        Row(
            "start to first answer",
            "ms",
            round(ours, 1),
            round(theirs, 1),
            round(theirs / ours, 1),
            15.0,
            max(map(spread, times.values())),
        ),
        Row(
            "idle memory",
            "MiB",
            round(idle[0], 1),
            round(idle[1], 1),
            round(idle[1] / idle[0], 1),
            8.0,
            0.0,
        ),
    ]


def measure_all(arguments: argparse.Namespace, folder: Path) -> list[Row]:
    """Start both nodes, run the chosen cases and the start-up and memory rows."""
    rounds, seconds, starts = (2, 1.0, 1) if arguments.quick else (7, 2.0, 5)
    server = ServerProcess(folder / "ours", overrides={"num.partitions": "1"})
    server.directory.mkdir()
    apache = ApacheNode(
        folder / "apache", overrides={"num.partitions": "1"}, heap_mb=1024, flags=APACHE_FLAGS
    )
    apache.format()

    try:
        rows = start_rows(server, apache, starts)
        sides = (
            Side("ours", server.bootstrap, server.pid),
            Side("apache", apache.bootstrap, apache.pid),
        )
        for side in sides:
            prepare(side)
        for case in CASES:
            if arguments.only is None or arguments.only in case.name:
                rows.append(run_case(case, sides, rounds, seconds))
                print(rows[-1], file=sys.stderr, flush=True)
        console = Console(width=140, stderr=arguments.json, markup=False, highlight=False)
        print_table(rows, rounds, seconds, console)
        for side in sides:
            console.print(f"{side.name}: {command_of(side.pid)}", soft_wrap=True)
        console.print(
            f"start: median of {starts}, the first without data; 200 ms is the most that is wanted"
        )
        return rows
    finally:
        server.stop()
        apache.stop()


def main() -> int:
    """Print the table; return 0 also where a ratio is short of its goal: figures are not gates."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.node")
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
