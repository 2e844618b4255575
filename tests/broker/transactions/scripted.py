"""A shard of transactional ids over a log that commits when a test says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.commit_waits import CommitCallback
from kraft_wire.broker.coordination.log import Appended, CoordinatorRecord
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.broker.transactions.add_partitions import add_partitions
from kraft_wire.broker.transactions.end_transaction import end_transaction
from kraft_wire.broker.transactions.environment import TransactionEnvironment
from kraft_wire.broker.transactions.init_producer_id import ProducerIdentity, init_producer_id
from kraft_wire.broker.transactions.markers import MarkerSender
from kraft_wire.broker.transactions.shard import TransactionShard
from kraft_wire.broker.transactions.states import TransactionEvent
from kraft_wire.broker.transactions.transactional_id import TransactionalId
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.small_broker import broker_image, image_of, partition_image

PARTITION = TopicPartition("t", 0)
FOREVER_MS = 60_000


@dataclass
class ScriptedLog:
    """`ShardLog`: appends wait, or are refused, and are ended by the test."""

    partition: int = 0
    waits: bool = False
    refusals: list[E] = field(default_factory=list)
    """Errors of the next appends, NONE for one that is taken."""
    records: list[Sequence[CoordinatorRecord]] = field(default_factory=list)
    watermark: int = 0
    waiting: list[tuple[int, CommitCallback, int | None]] = field(default_factory=list)

    def append_for_later(self, records: Sequence[CoordinatorRecord], at: ClockReading) -> Appended:
        error = self.refusals.pop(0) if self.refusals else E.NONE
        if error is not E.NONE:
            return Appended(error)
        self.records.append(records)
        if self.waits:
            return Appended(E.NONE, len(self.records))
        self.watermark = len(self.records)
        return Appended(E.NONE)

    def await_commit(
        self, safe_at: int, at: ClockReading, heard: CommitCallback, timeout_ms: int | None = None
    ) -> None:
        self.waiting.append((safe_at, heard, timeout_ms))

    def high_watermark(self) -> int:
        return self.watermark

    def end_wait(self, error: E, now_ms: int = 0) -> None:
        """End the oldest wait."""
        safe_at, heard, _ = self.waiting.pop(0)
        if error is E.NONE:
            self.watermark = max(self.watermark, safe_at)
        heard(error, ClockReading(now_ms, now_ms))


class Scripted:
    """A shard, and what was answered."""

    def __init__(self, version: int = 2, image: MetadataImage | None = None) -> None:
        self.log = ScriptedLog()
        self.version = version
        self.image = image or image_of({"t": [partition_image(0)]}, [broker_image(1)])
        self.lines: list[str] = []
        self.answers: list[Any] = []
        self.ids_left = 1_000
        self.now_ms = 0
        self.topic_asked_ms: list[int] = []
        """When `__consumer_offsets` was to be created."""
        self.markers = MarkerSender(
            lambda: self.image,
            self.topic_asked_ms.append,
            lambda name, **fields: self.lines.append(name),
        )
        env = TransactionEnvironment(
            settings=BrokerSettings,
            transaction_version=lambda: self.version,
            take_producer_id=self._take,
            coordinator_epoch=lambda partition: 7 + partition,
            markers=self.markers,
            report=lambda name, **fields: self.lines.append(name),
        )
        self.shard = TransactionShard(self.log, env)  # type: ignore[arg-type]  # the same methods

    def _take(self, now_ms: int) -> int | None:
        if not self.ids_left:
            return None
        self.ids_left -= 1
        return 1_000 - self.ids_left

    @property
    def at(self) -> ClockReading:
        return ClockReading(self.now_ms, self.now_ms)

    @property
    def last(self) -> Any:
        return self.answers[-1]

    def init(self, expected: tuple[int, int] = (-1, -1)) -> None:
        init_producer_id(
            self.shard, "tid", FOREVER_MS, expected, self.at, lambda each: self.answers.append(each)
        )

    def add(self, producer: tuple[int, int], version: int = 2) -> None:
        partitions = {PARTITION: None}
        add_partitions(
            self.shard, "tid", producer, partitions, version, self.at, self.answers.append
        )

    def end(self, producer: tuple[int, int], version: int = 2, *, commit: bool = True) -> None:
        event = TransactionEvent.COMMITTED if commit else TransactionEvent.ABORTED
        end_transaction(self.shard, "tid", producer, event, version, self.at, self.answers.append)

    def commit_with(self, partition: TopicPartition) -> TransactionalId:
        """Commit a first transaction of one partition."""
        self.init()
        identity = self.last
        assert isinstance(identity, ProducerIdentity)
        producer = (identity.producer_id, identity.producer_epoch)
        added = {partition: None}
        add_partitions(self.shard, "tid", producer, added, 2, self.at, self.answers.append)
        self.end(producer)
        assert self.last.error is E.NONE
        return self.shard.ids["tid"]

    def begin(self, version: int = 2) -> tuple[int, int]:
        """Bring the id into a transaction; the producer."""
        self.init()
        identity = self.last
        assert isinstance(identity, ProducerIdentity)
        producer = (identity.producer_id, identity.producer_epoch)
        self.add(producer, version)
        assert self.last is E.NONE
        return producer
