"""Idempotent producing (KIP-98): batches by bytes, one request to a leader in progress at a time.

Each producer gets its own id; every batch carries the sequence number of its first record in its
partition. A batch that must be sent again, because an answer was lost or a leader moved, is sent
byte for byte as before, so that a broker which has it already drops it. Records are stored in the
order in which they are written. A batch that is too large for a topic is sent again as several
smaller ones, and later batches for that topic are smaller too (`splitting`); a single record that
is too large is refused. Two producers are independent: a task that runs twice writes twice.

No transactions, no waiting for more records (linger): a batch is sent when it is full, or at the
end.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kraft_wire.client.cluster import (
    PASSING_ERRORS,
    ClusterClient,
    ClusterRefused,
    RetryDeadline,
)
from kraft_wire.client.connection import BrokerConnection, BrokerConnectionError
from kraft_wire.client.splitting import record_bytes_at_most, split, unpacked_bytes
from kraft_wire.model import TopicPartition
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import BatchBuilder
from kraft_wire.wire.records.record import NO_SEQUENCE, Header, increment_sequence
from kraft_wire.wire.records.record_batch import parse_batches

__all__ = ["IdempotentProducer", "ProduceSettings"]

_VERSION_MAX: Final = 11
"""The last that carries names of topics and no part of a transaction."""
_ACKS_ALL: Final = -1
_DONE: Final = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_INT32_MAX: Final = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """How records are written; a value that can be pickled."""

    compression: Compression = Compression.NONE
    batch_bytes: int = 256 << 10
    request_bytes: int = 1 << 20
    """Of batches that wait; a request takes one batch of each partition."""
    open_bytes_max: int = 32 << 20
    """Of records in batches that are not full."""
    record_bytes_max: int = 1 << 20
    is_idempotent: bool = True
    acks: int = _ACKS_ALL
    delivery_seconds: float = 120.0


class _Batch(NamedTuple):
    key: TopicPartition
    data: bytearray


class IdempotentProducer:
    """Writes records to the partitions of one cluster; `flush` at the end, or nothing is sure."""

    def __init__(self, cluster: ClusterClient, settings: ProduceSettings) -> None:
        """Take an id from the cluster; the first request of all."""
        self._cluster = cluster
        self._settings = settings
        self._open: dict[TopicPartition, BatchBuilder] = {}
        self._open_bytes = 0
        self._ready: dict[TopicPartition, deque[_Batch]] = {}
        self._ready_bytes = 0
        self._under_way: list[tuple[BrokerConnection, list[_Batch]]] = []
        self._sequences: dict[TopicPartition, int] = {}
        self._batch_bytes: dict[str, int] = {}
        """How large batches may become in topics that found larger ones too large."""
        self._patience = RetryDeadline(settings.delivery_seconds)
        self._problem: str | None = None
        self.producer_id, self._producer_epoch = -1, -1
        if settings.is_idempotent:
            self.producer_id, self._producer_epoch = self._take_id()

    def append(
        self,
        key: TopicPartition,
        timestamp: int,
        record_key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
    ) -> bool:
        """Write one record, later; return whether a batch of its partition was full before it."""
        size = record_bytes_at_most(record_key, value, headers)
        settings = self._settings
        if size > settings.record_bytes_max:
            raise ClusterRefused(
                f"{key}: a record of {size} bytes is larger than max.request.size,"
                f" {settings.record_bytes_max}"
            )
        builder = self._open.get(key)
        batch_bytes = self._batch_bytes.get(key.topic, settings.batch_bytes)
        is_full = builder is not None and builder.size_bytes + size > batch_bytes
        if is_full:
            self._close(key)
            builder = None
        if builder is None:
            builder = self._open[key] = self._begin(key)
        builder.append(timestamp, record_key, value, headers)
        self._open_bytes += size
        if self._open_bytes > settings.open_bytes_max:
            self._close_all()
        return is_full

    def flush(self) -> None:
        """Return once every record is acknowledged. Errors: ClusterRefused for a refused record."""
        self._close_all()
        while self._ready or self._under_way:
            self._send_round()

    def settle(self) -> None:
        """Take the answers in flight, so that the cluster's connections are free for a question."""
        self._collect()

    def _begin(self, key: TopicPartition) -> BatchBuilder:
        is_idempotent = self._settings.is_idempotent
        return BatchBuilder(
            compression=self._settings.compression,
            producer_id=self.producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequences.get(key, 0) if is_idempotent else NO_SEQUENCE,
        )

    def _close_all(self) -> None:
        for key in list(self._open):
            self._close(key)

    def _close(self, key: TopicPartition) -> None:
        """Close an open batch, and send the ready batches if they are enough."""
        builder = self._open.pop(key)
        self._open_bytes = max(self._open_bytes - builder.size_bytes, 0) if self._open else 0
        first = self._sequences.get(key, 0)
        self._sequences[key] = increment_sequence(first, builder.records_count)
        batch = _Batch(key, builder.build())
        if not self._ready:
            self._patience.renew()  # the time in which nothing was to be written does not count
        self._ready.setdefault(key, deque()).append(batch)
        self._ready_bytes += len(batch.data)
        while self._ready_bytes >= self._settings.request_bytes:
            self._send_round()

    def _send_round(self) -> None:
        """Take the answers that are in flight, then send the first batch of each partition."""
        self._collect()
        if self._problem is not None:
            if self._patience.is_over:
                seconds = f"{self._settings.delivery_seconds:g} s"
                raise ClusterRefused(f"{self._problem}; nothing was written for {seconds}")
            self._problem = None
            self._cluster.forget()
            self._patience.pause()
        try:
            self._post()
        except BrokerConnectionError as error:
            self._problem = str(error)

    def _post(self) -> None:
        by_connection: dict[BrokerConnection, list[_Batch]] = {}
        for key, waiting in self._ready.items():
            by_connection.setdefault(self._cluster.leader_of(key), []).append(waiting[0])
        for connection, batches in by_connection.items():
            request = _request(batches, self._settings)
            version = connection.version_of(request, at_most=_VERSION_MAX)
            connection.post(request, version=version)
            self._under_way.append((connection, batches))

    def _collect(self) -> None:
        under_way, self._under_way = self._under_way, []
        for connection, batches in under_way:
            unanswered = dict.fromkeys(batch.key for batch in batches)
            try:
                for key, each in _results(connection.answer(ProduceResponse)):
                    if key in unanswered:
                        del unanswered[key]
                        self._judge(key, each)
            except BrokerConnectionError as error:
                self._problem = str(error)
            else:
                for key in unanswered:
                    self._problem = f"{self._cluster.leader_address(key)} answered without {key}"

    def _judge(self, key: TopicPartition, result: PartitionProduceResponse) -> None:
        """Drop a batch that is stored, keep one that may be sent again, refuse the others."""
        code = result.error_code
        if code in _DONE:
            batch = self._ready[key].popleft()
            self._ready_bytes -= len(batch.data)
            if not self._ready[key]:
                del self._ready[key]
            self._patience.renew()
            return
        where = f"{key} at {self._cluster.leader_address(key)}: {error_name(code)}"
        if code == ErrorCode.MESSAGE_TOO_LARGE:
            self._split(key, where)
            return
        if code not in PASSING_ERRORS:
            raise ClusterRefused(f"{where} {result.error_message or ''}".rstrip())
        self._problem = where

    def _split(self, key: TopicPartition, where: str) -> None:
        """Replace a refused batch by smaller ones, at most half as large.

        Errors: ClusterRefused if it has one record.
        """
        waiting = self._ready[key]
        refused = waiting.popleft()
        (batch,) = parse_batches(memoryview(refused.data))
        if batch.records_count == 1:
            raise ClusterRefused(
                f"{where}: one record makes a batch of {len(refused.data)} bytes, more than the "
                "topic's max.message.bytes"
            )
        size = unpacked_bytes(batch)
        known = self._batch_bytes.get(key.topic, size)
        bytes_max = self._batch_bytes[key.topic] = known if known < size else size // 2
        pieces = [_Batch(key, data) for data in split(batch, bytes_max)]
        waiting.extendleft(reversed(pieces))
        self._ready_bytes += sum(len(each.data) for each in pieces) - len(refused.data)
        self._patience.renew()

    def _take_id(self) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_INT32_MAX)
        found: list[tuple[int, int]] = []

        def ask() -> str | None:
            connection = self._cluster.any_broker()
            version = connection.version_of(request, at_most=5)
            answer = connection.send(request, InitProducerIdResponse, version=version)
            if not answer.error_code:
                found.append((answer.producer_id, answer.producer_epoch))
                return None
            problem = f"no producer id: {error_name(answer.error_code)}"
            if answer.error_code in PASSING_ERRORS:
                return problem
            raise ClusterRefused(problem)

        self._cluster.until_done(ask, [])
        return found[0]


def _request(batches: Sequence[_Batch], settings: ProduceSettings) -> ProduceRequest:
    topics: dict[str, list[PartitionProduceData]] = {}
    for key, data in batches:
        part = PartitionProduceData(index=key.partition, records=data)
        topics.setdefault(key.topic, []).append(part)
    return ProduceRequest(
        transactional_id=None,
        acks=settings.acks,
        timeout_ms=round(settings.delivery_seconds * 1000),
        topic_data=[
            TopicProduceData(name=name, partition_data=parts) for name, parts in topics.items()
        ],
    )


def _results(
    answer: ProduceResponse,
) -> Iterator[tuple[TopicPartition, PartitionProduceResponse]]:
    for topic in answer.responses:
        for each in topic.partition_responses:
            yield TopicPartition(topic.name, each.index), each
