"""`python -m benchmarks.groups [--quick] [--only NAME] [--json]`: many groups beside Apache 4.3.1.

Both nodes run at once and take turns, as in `benchmarks.node`. 1,000 consumer groups (KIP-848) of
five members share a topic, and one group has 1,000 members. A rebalance is a member that leaves and
another that joins, until every member has what it shall have and the coordinator knows it; the
interval between assignments is 0 on both sides, because it would be all that is measured. Then
share consumers fetch and accept records, each request with the acknowledgements of the one before.
Memory is what the server process has more after the groups have come than before.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console

from benchmarks.bytecode import require_bytecode
from benchmarks.groups_load import Group, ShareConsumer, ask, connections, settle, share_rate
from benchmarks.node import (
    APACHE_FLAGS,
    Case,
    Row,
    Side,
    print_table,
    resident_bytes,
    run_case,
)
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tests.apache.node import ApacheNode
from tests.broker.groups.doors import SocketDoor
from tests.server_process import ServerProcess
from tests.share_groups.librdkafka import read_from_start

SMALL, BIG, SHARED = "bench-small", "bench-big", "bench-shared"
SMALL_PARTITIONS: Final = 10
SHARED_PARTITIONS: Final = 4
SHARED_RECORDS: Final = 400_000
MEMBERS: Final = 5
QUEUE: Final = {
    "queue.buffering.max.messages": 2 * SHARED_RECORDS,
    "log_level": 0,
    "batch.num.messages": 100,
}
SETTINGS: Final = {
    "group.consumer.max.session.timeout.ms": "3600000",
    "group.consumer.session.timeout.ms": "3600000",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.min.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.partition.max.record.locks": "10000",
    "group.share.max.partition.max.record.locks": "10000",
    "offsets.topic.num.partitions": "50",
    "log.segment.bytes": "1073741824",
}


class Groups:
    """The groups of one side."""

    def __init__(self, side: Side, groups: int, members: int) -> None:
        self._bootstrap = side.bootstrap
        self._serial = 0
        self.memory: dict[str, int] = {}
        """Resident bytes that came with the groups of a kind."""
        admin = AdminClient({"bootstrap.servers": side.bootstrap})
        self._admin = admin
        sizes = {SMALL: SMALL_PARTITIONS, BIG: members, SHARED: SHARED_PARTITIONS}
        topics = [NewTopic(name, size, 1) for name, size in sizes.items()]
        for created in admin.create_topics(topics).values():
            created.result(60)
        self._fill()
        self.small = [Group(f"small-{n}", SMALL, SMALL_PARTITIONS, MEMBERS) for n in range(groups)]
        self.big = [Group("big", BIG, members, members)]
        self._await_coordinators()
        for name, found in (("small", self.small), ("big", self.big)):
            before = resident_bytes(side.pid)
            with connections(self._bootstrap) as opened:
                settle(opened, found)
            self.memory[name] = resident_bytes(side.pid) - before

    def rebalances(self, groups: list[Group], seconds: float) -> float:
        """Return the rebalances per second: in each group a member is replaced."""
        done, begun = 0, time.perf_counter()
        with connections(self._bootstrap) as opened:
            while done == 0 or time.perf_counter() - begun < seconds:
                leaving = [each.leave() for each in groups]
                for answer in ask(opened, leaving, ConsumerGroupHeartbeatResponse):
                    assert answer.error_code == 0, answer
                for each in groups:
                    each.join()
                settle(opened, groups)
                done += len(groups)
        return done / (time.perf_counter() - begun)

    def heartbeats(self, seconds: float) -> float:
        """Return the heartbeats per second of members at rest."""
        done, begun = 0, time.perf_counter()
        with connections(self._bootstrap) as opened:
            while time.perf_counter() - begun < seconds:
                requests = [request for group in self.small for request in group.beats()]
                for answer in ask(opened, requests, ConsumerGroupHeartbeatResponse):
                    assert answer.error_code == 0, answer
                done += len(requests)
        return done / (time.perf_counter() - begun)

    def shares(self, members: int, seconds: float) -> float:
        """Return the records per second of a new share group that reads from the start."""
        self._serial += 1
        group = f"shared-{members}-{self._serial}"
        read_from_start(self._admin, group)
        with connections(self._bootstrap, members) as opened:
            consumers = [
                ShareConsumer(node, group, f"{group}-{number}", SHARED)
                for number, node in enumerate(opened)
            ]
            topic_id = self._joined(consumers)
            topic = (topic_id, list(range(SHARED_PARTITIONS)))
            return share_rate(consumers, topic, SHARED_RECORDS, seconds)

    def _joined(self, consumers: list[ShareConsumer]) -> Uuid:
        """Wait until every share partition has been initialised and assigned."""
        assigned: set[int] = set()
        deadline = time.monotonic() + 60
        while len(assigned) < SHARED_PARTITIONS:
            assert time.monotonic() < deadline, assigned
            for each in consumers:
                found = each.join()
                if found is not None:
                    topic_id, partitions = found
                    assigned.update(partitions)
        return topic_id

    def _fill(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20, **QUEUE})
        for number in range(SHARED_RECORDS):
            producer.produce(SHARED, b"v" * 100, partition=number % SHARED_PARTITIONS)
            if number % 1_000 == 0:
                producer.poll(0)
        assert producer.flush(60) == 0

    def _await_coordinators(self) -> None:
        """Wait until the coordinators of all groups have loaded."""
        with closing(SocketDoor(self._bootstrap)) as door:
            door.await_coordinator(*(each.name for each in (*self.small, *self.big)))


def cases(by_bootstrap: dict[str, Groups]) -> list[Case]:
    """The rows."""

    def on(measure: Callable[[Groups, float], float]) -> Callable[[str, float], float]:
        return lambda bootstrap, seconds: measure(by_bootstrap[bootstrap], seconds)

    rows = [
        Case("groups of 5, heartbeats", "/s", 1.0, on(Groups.heartbeats)),
        Case("groups of 5, rebalances", "/s", 1.0, on(lambda g, s: g.rebalances(g.small, s))),
        Case("group of 1,000, rebalances", "/s", 1.0, on(lambda g, s: g.rebalances(g.big, s))),
    ]
    for members in (1, 8, 64):
        name = f"share fetch and accept, {members}"
        rows.append(Case(name, "records/s", 1.0, on(partial(_shares, members))))
    return rows


def _shares(members: int, groups: Groups, seconds: float) -> float:
    return groups.shares(members, seconds)


def measure_all(arguments: argparse.Namespace, folder: Path) -> tuple[list[Row], dict[str, object]]:
    """Start both nodes and run the chosen cases."""
    rounds, seconds = (2, 2.0) if arguments.quick else (5, 4.0)
    server = ServerProcess(folder / "ours", overrides=SETTINGS)
    server.directory.mkdir()
    apache = ApacheNode(folder / "apache", overrides=SETTINGS, heap_mb=1024, flags=APACHE_FLAGS)
    with server, apache:
        sides = (
            Side("ours", server.bootstrap, server.pid),
            Side("apache", apache.bootstrap, apache.pid),
        )
        found = {
            side.bootstrap: Groups(side, arguments.groups, arguments.members) for side in sides
        }
        rows = []
        for case in cases(found):
            if arguments.only is None or arguments.only in case.name:
                rows.append(run_case(case, sides, rounds, seconds))
                print(rows[-1], file=sys.stderr, flush=True)
        memory: dict[str, object] = {side.name: found[side.bootstrap].memory for side in sides}
    console = Console(width=140, stderr=arguments.json, markup=False, highlight=False)
    print_table(rows, rounds, seconds, console)
    console.print(f"resident bytes that came with the groups: {memory}")
    return rows, memory


def main() -> int:
    """Print the table; return 0 also where a ratio is short of its goal: figures are not gates."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups")
    parser.add_argument("--quick", action="store_true", help="two short rounds")
    parser.add_argument("--only", help="cases whose name contains this text")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--members", type=int, default=1_000, help="of the large group")
    arguments = parser.parse_args()
    require_bytecode()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-bench-") as folder:
        rows, memory = measure_all(arguments, Path(folder))
    if arguments.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "memory": memory}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
