"""`python -m benchmarks.quorum [--quick] [--only NAME] [--records N] [--json]`.

Three controllers of ours beside three of Apache's. Both quorums run at once on this machine, one
under load at a time, taking turns; a row is the median over the rounds. Ratios above 1 are in our
favour: Apache's time over ours, our rate over Apache's. The same client, the same requests and the
same properties for both. Processor time is that of all three processes per acknowledged change.
Snapshots are measured one side after the other.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import quorum_load, quorum_snapshots
from benchmarks.node import spread
from benchmarks.quorum_sides import Side, sides
from tests.chaos.failover import failover_seconds, percentile

GOAL = 1.0
CLIENTS = 64
SNAPSHOT = "snapshot"


@dataclass
class Row:
    """One figure of both sides."""

    name: str
    unit: str
    ours: float
    apache: float
    ratio: float
    spread: float = 0.0
    goal: float = GOAL
    our_cpu_us: float = 0.0
    """Processor time of our three processes per change."""
    cpu_ratio: float = 0.0
    """Apache's per change over ours."""


Samples = dict[str, list[float]]


def row(name: str, unit: str, samples: Samples, *, more_is_better: bool = False) -> Row:
    """Medians of both sides and their ratio."""
    ours, apache = (statistics.median(samples[side]) for side in ("ours", "apache"))
    ratio = ours / apache if more_is_better else apache / ours
    widest = max(map(spread, samples.values()))
    return Row(name, unit, round(ours, 3), round(apache, 3), round(ratio, 2), widest)


def turns(both: dict[str, Side], rounds: int, measure: Callable[[Side], float]) -> Samples:
    """Let both sides take turns."""
    samples: Samples = {name: [] for name in both}
    for _ in range(rounds):
        for name, side in both.items():
            samples[name].append(measure(side))
    return samples


def boot_seconds(side: Side) -> float:
    """Start three stopped processes; until a change is acknowledged."""
    begun = time.perf_counter()
    side.start()
    side.write_once()
    return time.perf_counter() - begun


def boot_rows(both: dict[str, Side], rounds: int) -> list[Row]:
    """Start and stop; leave both running and idle, and look at their memory."""

    def measure(side: Side) -> float:
        took = boot_seconds(side)
        side.whole()
        side.stop()
        return took

    boots = turns(both, rounds, measure)
    for side in both.values():
        side.start()
        side.whole()
    time.sleep(2.0)
    idle = turns(both, 1, lambda side: side.resident_bytes() / 2**20)
    return [
        row("boot to first acknowledged change", "s", boots),
        row("memory of three, idle", "MiB", idle),
    ]


def latency_rows(both: dict[str, Side], rounds: int, seconds: float) -> list[Row]:
    """One client: how long a change takes."""
    found: dict[float, Samples] = {share: {name: [] for name in both} for share in (0.5, 0.99)}
    for _ in range(rounds):
        for name, side in both.items():
            times = quorum_load.latencies(side[side.leader()].address, seconds)
            for share, samples in found.items():
                samples[name].append(percentile(times, share) * 1e3)
    return [
        row(f"commit latency p{share * 100:g}, 1 client", "ms", samples)
        for share, samples in found.items()
    ]


def rate_row(both: dict[str, Side], clients: int, rounds: int, seconds: float) -> Row:
    """Changes per second, and what each costs."""
    costs: Samples = {name: [] for name in both}

    def measure(side: Side) -> float:
        address, before = side[side.leader()].address, side.cpu_seconds()
        rate = quorum_load.rate(address, clients, seconds)
        costs[side.name].append((side.cpu_seconds() - before) / max(rate * seconds, 1.0))
        return rate

    samples = turns(both, rounds, measure)
    found = row(f"commits, {clients} client(s)", "/s", samples, more_is_better=True)
    ours, apache = (statistics.median(costs[side]) for side in ("ours", "apache"))
    found.our_cpu_us = round(ours * 1e6, 1)
    found.cpu_ratio = round(apache / ours, 2) if ours else 0.0
    return found


def failover_rows(both: dict[str, Side], rounds: int) -> list[Row]:
    """`kill -9` of the leader until a change is acknowledged."""
    samples = turns(both, rounds, failover_seconds)
    worst = {name: [max(times)] for name, times in samples.items()}
    return [
        row(f"failover p50 of {rounds}", "s", samples),
        row(f"failover, slowest of {rounds}", "s", worst),
    ]


def snapshot_rows(home: Path, records: int) -> list[Row]:
    """Both sides, one after the other."""
    found = {}
    for name in ("ours", "apache"):
        times = found[name] = quorum_snapshots.measure(name, home / name, records)
        print(f"{name}: {times}", flush=True)
        if not times.was_snapshot:
            print(f"{name}: the empty controller was given the log", file=sys.stderr)
    label = f"snapshot of {records:,} records"
    figures = ("fill", "write", "load", "transfer", "slowest_change", "longest_silence")
    rows = [
        row(
            f"{label}: {each.replace('_', ' ')}",
            "s",
            {n: [getattr(t, f"{each}_s")] for n, t in found.items()},
        )
        for each in figures
    ]
    memory = {name: [times.resident_bytes / 2**20] for name, times in found.items()}
    return [*rows, row(f"{label}: memory of three", "MiB", memory)]


def measure_all(arguments: argparse.Namespace, home: Path) -> list[Row]:
    """Run what is asked for."""
    rounds, seconds, boots, kills = (2, 1.0, 1, 2) if arguments.quick else (5, 3.0, 3, 10)
    records = arguments.records or (20_000 if arguments.quick else 1_000_000)
    only = arguments.only or ""
    rows: list[Row] = []

    def add(name: str, made: Callable[[], list[Row]]) -> None:
        if only in name:
            rows.extend(made())
            for each in rows[-2:]:
                print(each, file=sys.stderr, flush=True)

    if only != SNAPSHOT:
        both = sides(home / "quorums")
        with both["ours"], both["apache"]:
            rows += boot_rows(both, boots)
            for side in both.values():
                quorum_load.rate(side[side.leader()].address, 8, seconds)  # warm
            add("latency", lambda: latency_rows(both, rounds, seconds))
            add("commits", lambda: [rate_row(both, 1, rounds, seconds)])
            add("commits", lambda: [rate_row(both, CLIENTS, rounds, seconds)])
            loaded = turns(both, 1, lambda side: side.resident_bytes() / 2**20)
            rows.append(row("memory of three, after the load", "MiB", loaded))
            add("failover", lambda: failover_rows(both, kills))
            for side in both.values():
                print(f"{side.name}: {side.command()}")
    add(SNAPSHOT, lambda: snapshot_rows(home / "snapshots", records))
    print(f"medians of {rounds} rounds of {seconds} s a side, taking turns")
    return rows


def print_table(rows: list[Row]) -> None:
    """Print the rows for people."""
    table = Table(
        "figure", "ours", "Apache 4.3.1", "ratio", "goal", "spread", "our CPU", "CPU ratio"
    )
    for each in rows:
        reached = "reached" if each.ratio >= each.goal else "NOT reached"
        table.add_row(
            each.name,
            f"{each.ours:,.2f} {each.unit}",
            f"{each.apache:,.2f} {each.unit}",
            f"{each.ratio:.2f}x",
            f"{each.goal:.1f}x {reached}",
            f"{each.spread:.0%}",
            f"{each.our_cpu_us:.0f} µs" if each.our_cpu_us else "-",
            f"{each.cpu_ratio:.2f}x" if each.cpu_ratio else "-",
        )
    Console(width=140).print(table)


def main() -> int:
    """Print the table; return 0 also where a ratio is short: figures are not gates."""
    parser = argparse.ArgumentParser(prog="make bench-quorum")
    parser.add_argument("--quick", action="store_true", help="two short rounds, a small snapshot")
    parser.add_argument("--only", help="boot and rows whose name contains this; `snapshot` alone")
    parser.add_argument("--records", type=int, help="of the snapshot; 1,000,000 unless --quick")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-quorum-") as folder:
        rows = measure_all(arguments, Path(folder))
    print_table(rows)
    if arguments.json:
        print(json.dumps({"rows": [asdict(each) for each in rows]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
