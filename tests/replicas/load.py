"""Real producers that number their records and remember what they were promised of each.

Records go to the partitions in turn, ten at a time, and so become batches; in each partition their
numbers rise. Three producers are idempotent, and begin anew with a new producer id now and then.
One is not; it may write a record twice, but not leave one out. What the clients themselves say of
producer ids, epochs and refused sequences is kept beside the nodes' logs.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message, Producer

PENDING, SOMEWHERE = -2, -1
"""In place of an offset: not acknowledged; acknowledged, but a retry whose first copy had been
written is not told where that is."""
LIFE = 20_000
"""Records of one producer id."""
BLOCK = 10
"""Records in a row that go to one partition."""
BURST = 40
"""Records that may be sent at the same moment when a producer keeps its pace."""
AT_ONCE = 500
PADDING_MAX = 160
FAILURES_MAX = 20


@dataclass(frozen=True)
class Kind:
    """One of the producers."""

    name: str
    is_idempotent: bool
    codec: str


KINDS = (
    Kind("idempotent", True, "none"),
    Kind("idempotent, lz4", True, "lz4"),
    Kind("idempotent, zstd", True, "zstd"),
    Kind("plain", False, "none"),
)


class Pace:
    """How many records each producer may have sent by now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._granted = 0.0
        self._a_second = 0.0
        self._since = time.monotonic()

    def set(self, a_second: float) -> None:
        """Go on at this many records a second, of each producer."""
        with self._lock:
            self._granted = self._now()
            self._a_second, self._since = a_second, time.monotonic()

    @property
    def granted(self) -> int:
        """The number by now."""
        with self._lock:
            return int(self._now()) // BURST * BURST

    def _now(self) -> float:
        return self._granted + self._a_second * (time.monotonic() - self._since)


class Load(threading.Thread):
    """One producer; what it was promised may be read once it has ended."""

    def __init__(
        self,
        number: int,
        bootstrap: str,
        topic: str,
        partitions: int,
        records: int,
        pace: Pace,
        log: Path,
    ) -> None:
        """`number` is its place in KINDS; `records` are all that it may send."""
        super().__init__(daemon=True)
        self.number = number
        self.kind = KINDS[number]
        self.partitions = partitions
        self._topic = topic
        self.sent = 0
        self.acknowledged = 0
        self.offsets = array("q", [PENDING]) * records
        """By number of the record."""
        self.failures: list[str] = []
        self._settings = _settings(self.kind, bootstrap)
        self._log = log
        self._records = records
        self._pace = pace
        self._ends = threading.Event()
        self._given_up = threading.Event()
        padding = random.Random(number)
        self._padding = [b"x" * padding.randrange(PADDING_MAX) for _ in range(97)]

    def run(self) -> None:
        """Send what may be sent until all is sent, or the end is wanted; then flush."""
        told = _handler(self._log)
        try:
            self._send_all(told)
        except Exception as problem:  # noqa: BLE001  # a thread that ends unseen would prove nothing
            self._fail(f"it ended: {problem!r}")
        finally:
            told.close()

    def _send_all(self, told: logging.Handler) -> None:
        logger = logging.Logger(self.kind.name)
        logger.addHandler(told)
        while self._wants_more:
            producer = Producer(self._settings, logger=logger)
            last = min(self.sent + LIFE, self._records)
            self._send_up_to(producer, min(self.sent + self.partitions * BLOCK, last))
            self._send_up_to(producer, last)

    def _send_up_to(self, producer: Producer, last: int) -> None:
        """Send up to a number, and have it all acknowledged.

        A life begins with a block for each partition. Of a producer id that it does not know a
        broker takes any sequence first, of Apache's too, and librdkafka takes a batch that was
        refused as written when the next one is: where a leader moves between the first two, the
        first was acknowledged, and is nowhere.
        """
        while self.sent < last and self._wants_more:
            self._send(producer, min(last, self._pace.granted))
        while producer.flush(0.5) and not self._given_up.is_set():
            pass

    def finish(self, seconds_max: float) -> None:
        """Send no more, and wait until all that was sent is acknowledged."""
        self._ends.set()
        self.join(seconds_max)
        self._given_up.set()
        self.join(10)
        left = self.sent - self.acknowledged
        if left:
            self.failures.append(f"{left} records have no acknowledgement after {seconds_max} s")

    @property
    def left(self) -> int:
        """Records that are still to be sent."""
        return self._records - self.sent

    @property
    def _wants_more(self) -> bool:
        ended = self._ends.is_set() or self._given_up.is_set()
        return self.sent < self._records and not ended

    def _send(self, producer: Producer, last: int) -> None:
        last = min(last, self.sent + AT_ONCE)
        try:
            while self.sent < last:
                producer.produce(
                    self._topic,
                    value_of(self.number, self.sent, self._padding[self.sent % 97]),
                    partition=partition_of(self.sent, self.partitions),
                    on_delivery=self._delivered,
                )
                self.sent += 1
        except BufferError:
            pass  # brokers are away: wait for answers
        except KafkaException as fatal:
            self._fail(f"produce: {fatal}")
            self._given_up.set()
        producer.poll(0.02)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        _, number = parsed(message.value() or b"")
        if error is not None:
            if not self._given_up.is_set():
                self._fail(f"record {number} of partition {message.partition()}: {error}")
            return
        self.acknowledged += 1
        offset = message.offset()
        self.offsets[number] = SOMEWHERE if offset is None or offset < 0 else offset

    def _fail(self, failure: str) -> None:
        if len(self.failures) < FAILURES_MAX:
            self.failures.append(f"{time.strftime('%H:%M:%S')} {self.kind.name}: {failure}")


def partition_of(number: int, partitions: int) -> int:
    """Where a record goes."""
    return number // BLOCK % partitions


def numbers_in(partition: int, partitions: int, sent: int) -> Iterator[int]:
    """The records of a partition, in order."""
    for first in range(partition * BLOCK, sent, partitions * BLOCK):
        yield from range(first, min(first + BLOCK, sent))


def value_of(writer: int, number: int, padding: bytes) -> bytes:
    """A record's value: who wrote it, its number, and bytes that say nothing."""
    return b"%d:%d:%b" % (writer, number, padding)


def parsed(value: bytes) -> tuple[int, int]:
    """Writer and number of a value."""
    writer, number, _ = value.split(b":", 2)
    return int(writer), int(number)


def _settings(kind: Kind, bootstrap: str) -> dict[str, str | int | bool]:
    """Time limits are the client's own.

    A broker's answer has to wait until who died has left the ISR. With a limit below that it says
    that the time is up, though the batch is written; and where librdkafka takes a new producer
    epoch just then, because of another partition, it writes the batch again.
    """
    return {
        "bootstrap.servers": bootstrap,
        "client.id": kind.name,
        "acks": "all",
        "enable.idempotence": kind.is_idempotent,
        "compression.type": kind.codec,
        "message.timeout.ms": 0,
        "linger.ms": 10,
        "retry.backoff.ms": 50,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 500,
        "queue.buffering.max.messages": 20_000,
        "debug": "eos",
    }


def _handler(log: Path) -> logging.Handler:
    """Where librdkafka tells which epochs it takes, and why: nothing else tells a record that it
    wrote twice from one that a broker did.
    """
    handler = logging.FileHandler(log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    return handler
