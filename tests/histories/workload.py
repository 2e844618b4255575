"""Producers, movers and readers at work on a cluster, and the history of what they saw.

Producers send to a first topic, some transactions they abort; movers consume that, and send what
they made of it to a second topic, with the offsets in the same transaction; readers at
READ_COMMITTED follow both. Each works in a thread; producers and movers are drivers of any client.
Now and then a producer is replaced by a twin of the same id without a word.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.clients.registry import Client
from tests.clients.transactions.driver import ClientError, Driver, Record, Session
from tests.clients.transactions.running import Ground
from tests.histories.history import History, Outcome, Poll, Seen, Sent, Transaction

__all__ = ["Workload"]

PARTITIONS = 4
RECORDS_MAX = 8
ABORTED = 0.2
"""Of all transactions."""
TWINS = 0.03
PAUSE_S = 0.02
RECOVERY_S = 120.0
QUIET_MS = 3_000
TIMEOUT_MS = 20_000
SOURCE, TARGET = "first", "second"


class Workload:
    """Threads over a ground; see the module."""

    def __init__(self, ground: Ground, clients: Sequence[Client], seed: int = 1) -> None:
        self.history = History()
        self._ground = ground
        self._random = random.Random(seed)
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self.problems: list[str] = []
        """What ended a thread."""
        self._threads: list[threading.Thread] = []
        for client in clients:
            self._add(self._produce, client, f"{client.name}-producer")
            self._add(self._move, client, f"{client.name}-mover")
        for name in ("reader-1", "reader-2"):
            self._threads.append(threading.Thread(target=self._guarded, args=(self._read, name)))

    def _add(self, work: Callable[[Session, str], None], client: Client, name: str) -> None:
        def run(name: str) -> None:
            log = self._ground.home / f"{name}.log"
            with Driver(client.command(), self._ground.bootstrap, log) as driver:
                settings: dict[str, str] = {}
                if work == self._move:
                    settings = {"group": "movers", "source": SOURCE}
                session = Session(driver, name, id=name, timeout_ms=TIMEOUT_MS, **settings)
                self._again(session.open)
                work(session, name)

        self._threads.append(threading.Thread(target=self._guarded, args=(run, name)))

    def _guarded(self, work: Callable[[str], None], name: str) -> None:
        try:
            work(name)
        except Exception as error:  # noqa: BLE001  # told with the verdict
            self.problems.append(f"{name}: {type(error).__name__}: {error}"[:500])

    # -- its life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Create the topics, and let all begin."""
        for topic in (SOURCE, TARGET):
            self._ground.create(topic, PARTITIONS)
        for thread in self._threads:
            thread.start()

    def stop(self, client: Client) -> History:
        """End all of them, and have a client read everything once more."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        log = self._ground.home / "last-reader.log"
        with Driver(client.command(), self._ground.bootstrap, log) as driver:
            for topic in (SOURCE, TARGET):
                wanted = sum(
                    sent.partition.startswith(topic)
                    for each in self.history.transactions
                    if each.outcome is Outcome.COMMITTED
                    for sent in each.sent
                )
                found = driver.read(topic, PARTITIONS, wanted, quiet_ms=QUIET_MS)
                self.history.final += seen(topic, found)
        return self.history

    # -- those at work ---------------------------------------------------------------------------

    def _produce(self, session: Session, name: str) -> None:
        number = 0
        while not self._is_over.wait(PAUSE_S):
            number += 1
            count = self._random.randint(1, RECORDS_MAX)
            values = [f"{name}.{number}.{each}" for each in range(count)]
            self._transaction(session, Transaction(name, number), SOURCE, values)
            if self._random.random() < TWINS:
                self._again(session.open)

    def _move(self, session: Session, name: str) -> None:
        number = 0
        while not self._is_over.is_set():
            try:
                taken = session.poll(RECORDS_MAX)
            except ClientError as error:
                self._recover(session, error)
                continue
            if taken:
                number += 1
                values = [f"{name}.{number}<{value}" for _, _, value in taken]
                work = Transaction(name, number, moved=seen(SOURCE, taken))
                self._transaction(session, work, TARGET, values)

    def _transaction(
        self, session: Session, work: Transaction, topic: str, values: Sequence[str]
    ) -> None:
        records = [(self._random.randrange(PARTITIONS), value) for value in values]
        work.sent = [Sent(f"{topic}-{partition}", value) for partition, value in records]
        aborts = self._random.random() < ABORTED
        with self._lock:
            self.history.transactions.append(work)
        try:
            session.begin()
            placed = session.send(topic, records)
            offsets = {value: offset for _, offset, value in placed}
            work.sent = [Sent(s.partition, s.value, offsets.get(s.value)) for s in work.sent]
            if aborts:
                session.abort(with_offsets=True)
                work.outcome = Outcome.ABORTED
            else:
                work.ending_at = time.monotonic()
                session.commit()
                work.outcome = Outcome.COMMITTED
        except ClientError as error:
            if not work.ending_at:
                work.outcome = Outcome.ABORTED  # nobody has asked for a commit
            self._recover(session, error)

    def _recover(self, session: Session, error: ClientError) -> None:
        """Abort, or begin with a new producer of the same id."""
        if not error.is_fatal:
            try:
                return session.abort()
            except ClientError:
                pass
        self._again(session.open)

    def _again(self, step: Callable[[], None]) -> None:
        deadline = time.monotonic() + RECOVERY_S
        while True:
            try:
                return step()
            except ClientError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1.0)

    def _read(self, name: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._ground.bootstrap,
                "group.id": name,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        places = [
            TopicPartition(topic, each, OFFSET_BEGINNING)
            for topic in (SOURCE, TARGET)
            for each in range(PARTITIONS)
        ]
        consumer.assign(places)
        polls = self.history.polls[name] = []
        while not self._is_over.is_set():
            messages = [each for each in consumer.consume(500, 0.2) if each.error() is None]
            records = tuple(
                Seen(f"{m.topic()}-{m.partition()}", m.offset() or 0, (m.value() or b"").decode())
                for m in messages
            )
            if records:
                polls.append(Poll(records, time.monotonic()))
        consumer.close()


def seen(topic: str, records: Sequence[Record]) -> list[Seen]:
    """Records of a driver in a history's words."""
    return [Seen(f"{topic}-{partition}", offset, value) for partition, offset, value in records]
