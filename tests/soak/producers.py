"""Two real idempotent producers that remember every acknowledgement they were given.

Values are numbered, so a reader can tell what is missing, doubled or out of order.
"""

import threading
from dataclasses import dataclass, field

import confluent_kafka
import kafka

__all__ = ["Acknowledged", "ConfluentLoad", "KafkaPythonLoad"]

LINGER_MS = 2


@dataclass
class Acknowledged:
    """What a producer was promised: the offset of each value, per partition."""

    values: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """(partition, offset) → value."""
    failures: list[str] = field(default_factory=list)


@dataclass
class ConfluentLoad:
    """librdkafka with enable.idempotence, never giving up on a message."""

    bootstrap: str
    topic: str
    acknowledged: Acknowledged = field(default_factory=Acknowledged)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Produce on a thread until `finish`."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Stop producing, wait until everything is delivered."""
        self._stop.set()
        assert self._thread is not None
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self.acknowledged.failures.append("messages were still undelivered at the end")

    def _delivered(self, error: object, message: confluent_kafka.Message) -> None:
        if error is not None:
            self.acknowledged.failures.append(f"{message.value()!r}: {error}")
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        if offset >= 0:  # -1001: a retry whose first copy had been written; its offset is unknown
            self.acknowledged.values[(partition, offset)] = value

    def _run(self) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "linger.ms": LINGER_MS,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "log_level": 0,
                "queue.buffering.max.messages": 2000,
            }
        )
        number = 0
        while not self._stop.is_set():
            try:
                producer.produce(
                    self.topic, b"c%d" % number, partition=number % 3, on_delivery=self._delivered
                )
                number += 1
            except BufferError:
                producer.poll(0.05)
            if number % 50 == 0:
                producer.poll(0.002)
        producer.flush(60)


@dataclass
class KafkaPythonLoad:
    """kafka-python with enable_idempotence, one acknowledgement at a time."""

    bootstrap: str
    topic: str
    acknowledged: Acknowledged = field(default_factory=Acknowledged)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Produce on a thread until `finish`."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Stop producing, wait until everything is delivered."""
        self._stop.set()
        assert self._thread is not None
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            self.acknowledged.failures.append("messages were still undelivered at the end")

    def _run(self) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=LINGER_MS,
            delivery_timeout_ms=600_000,
            request_timeout_ms=5_000,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=100,
            retry_backoff_ms=20,
        )
        number = 0
        waiting = []
        while not self._stop.is_set():
            value = b"k%d" % number
            waiting.append((value, producer.send(self.topic, value, partition=number % 3)))
            number += 1
            if len(waiting) >= 200:
                self._collect(waiting)
        self._collect(waiting)
        producer.close(timeout=10)

    def _collect(self, waiting: list) -> None:
        for value, future in waiting:
            try:
                metadata = future.get(timeout=120)
            except kafka.errors.KafkaError as error:
                self.acknowledged.failures.append(f"{value!r}: {error!r}")
                continue
            if metadata.offset >= 0:
                self.acknowledged.values[(metadata.partition, metadata.offset)] = value
        waiting.clear()
