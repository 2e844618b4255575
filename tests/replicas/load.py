"""Real producers that number their records and remember what they were promised of each.

Records go to the partitions in turn, ten at a time, and so become batches; in each partition their
numbers rise. Four of them are idempotent, and begin anew with a new producer id now and then. One
is not; it may write a record twice, but not leave one out. What the clients themselves say of
producer ids, epochs and refused sequences is kept beside the nodes' logs.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PENDING, SOMEWHERE = -2, -1
"""In place of an offset: not acknowledged; acknowledged, but a retry whose first copy had been
written is not told where that is."""
LIFE = 20_000
"""Records of one producer id, or of one for each partition."""
BLOCK = 10
"""Records in a row that go to one partition."""
BURST = 40
"""Records that may be sent at the same moment when a producer keeps its pace."""
PADDING_MAX = 160
FAILURES_MAX = 20


@dataclass(frozen=True)
class Kind:
    """One of the producers."""

    name: str
    codec: str
    is_apaches: bool = False
    is_idempotent: bool = True
    is_by_partition: bool = False
    """A producer of its own for each partition, with one request under way."""

    @property
    def may_repeat(self) -> bool:
        """Whether the client itself may write a record again, where no broker can know it.

        librdkafka takes a new epoch for all its partitions when a batch of one of them is refused
        because the one before it is not there, and then sends under that epoch whatever it has
        under way: a batch of another partition that was written, and whose leader dies before it
        says so, is there twice (librdkafka's issue 4953). With one partition and one request at a
        time it cannot: what is refused is then all that is under way, and not written. Apache's
        producer sends again what was under way under the epoch that it had.
        """
        return self.is_idempotent and not self.is_apaches and not self.is_by_partition


KINDS = (
    Kind("Apache's", "none", is_apaches=True),
    Kind("Apache's, zstd", "zstd", is_apaches=True),
    Kind("librdkafka, one for each partition, lz4", "lz4", is_by_partition=True),
    Kind("librdkafka, one for all partitions", "none"),
    Kind("librdkafka, not idempotent", "none", is_idempotent=False),
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


@dataclass(frozen=True)
class Order:
    """What a producer is to do."""

    number: int
    """Its place in KINDS."""
    bootstrap: str
    topic: str
    partitions: int
    records: int
    """All that it may send."""
    pace: Pace
    log: Path
    """For what the client says."""

    @property
    def kind(self) -> Kind:
        """Which producer it is."""
        return KINDS[self.number]


class Load(threading.Thread, ABC):
    """One producer; what it was promised may be read once it has ended."""

    def __init__(self, order: Order) -> None:
        super().__init__(daemon=True)
        self.order = order
        self.kind = order.kind
        self.sent = 0
        self.acknowledged = 0
        self.offsets = array("q", [PENDING]) * order.records
        """By number of the record."""
        self.failures: list[str] = []
        self._ends = threading.Event()
        self._given_up = threading.Event()

    def run(self) -> None:
        """Send what may be sent until all is sent, or the end is wanted; then flush."""
        try:
            self._send_all()
        except Exception as problem:  # noqa: BLE001  # a thread that ends unseen would prove nothing
            self._fail(f"it ended: {problem!r}")

    @abstractmethod
    def _send_all(self) -> None:
        """Send while more is wanted, and return when all is answered or given up."""

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
        return self.order.records - self.sent

    @property
    def _wants_more(self) -> bool:
        ended = self._ends.is_set() or self._given_up.is_set()
        return self.sent < self.order.records and not ended

    def _acknowledge(self, number: int, offset: int) -> None:
        """Remember a promise; the offset is negative where the client does not know it."""
        self.acknowledged += 1
        self.offsets[number] = SOMEWHERE if offset < 0 else offset

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


def value_of(writer: int, number: int) -> bytes:
    """A record's value: who wrote it, its number, and bytes that say nothing."""
    return b"%d:%d:%b" % (writer, number, b"x" * (number % PADDING_MAX))


def parsed(value: bytes) -> tuple[int, int]:
    """Writer and number of a value."""
    writer, number, _ = value.split(b":", 2)
    return int(writer), int(number)
