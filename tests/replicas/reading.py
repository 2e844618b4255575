"""Real consumers: one that reads along while brokers die, and one that reads all back at the end.

What the first was shown is committed, so it must be there in the end, at the same offsets. It
starts at the beginning, goes on from where it is, and takes no offset that it did not ask for. It
may not be told that its place is out of range, or that the log was cut below it.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.replicas.load import parsed

_WRONG = (
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._LOG_TRUNCATION,
    KafkaError._BAD_MSG,
    KafkaError.INVALID_MSG,
)
PROBLEMS_MAX = 20
STILL_S = 60.0
"""With nothing to read for so long, whoever reads begins anew: no fault lasts half as long."""


@dataclass
class Stored:
    """A partition as it was read: one entry of each array an offset."""

    writers: array[int] = field(default_factory=lambda: array("b"))
    numbers: array[int] = field(default_factory=lambda: array("q"))
    checksums: array[int] = field(default_factory=lambda: array("L"))

    @property
    def end(self) -> int:
        """The offset behind the last record."""
        return len(self.checksums)

    def take(self, value: bytes) -> None:
        """Add the next record."""
        writer, number = parsed(value)
        self.writers.append(writer)
        self.numbers.append(number)
        self.checksums.append(crc32(value))


class Reader(threading.Thread):
    """Reads every partition along; `stored` may be read once it has ended.

    A consumer of librdkafka's was seen to come to a standstill: from one moment on it followed no
    leader that moved, of either make, while another one read all of it. So one that finds nothing
    is left where it is, and another goes on at its places: `begun_anew` says how often. It is the
    brokers' fault when that one finds nothing either, and then the end is not reached.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self.stored = {number: Stored() for number in range(partitions)}
        self.problems: list[str] = []
        self.begun_anew = 0
        self._servers = bootstrap
        self._topic = topic
        self._wanted: Mapping[int, int] | None = None
        self._deadline = float("inf")

    def run(self) -> None:
        """Read until the wanted end is reached."""
        try:
            self._read()
        except Exception as problem:  # noqa: BLE001  # a thread that ends unseen would prove nothing
            self._complain(f"who reads ended: {problem!r}")

    def _read(self) -> None:
        while not self._is_done:
            consumer = _consumer(self._servers, "reads-along")
            consumer.assign(
                [TopicPartition(self._topic, at, each.end) for at, each in self.stored.items()]
            )
            self._read_until_still(consumer)
            threading.Thread(target=consumer.close, daemon=True).start()
            self.begun_anew += not self._is_done

    def _read_until_still(self, consumer: Consumer) -> None:
        moved_at = time.monotonic()
        while not self._is_done and time.monotonic() < moved_at + STILL_S:
            for message in consumer.consume(1_000, timeout=0.2):
                error = message.error()
                if error is None:
                    moved_at = time.monotonic()
                    self._take(message.partition() or 0, message.offset() or 0, message.value())
                elif error.code() in _WRONG:
                    self._complain(f"{message.topic()}-{message.partition()}: {error}")

    def finish(self, ends: Mapping[int, int], seconds_max: float) -> None:
        """Read up to these offsets, and end."""
        self._deadline = time.monotonic() + seconds_max
        self._wanted = ends
        self.join(seconds_max + 10)
        behind = {at: each.end for at, each in self.stored.items() if each.end < ends[at]}
        if behind:
            self._complain(f"who read along is at {behind} of {dict(ends)} after {seconds_max} s")

    @property
    def _is_done(self) -> bool:
        ends = self._wanted
        if ends is None:
            return False
        is_there = all(each.end >= ends[number] for number, each in self.stored.items())
        return is_there or time.monotonic() > self._deadline

    def _take(self, partition: int, offset: int, value: bytes | None) -> None:
        stored = self.stored[partition]
        if offset != stored.end:
            self._complain(f"partition {partition} gives offset {offset} at {stored.end}")
        if offset == stored.end:
            stored.take(value or b"")

    def _complain(self, problem: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{time.strftime('%H:%M:%S')} {problem}")


def high_watermarks(bootstrap: str, topic: str, partitions: int) -> dict[int, int]:
    """Where each partition ends for clients; asked again while a new leader does not know."""
    consumer = _consumer(bootstrap, "asks-for-ends")
    found: dict[int, int] = {}
    deadline = time.monotonic() + 60
    while len(found) < partitions:
        number = len(found)
        try:
            place = TopicPartition(topic, number)
            _, found[number] = consumer.get_watermark_offsets(place, timeout=10)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
    consumer.close()
    return found


def read_back(bootstrap: str, topic: str, ends: Mapping[int, int]) -> dict[int, Stored]:
    """Read all partitions from the beginning to their ends."""
    reader = Reader(bootstrap, topic, len(ends))
    reader.start()
    reader.finish(ends, 300)
    assert not reader.problems, reader.problems
    return reader.stored


def _consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_uncommitted",
            "check.crcs": True,
            "fetch.wait.max.ms": 200,
            "fetch.error.backoff.ms": 100,
            "socket.timeout.ms": 10_000,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
