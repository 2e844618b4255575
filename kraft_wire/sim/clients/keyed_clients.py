"""Clients of topics whose logs are compacted, or cut from the front.

Producers write few keys repeatedly, tombstones among them, some batches compressed, with times that
do not always rise. Consumers read the remaining records: if the log begins after their position,
they continue from its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kraft_wire.sim.clients.askers import earliest_request
from kraft_wire.sim.clients.consumers import Consumer
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.clients.producers import Batch, Producer
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.scheduler import EPOCH_MS
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import PartitionData
from kraft_wire.wire.generated.list_offsets import ListOffsetsResponse
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

if TYPE_CHECKING:
    from kraft_wire.sim.judge.partition_truth import PartitionTruth

__all__ = ["KeyedProducer", "UpkeepConsumer"]

_TOMBSTONES: Final = 0.2
_RESTARTS: Final = 0.06
_COMPRESSED: Final = 0.25
_EARLIER_MS_MAX: Final = 400


class KeyedProducer(Producer):
    """Writes records with few keys, and tombstones."""

    def _acknowledged(self, node_id: int, epoch: int, batch: Batch, offset: int) -> None:
        """Continue, sometimes as a new producer: only the last batch of the old one is kept."""
        super()._acknowledged(node_id, epoch, batch, offset)
        if self.is_idempotent and self.random.random() < _RESTARTS:
            self._producer_id = -1

    def _value(self) -> bytes:
        return b"" if self.random.random() < _TOMBSTONES else super()._value()

    def _records(self, batch: Batch) -> bytearray:
        """Return the records, equal at each attempt except for the time."""
        now_ms = EPOCH_MS + self.stage.now_us // 1_000
        keys = self.stage.setup.data.keys
        if not batch.notes:
            is_compressed = self.random.random() < _COMPRESSED
            batch.notes = [Compression.GZIP if is_compressed else Compression.NONE]
            for _ in batch.values:
                batch.notes.append(self.random.randrange(keys))
                batch.notes.append(self.random.randrange(_EARLIER_MS_MAX))
        codec, numbers = Compression(batch.notes[0]), batch.notes[1:]
        records = [
            Record(key=b"k%d" % key, value=value or None, timestamp=now_ms - earlier)
            for value, key, earlier in zip(batch.values, numbers[::2], numbers[1::2], strict=True)
        ]
        if not self.is_idempotent:
            return build_batch(records, compression=codec)
        return build_batch(
            records,
            compression=codec,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=batch.sequence,
        )


class UpkeepConsumer(Consumer):
    """Reads a log that begins later and has gaps."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        super().__init__(context, number, topic)
        self._lost: list[int] = []
        """Partitions whose position is out of range."""
        self._starts: dict[PartitionTruth, int] = {}
        """The last log start offset of an answer."""
        self.isolation_level = number % 2

    @property
    def has_read_all(self) -> bool:
        """Whether no leader has a batch behind the position."""
        return all(self._is_at_end(each) for each in self.context.truth.of_topic(self.topic))

    def _is_at_end(self, truth: PartitionTruth) -> bool:
        """Whether it has read all that it may, and knows where the leader's log begins."""
        position = self.positions.get(truth, 0)
        watch = self.context.judge.watches.get(truth.leader, {}).get((truth.topic_id, truth.number))
        if watch is None or self._starts.get(truth, 0) < watch.log_start:
            return False
        end = truth.end
        if self.isolation_level and truth.first_open is not None:
            end = truth.first_open
        ends = watch.log.ends
        return position >= end or not any(position < each <= end for each in ends)

    def step(self) -> None:
        """Fetch, unless a position is out of range: then ask for the log start first."""
        if self.is_done or self.topic_id is None or not self._lost:
            super().step()
            return
        number = self._lost.pop()
        leader = self.leaders.get(number)
        if leader is None:
            self.again()
            return
        truth = self._truth(number)

        def answered(response: Message | None) -> None:
            if isinstance(response, ListOffsetsResponse):
                found = response.topics[0].partitions[0]
                if found.error_code == ErrorCode.NONE:
                    self.positions[truth] = found.offset
                    self.context.judge.marks["consumer went on from the log start"] += 1
            self.later(self.think_us)

        self.ask(leader[0], earliest_request(self.topic, number, leader[1]), answered)

    def _take(self, node_id: int, data: PartitionData, epoch: int) -> bool:
        truth = self._truth(data.partition_index)
        self._starts[truth] = max(data.log_start_offset, self._starts.get(truth, 0))
        before, first_open = self.positions.get(truth, 0), truth.first_open
        is_known = super()._take(node_id, data, epoch)
        now = self.positions.get(truth, 0)
        if self.isolation_level and first_open is not None and before <= first_open < now:
            facts = (truth.name, "shown up to", now, "with a transaction open at", first_open)
            raise Violation("S26 CommittedReadOnly", node_id, *facts)
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._lost.append(data.partition_index)
        return is_known
