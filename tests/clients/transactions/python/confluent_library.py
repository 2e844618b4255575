"""confluent-kafka (librdkafka)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from tests.clients.transactions.python.library import POLL_S, Library, Message, Reader, Session

OPERATION_S = 60.0


def _messages(consumer: Consumer, count: int, seconds: float) -> list[Message]:
    found = []
    for message in consumer.consume(count, seconds):
        error = message.error()
        if error is None:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            found.append((partition, offset, (value or b"").decode()))
        elif error.fatal():
            raise KafkaException(error)
    return found


class _Reader(Reader):
    def __init__(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._consumer = consumer
        consumer.assign(places)

    def poll(self) -> list[Message]:
        return _messages(self._consumer, 1_000, POLL_S)

    def close(self) -> None:
        self._consumer.close()


class _Session(Session):
    def __init__(self, producer: Producer, consumer: Consumer | None, source: str) -> None:
        self._producer, self._consumer, self._source = producer, consumer, source
        if consumer is not None:
            consumer.subscribe([source])
        producer.init_transactions(OPERATION_S)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, records: Sequence[tuple[int, str]]) -> list[Message]:
        failed: list[KafkaError] = []
        placed: list[Message] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is not None:
                failed.append(error)
            else:
                value = message.value().decode()
                placed.append((message.partition(), message.offset(), value))

        for partition, value in records:
            self._producer.produce(topic, value, partition=partition, on_delivery=delivered)
        if self._producer.flush(2 * OPERATION_S):
            raise TimeoutError("records are not delivered")
        if failed:
            raise KafkaException(failed[0])
        return placed

    def poll(self, count: int) -> list[Message]:
        assert self._consumer is not None
        return _messages(self._consumer, count, 1.0)

    def send_offsets(self, moved: dict[int, int]) -> None:
        assert self._consumer is not None
        places = [TopicPartition(self._source, *place) for place in moved.items()]
        member = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(places, member, OPERATION_S)

    def commit(self) -> None:
        self._producer.commit_transaction(OPERATION_S)

    def abort(self) -> None:
        self._producer.abort_transaction(OPERATION_S)
        if self._consumer is not None:
            held = self._consumer.assignment()
            for place in self._consumer.committed(held, OPERATION_S) if held else []:
                if place.offset < 0:
                    place.offset = OFFSET_BEGINNING
                self._consumer.seek(place)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()


class ConfluentLibrary(Library):
    """See the module."""

    def session(
        self, transactional_id: str, timeout_ms: int, group: str | None, source: str
    ) -> Session:
        common: dict[str, Any] = {"bootstrap.servers": self.bootstrap, "log_level": 2}
        identity = {"transactional.id": transactional_id, "transaction.timeout.ms": timeout_ms}
        producer = Producer({**common, **identity, "linger.ms": 5})
        return _Session(producer, self._consumer(group), source)

    def _consumer(self, group: str | None, isolation: str = "read_committed") -> Consumer | None:
        if group is None:
            return None
        settings = {
            "bootstrap.servers": self.bootstrap,
            "log_level": 2,
            "group.id": group,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 1_000,
        }
        return Consumer(settings)

    def reader(self, topic: str, partitions: int, isolation: str) -> Reader:
        consumer = self._consumer("unused", isolation)
        assert consumer is not None
        places = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)]
        return _Reader(consumer, places)

    def is_fatal(self, error: Exception) -> bool:
        return isinstance(error, KafkaException) and bool(error.args[0].fatal())


LIBRARY = ConfluentLibrary
