"""aiokafka as an adapter: its coroutines run on one event loop of a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaConnectionError, NodeNotReadyError

from tests.clients.python import security
from tests.clients.python.adapter import (
    LEADERS_MOVE,
    OPERATION_SECONDS,
    REPLICAS,
    AdminAdapter,
    Consumed,
    Member,
    Produced,
    Reader,
    ScenarioFailed,
    gather,
)

POLL_MS = 200
CONFIG_VALUE_FIELD = 1

T = TypeVar("T")


class LoopThread:
    """An event loop on a daemon thread, and a way to wait for a coroutine on it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(OPERATION_SECONDS * 2)


def plain(by_partition: dict[Any, list[Any]]) -> list[Consumed]:
    """What one call handed out, in the words of the scenarios."""
    return [
        Consumed(record.partition, record.offset, record.value, record.key, list(record.headers))
        for records in by_partition.values()
        for record in records
    ]


class AiokafkaMember(Member):
    """A subscribed consumer that a task polls."""

    def __init__(self, thread: LoopThread, consumer: Any, topic: str) -> None:
        super().__init__()
        self._thread = thread
        self._consumer = consumer
        self._topic = topic
        self._leaving = False
        self._task = asyncio.run_coroutine_threadsafe(self._run(), thread.loop)

    async def _run(self) -> None:
        self._consumer.subscribe([self._topic])
        await self._consumer.start()
        while not self._leaving:
            self.received.extend(plain(await self._consumer.getmany(timeout_ms=POLL_MS)))
        await self._consumer.stop()

    def assignment(self) -> set[int]:
        if self._task.done():
            self._task.result()
        return {place.partition for place in self._consumer.assignment()}

    def leave(self) -> None:
        self._leaving = True
        self._task.result(OPERATION_SECONDS)


class AiokafkaReader(Reader):
    """An assigned consumer of partition 0."""

    def __init__(self, thread: LoopThread, consumer: Any, topic: str) -> None:
        self._wait = thread.wait
        self._consumer = consumer
        self._place = TopicPartition(topic, 0)
        self._wait(self._start())

    async def _start(self) -> None:
        self._consumer.assign([self._place])
        await self._consumer.start()
        await self._consumer.position(self._place)

    def seek_to_beginning(self) -> None:
        self._wait(self._consumer.seek_to_beginning(self._place))

    def seek_to_end(self) -> None:
        self._wait(self._consumer.seek_to_end(self._place))
        self._wait(self._consumer.position(self._place))

    def next(self) -> Consumed:
        def poll() -> list[Consumed]:
            return plain(self._wait(self._consumer.getmany(timeout_ms=POLL_MS, max_records=1)))

        return gather(poll, 1)[0]

    def close(self) -> None:
        self._wait(self._consumer.stop())


class AiokafkaAdapter(AdminAdapter):
    """Producer, consumer and admin of aiokafka."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._thread = LoopThread()
        self._wait = self._thread.wait
        self._admin = self._wait(self._start_admin())

    async def _start_admin(self) -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap, **security.aiokafka())
        await admin.start()
        return admin

    def _asked(self, request: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """What a broker answers; the admin client picks one, and does not ask another one."""
        deadline = time.monotonic() + OPERATION_SECONDS
        while True:
            try:
                return self._wait(request(self._admin))
            except (NodeNotReadyError, KafkaConnectionError):
                if not LEADERS_MOVE or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    async def _consumer(self, group: str | None = None) -> Any:
        return AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            **security.aiokafka(),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=5000,
        )

    def brokers(self) -> list[str]:
        found = self._asked(lambda admin: admin.describe_cluster())["brokers"]
        return [f"{broker['host']}:{broker['port']}" for broker in found]

    def partitions(self, topic: str) -> int | None:
        if topic not in self._asked(lambda admin: admin.list_topics()):
            return None  # asking for it by name would create it: the client allows that
        for found in self._asked(lambda admin: admin.describe_topics([topic])):
            if not found["error_code"]:
                return len(found["partitions"])
        return None

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        wanted = NewTopic(topic, partitions, REPLICAS, topic_configs=configs)
        answer = self._asked(lambda admin: admin.create_topics([wanted]))
        expect_no_errors([entry[1] for entry in answer.topic_errors], "create_topics")

    def add_partitions(self, topic: str, total: int) -> None:
        answer = self._asked(lambda admin: admin.create_partitions({topic: NewPartitions(total)}))
        expect_no_errors([entry[1] for entry in answer.topic_errors], "create_partitions")

    def alter_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
        for answer in self._asked(lambda admin: admin.alter_configs([resource])):
            expect_no_errors([entry[0] for entry in answer.resources], "alter_configs")

    def describe_config(self, topic: str, key: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        for answer in self._asked(lambda admin: admin.describe_configs([resource])):
            for _, _, _, _, entries in answer.resources:
                for entry in entries:
                    if entry[0] == key:
                        return str(entry[CONFIG_VALUE_FIELD])
        raise ScenarioFailed(f"{key} is not in the described configs")

    def delete_topic(self, topic: str) -> None:
        answer = self._asked(lambda admin: admin.delete_topics([topic]))
        expect_no_errors([entry[1] for entry in answer.topic_error_codes], "delete_topics")

    def produce(
        self,
        topic: str,
        records: Sequence[Produced],
        *,
        codec: str = "none",
        idempotent: bool = LEADERS_MOVE,
    ) -> None:
        self._wait(self._produce(topic, records, codec, idempotent))

    async def _produce(
        self, topic: str, records: Sequence[Produced], codec: str, idempotent: bool
    ) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap,
            **security.aiokafka(),
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks="all",
            linger_ms=5,
            max_request_size=2_000_000,
        )
        await producer.start()
        acknowledgements = [
            await producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        await asyncio.gather(*acknowledgements)
        await producer.stop()

    def consume(self, topic: str, partitions: Sequence[int], count: int) -> list[Consumed]:
        return self._wait(self._consume(topic, partitions, count))

    async def _consume(self, topic: str, partitions: Sequence[int], count: int) -> list[Consumed]:
        consumer = await self._consumer()
        consumer.assign([TopicPartition(topic, number) for number in partitions])
        await consumer.start()
        found = await self._take(consumer, count)
        await consumer.stop()
        return found

    async def _take(self, consumer: Any, count: int) -> list[Consumed]:
        found: list[Consumed] = []
        async with asyncio.timeout(OPERATION_SECONDS):
            while len(found) < count:
                wanted = count - len(found)
                found += plain(await consumer.getmany(timeout_ms=POLL_MS, max_records=wanted))
        return found

    def consume_in_group(self, topic: str, group: str, count: int) -> list[Consumed]:
        return self._wait(self._consume_in_group(topic, group, count))

    async def _consume_in_group(self, topic: str, group: str, count: int) -> list[Consumed]:
        consumer = await self._consumer(group)
        consumer.subscribe([topic])
        await consumer.start()
        found = await self._take(consumer, count)
        await consumer.commit()
        await consumer.stop()
        return found

    def member(self, topic: str, group: str) -> Member:
        return AiokafkaMember(self._thread, self._wait(self._consumer(group)), topic)

    def offset_for_timestamp(self, topic: str, timestamp_ms: int) -> int | None:
        return self._wait(self._offset_for_timestamp(topic, timestamp_ms))

    async def _offset_for_timestamp(self, topic: str, timestamp_ms: int) -> int | None:
        consumer = await self._consumer()
        place = TopicPartition(topic, 0)
        await consumer.start()
        found = (await consumer.offsets_for_times({place: timestamp_ms}))[place]
        await consumer.stop()
        return None if found is None else int(found.offset)

    def reader(self, topic: str) -> Reader:
        return AiokafkaReader(self._thread, self._wait(self._consumer()), topic)


def expect_no_errors(codes: Sequence[int], what: str) -> None:
    """The admin client hands out error codes without raising."""
    if any(codes):
        raise ScenarioFailed(f"{what}: error codes {list(codes)}")


ADAPTER = AiokafkaAdapter
