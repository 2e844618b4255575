"""kafka-python as an adapter."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from tests.clients.python import security
from tests.clients.python.adapter import (
    LEADERS_MOVE,
    OPERATION_SECONDS,
    REPLICAS,
    SESSION_MS,
    AdminAdapter,
    Consumed,
    Member,
    Produced,
    Reader,
    gather,
)

POLL_MS = 2_000
"""3.0.12 forgets that it has joined a group where this ends between the answer of its SyncGroup and
its next look, which 200 did on a loaded machine: it then waits for partitions that it has."""


def poll(consumer: Any) -> list[Consumed]:
    """What one call hands out."""
    return [
        Consumed(record.partition, record.offset, record.value, record.key, list(record.headers))
        for records in consumer.poll(timeout_ms=POLL_MS).values()
        for record in records
    ]


class KafkaPythonMember(Member):
    """A subscribed consumer on a thread."""

    def __init__(self, consumer: Any, topic: str) -> None:
        super().__init__()
        self._consumer = consumer
        self._consumer.subscribe([topic])
        self._leaving = threading.Event()
        self._held: set[int] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
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


class KafkaPythonReader(Reader):
    """An assigned consumer of partition 0."""

    def __init__(self, consumer: Any, topic: str) -> None:
        self._consumer = consumer
        self._place = TopicPartition(topic, 0)
        self._consumer.assign([self._place])
        self._waiting: list[Consumed] = []

    def seek_to_beginning(self) -> None:
        self._waiting.clear()
        self._consumer.seek_to_beginning(self._place)

    def seek_to_end(self) -> None:
        self._waiting.clear()
        self._consumer.seek_to_end(self._place)
        self._consumer.position(self._place)

    def next(self) -> Consumed:
        if not self._waiting:
            self._waiting = gather(lambda: poll(self._consumer), 1)
        return self._waiting.pop(0)

    def close(self) -> None:
        self._consumer.close()


class KafkaPythonAdapter(AdminAdapter):
    """Producer, consumer and admin of kafka-python."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self._one_admin = self._new_admin()

    def _new_admin(self) -> Any:
        return KafkaAdminClient(bootstrap_servers=self.bootstrap, **security.kafka_python())

    @property
    def _admin(self) -> Any:
        """A client of its own for each request where the broker may restart that it picked first.

        It picks once whom to ask, and asks nobody else while that one is away.
        """
        if LEADERS_MOVE:
            self._one_admin.close()
            self._one_admin = self._new_admin()
        return self._one_admin

    def _consumer(self, group: str | None = None) -> Any:
        return KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            **security.kafka_python(),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=SESSION_MS,
        )

    def brokers(self) -> list[str]:
        found = self._admin.describe_cluster()["brokers"]
        return [f"{broker['host']}:{broker['port']}" for broker in found]

    def partitions(self, topic: str) -> int | None:
        for found in self._admin.describe_topics([topic]):
            if not found["error_code"]:
                return len(found["partitions"])
        return None

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        wanted = {"num_partitions": partitions, "replication_factor": REPLICAS}
        self._admin.create_topics({topic: {**wanted, "configs": configs}}, wait_for_metadata=True)

    def add_partitions(self, topic: str, total: int) -> None:
        self._admin.create_partitions({topic: total})

    def alter_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
        self._admin.alter_configs([resource])

    def describe_config(self, topic: str, key: str) -> str:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        found = self._admin.describe_configs([resource], config_filter="all")
        [by_name] = found.values()
        return str(by_name[topic][key]["value"])

    def delete_topic(self, topic: str) -> None:
        self._admin.delete_topics([topic])

    def produce(
        self,
        topic: str,
        records: Sequence[Produced],
        *,
        codec: str = "none",
        idempotent: bool = LEADERS_MOVE,
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap,
            **security.kafka_python(),
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            acks="all",
            linger_ms=5,
            max_request_size=2_000_000,
        )
        futures = [
            producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                partition=record.partition,
                timestamp_ms=record.timestamp_ms,
            )
            for record in records
        ]
        for future in futures:
            future.get(OPERATION_SECONDS)
        producer.close()

    def consume(self, topic: str, partitions: Sequence[int], count: int) -> list[Consumed]:
        consumer = self._consumer()
        consumer.assign([TopicPartition(topic, number) for number in partitions])
        found = gather(lambda: poll(consumer), count)
        consumer.close()
        return found

    def consume_in_group(self, topic: str, group: str, count: int) -> list[Consumed]:
        consumer = self._consumer(group)
        consumer.config["max_poll_records"] = count
        consumer.subscribe([topic])
        found = gather(lambda: poll(consumer), count)[:count]
        place = TopicPartition(topic, 0)
        consumer.seek(place, found[-1].offset + 1)
        consumer.commit()
        consumer.close()
        return found

    def member(self, topic: str, group: str) -> Member:
        return KafkaPythonMember(self._consumer(group), topic)

    def offset_for_timestamp(self, topic: str, timestamp_ms: int) -> int | None:
        consumer = self._consumer()
        place = TopicPartition(topic, 0)
        found = consumer.offsets_for_times({place: timestamp_ms})[place]
        consumer.close()
        return None if found is None else int(found.offset)

    def reader(self, topic: str) -> Reader:
        return KafkaPythonReader(self._consumer(), topic)


ADAPTER = KafkaPythonAdapter
