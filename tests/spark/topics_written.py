"""Topics of a live broker with known records: every codec, nulls, headers, transactions."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SECONDS_MAX = 60
FIRST_MS = 1_700_000_000_000
FOREVER = {"retention.ms": "-1"}

Headers = list[tuple[str, bytes | None]] | None
Row = tuple[str, int, int, int, bytes | None, bytes | None, Headers]
"""Topic, partition, offset, timestamp in ms, key, value, headers."""


@dataclass
class LiveTopics:
    """Producers and administration of one broker; names are the test's own."""

    bootstrap: str
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap})

    @property
    def options(self) -> dict[str, str]:
        """What every query needs."""
        return {"kafka.bootstrap.servers": self.bootstrap}

    def create(self, prefix: str, partitions: int = 2, **config: str) -> str:
        """Make a topic with a name that no other has, and return it."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        named = {key.replace("_", "."): value for key, value in config.items()}
        wanted = [NewTopic(name, partitions, 1, config=FOREVER | named)]
        for made in self._admin.create_topics(wanted).values():
            made.result(SECONDS_MAX)
        return name

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        grown = self._admin.create_partitions([NewPartitions(topic, partitions)])
        for done in grown.values():
            done.result(SECONDS_MAX)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        for done in self._admin.delete_topics([topic]).values():
            done.result(SECONDS_MAX)

    def delete_before(self, topic: str, offset: int) -> None:
        """Delete the records of partition 0 below an offset."""
        place = TopicPartition(topic, 0, offset)
        for done in self._admin.delete_records([place]).values():
            done.result(SECONDS_MAX)

    def write(
        self, topic: str, count: int, *, partitions: int = 2, codec: str = "none", first: int = 0
    ) -> list[Row]:
        """Write records over the partitions; return them with their offsets."""
        written: list[Row] = []

        def acknowledged(headers: Headers, error: object, message: object) -> None:
            assert error is None, error
            place = (message.topic(), message.partition(), message.offset())
            content = (message.timestamp()[1], message.key(), message.value())
            written.append((*place, *content, headers))

        producer = self.producer(compression_type=codec, linger_ms=5)
        for number, (key, value, headers) in enumerate(_contents(first, count)):
            producer.produce(
                topic,
                value,
                key,
                number % partitions,
                timestamp=FIRST_MS + first + number,
                headers=headers,
                on_delivery=partial(acknowledged, headers),
            )
        assert producer.flush(SECONDS_MAX) == 0
        assert len(written) == count
        self.rows += written
        return written

    def transact(self, topic: str, *, abort: bool, count: int = 20) -> None:
        """Write a transaction to partition 0."""
        producer = self.producer(transactional_id=secrets.token_hex(4))
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        for number in range(count):
            producer.produce(topic, b"aborted" if abort else b"committed", b"%d" % number, 0)
        producer.flush(SECONDS_MAX)
        if abort:
            producer.abort_transaction(SECONDS_MAX)
        else:
            producer.commit_transaction(SECONDS_MAX)

    def open_transaction(self, topic: str) -> Producer:
        """Begin a transaction in partition 0 with one record, and leave it open."""
        producer = self.producer(transactional_id=secrets.token_hex(4))
        producer.init_transactions(SECONDS_MAX)
        producer.begin_transaction()
        producer.produce(topic, b"open", b"k", 0)
        producer.flush(SECONDS_MAX)
        return producer

    def producer(self, **settings: object) -> Producer:
        """A producer that waits for all replicas."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer({"bootstrap.servers": self.bootstrap, "acks": "all", **named})


def _contents(first: int, count: int) -> Iterator[tuple[bytes | None, bytes | None, Headers]]:
    for number in range(first, first + count):
        key = None if number % 7 == 0 else b"key-%d" % (number % 50)
        value = None if number % 11 == 0 else b"value-%d " % number * (1 + number % 9)
        headers: Headers = None
        if number % 5 == 0:
            headers = [("h", b"%d" % number), ("none", None), ("h", b"")]
        yield key, value, headers
