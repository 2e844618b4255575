"""Producers of librdkafka's, through its Python client."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.replicas.load import BLOCK, LIFE, Load, Order, parsed, partition_of, value_of

AT_ONCE = 500
FLUSH_S = 0.5
POLL_S = 0.02


class LibrdkafkaLoad(Load):
    """One producer for all partitions, or one for each of them."""

    def __init__(self, order: Order) -> None:
        super().__init__(order)
        self._settings = _settings(order)

    def _send_all(self) -> None:
        told = _handler(self.order)
        logger = logging.Logger(self.kind.name)
        logger.addHandler(told)
        order, number = self.order, self.order.partitions if self.kind.is_by_partition else 1
        try:
            while self._wants_more:
                producers = [Producer(self._settings, logger=logger) for _ in range(number)]
                last = min(self.sent + LIFE, order.records)
                self._send_up_to(producers, min(self.sent + order.partitions * BLOCK, last))
                self._send_up_to(producers, last)
        finally:
            told.close()

    def _send_up_to(self, producers: Sequence[Producer], last: int) -> None:
        """Send up to a number, and have it all acknowledged.

        A life begins with a block for each partition. Of a producer id that it does not know a
        broker takes any sequence first, of Apache's too, and librdkafka takes a batch that was
        refused as written when the next one is: where a leader moves between the first two, the
        first was acknowledged, and is nowhere.
        """
        while self.sent < last and self._wants_more:
            self._send(producers, min(last, self.order.pace.granted))
        for producer in producers:
            while producer.flush(FLUSH_S) and not self._given_up.is_set():
                pass

    def _send(self, producers: Sequence[Producer], last: int) -> None:
        order, last = self.order, min(last, self.sent + AT_ONCE)
        try:
            while self.sent < last:
                partition = partition_of(self.sent, order.partitions)
                producers[partition % len(producers)].produce(
                    order.topic,
                    value_of(order.number, self.sent),
                    partition=partition,
                    on_delivery=self._delivered,
                )
                self.sent += 1
        except BufferError:
            pass  # brokers are away: wait for answers
        except KafkaException as fatal:
            self._fail(f"produce: {fatal}")
            self._given_up.set()
        for producer in producers:
            producer.poll(POLL_S / len(producers))

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        _, number = parsed(message.value() or b"")
        if error is None:
            offset = message.offset()
            self._acknowledge(number, -1 if offset is None else offset)
        elif not self._given_up.is_set():
            self._fail(f"record {number} of partition {message.partition()}: {error}")


def _settings(order: Order) -> dict[str, str | int | bool]:
    """Time limits are the client's own.

    A broker's answer has to wait until who died has left the ISR. With a limit below that it says
    that the time is up, though the batch is written; and where librdkafka takes a new producer
    epoch just then, because of another partition, it writes the batch again.
    """
    kind = order.kind
    return {
        "bootstrap.servers": order.bootstrap,
        "client.id": kind.name,
        "acks": "all",
        "enable.idempotence": kind.is_idempotent,
        "compression.type": kind.codec,
        "message.timeout.ms": 0,
        "linger.ms": 10,
        "retry.backoff.ms": 50,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 500,
        "queue.buffering.max.messages": 20_000,
        "debug": "eos",
        **({"max.in.flight": 1} if kind.is_by_partition else {}),
    }


def _handler(order: Order) -> logging.Handler:
    """Where librdkafka tells which epochs it takes, and why."""
    handler = logging.FileHandler(order.log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    return handler
