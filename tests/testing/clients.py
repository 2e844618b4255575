"""Records through real clients, as a user's test would send and read them."""

from __future__ import annotations

import uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer

PATIENCE_S = 30.0


def produce(servers: str, topic: str, *values: bytes, **settings: object) -> list[KafkaError]:
    """Produce with confluent-kafka; return the errors of the deliveries that failed."""
    failures: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, **settings})
    for value in values:
        producer.produce(
            topic, value, on_delivery=lambda error, _: failures.append(error) if error else None
        )
    left = producer.flush(PATIENCE_S)
    assert left == 0, "the deliveries take too long"
    return failures


def consume(servers: str, topic: str, count: int, **settings: object) -> list[bytes]:
    """Consume so many records from the beginning with confluent-kafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"group-{uuid.uuid4()}",  # noqa: TID251  # one of a test
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    try:
        while len(values) < count:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{len(values)} of {count} records have come"
            if message.error() is None:
                values.append(message.value())
    finally:
        consumer.close()
    return values


async def produce_async(servers: str, topic: str, *values: bytes, **settings: object) -> None:
    """Produce with aiokafka."""
    async with AIOKafkaProducer(bootstrap_servers=servers, **settings) as producer:
        for value in values:
            await producer.send_and_wait(topic, value)


async def consume_async(servers: str, topic: str, count: int, **settings: object) -> list[bytes]:
    """Consume so many records from the beginning with aiokafka."""
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=servers, auto_offset_reset="earliest", **settings
    ) as consumer:
        return [(await consumer.getone()).value for _ in range(count)]
