"""`python -m benchmarks.quorum [--quick] [--only NAME] [--records N] [--json]`.

Three controllers of ours beside three of Apache's. Both quorums run at once on this machine, one
under load at a time, taking turns; a row is the median over the rounds. Ratios above 1 are in our
favour: Apache's time over ours, our rate over Apache's. The same client, the same requests and the
same properties for both. Processor time is that of all three processes per acknowledged change.
Snapshots are measured one side after the other. All takes a quarter of an hour on two idle cores.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks import quorum_load, quorum_snapshots, quorum_state
from benchmarks.bytecode import require_bytecode
from benchmarks.parts import FAILURES, Parts, Row, Samples, row, run_parts
from benchmarks.quorum_sides import Side, sides
from tests.chaos.failover import SIDES, failover_seconds, percentile

CLIENTS = 64
SNAPSHOT = "snapshot"
SNAPSHOT_STEPS = 1 + 2 * 3
"""The state that both begin with; then both load, write and transfer."""
KILLS = 15
LOST_ROUNDS_MAX = 5

Measured = TypeVar("Measured")


@dataclass
class Turns:
    """Both sides, which take turns."""

    both: dict[str, Side]
    parts: Parts

    def measure(self, rounds: int, measure: Callable[[Side], float]) -> Samples:
        """Ask for a figure of each side, so many times; what came before a failure counts."""
        samples: Samples = {name: [] for name in self.both}
        try:
            for _ in range(rounds):
                for name, side in self.both.items():
                    samples[name].append(measure(side))
                    self.parts.step()
        except FAILURES:
            if not all(samples.values()):
                raise
            self.parts.fail(f"round {len(samples['ours'])} of {rounds}")
        return samples

    def memory_row(self, when: str) -> Row:
        """Resident memory of all three processes."""
        samples = {name: [side.resident_bytes() / 2**20] for name, side in self.both.items()}
        return row(f"memory of three, {when}", "MiB", samples)


def at_leader(side: Side, measure: Callable[[str], Measured]) -> Measured:
    """Measure at the leader's address; a round in which the leadership moves is measured anew."""
    for _ in range(LOST_ROUNDS_MAX):
        side.write_once()  # a new leader refuses until it has replayed what was before
        try:
            return measure(side[side.leader()].address)
        except (quorum_load.Refused, OSError) as error:
            print(f"{side.name}: a round is lost: {error!r}", file=sys.stderr, flush=True)
    raise AssertionError(f"{side.name}: no leader stays\n{side.logs()}")


def boot_seconds(side: Side) -> float:
    """Start three stopped processes; until a change is acknowledged."""
    begun = time.perf_counter()
    side.start()
    side.write_once()
    return time.perf_counter() - begun


def boot_rows(turns: Turns, rounds: int) -> list[Row]:
    """Start and stop; leave both running and idle, and look at their memory."""

    def measure(side: Side) -> float:
        took = boot_seconds(side)
        side.whole()
        side.stop()
        return took

    boots = turns.measure(rounds, measure)
    for side in turns.both.values():
        side.start()
        side.whole()
    time.sleep(2.0)
    return [row("boot to first acknowledged change", "s", boots), turns.memory_row("idle")]


def latency_rows(turns: Turns, rounds: int, seconds: float) -> list[Row]:
    """One client: how long a change takes."""
    shares = (0.5, 0.99)
    found: dict[float, Samples] = {share: {name: [] for name in turns.both} for share in shares}

    def measure(side: Side) -> float:
        times = at_leader(side, lambda address: quorum_load.latencies(address, seconds))
        for share, samples in found.items():
            samples[side.name].append(percentile(times, share) * 1e3)
        return len(times) / seconds

    turns.measure(rounds, measure)
    return [
        row(f"commit latency p{share * 100:g}, 1 client", "ms", samples)
        for share, samples in found.items()
    ]


def rate_row(turns: Turns, clients: int, rounds: int, seconds: float) -> Row:
    """Changes per second, and what each costs."""
    costs: Samples = {name: [] for name in turns.both}

    def measure(side: Side) -> float:
        def loaded(address: str) -> tuple[float, float]:
            before = side.cpu_seconds()
            rate = quorum_load.rate(address, clients, seconds)
            return rate, side.cpu_seconds() - before

        rate, cpu_s = at_leader(side, loaded)
        costs[side.name].append(cpu_s / max(rate * seconds, 1.0))
        return rate

    samples = turns.measure(rounds, measure)
    found = row(f"commits, {clients} client(s)", "/s", samples, more_is_better=True)
    ours, apache = (statistics.median(costs[side]) for side in ("ours", "apache"))
    found.our_cpu_us = round(ours * 1e6, 1)
    found.cpu_ratio = round(apache / ours, 2) if ours else 0.0
    return found


def failover_rows(turns: Turns, rounds: int) -> list[Row]:
    """`kill -9` of the leader until a change is acknowledged."""
    samples = turns.measure(rounds, failover_seconds)
    worst = {name: [max(times)] for name, times in samples.items()}
    return [
        row(f"failover p50 of {len(samples['apache'])}", "s", samples),
        row(f"failover, slowest of {len(samples['apache'])}", "s", worst),
    ]


def snapshot_rows(home: Path, records: int, parts: Parts) -> list[Row]:
    """Both sides, one after the other."""
    parts.step("the state that both begin with")
    state = quorum_state.write_state(home / "state", records)
    found = {}
    for name in SIDES:
        times = found[name] = quorum_snapshots.measure(name, home / name, state, parts.step)
        print(f"{name}: {times}", flush=True)
        if not times.was_snapshot:
            print(f"{name}: the empty controller was given the log", file=sys.stderr)
    label = f"snapshot of {records:,} records"
    figures = ("load", "write", "write_cpu", "transfer", "slowest_change", "longest_silence")
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


def measure_all(arguments: argparse.Namespace, home: Path, parts: Parts, rows: list[Row]) -> None:
    """Run what is asked for; the rows of each part are there once it is over."""
    only = arguments.only or ""
    if only != SNAPSHOT:
        measure_quorums(arguments, home / "quorums", parts, rows)
    if only in SNAPSHOT:
        records = arguments.records or (20_000 if arguments.quick else 1_000_000)
        with parts.part(SNAPSHOT, SNAPSHOT_STEPS):
            rows += snapshot_rows(home / "snapshots", records, parts)


def measure_quorums(
    arguments: argparse.Namespace, home: Path, parts: Parts, rows: list[Row]
) -> None:
    """Everything that needs both quorums at once."""
    rounds, seconds, boots, kills = (2, 1.0, 1, 2) if arguments.quick else (5, 3.0, 3, KILLS)
    both = sides(home)
    turns = Turns(both, parts)
    measured: tuple[tuple[str, int, Callable[[], list[Row]]], ...] = (
        ("latency", rounds, lambda: latency_rows(turns, rounds, seconds)),
        ("commits of 1", rounds, lambda: [rate_row(turns, 1, rounds, seconds)]),
        (f"commits of {CLIENTS}", rounds, lambda: [rate_row(turns, CLIENTS, rounds, seconds)]),
        ("failover", kills, lambda: failover_rows(turns, kills)),
    )
    with both["ours"], both["apache"]:
        with parts.part("boot", 2 * boots):
            rows += boot_rows(turns, boots)
        if parts.failed:
            return  # nothing runs that could be measured
        with parts.part("warm", len(both)):
            for side in both.values():
                at_leader(side, lambda address: quorum_load.rate(address, 8, seconds))
        for name, steps, figures in measured:
            if (arguments.only or "") in name:
                with parts.part(name, 2 * steps):
                    rows += figures()
            if name == f"commits of {CLIENTS}":
                rows.append(turns.memory_row("after the load"))
        for side in both.values():
            parts.notes.append(f"{side.name}: {side.command()}")
    parts.notes.append(
        f"medians of {rounds} rounds of {seconds} s a side, taking turns; {kills} kills a side"
    )


def main() -> int:
    """Print the table; return 0 also where a ratio is short, 1 where a part failed."""
    parser = argparse.ArgumentParser(prog="make bench-quorum")
    parser.add_argument("--quick", action="store_true", help="two short rounds, a small snapshot")
    parser.add_argument("--only", help="boot and rows whose name contains this; `snapshot` alone")
    parser.add_argument("--records", type=int, help="of the snapshot; 1,000,000 unless --quick")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    require_bytecode()
    return run_parts(
        "bench-quorum",
        lambda home, parts, rows: measure_all(arguments, home, parts, rows),
        as_json=arguments.json,
    )


if __name__ == "__main__":
    sys.exit(main())
