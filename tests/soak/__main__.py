"""`python -m tests.soak [--cycles N] [--seed S] [--json]`: kill -9 under load from real clients.

Two idempotent producers write to topics of their own while the server is killed and started again
over the same directory. Afterwards everything is read back: each acknowledged value lies at its
offset, no value is there twice, and the numbers of each partition rise.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import confluent_kafka
from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.server_process import ServerProcess
from tests.soak.producers import Acknowledged, ConfluentLoad, KafkaPythonLoad

PARTITIONS = 3
DRAIN_S = 120.0


@dataclass
class Verdict:
    """What the reader found in one topic."""

    topic: str
    acknowledged: int
    stored: int
    lost: int
    duplicated: int
    out_of_order: int
    failures: int


def read_back(bootstrap: str, topic: str) -> dict[tuple[int, int], bytes]:
    """Return every record of a topic as (partition, offset) → value."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "audit", "enable.auto.commit": False}
    )
    stored: dict[tuple[int, int], bytes] = {}
    try:
        for partition in range(PARTITIONS):
            where = confluent_kafka.TopicPartition(topic, partition, 0)
            _, end = consumer.get_watermark_offsets(where, timeout=30)
            consumer.assign([where])
            position = 0
            while position < end:
                for message in consumer.consume(5000, timeout=10):
                    assert message.error() is None, message.error()
                    position = message.offset() + 1
                    stored[(partition, message.offset())] = message.value()
    finally:
        consumer.close()
    return stored


def judge(topic: str, promised: Acknowledged, stored: dict[tuple[int, int], bytes]) -> Verdict:
    """Hold what is stored against what was promised."""
    lost = sum(stored.get(where) != value for where, value in promised.values.items())
    counts = Counter(stored.values())
    out_of_order = 0
    last = dict.fromkeys(range(PARTITIONS), -1)
    for (partition, _), value in sorted(stored.items()):
        number = int(value[1:])
        out_of_order += number <= last[partition]
        last[partition] = number
    return Verdict(
        topic,
        len(promised.values),
        len(stored),
        lost,
        sum(count - 1 for count in counts.values()),
        out_of_order,
        len(promised.failures),
    )


def run(cycles: int, seed: int, folder: Path) -> list[Verdict]:
    """Kill and restart `cycles` times; return a verdict per topic."""
    draw = random.Random(seed)
    server = ServerProcess(folder, overrides={"num.partitions": str(PARTITIONS)})
    server.start()
    bootstrap = server.bootstrap
    loads: list[ConfluentLoad | KafkaPythonLoad] = [
        ConfluentLoad(bootstrap, "soak-confluent"),
        KafkaPythonLoad(bootstrap, "soak-kafka-python"),
    ]
    for load in loads:
        load.start()
    time.sleep(2.0)
    for _ in track(range(cycles), "kill -9", console=Console(stderr=True)):
        time.sleep(draw.uniform(0.05, 0.9))
        server.kill()
        server.start()
    for load in loads:
        load.finish(DRAIN_S)
    verdicts = [
        judge(load.topic, load.acknowledged, read_back(bootstrap, load.topic)) for load in loads
    ]
    for load in loads:
        for failure in load.acknowledged.failures[:5]:
            print(f"{load.topic}: {failure}", file=sys.stderr)
    server.stop()
    return verdicts


def main() -> int:
    """Return 0 when nothing was lost, doubled, reordered or refused."""
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--keep", type=Path, help="keep the data directory here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-soak-") as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        verdicts = run(arguments.cycles, arguments.seed, folder)
    bad = any(v.lost or v.duplicated or v.out_of_order or v.failures for v in verdicts)
    if arguments.json:
        print(json.dumps({"cycles": arguments.cycles, "topics": [asdict(v) for v in verdicts]}))
    else:
        table = Table(*asdict(verdicts[0]))
        for verdict in verdicts:
            table.add_row(*map(str, asdict(verdict).values()))
        Console(width=120).print(table)
        print(f"{arguments.cycles} cycles of kill -9, seed {arguments.seed}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
