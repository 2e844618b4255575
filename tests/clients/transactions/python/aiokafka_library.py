"""aiokafka: its coroutines run on one event loop of a thread."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced

from tests.clients.python.aiokafka_adapter import LoopThread
from tests.clients.transactions.python.library import POLL_S, Library, Message, Reader, Session


async def _messages(consumer: Any, count: int, seconds: float) -> list[Message]:
    found = await consumer.getmany(timeout_ms=int(seconds * 1000), max_records=count)
    return [
        (record.partition, record.offset, record.value.decode())
        for records in found.values()
        for record in records
    ]


class _Reader(Reader):
    def __init__(self, thread: LoopThread, consumer: Any, places: list[TopicPartition]) -> None:
        self._thread, self._consumer = thread, consumer
        thread.wait(self._start(places))

    async def _start(self, places: list[TopicPartition]) -> None:
        self._consumer.assign(places)
        await self._consumer.start()
        await self._consumer.seek_to_beginning(*places)

    def poll(self) -> list[Message]:
        return self._thread.wait(_messages(self._consumer, 1_000, POLL_S))

    def close(self) -> None:
        self._thread.wait(self._consumer.stop())


class _Session(Session):
    def __init__(
        self, thread: LoopThread, producer: Any, consumer: Any, group: str | None, source: str
    ) -> None:
        self._thread, self._producer, self._consumer = thread, producer, consumer
        self._group, self._source = group, source
        thread.wait(self._start())

    async def _start(self) -> None:
        await self._producer.start()
        if self._consumer is not None:
            self._consumer.subscribe([self._source])
            await self._consumer.start()

    def begin(self) -> None:
        self._thread.wait(self._producer.begin_transaction())

    def send(self, topic: str, records: list[tuple[int, str]]) -> list[Message]:
        return self._thread.wait(self._send(topic, records))

    async def _send(self, topic: str, records: list[tuple[int, str]]) -> list[Message]:
        sent = [
            await self._producer.send(topic, value.encode(), partition=partition)
            for partition, value in records
        ]
        return [
            (partition, (await each).offset, value)
            for each, (partition, value) in zip(sent, records, strict=True)
        ]

    def poll(self, count: int) -> list[Message]:
        return self._thread.wait(_messages(self._consumer, count, 1.0))

    def send_offsets(self, moved: dict[int, int]) -> None:
        offsets = {TopicPartition(self._source, at): offset for at, offset in moved.items()}
        self._thread.wait(self._producer.send_offsets_to_transaction(offsets, self._group))

    def commit(self) -> None:
        self._thread.wait(self._producer.commit_transaction())

    def abort(self) -> None:
        self._thread.wait(self._abort())

    async def _abort(self) -> None:
        await self._producer.abort_transaction()
        if self._consumer is not None:
            for place in self._consumer.assignment():
                self._consumer.seek(place, await self._consumer.committed(place) or 0)

    def close(self) -> None:
        if self._consumer is not None:
            self._thread.wait(self._consumer.stop())


class AiokafkaLibrary(Library):
    """See the module."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._thread = LoopThread()

    def session(
        self, transactional_id: str, timeout_ms: int, group: str | None, source: str
    ) -> Session:
        producer = self._thread.wait(self._producer(transactional_id, timeout_ms))
        consumer = None
        if group is not None:
            consumer = self._thread.wait(self._consumer(group, "read_committed"))
        return _Session(self._thread, producer, consumer, group, source)

    async def _producer(self, transactional_id: str, timeout_ms: int) -> Any:
        return AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=5,
        )

    async def _consumer(self, group: str | None, isolation: str) -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=group,
            isolation_level=isolation,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
        )

    def reader(self, topic: str, partitions: int, isolation: str) -> Reader:
        places = [TopicPartition(topic, each) for each in range(partitions)]
        consumer = self._thread.wait(self._consumer(None, isolation))
        return _Reader(self._thread, consumer, places)

    def is_fatal(self, error: Exception) -> bool:
        return isinstance(error, ProducerFenced)


LIBRARY = AiokafkaLibrary
