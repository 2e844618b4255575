"""The log that a coordinator keeps its state in: the partitions of one internal topic.

`BrokerCoordinatorLog` is the port's production side, over the broker's own partitions; tests hand
in a list. A change is visible only when it is committed in the log, so nothing is shown that
another coordinator would not show again.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.producing.append_validation import AppendOrigin
from kraft_wire.broker.producing.transaction_marker import TransactionMarker
from kraft_wire.broker.producing.verification import Verification
from kraft_wire.model import FileSlice, Offset, StorageError
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.memory_records import AnyBatch, iter_batches
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = [
    "Appended",
    "BrokerCoordinatorLog",
    "CoordinatorLog",
    "CoordinatorRecord",
    "LogStretch",
    "TransactionalWrite",
]

_ALL_IN_SYNC: Final = -1
_FIRST_SEQUENCE: Final = 0
"""Of each batch of offsets in a transaction, as in Kafka: coordinators write without sequences."""


class CoordinatorRecord(NamedTuple):
    """A record of coordinator state: encoded key, and encoded value or None for a tombstone."""

    key: bytes
    value: bytes | None


class TransactionalWrite(NamedTuple):
    """The transaction that records are written in."""

    producer_id: int
    producer_epoch: int
    verification: Verification | None
    """None if the partition has the transaction open."""


class Appended(NamedTuple):
    """The result of an append, which may not be flushed yet."""

    error: ErrorCode
    safe_at: int | None = None
    """The high watermark that the partition must reach first; None: it may be acknowledged now."""


class LogStretch(NamedTuple):
    """Whole batches of one read, and the offset to read on from."""

    batches: Sequence[AnyBatch]
    next_offset: int
    is_end: bool
    """Whether everything has been read."""


class CoordinatorLog(Protocol):
    """Append to and read from the partitions of a coordinator's topic."""

    def append(
        self, partition: int, records: Sequence[CoordinatorRecord], at: ClockReading
    ) -> ErrorCode:
        """Append the records as one batch: all of them or none.

        Errors: the ones of a produce request with acks=all, MESSAGE_TOO_LARGE among them.
        """
        ...

    def append_for_later(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord],
        at: ClockReading,
        transaction: TransactionalWrite | None = None,
    ) -> Appended:
        """As `append`, but the flush that an acknowledgement needs may still be to come."""
        ...

    def append_marker(
        self, partition: int, marker: TransactionMarker, at: ClockReading
    ) -> Appended:
        """End a producer's transaction; errors as `append_for_later`, and those of the marker."""
        ...

    def end_offset(self, partition: int) -> int:
        """Return the offset that the next record gets."""
        ...

    def high_watermark(self, partition: int) -> int:
        """Return the exclusive end of the committed records."""
        ...

    def read(self, partition: int, offset: int, max_bytes: int) -> LogStretch | None:
        """Read from an offset, or from the log's start if that is later; None: not readable."""
        ...


class BrokerCoordinatorLog:
    """The port over the partitions of a broker."""

    __slots__ = ("_appended", "_compression", "_flushed", "_partition")

    def __init__(
        self,
        partition: Callable[[int], Partition | None],
        appended: Callable[[Partition], None],
        flushed: Callable[[Mapping[tuple[str, int], Offset], int], None],
        compression: Compression,
    ) -> None:
        """Take the look-up of a partition, what to call after append and flush, and the codec."""
        self._partition = partition
        self._appended = appended
        self._flushed = flushed
        self._compression = compression

    def append(
        self, partition: int, records: Sequence[CoordinatorRecord], at: ClockReading
    ) -> ErrorCode:
        """Append one batch, flushed at once when the topic's acknowledgements promise that.

        Does not wait for followers: a coordinator reports records that are written this way only by
        an error, after which members join again.
        """
        appended = self.append_for_later(partition, records, at)
        if appended.safe_at is not None:
            led = self._partition(partition)
            assert led is not None, partition
            if led.log.unflushed_records >= led.log.config.flush_messages:
                led.log.flush()
                self._flushed({led.topic_partition: led.log_end_offset}, at.now_ms)
        return appended.error

    def append_for_later(
        self,
        partition: int,
        records: Sequence[CoordinatorRecord],
        at: ClockReading,
        transaction: TransactionalWrite | None = None,
    ) -> Appended:
        """Append one batch; a due flush also covers other appends of the same time."""
        assert records, partition
        built = [Record(key, value, timestamp=at.wall_ms) for key, value in records]
        if transaction is None:
            batch = build_batch(built, compression=self._compression)
            return self._append(partition, batch, at, None)
        batch = build_batch(
            built,
            compression=self._compression,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            base_sequence=_FIRST_SEQUENCE,
            is_transactional=True,
        )
        return self._append(partition, batch, at, transaction.verification)

    def append_marker(
        self, partition: int, marker: TransactionMarker, at: ClockReading
    ) -> Appended:
        """Append a control batch."""
        return self._append(partition, marker.batch(at.wall_ms), at, marker)

    def _append(
        self,
        partition: int,
        batch: bytearray,
        at: ClockReading,
        transaction: Verification | TransactionMarker | None,
    ) -> Appended:
        led = self._partition(partition)
        if led is None:
            return Appended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        result = led.append_as_leader(
            RecordBatch(memoryview(batch)),
            origin=AppendOrigin.COORDINATOR,
            acks=_ALL_IN_SYNC,
            now_ms=at.now_ms,
            wall_ms=at.wall_ms,
            transaction=transaction,
        )
        if result.error is not ErrorCode.NONE:
            return Appended(result.error)
        self._appended(led)
        end_offset = led.log_end_offset
        return Appended(ErrorCode.NONE, None if led.high_watermark >= end_offset else end_offset)

    def end_offset(self, partition: int) -> int:
        """Return the offset that the next record gets, 0 if the partition is gone."""
        led = self._partition(partition)
        return 0 if led is None else led.log.log_end_offset

    def high_watermark(self, partition: int) -> int:
        """Return the exclusive end of the committed records, 0 if the partition is gone."""
        led = self._partition(partition)
        return 0 if led is None else led.high_watermark

    def read(self, partition: int, offset: int, max_bytes: int) -> LogStretch | None:
        """Read up to the log's end, in pieces of about `max_bytes`, across segments.

        A new leader's high watermark may be below what its predecessor had acknowledged, never its
        log's end. An error of the disk, or damage, takes the partition offline.
        """
        led = self._partition(partition)
        if led is None or led.offline:
            return None
        next_offset, end = Offset(max(offset, led.log_start_offset)), led.log_end_offset
        batches: list[AnyBatch] = []
        left_bytes = max_bytes
        while next_offset < end and left_bytes > 0:
            try:
                read = led.read(next_offset, left_bytes, upper_bound=end, min_one_batch=not batches)
                records = read.records
                data = records.read() if isinstance(records, FileSlice) else records
            except StorageError as error:
                led.failed(error)
                return None
            found = _whole_batches(memoryview(data))
            if not found:
                break
            batches += found
            next_offset = Offset(found[-1].last_offset + 1)
            left_bytes -= len(data)
        if not batches and next_offset < end:
            return None
        return LogStretch(batches, next_offset, next_offset >= end)


def _whole_batches(data: memoryview) -> list[AnyBatch]:
    """Return the batches of a read; the last one is cut at the read's size.

    Bytes that are not a batch end them: the log checks those at the next read.
    """
    batches: list[AnyBatch] = []
    with suppress(CorruptRecordBatch):
        batches.extend(iter_batches(data))
    return batches
