"""What an ingest is fed while it is killed: a topic that grows, written tranche after tranche.

Every value is a number that no other record has. The producer is idempotent, so a broker that is
killed meanwhile stores each record once, at the offset that the acknowledgement names.
"""

from __future__ import annotations

import threading
from collections import Counter

from confluent_kafka import KafkaError, KafkaException

from tests.spark.topics_written import LiveTopics

FLUSH_SECONDS_MAX = 300
QUEUE_MAX = 50_000


class Load(threading.Thread):
    """Writes up to `allowed` records; `acknowledged` counts them by partition."""

    def __init__(self, topics: LiveTopics, topic: str, records: int, partitions: int) -> None:
        super().__init__(daemon=True)
        self.acknowledged: Counter[int] = Counter()
        self.failure: BaseException | None = None
        self.partitions = partitions
        self._producer = topics.producer(
            enable_idempotence=True,
            linger_ms=20,
            compression_type="lz4",
            message_timeout_ms=FLUSH_SECONDS_MAX * 1000,
        )
        self._topic = topic
        self._records = records
        self._allowed = 0
        self._changed = threading.Condition()

    def allow(self, records: int) -> None:
        """Let it write so many in all."""
        with self._changed:
            self._allowed = min(records, self._records)
            self._changed.notify()

    def run(self) -> None:
        """Write until all is written and acknowledged."""
        try:
            for number in range(self._records):
                if number >= self._allowed:
                    self._wait(number)
                self._produce(number)
            left = self._producer.flush(FLUSH_SECONDS_MAX)
            assert left == 0, f"{left} records without an answer"
        except BaseException as problem:  # noqa: BLE001  # shown by whoever joins
            self.failure = problem

    def _wait(self, number: int) -> None:
        """Have everything so far acknowledged, then wait for leave to go on."""
        while True:
            self._producer.poll(0.05)
            with self._changed:
                if number < self._allowed:
                    return

    def _produce(self, number: int) -> None:
        partition, value = number % self.partitions, b"%d" % number
        while True:
            try:
                self._producer.produce(self._topic, value, None, partition, on_delivery=self._done)
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as problem:
                if problem.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                    raise
                self._producer.list_topics(self._topic, FLUSH_SECONDS_MAX)  # it has just grown
        if number % 1000 == 0:
            self._producer.poll(0)

    def _done(self, error: object, message: object) -> None:
        assert error is None, error
        self.acknowledged[message.partition()] += 1
