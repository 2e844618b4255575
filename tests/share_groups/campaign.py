"""Members of a share group read while brokers are killed; what they were given is judged.

GROUP-FACTS "Invariants": every record is delivered until it is accepted, an accepted one never
again, and delivery counts do not go back. A killed broker leads partitions and coordinates the
group or the state of its share partitions, so that all three move. The same campaign runs on a
cluster of ours and on Apache's.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from kraft_wire.client.cluster import ClusterClient, ClusterRefused, ClusterSettings
from kraft_wire.client.coordinator import GroupCoordinator
from kraft_wire.client.refused import AdminRefused
from kraft_wire.client.share_group_offsets import share_offsets
from tests.clients.cluster import BROKERS, Cluster
from tests.share_groups.drivers import DRIVERS, JAVA
from tests.share_groups.librdkafka import read_from_start
from tests.waiting import until

__all__ = ["SETTINGS", "Campaign", "Deliveries"]

GROUP = "shared"
PARTITIONS = 4
MEMBERS = 4
PATIENCE_S = 180.0
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "5000",
    "group.share.delivery.count.limit": "10",
    "group.share.min.heartbeat.interval.ms": "1000",
    "group.share.heartbeat.interval.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "6",
}


@dataclass
class Deliveries:
    """What the members have been given and have accepted, and what of it is wrong."""

    accepted: set[int] = field(default_factory=set)
    """Records whose acceptance was confirmed."""
    unconfirmed: set[int] = field(default_factory=set)
    """Records whose last acceptance may count: its answer was an error, or did not come."""
    counts: dict[int, int] = field(default_factory=dict)
    deliveries: int = 0
    wrong: list[str] = field(default_factory=list)

    def take(self, lines: Iterable[str]) -> None:
        """Judge the driver's lines as they come."""
        for line in lines:
            kind, *words = line.split()
            if kind == "d":
                self._delivered(*map(int, words))
            elif kind == "a":
                self._accepted(int(words[0]))
            else:
                self.unconfirmed.add(int(words[0]))

    @property
    def done(self) -> set[int]:
        """Records that need not come again."""
        return self.accepted | self.unconfirmed

    def _delivered(self, number: int, count: int) -> None:
        self.deliveries += 1
        if number in self.accepted:
            self.wrong.append(f"record {number} was accepted and is delivered again")
        if count < self.counts.get(number, 1):
            self.wrong.append(f"record {number}: delivery {count} after {self.counts[number]}")
        self.counts[number] = count
        self.unconfirmed.discard(number)

    def _accepted(self, number: int) -> None:
        if number in self.accepted:
            self.wrong.append(f"record {number} is accepted twice")
        self.accepted.add(number)


class Campaign:
    """One group on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        home: Path,
        *,
        seed: int = 1,
        client: str = JAVA,
        say: Callable[[str], None] = print,
    ) -> None:
        """`client` is one of `DRIVERS`."""
        self._cluster = cluster
        self._client = client
        self._words = [cluster.bootstrap, GROUP, str(MEMBERS), "1"]
        self._home = home
        self._random = random.Random(seed)
        self._say = say
        self._settings = ClusterSettings(tuple(cluster.bootstrap.split(",")))
        self._written: set[int] = set()
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "log_level": 0,
            }
        )
        self.seen = Deliveries()

    def run(self, kills: int, records_a_round: int) -> Deliveries:
        """Kill brokers in turn, and wait until every record is accepted."""
        self._cluster.create_topic(GROUP, PARTITIONS)
        read_from_start(AdminClient({"bootstrap.servers": self._cluster.bootstrap}), GROUP)
        with (
            (self._home / "driver.log").open("wb") as log,
            subprocess.Popen(
                [*DRIVERS[self._client](), *self._words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            ) as driver,
        ):
            assert driver.stdout is not None
            reader = threading.Thread(target=self.seen.take, args=(driver.stdout,))
            reader.start()
            try:
                for number in range(kills):
                    self._round(number, records_a_round)
                self._write(records_a_round)
                self._await(lambda: self._written <= self.seen.done, "the rest")
                self._await(lambda: self._lag() == 0, "a lag is left")
            finally:
                driver.communicate()
                reader.join()
        return self.seen

    def _round(self, number: int, records: int) -> None:
        before = len(self.seen.done)
        self._write(records)
        self._await(lambda: len(self.seen.done) > before, f"round {number} begins")
        node_id = BROKERS[number % len(BROKERS)]
        began = time.monotonic()
        self._cluster.kill_broker(node_id, self._random.uniform(0.0, 4.0))
        back_s = time.monotonic() - began
        self._await(lambda: self._written <= self.seen.done, f"broker {node_id} was killed")
        self._say(
            f"round {number}: broker {node_id} back after {back_s:.1f} s, all "
            f"{len(self.seen.done)} accepted after {time.monotonic() - began:.1f} s"
        )

    def _lag(self) -> int | None:
        """Records that are not final; None while a coordinator moves."""
        try:
            with (
                ClusterClient(self._settings) as client,
                GroupCoordinator(client, GROUP) as coordinator,
            ):
                lags = [each.lag for each in share_offsets(coordinator).values()]
        except (AdminRefused, ClusterRefused):
            return None
        known = [lag for lag in lags if lag is not None]
        return sum(known) if len(known) == PARTITIONS else None

    def _write(self, records: int) -> None:
        first = len(self._written)
        for number in range(first, first + records):
            self._producer.produce(GROUP, b"%d" % number, partition=number % PARTITIONS)
        left = self._producer.flush(PATIENCE_S)
        assert left == 0, f"{left} records are not acknowledged"
        self._written.update(range(first, first + records))

    def _await(self, is_so: Callable[[], bool], what: str) -> None:
        def problem() -> str:
            missing = sorted(self._written - self.seen.done)[:10]
            log = (self._home / "driver.log").read_text()[-2_000:]
            return f"{what}: not accepted {missing}, {self.seen.wrong[:3]}\n{log}"

        until(is_so, problem, seconds_max=PATIENCE_S, every_s=0.1)
