"""`python -m benchmarks.cluster [--quick] [--only NAME] [--json]`: a cluster beside Apache's.

Three brokers on three controllers of ours, and the same of Apache Kafka 4.3.1. Both clusters run at
once on this machine, one is measured at a time, taking turns; a row is the median over the rounds.
Every topic has three replicas, of which two must have a record before it is acknowledged. Ratios
above 1 are in our favour. Same client, same requests, same properties with Kafka's own timeouts.
All takes some twenty minutes on two idle cores.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cluster_load
from benchmarks.bytecode import require_bytecode
from benchmarks.cluster_load import LOAD_PARTITIONS, AckedProducer
from benchmarks.cluster_sides import HEAP_MB, ClusterSide, cluster_sides
from benchmarks.cluster_turns import SETTLING_S, ClusterTurns, Figures, fill_idle_topic
from benchmarks.cluster_wire import bytes_a_second
from benchmarks.parts import FAILURES, Parts, Row, row, run_parts
from tests.chaos.failover import percentile

FAILOVER_TOPIC = "failover"
SESSION_OVER_S = 10.0
"""More than the session of a broker lasts."""


@dataclass(frozen=True)
class Effort:
    """How often, how long, and how many partitions are made at once and stand idle."""

    rounds: int = 5
    seconds: float = 5.0
    boots: int = 3
    kills: int = 5
    restarts: int = 3
    created: int = 1_000
    idle: int = 2_000


QUICK = Effort(rounds=1, seconds=2.0, boots=1, kills=1, restarts=1, created=100, idle=200)


def boot_rows(turns: ClusterTurns, boots: int) -> list[Row]:
    """Start all six processes until all brokers are there; both clusters are left running."""

    def measure(side: ClusterSide) -> Figures:
        side.stop()
        return {"boot": side.boot_seconds()}

    found = turns.measure(boots, measure)
    time.sleep(SETTLING_S)
    return [row("boot of the cluster", "s", found["boot"]), turns.memory_row("idle")]


def load_rows(turns: ClusterTurns, rounds: int, seconds: float) -> list[Row]:
    """As many records as are taken, after a round that does not count; what each costs."""

    def measure(side: ClusterSide) -> Figures:
        topic = turns.new_topic()
        side.create(topic, LOAD_PARTITIONS)
        producer = AckedProducer(side.bootstrap, linger_ms=5)
        producer.first_in_each(topic, range(LOAD_PARTITIONS))
        before_s = side.cpu_seconds()
        records, took_s = cluster_load.send(producer, topic, seconds)
        spent_s = side.cpu_seconds() - before_s
        side.delete(topic)
        return {"rate": records / took_s, "cpu": spent_s / records}

    turns.measure(1, measure)
    found = turns.measure(rounds, measure)
    made = row("produce 1 KiB, acks=all", "records/s", found["rate"], more_is_better=True)
    ours, apache = (statistics.median(found["cpu"][side]) for side in ("ours", "apache"))
    made.our_cpu_us, made.cpu_ratio = round(ours * 1e6, 1), round(apache / ours, 2)
    return [made, turns.memory_row("after the load")]


def latency_rows(turns: ClusterTurns, rounds: int, seconds: float) -> list[Row]:
    """250 records a second, one by one: from hand-over to acknowledgement."""
    shares = (0.5, 0.99)

    def measure(side: ClusterSide) -> Figures:
        topic = turns.new_topic()
        side.create(topic, LOAD_PARTITIONS)
        times = cluster_load.latencies(side.bootstrap, topic, seconds)
        side.delete(topic)
        return {f"p{share * 100:g}": percentile(times, share) * 1e3 for share in shares}

    turns.measure(1, measure)
    found = turns.measure(rounds, measure)
    return [row(f"latency {each}, acks=all", "ms", samples) for each, samples in found.items()]


def failover_rows(turns: ClusterTurns, kills: int) -> list[Row]:
    """`kill -9` of a partition's leader until the next record is acknowledged."""
    for side in turns.both.values():
        side.create(FAILOVER_TOPIC, 1)

    def measure(side: ClusterSide) -> Figures:
        producer = AckedProducer(side.bootstrap, linger_ms=0)
        producer.first_in_each(FAILOVER_TOPIC, [0])
        leader = side.leader_of(FAILOVER_TOPIC)
        begun = time.perf_counter()
        leader.kill()
        producer.first_in_each(FAILOVER_TOPIC, [0])
        took = time.perf_counter() - begun
        side.until_gone(leader)
        leader.start()
        side.until_whole()
        return {"failover": took}

    samples = turns.measure(kills, measure)["failover"]
    worst, done = {name: [max(times)] for name, times in samples.items()}, len(samples["apache"])
    return [
        row(f"failover of a partition, p50 of {done}", "s", samples),
        row(f"failover of a partition, slowest of {done}", "s", worst),
    ]


def creation_rows(turns: ClusterTurns, rounds: int, partitions: int) -> list[Row]:
    """A topic of many partitions; until each of them has acknowledged a record."""

    def measure(side: ClusterSide) -> Figures:
        topic, begun = turns.new_topic(), time.perf_counter()
        answered = side.create(topic, partitions)
        producer = AckedProducer(side.bootstrap, linger_ms=0)
        producer.first_in_each(topic, range(partitions))
        took = time.perf_counter() - begun
        side.delete(topic)
        time.sleep(SETTLING_S)  # its files go later, and the other side is to have the machine
        return {"answered": answered, "a record in each": took}

    found = turns.measure(rounds, measure)
    label = f"createTopics of {partitions:,} partitions"
    return [row(f"{label}: {each}", "s", samples) for each, samples in found.items()]


def idle_rows(turns: ClusterTurns, partitions: int, rounds: int, seconds: float) -> list[Row]:
    """What followers and leaders say to each other when there is nothing to say (KIP-227)."""

    def measure(side: ClusterSide) -> Figures:
        pids = [each.pid for each in side.brokers.values()]
        ports = [each.port for each in side.brokers.values()]
        begun, before = time.perf_counter(), side.cpu_seconds()
        told = bytes_a_second(pids, ports, seconds)
        spent_s = (side.cpu_seconds() - before) / len(side.brokers)
        assert told, f"{side.name}: brokers do not talk to each other"
        return {"bytes": told, "cpu": spent_s / (time.perf_counter() - begun) * 1e3}

    memory = fill_idle_topic(turns, partitions)
    found = turns.measure(rounds, measure)
    label = f"{partitions:,} idle partitions"
    return [
        *memory,
        row(f"{label}: bytes between brokers", "B/s", found["bytes"]),
        row(f"{label}: processor time of a broker", "ms/s", found["cpu"]),
    ]


def restart_rows(turns: ClusterTurns, partitions: int, restarts: int) -> list[Row]:
    """A controlled restart of a broker that has all these partitions: at once, and a while later.

    Who starts at once is refused until the session of its former life is over, and asks again after
    pauses that double: much of that time is chance. Later it is the start alone.
    """

    def measure(side: ClusterSide) -> Figures:
        broker = side.next_broker()
        stop_s, start_s = side.restart(broker, 0.0)
        _, later_s = side.restart(broker, SESSION_OVER_S)
        return {
            "controlled stop": stop_s,
            "start at once until in every ISR": start_s,
            "start after its session until in every ISR": later_s,
        }

    memory = fill_idle_topic(turns, partitions)
    found = turns.measure(restarts, measure)
    label = f"broker of {partitions:,} partitions"
    return [*memory, *(row(f"{label}: {each}", "s", times) for each, times in found.items())]


def measure_all(effort: Effort, only: str, home: Path, parts: Parts, rows: list[Row]) -> None:
    """Run what is asked for; the rows of each part are there once it is over."""
    both = cluster_sides(home)
    turns = ClusterTurns(both, parts)
    rounds, seconds = effort.rounds, effort.seconds
    measured: tuple[tuple[str, int, Callable[[], list[Row]]], ...] = (
        ("latency", rounds + 1, lambda: latency_rows(turns, rounds, seconds)),
        ("load", rounds + 1, lambda: load_rows(turns, rounds, seconds)),
        ("failover", effort.kills, lambda: failover_rows(turns, effort.kills)),
        ("creation", rounds, lambda: creation_rows(turns, rounds, effort.created)),
        ("idle", rounds, lambda: idle_rows(turns, effort.idle, rounds, 2 * seconds)),
        (
            "restart",
            effort.restarts,
            lambda: restart_rows(turns, effort.idle, effort.restarts),
        ),
    )
    with both["ours"], both["apache"]:
        with parts.part("boot", 2 * effort.boots):
            rows += boot_rows(turns, effort.boots)
        for name, steps, figures in measured:
            if only not in name:
                continue
            try:
                turns.make_whole()
            except FAILURES:
                parts.fail(f"{name}, and what follows: there are no whole clusters any more;")
                return
            with parts.part(name, 2 * steps):
                rows += figures()
        parts.notes += [f"{side.name}: {side.command()}" for side in both.values()]
    parts.notes += [
        f"medians of {rounds} rounds of {seconds} s a side, taking turns; {effort.kills} kills",
        f"a broker of Apache's has a heap of {HEAP_MB} MiB",
    ]


def main() -> int:
    """Print the table; return 0 also where a ratio is short, 1 where a part failed."""
    parser = argparse.ArgumentParser(prog="make bench-cluster")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one short round, a tenth of the partitions: it runs, no more",
    )
    parser.add_argument("--only", default="", help="boot and parts whose name contains this")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    arguments = parser.parse_args()
    require_bytecode()
    effort = QUICK if arguments.quick else Effort()
    return run_parts(
        "bench-cluster",
        lambda home, parts, rows: measure_all(effort, arguments.only, home, parts, rows),
        as_json=arguments.json,
    )


if __name__ == "__main__":
    sys.exit(main())
