"""One partition on this broker: its log, the readable part of it, and the leader's appends.

With a single replica the high watermark follows the log's end, or the flushed end where the topic
promises that acknowledged records survive power loss (`flush.messages`). With others it follows the
smallest end in the ISR, including this replica's. Read `append_validation` next: the checks before
an append. Not here: the state of followers (`replication.leadership`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kraft_wire.broker.ports import LogReadView, PartitionLog, ProducerVerdict
from kraft_wire.broker.producing.append_validation import (
    AppendOrigin,
    AppendRejected,
    RecordError,
    assigned,
    check_batch,
)
from kraft_wire.frozen import maker, slotted
from kraft_wire.model import (
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    StorageError,
    TopicPartition,
    Uuid,
)
from kraft_wire.wire.compression.codecs import DEFAULT_LIMITS, DecompressionLimits
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.record_batch import TRANSACTIONAL_BIT, RecordBatch

if TYPE_CHECKING:
    from kraft_wire.broker.producing.transaction_marker import TransactionMarker
    from kraft_wire.broker.producing.verification import Verification, Verifications
    from kraft_wire.broker.replication.leadership import Leadership

__all__ = ["AppendResult", "Partition"]

_NO_ERROR: Final = ErrorCode.NONE  # looking an enum's member up costs what three calls cost
_CLIENT: Final = AppendOrigin.CLIENT
_OFFLINE: Final = ErrorCode.KAFKA_STORAGE_ERROR
_NOT_LEADER: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
_NO_OFFSET: Final = Offset(-1)
_NO_RECORD_ERRORS: Final[tuple[RecordError, ...]] = ()


@slotted
class AppendResult:
    """The result of one append; unknown offsets are -1."""

    error: ErrorCode = ErrorCode.NONE
    base_offset: int = _NO_OFFSET
    last_offset: int = _NO_OFFSET
    log_append_time_ms: int = -1
    """Wall time that the records were stamped with, -1 when they keep their own."""
    log_start_offset: Offset = _NO_OFFSET
    record_errors: tuple[RecordError, ...] = _NO_RECORD_ERRORS
    error_message: str | None = None


_new_result: Final = maker(AppendResult)


@dataclass(slots=True, eq=False)
class Partition:
    """A partition of which this broker has a replica."""

    topic: str
    topic_id: Uuid
    partition: int
    log: PartitionLog
    leader_epoch: LeaderEpoch
    is_leader: bool = True
    leadership: "Leadership | None" = None
    """The leader's state of the other replicas; None without others, or if another broker leads."""
    failed: Callable[[StorageError], None] = field(default=lambda error: None)
    """Reports an error of the disk to the broker; it may concern other partitions too."""
    offline: bool = False
    """The log directory failed; every access answers KAFKA_STORAGE_ERROR until it heals."""
    verifications: "Verifications | None" = None
    """Producers whose transaction the coordinator must confirm; None before the first one."""
    bytes_in: int = 0
    """Of batches appended as the leader; for metrics, as the next one."""
    messages_in: int = 0
    topic_partition: TopicPartition = field(init=False)
    """The partition's name."""

    def __post_init__(self) -> None:
        self.topic_partition = TopicPartition(self.topic, self.partition)

    @property
    def log_start_offset(self) -> Offset:
        """First offset that can be read."""
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> Offset:
        """Offset that the next record gets."""
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> Offset:
        """Exclusive end of the committed records, which consumers may read."""
        return self.log.high_watermark

    @property
    def last_stable_offset(self) -> Offset:
        """Exclusive end of the records that read_committed consumers may read (KIP-98)."""
        return self.log.last_stable_offset

    def check_leader_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """Compare a client's idea of the leader epoch with ours (KIP-320); -1 means no idea."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def append_as_leader(
        self,
        batch: RecordBatch,
        *,
        origin: AppendOrigin,
        acks: int,
        now_ms: int,
        wall_ms: int,
        decompression: DecompressionLimits = DEFAULT_LIMITS,
        transaction: "Verification | TransactionMarker | None" = None,
    ) -> AppendResult:
        """Check a batch if a client wrote it, give it offsets and the leader epoch, and append it.

        Errors in the order of their checks: KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER,
        NOT_ENOUGH_REPLICAS, those of `check_batch` and `assigned`, then the producer's sequence and
        epoch. A duplicate of a batch that is still remembered answers the original's offsets, no
        error. A writable buffer is patched in place; the log reads it before this returns.
        """
        if self.offline or not self.is_leader:
            return AppendResult(_OFFLINE if self.offline else _NOT_LEADER)
        log, config = self.log, self.log.config
        leadership = self.leadership
        if acks == -1 and leadership is not None and self._is_isr_too_small(leadership):
            return self._not_enough_replicas(leadership)
        try:
            if origin is _CLIENT:
                check_batch(batch, self.topic_partition, config, wall_ms, decompression)
            batch = assigned(batch, config, log.log_end_offset, self.leader_epoch, wall_ms)
            if batch.producer_id >= 0:
                check = (
                    self._check_transactional(batch, origin, transaction)
                    if batch.attributes & TRANSACTIONAL_BIT or self.verifications
                    else log.producer_states.check(batch)
                )
                if check.verdict.name != "OK":
                    return self._known_or_refused(check, batch, now_ms)
            log.append(batch.view, [batch], now_ms, wall_ms)
        except AppendRejected as rejected:
            return self._rejected(rejected)
        except StorageError as error:
            self.failed(error)
            return AppendResult(ErrorCode.KAFKA_STORAGE_ERROR, error_message=str(error))
        end_offset = log.log_end_offset
        self.bytes_in += len(batch.view)
        self.messages_in += end_offset - batch.base_offset
        if leadership is not None:
            self.advance_high_watermark(now_ms)
        elif log.unflushed_records < config.flush_messages:
            log.high_watermark = end_offset
        stamped = wall_ms if config.message_timestamp_type == "LogAppendTime" else -1
        last_offset, log_start_offset = end_offset - 1, log.log_start_offset
        return _new_result(_NO_ERROR, batch.base_offset, last_offset, stamped, log_start_offset)

    def read(
        self, fetch_offset: Offset, max_bytes: int, *, upper_bound: Offset, min_one_batch: bool
    ) -> LogReadView:
        """Return whole batches from the one that contains `fetch_offset`, below `upper_bound`."""
        return self.log.read(
            fetch_offset, max_bytes, upper_bound=upper_bound, min_one_batch=min_one_batch
        )

    def end_offset_for_epoch(self, leader_epoch: LeaderEpoch) -> OffsetAndEpoch:
        """Return the largest known epoch up to the given one, and where it ends (KIP-101)."""
        return self.log.end_offset_for_epoch(leader_epoch)

    def diverging_point(
        self, fetch_offset: Offset, last_fetched_epoch: int
    ) -> OffsetAndEpoch | None:
        """Return where a reader must truncate its log, None if it agrees with ours (KIP-595)."""
        if last_fetched_epoch < 0:
            return None
        end = self.log.end_offset_for_epoch(LeaderEpoch(last_fetched_epoch))
        if end.epoch < last_fetched_epoch or end.offset < fetch_offset:
            return end
        return None

    # -- what is committed -----------------------------------------------------------------------

    @property
    def counted_end_offset(self) -> Offset:
        """This replica's end for commits: its log's end, or the flushed end where required."""
        log = self.log
        unflushed, end_offset = log.unflushed_records, log.log_end_offset
        return (
            end_offset if unflushed < log.config.flush_messages else Offset(end_offset - unflushed)
        )

    def advance_high_watermark(self, now_ms: int) -> None:
        """Commit the records that the ISR has; the high watermark never falls."""
        leadership, log = self.leadership, self.log
        assert leadership is not None, self.topic_partition
        end_offset = leadership.committed_end(
            self.counted_end_offset, log.log_end_offset, log.config.min_insync_replicas, now_ms
        )
        if end_offset is not None and end_offset > log.high_watermark:
            assert end_offset <= log.log_end_offset, (end_offset, log.log_end_offset)
            log.high_watermark = end_offset

    def lead_alone(self) -> None:
        """Commit the records of this replica, which is the only one."""
        assert self.is_leader, self.topic_partition
        self.log.high_watermark = max(self.log.high_watermark, self.counted_end_offset)

    def flushed(self, end_offset: Offset, now_ms: int) -> None:
        """Note that the log's records below `end_offset` are on the disk.

        The only replica of a partition commits them; a follower gets its high watermark from the
        leader.
        """
        if self.leadership is not None:
            self.advance_high_watermark(now_ms)
        elif self.is_leader:
            log, durable = self.log, min(end_offset, self.counted_end_offset)
            log.high_watermark = max(log.high_watermark, durable)

    def acknowledgement(self, end_offset: Offset, acks: int) -> ErrorCode | None:
        """Return a producer's result for records below `end_offset`, None while it must wait.

        Errors in the order of their checks: KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER,
        NOT_ENOUGH_REPLICAS_AFTER_APPEND (committed, but the ISR has become too small since).
        """
        if self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        leadership = self.leadership
        if self.log.high_watermark < end_offset:
            is_enough = leadership is not None and acks != -1
            return _NO_ERROR if is_enough and self.counted_end_offset >= end_offset else None
        if leadership is not None and acks == -1:
            minimum = leadership.min_isr(self.log.config.min_insync_replicas)
            if len(leadership.maximal_isr) < minimum:
                return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return _NO_ERROR

    def low_watermark(self) -> Offset:
        """Return the first offset that every replica that is alive still has (KIP-107)."""
        own = self.log.log_start_offset
        return own if self.leadership is None else self.leadership.low_watermark(own)

    def leader_epoch_at(self, offset: Offset) -> int:
        """Return the leader epoch of an offset for clients, -1 if none is known.

        The leader's own epoch began at the end of the log, before it wrote anything.
        """
        epoch = self.log.epochs.epoch_at(offset)
        if epoch is None and offset >= self.log.log_end_offset:
            return self.leader_epoch
        return -1 if epoch is None else epoch

    def _known_or_refused(
        self, check: ProducerVerdict, batch: RecordBatch, now_ms: int
    ) -> AppendResult:
        """Answer a producer's retry like the original, and a gap or an old epoch with its error."""
        log_start_offset = self.log.log_start_offset
        if check.verdict.name == "DUPLICATE":
            if self.leadership is not None:
                self.advance_high_watermark(now_ms)  # the original's followers may be gone
            return AppendResult(
                base_offset=check.base_offset,
                last_offset=check.base_offset + batch.last_offset_delta,
                log_append_time_ms=check.timestamp,
                log_start_offset=log_start_offset,
            )
        message = (
            f"Producer {batch.producer_id} at epoch {batch.producer_epoch} may not append sequence "
            f"{batch.base_sequence} to {self.topic_partition}"
        )
        error = ErrorCode[check.verdict.name]
        return AppendResult(error, log_start_offset=log_start_offset, error_message=message)

    def _check_transactional(
        self,
        batch: RecordBatch,
        origin: AppendOrigin,
        transaction: "Verification | TransactionMarker | None",
    ) -> ProducerVerdict:
        """Verify a batch in or beside a transaction; few partitions import the code for it."""
        from kraft_wire.broker.producing.verification import check_transactional

        return check_transactional(self, batch, origin, transaction)

    def _is_isr_too_small(self, leadership: "Leadership") -> bool:
        return len(leadership.isr) < leadership.min_isr(self.log.config.min_insync_replicas)

    def _not_enough_replicas(self, leadership: "Leadership") -> AppendResult:
        """Refuse an append that could not be acknowledged."""
        minimum = leadership.min_isr(self.log.config.min_insync_replicas)
        message = (
            f"The size of the current ISR : {len(leadership.isr)} is insufficient to satisfy the "
            f"min.isr requirement of {minimum} for partition {self.topic_partition}"
        )
        return AppendResult(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            log_start_offset=self.log.log_start_offset,
            error_message=message,
        )

    def _rejected(self, rejected: AppendRejected) -> AppendResult:
        start = self.log.log_start_offset if rejected.tells_log_start else _NO_OFFSET
        return AppendResult(
            rejected.error,
            log_start_offset=start,
            record_errors=rejected.record_errors,
            error_message=rejected.message,
        )
