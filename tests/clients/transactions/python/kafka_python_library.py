"""kafka-python."""

from __future__ import annotations

from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import ProducerFencedError
from kafka.structs import OffsetAndMetadata

from tests.clients.transactions.python.library import POLL_S, Library, Message, Reader, Session

OPERATION_S = 120


def _messages(consumer: Any, count: int, seconds: float) -> list[Message]:
    return [
        (record.partition, record.offset, record.value.decode())
        for records in consumer.poll(int(seconds * 1000), max_records=count).values()
        for record in records
    ]


class _Reader(Reader):
    def __init__(self, consumer: Any, places: list[TopicPartition]) -> None:
        self._consumer = consumer
        consumer.assign(places)
        consumer.seek_to_beginning(*places)

    def poll(self) -> list[Message]:
        return _messages(self._consumer, 1_000, POLL_S)

    def close(self) -> None:
        self._consumer.close()


class _Session(Session):
    def __init__(self, producer: Any, consumer: Any, source: str) -> None:
        self._producer, self._consumer, self._source = producer, consumer, source
        if consumer is not None:
            consumer.subscribe([source])
        producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, topic: str, records: list[tuple[int, str]]) -> list[Message]:
        sent = [self._producer.send(topic, value.encode(), partition=at) for at, value in records]
        self._producer.flush(OPERATION_S)
        return [
            (partition, each.get(OPERATION_S).offset, value)
            for each, (partition, value) in zip(sent, records, strict=True)
        ]

    def poll(self, count: int) -> list[Message]:
        return _messages(self._consumer, count, 2.0)

    def send_offsets(self, moved: dict[int, int]) -> None:
        offsets = {
            TopicPartition(self._source, at): OffsetAndMetadata(offset, "", -1)
            for at, offset in moved.items()
        }
        member = self._consumer.group_metadata()
        self._producer.send_offsets_to_transaction(offsets, member)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()
        if self._consumer is not None:
            for place in self._consumer.assignment():
                self._consumer.seek(place, self._consumer.committed(place) or 0)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._producer.close(0)


class KafkaPythonLibrary(Library):
    """See the module."""

    def session(
        self, transactional_id: str, timeout_ms: int, group: str | None, source: str
    ) -> Session:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap.split(","),
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=5,
        )
        consumer = None if group is None else self._consumer(group, "read_committed")
        return _Session(producer, consumer, source)

    def _consumer(self, group: str | None, isolation: str) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap.split(","),
            group_id=group,
            isolation_level=isolation,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
        )

    def reader(self, topic: str, partitions: int, isolation: str) -> Reader:
        places = [TopicPartition(topic, each) for each in range(partitions)]
        return _Reader(self._consumer(None, isolation), places)

    def is_fatal(self, error: Exception) -> bool:
        return isinstance(error, ProducerFencedError)


LIBRARY = KafkaPythonLibrary
