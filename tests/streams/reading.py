"""A READ_COMMITTED reader of a topic of counts that keeps reading while brokers are killed."""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

__all__ = ["Reader"]

POLL_S = 0.1
BATCH = 2_000


def count_of(value: bytes) -> int:
    """A count as the application writes it: digits in its target, eight bytes in its store."""
    return int.from_bytes(value, "big") if value.startswith(b"\0") else int(value)


class Reader:
    """Keys and counts, those of a partition in its order."""

    def __init__(self, common: Mapping[str, object], topic: str, partitions: int) -> None:
        settings = {
            "group.id": "reading",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        self.found: list[tuple[str, int]] = []
        self._ended: set[int] = set()
        self._partitions = partitions
        self._consumer = Consumer({**common, **settings})
        places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)]
        self._consumer.assign(places)

    def advance(self) -> int:
        """Take what has come, and return how many counts there are."""
        for message in self._consumer.consume(BATCH, POLL_S):
            error, partition = message.error(), message.partition()
            if error is None:
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                self.found.append((key.decode(), count_of(value)))
                self._ended.discard(partition or 0)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ended.add(partition or 0)
        return len(self.found)

    def to_end(self, seconds_max: float) -> list[tuple[str, int]]:
        """All that is committed."""
        deadline = time.monotonic() + seconds_max
        while len(self._ended) < self._partitions:
            assert time.monotonic() < deadline, f"the end of {self._ended} alone was reached"
            self.advance()
        self.close()
        return self.found

    def close(self) -> None:
        """End it."""
        self._consumer.close()
