"""Producers: plain and idempotent, with acks 1 and all, one batch at a time.

An idempotent producer repeats a batch until it is acknowledged, to the present leader, as Kafka's
does. A plain one never repeats: a batch without an answer may or may not be written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kraft_wire.broker.producing.producer_ids import ANSWER_AWAITED_MS
from kraft_wire.model import Uuid
from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.judge.answer_fields import judge_produced
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = ["Batch", "Producer"]

_ALL: Final = -1
_TIMEOUT_MS: Final = 800
_RECORDS_MAX: Final = 3
_ID_TIMEOUT_US: Final = (ANSWER_AWAITED_MS + 1_000) * 1_000
"""A broker may wait so long for a block of ids, asked for over a link that never works."""
_SEQUENCE_LOST: Final = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
)


@dataclass(slots=True)
class Batch:
    """A batch that is in flight."""

    topic_id: Uuid
    partition: int
    values: list[bytes]
    sequence: int
    tries: int = 0
    notes: list[int] = field(default_factory=list)
    """The other draws for it, so that all attempts are equal."""


class Producer(BrokerClient):
    """Writes unique values to the partitions of a topic."""

    def __init__(
        self, context: ClientContext, number: int, topic: str, *, acks: int, is_idempotent: bool
    ) -> None:
        super().__init__(context, number, topic)
        assert acks == _ALL or not is_idempotent, "as in Kafka"
        self.acks = acks
        self.is_idempotent = is_idempotent
        self._producer_id = -1
        self._producer_epoch = -1
        self._sequences: dict[tuple[Uuid, int], int] = {}
        self._values = 0
        self._batch: Batch | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing is in progress and nothing will be."""
        return self.is_done and not self.is_busy and self._batch is None

    def _go_on(self) -> None:
        if self._batch is not None and self.topic_id is None and not self.is_busy:
            self._learn()  # complete the open work first
        else:
            super()._go_on()

    def step(self) -> None:
        if self.is_idempotent and self._producer_id < 0:
            self._begin()
            return
        if self._batch is None:
            if self.is_done:
                return
            self._batch = self._next_batch()
        self._send(self._batch)

    def _begin(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        self.ask(self.some_broker(), request, self._began, _ID_TIMEOUT_US)

    def _began(self, response: Message | None) -> None:
        if isinstance(response, InitProducerIdResponse) and response.error_code == 0:
            if response.producer_id in self.context.producer_ids:
                self.context.producer_id_again(response.producer_id)
            self.context.producer_ids[response.producer_id] = self.number
            self._producer_id = response.producer_id
            self._producer_epoch = response.producer_epoch
            self._sequences = {}
        self.later(self.think_us)

    def _next_batch(self) -> Batch:
        assert self.topic_id is not None, self.topic
        number = self.random.choice(list(self.leaders))
        values = []
        for _ in range(self.random.randrange(1, _RECORDS_MAX + 1)):
            values.append(self._value())
        sequence = self._sequences.get((self.topic_id, number), 0)
        return Batch(self.topic_id, number, values, sequence)

    def _value(self) -> bytes:
        """Return the next value, unlike all others."""
        self._values += 1
        return b"%d-%d" % (self.number, self._values)

    def _send(self, batch: Batch) -> None:
        if self.topic_id != batch.topic_id:
            self._batch = None  # the topic was created again
            self.later(self.think_us)
            return
        leader = self.leaders.get(batch.partition)
        if leader is None:
            self.again()
            return
        batch.tries += 1
        data = PartitionProduceData(index=batch.partition, records=self._records(batch))
        topic = TopicProduceData(topic_id=batch.topic_id, partition_data=[data])
        request = ProduceRequest(
            transactional_id=None, acks=self.acks, timeout_ms=_TIMEOUT_MS, topic_data=[topic]
        )
        node_id = leader[0]
        partition = self.context.truth.partitions[batch.topic_id, batch.partition]
        epoch = self.context.judge.epoch_of(node_id, partition)
        self.ask(node_id, request, lambda response: self._sent(node_id, epoch, batch, response))

    def _records(self, batch: Batch) -> bytearray:
        now_ms = self.stage.now_us // 1_000
        records = [Record(value=value, timestamp=now_ms) for value in batch.values]
        if not self.is_idempotent:
            return build_batch(records)
        return build_batch(
            records,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=batch.sequence,
        )

    def _sent(self, node_id: int, epoch: int, batch: Batch, response: Message | None) -> None:
        """Take an answer; `epoch`: the leader epoch that the node had when it was asked."""
        context = self.context
        if not isinstance(response, ProduceResponse):
            self._failed("no answer")
            return
        answer = response.responses[0].partition_responses[0]
        error = ErrorCode(answer.error_code)
        partition = context.truth.partitions[batch.topic_id, batch.partition]
        if error is ErrorCode.NONE:
            judge_produced(node_id, answer, partition, may_repeat=self.is_idempotent)
            self._acknowledged(node_id, epoch, batch, answer.base_offset)
            return
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            context.leader_is_reachable(node_id, answer.current_leader, response.node_endpoints)
        if error in _SEQUENCE_LOST and context.judge.leads(node_id, partition):
            context.history.refused_sequence(self.number, node_id, partition, error.name)
            self._producer_id, self._batch = -1, None
        self._failed(error.name)

    def _acknowledged(self, node_id: int, epoch: int, batch: Batch, offset: int) -> None:
        self._batch = None
        key = (batch.topic_id, batch.partition)
        self._sequences[key] = batch.sequence + len(batch.values)
        partition = self.context.truth.partitions[key]
        if self.acks == _ALL:
            history = self.context.history
            history.acknowledged(self.number, node_id, partition, offset, batch.values, epoch)
        else:
            self.context.history.counts["produce acknowledged by the leader"] += 1
        self.later(self.think_us)

    def _failed(self, reason: str) -> None:
        self.context.history.counts[f"produce {reason}"] += 1
        if not self.is_idempotent:
            self._batch = None
        self.again()

    def topic_is_gone(self) -> None:
        super().topic_is_gone()
        if self.topic not in self.context.truth.topic_ids:
            self._batch = None
