"""Feed a counting application, kill brokers and the application meanwhile, and judge its counts.

A round feeds a part of the records, kills a broker or the application by SIGKILL when the first of
these are counted, starts it again, and waits until the application has counted half of the part: so
no kill hits something that stands still. The same campaign runs on a cluster of ours and on
Apache's.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer

from tests.clients.cluster import BROKERS, REPLICAS, Cluster
from tests.streams.application import EXACTLY_ONCE, Application, Mode
from tests.streams.reading import Reader
from tests.streams.verdict import counted_again, lost_counts, wrong_counts, wrong_store

__all__ = ["SETTINGS", "Campaign", "Outcome"]

PARTITIONS = 4
KEYS = 100
PATIENCE_S = 180.0
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "1000",
    "group.streams.heartbeat.interval.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
"""For both makes: a killed broker's partitions have new leaders after three seconds, and a killed
application's members are missed after six."""


class NoProgress(AssertionError):
    """The application does not count what it was fed."""


@dataclass
class Outcome:
    """What a campaign has shown."""

    records: int = 0
    broker_kills: int = 0
    application_kills: int = 0
    seconds: float = 0.0
    slowest_round_s: float = 0.0
    again: int = 0
    """Records that were counted again, which at least once may do."""
    wrong: list[str] = field(default_factory=list)

    @property
    def is_green(self) -> bool:
        """Whether every count is exact."""
        return self.records > 0 and not self.wrong


class Campaign:
    """One application on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        home: Path,
        *,
        records: int,
        seed: int = 1,
        bootstrap: str = "",
        mode: Mode = EXACTLY_ONCE,
        say: Callable[[str], None] = print,
    ) -> None:
        """`bootstrap` is where clients find the cluster, if not at its brokers."""
        self._cluster = cluster
        self._records = records
        self._random = random.Random(seed)
        self._say = say
        self._fed: Counter[str] = Counter()
        self._source, self._target = "words", "counts"
        bootstrap = bootstrap or cluster.bootstrap
        self._application = Application(
            home, bootstrap, "counting", self._source, self._target, REPLICAS, mode
        )
        self._mode = mode
        self._common = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._producer = Producer({**self._common, "enable.idempotence": True, "linger.ms": 20})
        self.outcome = Outcome()

    def run(self, broker_kills: int, application_kills: int) -> Outcome:
        """Do all rounds, and judge."""
        began = time.monotonic()
        for topic in (self._source, self._target):
            self._cluster.create_topic(topic, PARTITIONS)
        self._reader = Reader(self._common, self._target, PARTITIONS)
        self._application.start()
        kills = ["broker"] * broker_kills + ["application"] * application_kills
        self._random.shuffle(kills)
        try:
            for number, what in enumerate(kills):
                self._round(number, what, self._records // len(kills))
            self._feed(self._records - self._fed.total())
            left = self._producer.flush(PATIENCE_S)
            assert left == 0, f"{left} records are not acknowledged"
            self._await(self._is_all_counted, "the rest")
            self._judge()
        finally:
            self._application.kill()
            self._reader.close()
        self.outcome.records = self._fed.total()
        self.outcome.seconds = round(time.monotonic() - began, 1)
        return self.outcome

    def _round(self, number: int, what: str, records: int) -> None:
        began = time.monotonic()
        before = self._fed.total()
        self._feed(records)
        self._await(lambda: self._counted() > before, f"round {number}, nobody is killed yet")
        time.sleep(self._random.uniform(0.0, 0.2))
        killed_at = self._counted()
        if what == "broker":
            node_id = BROKERS[number % len(BROKERS)]
            self._cluster.kill_broker(node_id, self._random.uniform(0.0, 5.0))
            self.outcome.broker_kills += 1
            what = f"broker {node_id}"
        else:
            self._application.kill()
            time.sleep(self._random.uniform(0.0, 2.0))
            self._application.start()
            self.outcome.application_kills += 1
        back = time.monotonic()
        most = self._fed.total() - records // 2
        self._await(lambda: self._counted() >= most, f"round {number}, {what} was killed")
        took = time.monotonic() - began
        self.outcome.slowest_round_s = round(max(took, self.outcome.slowest_round_s), 1)
        self._say(
            f"round {number}: {what} killed with {killed_at - before} of {records} counted, "
            f"back after {back - began:.1f} s, counted "
            f"{self._counted()} of {self._fed.total()} after {took:.1f} s"
        )

    def _feed(self, count: int) -> None:
        for _ in range(count):
            key = f"key-{self._random.randrange(KEYS)}"
            self._fed[key] += 1
            self._producer.produce(self._source, b"x", key)
            self._producer.poll(0)

    def _counted(self) -> int:
        """Counts that the application has committed."""
        return self._reader.advance()

    def _is_all_counted(self) -> bool:
        return self._counted() >= self._fed.total() and not lost_counts(
            self._fed, self._reader.found
        )

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if self._application.died or time.monotonic() > deadline:
                raise NoProgress(
                    f"{what}: {self._counted()} of {self._fed.total()} counted\n"
                    f"{self._application.text[-2000:]}\n{self._cluster.log.read_text()}"
                )

    def _judge(self) -> None:
        """The reader that was there all the time, one that comes now, and the store agree."""
        now = Reader(self._common, self._target, PARTITIONS).to_end(PATIENCE_S)
        self.outcome.again = counted_again(self._fed, now)
        if not self._mode.is_exact:
            self.outcome.wrong = lost_counts(self._fed, now)
            return
        changes = Reader(self._common, self._application.changelog, PARTITIONS)
        self.outcome.wrong = [
            *(f"read meanwhile: {each}" for each in wrong_counts(self._fed, self._reader.found)),
            *wrong_counts(self._fed, now),
            *wrong_store(self._fed, changes.to_end(PATIENCE_S)),
        ]
