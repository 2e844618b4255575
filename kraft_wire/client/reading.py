"""Reads several partitions in rounds: one request to each leader, then the records of all answers.

A position is the offset of the next record. It moves with each yielded record, and past records
that are not yielded: control records, aborted transactions (KIP-98), compacted offsets. After a
leader change or a broker's restart requests are retried until a deadline (`cluster`).

Not here: where reading starts (the caller sets the positions), groups (`group_member`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kraft_wire.client.cluster import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    PASSING_ERRORS,
    ClusterClient,
    ClusterRefused,
    RetryDeadline,
)
from kraft_wire.client.connection import BrokerConnection, BrokerConnectionError
from kraft_wire.client.fetching import FetchSettings
from kraft_wire.model import TopicPartition
from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.error_names import error_name
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kraft_wire.wire.records.control_records import ControlRecordType, parse_control_key
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.memory_records import iter_batches
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["PartitionsReader"]

_VERSION_MAX: Final = 12
"""The last that carries names of topics."""


class PartitionsReader:
    """Reads from positions; the caller may change them between rounds."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: FetchSettings,
        *,
        resets_to_latest: bool = False,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """An offset out of range is replaced by the earliest or latest one, and noted."""
        self.positions: dict[TopicPartition, int] = {}
        self._cluster = cluster
        self._settings = settings
        self._resets_to = LATEST_TIMESTAMP if resets_to_latest else EARLIEST_TIMESTAMP
        self._note = note
        self._patience = RetryDeadline(cluster.settings.deadline_seconds)
        self._is_troubled = False
        """Whether the last round had a problem; the deadline counts from the first of several."""
        self._turn = 0

    def round(self, keys: Sequence[TopicPartition]) -> Iterator[tuple[TopicPartition, Record]]:
        """Yield the records of one round over some partitions, none while nothing is new.

        Errors: ClusterRefused for a permanent error, or one that lasts until the deadline.
        """
        assert keys, "a round needs a partition"
        self._turn += 1
        first = self._turn % len(keys)
        problem = None
        answers: list[tuple[TopicPartition, PartitionData]] = []
        try:
            for connection, request in self._requests([*keys[first:], *keys[:first]]):
                connection.post(request, version=_version(connection, request))
            for connection in self._posted:
                answers += _partitions(connection.answer(FetchResponse))
        except BrokerConnectionError as error:
            problem = str(error)
            self._cluster.forget()
        for key, data in answers:
            if key not in self.positions:
                continue
            trouble = self._trouble(key, data)
            if trouble is None:
                yield from self._records(key, data)
            problem = trouble or problem
        self._judge(problem)

    def _requests(
        self, keys: Sequence[TopicPartition]
    ) -> Iterator[tuple[BrokerConnection, FetchRequest]]:
        """Yield one request for each leader."""
        by_leader: dict[BrokerConnection, dict[str, FetchTopic]] = {}
        self._posted: list[BrokerConnection] = []
        for key in keys:
            topics = by_leader.setdefault(self._cluster.leader_of(key), {})
            topic = topics.setdefault(key.topic, FetchTopic(topic=key.topic))
            topic.partitions.append(
                FetchPartition(
                    partition=key.partition,
                    fetch_offset=self.positions[key],
                    partition_max_bytes=self._settings.partition_bytes_max,
                )
            )
        for connection, topics in by_leader.items():
            self._posted.append(connection)
            yield (
                connection,
                FetchRequest(
                    max_wait_ms=self._settings.wait_ms_max,
                    min_bytes=self._settings.bytes_min,
                    max_bytes=self._settings.fetch_bytes_max,
                    isolation_level=int(self._settings.read_committed),
                    topics=list(topics.values()),
                ),
            )

    def _trouble(self, key: TopicPartition, data: PartitionData) -> str | None:
        """Return the error of a partition that may pass. Errors: ClusterRefused for another."""
        if not data.error_code:
            return None
        what = f"{key} at {self._cluster.leader_address(key)}: {error_name(data.error_code)}"
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            offset = self._cluster.offsets_at({key: self._resets_to})[key]
            self._note(
                f"{key}: offset {self.positions[key]} is out of range; reading from {offset}"
            )
            self.positions[key] = offset
            return None
        if data.error_code not in PASSING_ERRORS:
            raise ClusterRefused(what)
        return what

    def _records(
        self, key: TopicPartition, data: PartitionData
    ) -> Iterator[tuple[TopicPartition, Record]]:
        if not isinstance(data.records, bytes | bytearray | memoryview) or not data.records:
            return
        aborted = [
            (each.first_offset, each.producer_id) for each in data.aborted_transactions or ()
        ]
        hidden = _Aborted(aborted)
        try:
            for batch in iter_batches(data.records):
                if not isinstance(batch, RecordBatch):
                    raise ClusterRefused(f"{key}: a message format older than Kafka 0.11")
                if not batch.crc_is_valid():
                    raise CorruptRecordBatch("the checksum is wrong")
                if not hidden.hides(batch):
                    for record in batch.iter_records(STORED_LIMITS):
                        if record.offset >= self.positions[key]:
                            self.positions[key] = record.offset + 1
                            yield key, record
                self.positions[key] = max(self.positions[key], batch.next_offset)
        except CorruptRecordBatch as error:
            where = f"{key}: damaged records from offset {self.positions[key]} on"
            raise ClusterRefused(f"{where}: {error.reason}") from error

    def _judge(self, problem: str | None) -> None:
        """Begin again after a round without a problem, else wait. Errors: ClusterRefused."""
        was_troubled, self._is_troubled = self._is_troubled, problem is not None
        if problem is None:
            return
        if not was_troubled:
            self._patience.renew()
        if self._patience.is_over:
            raise ClusterRefused(f"{problem} (for {self._cluster.settings.deadline_seconds:g} s)")
        self._cluster.forget()
        self._patience.pause()


class _Aborted:
    """Which batches of one answer belong to aborted transactions, in offset order."""

    def __init__(self, transactions: list[tuple[int, int]]) -> None:
        """Take first offsets and producer ids."""
        self._waiting = sorted(transactions, reverse=True)
        self._open: set[int] = set()

    def hides(self, batch: RecordBatch) -> bool:
        """Whether a batch is not handed out: control records and aborted ones."""
        while self._waiting and self._waiting[-1][0] <= batch.last_offset:
            self._open.add(self._waiting.pop()[1])
        if batch.is_control:
            if self._open and _ends_in_abort(batch):
                self._open.discard(batch.producer_id)
            return True
        return batch.is_transactional and batch.producer_id in self._open


def _ends_in_abort(batch: RecordBatch) -> bool:
    first = next(batch.iter_records(STORED_LIMITS), None)
    return first is not None and parse_control_key(first.key) is ControlRecordType.ABORT


def _version(connection: BrokerConnection, request: FetchRequest) -> int:
    return connection.version_of(request, at_most=_VERSION_MAX)


def _partitions(answer: FetchResponse) -> list[tuple[TopicPartition, PartitionData]]:
    """Return the partitions of an answer. Errors: BrokerConnectionError for a refused one."""
    if answer.error_code:
        raise BrokerConnectionError(f"a fetch was refused: {error_name(answer.error_code)}")
    return [
        (TopicPartition(topic.topic, each.partition_index), each)
        for topic in answer.responses
        for each in topic.partitions
    ]
