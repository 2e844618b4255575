"""`python -m tests.spark.kills`: `kill -9` again and again during an ingest; every record once.

A node of ours, a producer that writes all the time, a standalone Spark cluster with two workers,
and `kraft-wire spark ingest --trigger "1 second"` on it. At random moments the driver's Python, the
driver's JVM, an executor, a worker's Python or the Python that plans is killed; whatever ended is
started again with the same line. A third of the way the broker is killed and restarted, half way
the topic grows. In the end one run takes what is left, and Spark counts the sink: each partition
has each offset once, each value is there once. Exit code 1 where it is otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.server_process import ServerProcess
from tests.spark.class_archive import QUICK_START
from tests.spark.connector_jars import connector_jars, delta_jars
from tests.spark.ingesting import Ingesting
from tests.spark.kills_load import Load
from tests.spark.process_tree import Running, descendants
from tests.spark.standalone import Standalone
from tests.spark.topics_written import LiveTopics
from tests.spark.wheel_environment import wheel_python

KINDS = {"driver": 1, "driver's JVM": 1, "executor": 5, "worker's Python": 6, "planner": 1}
"""With weights: whoever takes the query with it costs a start of Spark."""
OF_OUR_SOURCE = ("worker's Python", "planner")
"""Spark's own connector has no Python beside the driver's."""
COMMIT_SECONDS_MAX = 900.0
DRAIN_SECONDS_MAX = 3600.0
DELTA_PARTITIONS = 2
"""Of its log's state; with Delta's own 50, that many tasks follow every commit."""
EARLY = 0.25
"""How often a kill does not wait for progress, but may hit a start or a recovery."""
LATER_S = 6.0


def say(line: str) -> None:
    """Print progress with the time of day."""
    print(time.strftime("%H:%M:%S ") + line, file=sys.stderr, flush=True)


def planned(draw: random.Random, kills: int, connector: str) -> list[str]:
    """Whom to kill, one after the other: of each kind that the connector has, one at least."""
    weights = {
        kind: weight
        for kind, weight in KINDS.items()
        if connector == "kraftwire" or kind not in OF_OUR_SOURCE
    }
    more = draw.choices([*weights], [*weights.values()], k=max(kills - len(weights), 0))
    plan = [*weights, *more][:kills]
    draw.shuffle(plan)
    return plan


class Campaign:
    """One topic, one sink, many kills."""

    def __init__(self, home: Path, given: argparse.Namespace) -> None:
        self.home = home
        self.given = given
        self.jars = ",".join(
            (delta_jars() if given.sink == "delta" else [])
            + (connector_jars() if given.connector == "kafka" else [])
        )
        self.killed: Counter[str] = Counter()
        self._draw = random.Random(given.seed)
        self._plan = planned(self._draw, given.kills, given.connector)

    def run(self) -> dict[str, object]:
        """Kill, restart, grow, drain; returns what the sink holds and what it should."""
        (self.home / "node").mkdir(parents=True)
        given = self.given
        with (
            ServerProcess(self.home / "node") as server,
            Standalone(self.home / "cluster", given.python) as cluster,
        ):
            topics = LiveTopics(server.bootstrap)
            topic = topics.create("kills", given.partitions)
            load = Load(topics, topic, given.records, given.partitions)
            ingesting = Ingesting(self.home, given.python, self._words(server, cluster, topic))
            load.start()
            try:
                for number, kind in enumerate(self._plan, 1):
                    load.allow(given.records * number // (given.kills + 1))
                    self._kill(number, kind, ingesting, cluster)
                    if number == max(given.kills // 3, 1):
                        say("broker: kill -9 and start")
                        server.kill()
                        server.start()
                    if number == max(given.kills // 2, 1):
                        say(f"topic grows to {given.partitions + 2} partitions")
                        topics.grow(topic, given.partitions + 2)
                        load.partitions = given.partitions + 2
                load.allow(given.records)
                load.join(DRAIN_SECONDS_MAX)
                assert load.failure is None, load.failure
                assert not load.is_alive(), "not all is written"
                self._drain(ingesting)
            finally:
                ingesting.kill()
        for cause, count in ingesting.ended_by_itself.items():
            say(f"the verb ended {count} times with {cause}")
        found = self._sink_rows()
        found |= {"wanted": dict(load.acknowledged), "starts": ingesting.starts}
        return found | {"batches": ingesting.commits + 1}

    def _words(self, server: ServerProcess, cluster: Standalone, topic: str) -> list[str]:
        given = self.given
        words = ["--bootstrap-servers", server.bootstrap, "--subscribe", topic]
        words += ["--output", str(self.home / "sink"), "--sink", given.sink]
        words += ["--checkpoint", str(self.home / "checkpoint"), "--connector", given.connector]
        words += ["--option", f"maxOffsetsPerTrigger={given.per_trigger}"]
        words += ["--master", cluster.url, "--conf", "spark.driver.memory=1g"]
        words += ["--conf", "spark.executor.memory=700m", "--conf", "spark.cores.max=2"]
        for each in ("driver", "executor"):
            words += ["--conf", f"spark.{each}.extraJavaOptions={QUICK_START}"]
        if given.sink == "delta":
            words += ["--conf", f"spark.databricks.delta.snapshotPartitions={DELTA_PARTITIONS}"]
        return words + (["--jars", self.jars] if self.jars else [])

    def _kill(self, number: int, kind: str, ingesting: Ingesting, cluster: Standalone) -> None:
        """Wait for a moment, and for somebody of a kind, and kill them."""
        ingesting.keep()
        before = ingesting.commits
        deadline = time.monotonic() + COMMIT_SECONDS_MAX
        if number > 1 and self._draw.random() < EARLY:
            time.sleep(self._draw.uniform(0, 4 * LATER_S))
        else:
            while ingesting.commits <= before:
                self._wait(ingesting, deadline)
            time.sleep(self._draw.uniform(0, LATER_S))
        ingesting.keep()
        while not (victims := self._victims(kind, ingesting, cluster)):
            self._wait(ingesting, deadline)
        victim = self._draw.choice(sorted(victims))
        os.kill(victim, signal.SIGKILL)
        if victim == ingesting.pid:
            ingesting.wait()
        self.killed[kind] += 1
        say(f"{number:3} kill -9 {kind} {victim}; {ingesting.commits + 1} batches so far")

    def _wait(self, ingesting: Ingesting, deadline: float) -> None:
        ingesting.keep()
        assert time.monotonic() < deadline, ingesting.text[-3000:]
        time.sleep(0.1)

    def _victims(self, kind: str, ingesting: Ingesting, cluster: Standalone) -> list[int]:
        if kind == "driver":
            return [ingesting.pid]
        driver = descendants(ingesting.pid)
        workers = descendants(*(each.pid for each in cluster.workers))

        def of(processes: list[Running], word: str) -> list[int]:
            return [each.pid for each in processes if word in each.command]

        if kind == "driver's JVM":
            return of(driver, "org.apache.spark.deploy.SparkSubmit")
        if kind == "executor":
            return of(workers, "CoarseGrainedExecutorBackend")
        if kind == "worker's Python":
            return of(workers, "pyspark.daemon")
        return of(driver, "streaming_source")

    def _drain(self, ingesting: Ingesting) -> None:
        """End what goes on for ever, and let one run take what is left."""
        ingesting.kill()
        say("all is written: the last run takes what is left")
        ingesting.keep("available-now")
        ingesting.stop_seconds_max = DRAIN_SECONDS_MAX
        assert ingesting.wait() == 0, ingesting.text[-3000:]

    def _sink_rows(self) -> dict[str, object]:
        program = Path(__file__).with_name("sink_rows.py")
        command = [self.given.python, str(program), self.given.sink, str(self.home / "sink")]
        done = subprocess.run(
            [*command, self.jars], capture_output=True, text=True, check=False, cwd=self.home
        )
        assert done.returncode == 0, done.stderr[-3000:]
        found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
        return found


def faults(found: dict[str, object], records: int) -> list[str]:
    """What is missing, twice or strange in a sink."""
    wanted, partitions = found["wanted"], found["partitions"]
    assert isinstance(wanted, dict)
    assert isinstance(partitions, dict)
    wrong = []
    if set(map(str, wanted)) != set(partitions):
        wrong.append(f"partitions {sorted(partitions)}, not {sorted(wanted)}")
    for partition, count in sorted(wanted.items()):
        held = partitions.get(str(partition))
        if held != [count, count, 0, count - 1]:
            wrong.append(f"partition {partition}: {held}, not {count} rows from 0 on")
    if found["numbers"] != [records, records * (records - 1) // 2]:
        wrong.append(f"values: {found['numbers']}, not the numbers below {records}")
    return wrong


def show(found: dict[str, object]) -> None:
    """Print what was acknowledged and what the sink holds."""
    wanted, partitions = found["wanted"], found["partitions"]
    assert isinstance(wanted, dict)
    assert isinstance(partitions, dict)
    print(f"\n{'partition':>9} {'acknowledged':>13} {'rows':>10} {'offsets':>10} {'last':>10}")
    for partition, count in sorted(wanted.items()):
        rows, offsets, _, last = partitions.get(str(partition), [0, 0, 0, -1])
        print(f"{partition:>9} {count:>13,} {rows:>10,} {offsets:>10,} {last:>10,}")


def main() -> int:
    """Run and judge."""
    parser = argparse.ArgumentParser(prog="make ingest-kills")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--sink", choices=("parquet", "delta"), default="parquet")
    parser.add_argument("--connector", choices=("kraftwire", "kafka"), default="kraftwire")
    parser.add_argument("--partitions", type=int, default=4, help="before the topic grows by two")
    parser.add_argument("--per-trigger", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--python", default="", help="of driver and workers; for Delta one that has the wheel"
    )
    parser.add_argument("--keep", type=Path, help="a folder that stays")
    given = parser.parse_args()
    if not given.python:
        given.python = wheel_python() if given.sink == "delta" else sys.executable
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-kills-") as scratch:
        campaign = Campaign(given.keep or Path(scratch), given)
        found = campaign.run()
    wrong = faults(found, given.records)
    show(found)
    killed = ", ".join(f"{count} {kind}" for kind, count in sorted(campaign.killed.items()))
    seconds = time.monotonic() - began
    print(
        f"{given.connector} to {given.sink}: {given.records:,} records, {found['batches']} batches"
    )
    print(f"kill -9 of {killed}; the verb was started {found['starts']} times; {seconds:.0f} s")
    for line in wrong:
        print(f"WRONG: {line}")
    print("every offset once" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
