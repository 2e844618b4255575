"""What a client sees of a replicated cluster: librdkafka's producer with acks=all."""

import time
from collections.abc import Iterable
from itertools import cycle, islice

from confluent_kafka import KafkaError, Message, Producer

__all__ = ["LOAD_PARTITIONS", "VALUE_BYTES", "AckedProducer", "latencies", "send"]

VALUE_BYTES = 1024
LOAD_PARTITIONS = 6
LATENCY_PACE_S = 0.004
"""From one record to the next where latency is measured: no queue, whoever is asked."""
FLUSH_SECONDS_MAX = 120
_SETTINGS = {
    "acks": "all",
    "log_level": 0,
    "message.timeout.ms": 120_000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
}
"""Back-offs so short that what is measured is the cluster."""


class AckedProducer:
    """A producer that notes when each record was acknowledged; an error of any ends the run."""

    def __init__(self, bootstrap: str, *, linger_ms: float) -> None:
        settings = {"linger.ms": linger_ms, "queue.buffering.max.messages": 100_000}
        self._producer = Producer({"bootstrap.servers": bootstrap, **_SETTINGS, **settings})
        self.acknowledged = 0
        self.latencies_s: list[float] = []

    def send(self, topic: str, partition: int, value: bytes, *, is_timed: bool = False) -> bool:
        """Hand a record over; False where the queue is full."""
        sent = time.perf_counter()

        def told(error: KafkaError | None, message: Message) -> None:
            assert error is None, f"{message.topic()}-{message.partition()}: {error}"
            self.acknowledged += 1
            if is_timed:
                self.latencies_s.append(time.perf_counter() - sent)

        try:
            self._producer.produce(topic, value, partition=partition, on_delivery=told)
        except BufferError:
            return False
        return True

    def poll(self, seconds: float) -> None:
        """Hear of acknowledgements for so long at most."""
        self._producer.poll(seconds)

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        left = self._producer.flush(FLUSH_SECONDS_MAX)
        assert not left, f"{left} records are not acknowledged within {FLUSH_SECONDS_MAX} s"

    def first_in_each(self, topic: str, partitions: Iterable[int]) -> None:
        """Return when a record is acknowledged in each of these partitions."""
        for partition in partitions:
            assert self.send(topic, partition, b"first")
        self.flush()


def send(producer: AckedProducer, topic: str, seconds: float) -> tuple[int, float]:
    """Send records of 1 KiB as fast as they are taken, each acknowledged by the whole ISR.

    Return how many were, and the seconds until the last of them was.
    """
    value, partitions = b"v" * VALUE_BYTES, cycle(range(LOAD_PARTITIONS))
    begun, before = time.perf_counter(), producer.acknowledged
    while time.perf_counter() - begun < seconds:
        for partition in islice(partitions, 500):
            if not producer.send(topic, partition, value):
                producer.poll(0.01)
        producer.poll(0)
    producer.flush()
    return producer.acknowledged - before, time.perf_counter() - begun


def latencies(bootstrap: str, topic: str, seconds: float) -> list[float]:
    """How long each record of 1 KiB took from hand-over to acknowledgement, in seconds; paced."""
    producer = AckedProducer(bootstrap, linger_ms=0)
    producer.first_in_each(topic, range(LOAD_PARTITIONS))
    value, begun, number = b"v" * VALUE_BYTES, time.perf_counter(), 0
    while (now := time.perf_counter()) - begun < seconds:
        due = begun + number * LATENCY_PACE_S
        if now >= due:
            producer.send(topic, number % LOAD_PARTITIONS, value, is_timed=True)
            number += 1
        else:
            producer.poll(due - now)
    producer.flush()
    return producer.latencies_s
