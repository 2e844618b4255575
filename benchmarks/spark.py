"""`python -m benchmarks.spark [--quick] [--only NAME] [--json]`: the pipeline beside Apache's own.

Formats `kraftwire` and `kraftlog` beside Spark's own Kafka connector, tuned, over the same topics
of one live Apache Kafka node; `kraftlog` beside `kafka-dump-log`; `tables` beside a replay through
Apache's MetadataDelta; batch headers and the audit in bytes a second. One session, both sides of a
row in one run, taking turns after a round that does not count; a row is the median over the rounds.
Ratios above 1 are in our favour; `CPU` is of the JVM and all processes below it. Before anything is
timed, all formats must give the same rows with every column, and every timed run the same sums.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks import audit, spark_data
from benchmarks.node import spread
from benchmarks.spark_replays import apache_replay, our_tables
from benchmarks.spark_sides import (
    Cost,
    ProcessTree,
    dump,
    fingerprints,
    frame,
    scan_batches,
    totals,
)
from kraft_wire.spark import session
from tests.spark.connector_jars import connector_jars

CORES = 2
TUNED = {"kafka.max.poll.records": "20000"}
"""The one setting that is tuned: with its default, 500, the connector asks for offsets after every
poll of so many records. Neither other values nor other settings were tried here."""
WALL_GOAL, CPU_GOAL, LOG_GOAL, DUMP_GOAL, TABLES_GOAL = 1.5, 1.0, 2.0, 10.0, 0.5
SCAN_GOAL, AUDIT_GOAL = 0.8, 1.0
CONF = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": str(CORES)}


@dataclass
class Row:
    """One figure; `theirs` and `ratio` are 0 where there is no other side."""

    name: str
    unit: str
    ours: float
    theirs: float = 0.0
    ratio: float = 0.0
    goal: float = 0.0
    cpu_ratio: float = 0.0
    """Processor time of the other side over ours."""
    cpu_goal: float = 0.0
    spread: float = 0.0
    load: float = 0.0
    """Of the machine, when the row was done."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured, and how often."""

    records: int
    metadata_records: int
    gigabytes: float
    rounds: int


FULL = Sizes(2_500_000, 450_000, 2.2, 5)
QUICK = Sizes(100_000, 4_000, 0.1, 1)


class Bench:
    """The session, what was written for it, and the rows so far."""

    def __init__(self, spark: SparkSession, sizes: Sizes, home: Path) -> None:
        self.spark, self.sizes, self.home = spark, sizes, home
        self.tree = ProcessTree(spark)
        self.rows: list[Row] = []

    def add(self, row: Row) -> None:
        """Keep a row, and show that it goes on."""
        row.load = round(os.getloadavg()[0], 1)
        self.rows.append(row)
        say(f"{row.name}: {row.ours} {row.unit}, {row.theirs}, ratio {row.ratio}")

    def timed(self, work: Callable[[], object]) -> Cost:
        """Run something in the session."""
        before, begun = self.tree.cpu_seconds(), time.perf_counter()
        work()
        return Cost(time.perf_counter() - begun, self.tree.cpu_seconds() - before)

    def turns(self, sides: dict[str, Callable[[], Cost]]) -> dict[str, list[Cost]]:
        """Let the sides take turns, once for nothing and then for the rounds."""
        costs: dict[str, list[Cost]] = {name: [] for name in sides}
        for number in range(self.sizes.rounds + 1):
            for name, side in sides.items():
                cost = side()
                say(f"  round {number}, {name}: {cost.wall:.2f} s, {cost.cpu:.2f} s of processor")
                if number:
                    costs[name].append(cost)
        return costs


def say(line: str) -> None:
    """Tell whoever waits."""
    print(line, file=sys.stderr, flush=True)


def compared(
    name: str, count: int, ours: list[Cost], theirs: list[Cost], goal: float, cpu_goal: float = 0.0
) -> Row:
    """Records a second of both sides, by wall time and by processor time."""
    wall, cpu = _medians(ours)
    their_wall, their_cpu = _medians(theirs)
    return Row(
        name,
        "M records/s",
        round(count / wall / 1e6, 3),
        round(count / their_wall / 1e6, 3),
        round(their_wall / wall, 2),
        goal,
        round(their_cpu / cpu, 2),
        cpu_goal,
        max(spread([each.wall for each in costs]) for costs in (ours, theirs)),
    )


def _medians(costs: list[Cost]) -> tuple[float, float]:
    return statistics.median(c.wall for c in costs), statistics.median(c.cpu for c in costs)


def records_rows(bench: Bench) -> None:
    """Every record of the topics, with and without headers; and through Apache's dump tool."""
    say(f"writing {bench.sizes.records:,} records to a node of Apache's")
    with spark_data.apache_node(bench.home / "live") as node:
        count = spark_data.write_topics(node.bootstrap, bench.sizes.records)
        topics = ",".join(spark_data.topic_names())
        live = {
            "kafka.bootstrap.servers": node.bootstrap,
            "subscribe": topics,
            "startingOffsets": "earliest",
        }
        sides = {
            "kafka": live | TUNED,
            "kraftwire": live,
            "kraftlog": {"path": str(node.data), "topics": topics},
        }
        _assert_same_rows(bench, sides, count)
        for headers in (False, True):
            what = "every column" if headers else "without headers"
            found = bench.turns(_queries(bench, sides, count, headers=headers))
            for name, goals in (("kraftwire", (WALL_GOAL, CPU_GOAL)), ("kraftlog", (LOG_GOAL,))):
                label = f"{name} / connector, {what}"
                bench.add(compared(label, count, found[name], found["kafka"], *goals))
        _dump_row(bench, node.data, count)


def _queries(
    bench: Bench, sides: dict[str, dict[str, str]], count: int, *, headers: bool
) -> dict[str, Callable[[], Cost]]:
    known: set[tuple[int, ...]] = set()

    def query(name: str) -> Callable[[], Cost]:
        def run() -> Cost:
            made = frame(bench.spark, name, sides[name], headers=headers)
            return bench.timed(lambda: known.add(totals(made, headers=headers)))

        def checked() -> Cost:
            cost = run()
            assert len(known) == 1, known
            assert next(iter(known))[0] == count, known
            return cost

        return checked

    return {name: query(name) for name in sides}


def _assert_same_rows(bench: Bench, sides: dict[str, dict[str, str]], count: int) -> None:
    found = {
        name: fingerprints(frame(bench.spark, name, options, headers=True))
        for name, options in sides.items()
    }
    assert found["kraftwire"] == found["kafka"], found
    assert found["kraftlog"] == found["kafka"], found
    assert sum(int(str(each[2])) for each in found["kafka"]) == count, found


def _dump_row(bench: Bench, data: Path, count: int) -> None:
    """All of the topics, through Apache's tool and through `kraftlog`."""
    names = spark_data.topic_names()
    segments = [path for name in names for path in sorted(data.glob(f"{name}-*/*.log"))]
    options = {"path": str(data), "topics": ",".join(names)}

    def ours() -> Cost:
        found: list[tuple[int, ...]] = []
        made = frame(bench.spark, "kraftlog", options, headers=True)
        cost = bench.timed(lambda: found.append(totals(made, headers=True)))
        assert found[0][0] == count, found
        return cost

    own = bench.turns({"kraftlog": ours})["kraftlog"]
    theirs = []
    for number in range(min(bench.sizes.rounds, 2)):
        cost, records = dump(segments)
        assert records == count, (records, count)
        say(f"  round {number}, kafka-dump-log: {cost.wall:.2f} s")
        theirs.append(cost)
    label = "kraftlog / kafka-dump-log, every column"
    bench.add(compared(label, count, own, theirs, DUMP_GOAL))


def bytes_rows(bench: Bench) -> None:
    """Headers and checksums through Spark, and the audit of the same three replicas."""
    say(f"writing {bench.sizes.gigabytes} GB of three replicas")
    nodes = audit.write(bench.home / "replicas", int(bench.sizes.gigabytes * 1e9))
    total = sum(path.stat().st_size for node in nodes for path in node.glob("*/*.log"))
    path = ",".join(map(str, nodes))
    batches: set[int] = set()

    def scan() -> Cost:
        found: list[tuple[int, int]] = []
        cost = bench.timed(lambda: found.append(scan_batches(bench.spark, path)))
        assert found[0][1] == total, (found, total)
        batches.add(found[0][0])
        return cost

    def audited() -> Cost:
        wall, cpu, summary = audit.measure(nodes)
        assert summary["bytes"] == total, (summary, total)
        assert summary["errors"] == 0, summary
        batches.add(summary["batches"])
        return Cost(wall, cpu)

    found = bench.turns({"batches": scan, "audit": audited})
    assert len(batches) == 1, batches
    for name, goal in (("batches", SCAN_GOAL), ("audit", AUDIT_GOAL)):
        wall, cpu = _medians(found[name])
        label = "view batches, with checksums" if name == "batches" else "kraft-wire audit"
        bench.add(_rate_row(f"{label}, wall", total / wall / 1e9, goal, found[name]))
        bench.add(_rate_row(f"{label}, a processor second", total / cpu / 1e9, 0, found[name]))


def _rate_row(name: str, rate: float, goal: float, costs: list[Cost]) -> Row:
    widest = spread([each.wall for each in costs])
    return Row(name, "GB/s", round(rate, 2), goal=goal, spread=widest)


def tables_rows(bench: Bench) -> None:
    """The tables of a metadata log, against Apache's classes that replay the same log."""
    say(f"having a controller of Apache's write {bench.sizes.metadata_records:,} records")
    data = spark_data.write_metadata_log(bench.home / "metadata", bench.sizes.metadata_records)
    sums, replays = set(), []

    def ours() -> Cost:
        output = bench.home / "tables"
        return bench.timed(lambda: sums.add(our_tables(bench.spark, data, output)))

    def theirs() -> Cost:
        cost, found, replay_seconds = apache_replay(data)
        sums.add(found)
        replays.append(replay_seconds)
        return cost

    found = bench.turns({"tables": ours, "MetadataDelta": theirs})
    assert len(sums) == 1, sums
    count = next(iter(sums))[0]
    label = f"tables of {count:,} records / Apache's replay"
    own = found["tables"]
    row = compared(f"{label}, JVM start included", count, own, found["MetadataDelta"], TABLES_GOAL)
    bench.add(row)
    alone = [Cost(seconds, cost.cpu) for seconds, cost in zip(replays[1:], own, strict=True)]
    row = compared(f"{label}, the replay alone", count, own, alone, TABLES_GOAL)
    row.cpu_ratio = 0.0  # of the replay alone it is not known
    bench.add(row)


CASES = {"records": records_rows, "bytes": bytes_rows, "tables": tables_rows}


def measure_all(arguments: argparse.Namespace, home: Path) -> list[Row]:
    """Run what is asked for."""
    conf = CONF | {"spark.local.dir": str(home / "spark")}
    spark = session(f"local[{CORES}]", conf=conf, jars=connector_jars(), app_name="bench-spark")
    try:
        bench = Bench(spark, QUICK if arguments.quick else FULL, home)
        for name, case in CASES.items():
            if arguments.only in (None, name):
                case(bench)
                memory = bench.tree.worker_bytes_max() / 2**20
                bench.add(Row(f"largest Python worker up to {name}", "MiB", round(memory)))
        return bench.rows
    finally:
        spark.stop()


def print_table(rows: list[Row], console: Console) -> None:
    """Print the rows for people."""
    table = Table("figure", "ours", "theirs", "ratio", "wanted", "CPU ratio", "spread", "load")
    for each in rows:
        value = each.ratio or each.ours
        verdict = "reached" if value >= each.goal else "NOT reached"
        unit = "x" if each.ratio else ""
        cpu = f"{each.cpu_ratio:.2f}x" if each.cpu_ratio else "-"
        if each.cpu_goal:
            cpu += f" of {each.cpu_goal:.1f}x"
        table.add_row(
            each.name,
            f"{each.ours:,.3g} {each.unit}",
            f"{each.theirs:,.3g}" if each.ratio else "-",
            f"{each.ratio:.2f}x" if each.ratio else "-",
            f"{each.goal:.1f}{unit} {verdict}" if each.goal else "-",
            cpu,
            f"{each.spread:.0%}",
            f"{each.load:.1f}",
        )
    console.print(table)


def main() -> int:
    """Print the table; return 0 also where a ratio is short: figures are not gates."""
    parser = argparse.ArgumentParser(prog="make bench-spark")
    parser.add_argument("--quick", action="store_true", help="one round of very little")
    parser.add_argument("--only", choices=CASES, help="one of the groups of rows")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-spark-") as folder:
        rows = measure_all(arguments, Path(folder))
    print_table(rows, Console(width=150, stderr=arguments.json))
    if arguments.json:
        print(json.dumps({"rows": [asdict(each) for each in rows]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
