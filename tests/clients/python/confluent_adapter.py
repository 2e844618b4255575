"""confluent-kafka (librdkafka) as an adapter."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.clients.python import security
from tests.clients.python.adapter import (
    GROUP_PROTOCOL,
    LEADERS_MOVE,
    OPERATION_SECONDS,
    REPLICAS,
    SESSION_MS,
    AdminAdapter,
    Consumed,
    Member,
    Produced,
    Reader,
    ScenarioFailed,
    gather,
)

POLL_SECONDS = 0.2


def consumed(message: Message) -> Consumed:
    """A message in the words of the scenarios."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or []
    return Consumed(partition, offset, message.value(), message.key(), list(headers))


def poll(consumer: Consumer) -> list[Consumed]:
    """What one call hands out; errors that a user would see are raised."""
    found = []
    for message in consumer.consume(500, timeout=POLL_SECONDS):
        error = message.error()
        if error is None:
            found.append(consumed(message))
        elif error.code() not in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
            raise KafkaException(error)
    return found


class ConfluentMember(Member):
    """A subscribed consumer on a thread."""

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        super().__init__()
        self._consumer = Consumer(settings)
        self._consumer.subscribe([topic])
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._held: set[int] = set()
        self._thread.start()

    def _run(self) -> None:
        while not self._leaving.is_set():
            self.received.extend(poll(self._consumer))
            self._held = {place.partition for place in self._consumer.assignment()}
        self._consumer.close()

    def assignment(self) -> set[int]:
        return self._held

    def leave(self) -> None:
        self._leaving.set()
        self._thread.join(OPERATION_SECONDS)


class ConfluentReader(Reader):
    """An assigned consumer of partition 0."""

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self._consumer = Consumer(settings)
        self._topic = topic
        self._waiting: list[Consumed] = []

    def _assign(self, offset: int) -> None:
        self._waiting.clear()
        self._consumer.assign([TopicPartition(self._topic, 0, offset)])

    def seek_to_beginning(self) -> None:
        _, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, 0))
        assert high > 0
        self._assign(0)

    def seek_to_end(self) -> None:
        place = TopicPartition(self._topic, 0)
        _, high = self._consumer.get_watermark_offsets(place, timeout=OPERATION_SECONDS)
        self._assign(high)

    def next(self) -> Consumed:
        if not self._waiting:
            self._waiting = gather(lambda: poll(self._consumer), 1)
        return self._waiting.pop(0)

    def close(self) -> None:
        self._consumer.close()


class ConfluentAdapter(AdminAdapter):
    """Producer, consumer and admin of confluent-kafka."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, **security.confluent()})

    def _consumer_settings(self, group: str = "unused") -> dict[str, Any]:
        protocol: dict[str, Any] = {"session.timeout.ms": SESSION_MS}
        if GROUP_PROTOCOL != "classic":
            protocol = {"group.protocol": GROUP_PROTOCOL}
        return {
            "bootstrap.servers": self.bootstrap,
            **security.confluent(),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **protocol,
        }

    def brokers(self) -> list[str]:
        try:
            found = self._admin.list_topics(timeout=OPERATION_SECONDS).brokers
        finally:
            self._admin.poll(0)  # runs the error callback
        return [f"{broker.host}:{broker.port}" for broker in found.values()]

    def partitions(self, topic: str) -> int | None:
        found = self._admin.list_topics(timeout=OPERATION_SECONDS).topics.get(topic)
        return None if found is None else len(found.partitions)

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        wanted = NewTopic(topic, partitions, REPLICAS, config=configs)
        self._admin.create_topics([wanted])[topic].result(OPERATION_SECONDS)

    def add_partitions(self, topic: str, total: int) -> None:
        wanted = NewPartitions(topic, total)
        self._admin.create_partitions([wanted])[topic].result(OPERATION_SECONDS)

    def alter_config(self, topic: str, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(OPERATION_SECONDS)

    def describe_config(self, topic: str, key: str) -> str:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        for future in self._admin.describe_configs([resource]).values():
            entry = future.result(OPERATION_SECONDS)[key]
            return str(entry.value)
        raise ScenarioFailed("no answer to describe configs")

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result(OPERATION_SECONDS)

    def produce(
        self,
        topic: str,
        records: Sequence[Produced],
        *,
        codec: str = "none",
        idempotent: bool = LEADERS_MOVE,
    ) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                **security.confluent(),
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "linger.ms": 5,
                "message.max.bytes": 2_000_000,
            }
        )
        failures: list[str] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(f"{error} for a record of {message.topic()}")

        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                -1 if record.partition is None else record.partition,
                headers=list(record.headers),
                timestamp=record.timestamp_ms or 0,
                on_delivery=delivered,
            )
        left = producer.flush(OPERATION_SECONDS)
        if left or failures:
            raise ScenarioFailed(f"{left} records not delivered; {failures[:1]}")

    def consume(self, topic: str, partitions: Sequence[int], count: int) -> list[Consumed]:
        consumer = Consumer(self._consumer_settings())
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found = gather(lambda: poll(consumer), count)
        consumer.close()
        return found

    def consume_in_group(self, topic: str, group: str, count: int) -> list[Consumed]:
        consumer = Consumer(self._consumer_settings(group))
        consumer.subscribe([topic])
        found = gather(lambda: poll(consumer), count)[:count]
        committed = TopicPartition(topic, 0, found[-1].offset + 1)
        consumer.commit(offsets=[committed], asynchronous=False)
        consumer.close()
        return found

    def member(self, topic: str, group: str) -> Member:
        return ConfluentMember(self._consumer_settings(group), topic)

    def offset_for_timestamp(self, topic: str, timestamp_ms: int) -> int | None:
        consumer = Consumer(self._consumer_settings())
        place = TopicPartition(topic, 0, timestamp_ms)
        [found] = consumer.offsets_for_times([place], timeout=OPERATION_SECONDS)
        consumer.close()
        return None if found.offset < 0 else found.offset

    def reader(self, topic: str) -> Reader:
        return ConfluentReader(self._consumer_settings(), topic)


ADAPTER = ConfluentAdapter
