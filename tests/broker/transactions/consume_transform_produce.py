"""A consume-transform-produce loop of librdkafka: exactly once, aborts and errors included."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 3
PATIENCE_S = 60.0
ABORTED_EVERY = 5
"""Each transaction of this number is aborted, and its input read again."""


class Loop:
    """Numbers from one topic to another, ten records in a transaction."""

    def __init__(self, bootstrap: str, name: str, replicas: int = 1) -> None:
        self.source, self.target = f"{name}-in", f"{name}-out"
        self.aborts = self.commits = 0
        self._common: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 2}
        self._name = name
        topics = [NewTopic(each, PARTITIONS, replicas) for each in (self.source, self.target)]
        admin = AdminClient(self._common)
        for created in admin.create_topics(topics).values():
            created.result(PATIENCE_S)

    def fill(self, count: int) -> None:
        """Produce the numbers that are to be moved."""
        producer = Producer(self._common)
        for number in range(count):
            producer.produce(self.source, b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(PATIENCE_S) == 0

    def run(self, count: int) -> None:
        """Move all numbers; what fails is aborted, and done again."""
        reading = {"isolation.level": "read_committed", "enable.auto.commit": False}
        first = {"auto.offset.reset": "earliest", "group.id": self._name}
        self._consumer = Consumer({**self._common, **reading, **first})
        self._consumer.subscribe([self.source])
        identity = {"transactional.id": self._name, "transaction.timeout.ms": 120_000}
        self._producer = Producer({**self._common, **identity})
        self._producer.init_transactions(PATIENCE_S)
        until = time.monotonic() + 2 * PATIENCE_S
        while sum(self.committed()) < count:
            assert time.monotonic() < until, self.committed()
            messages = [each for each in self._consumer.consume(10, 1) if each.error() is None]
            if messages:
                self._transaction(messages)
        self._consumer.close()

    def committed(self) -> list[int]:
        """The offsets of the group."""
        places = [TopicPartition(self.source, each) for each in range(PARTITIONS)]
        return [max(each.offset, 0) for each in self._committed(places)]

    def _committed(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """Ask for committed offsets, again where librdkafka reports that the coordinator moved."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._consumer.committed(places, PATIENCE_S)
            except KafkaException:
                if time.monotonic() > until:
                    raise

    def _transaction(self, messages: list[Any]) -> None:
        try:
            self._producer.begin_transaction()
            for message in messages:
                value = message.value()
                self._producer.produce(self.target, value, partition=int(value) % PARTITIONS)
            if (self.commits + self.aborts) % ABORTED_EVERY == ABORTED_EVERY - 1:
                self._producer.flush(PATIENCE_S)
                self._abort()
                return
            positions = self._consumer.position(self._consumer.assignment())
            member = self._consumer.consumer_group_metadata()
            self._producer.send_offsets_to_transaction(positions, member, PATIENCE_S)
            self._producer.commit_transaction(PATIENCE_S)
            self.commits += 1
        except KafkaException as error:
            if error.args[0].fatal():
                raise
            self._abort()

    def _abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_S)
        self.aborts += 1
        for place in self._committed(self._consumer.assignment()):
            if place.offset < 0:
                place.offset = OFFSET_BEGINNING
            self._consumer.seek(place)

    def arrived(self, isolation_level: str) -> list[int]:
        """All numbers that a consumer finds in the target."""
        settings = {"group.id": f"{self._name}-{isolation_level}", "enable.partition.eof": True}
        level = {"isolation.level": isolation_level}
        consumer = Consumer({**self._common, **settings, **level})
        places = [TopicPartition(self.target, each, OFFSET_BEGINNING) for each in range(PARTITIONS)]
        consumer.assign(places)
        found, ended = [], 0
        while ended < PARTITIONS:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, (found, ended)
            if message.error() is None:
                found.append(int(message.value() or b""))
            else:
                ended += 1
        consumer.close()
        return sorted(found)
