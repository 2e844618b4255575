"""Applies a leader's answer to one partition that this broker follows.

KIP-101, KIP-279 and KIP-320 as the replica fetcher of 4.3.1 has them: records are appended with the
leader's offsets and epochs; a DivergingEpoch truncates; an offset out of the leader's range is
replaced by its end or its start. The high watermark is the leader's, at most our log's end. A lower
one from the leader never moves it back: committed records stay committed.

A `FollowedPartition` is one partition under one leader epoch. Its functions return the fetcher's
next action (`Next`). Errors of the disk are reported to the partition; after a leader's mistake the
partition pauses. Not here: requests, sessions and time (`fetcher`).
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.replication.fetch_session_handler import FetchPosition, PartitionKey
from kraft_wire.broker.replication.gap_epochs import GapEpochs, count_before_gap
from kraft_wire.broker.replication.replicated_records import RefusedRecords, batches_to_append
from kraft_wire.frozen import frozen
from kraft_wire.model import (
    FileSlice,
    LeaderEpoch,
    Offset,
    ReportEvent,
    StorageError,
    TopicPartition,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import EpochEndOffset, PartitionData
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["FollowedPartition", "FollowerEnvironment", "Next"]

_NO_EPOCH: Final = -1
_SPAN_MAX: Final = (1 << 31) - 1
"""Offsets of one segment: its indexes count from its first."""


@frozen
class FollowerEnvironment:
    """The parts of the broker that following uses."""

    report: ReportEvent
    expect_gaps: Callable[[TopicPartition], None]
    """Record in the log store, durably, that a log will have gaps. Errors: StorageError."""
    grew: Callable[[Partition], None]
    """Wake the readers of this replica: its high watermark has grown (KIP-392)."""
    asks_for_epochs: bool = True
    """Whether the leader is asked where epochs began whose first batches it has removed."""


class Next(Enum):
    """The next request for a partition."""

    FETCH = "fetch from where the log ends"
    REST = "wait a moment, then fetch"
    LOCATE_END = "ask where the leader's log ends"
    LOCATE_START = "ask where the leader's log begins"
    TRACE = "ask where `asked_epoch` ended"
    STOP = "nothing: the partition is offline"


class FollowedPartition:
    """A partition under one leader and one leader epoch; a new epoch makes a new one."""

    __slots__ = (
        "_env",
        "_expects_gaps",
        "_gap",
        "_leader_end",
        "is_in_sync",
        "key",
        "leader_epoch",
        "partition",
    )

    def __init__(self, partition: Partition, env: FollowerEnvironment) -> None:
        self.partition = partition
        self.leader_epoch: LeaderEpoch = partition.leader_epoch
        self.key: PartitionKey = (partition.topic_id, partition.partition)
        self.is_in_sync: bool | None = None
        """Whether our log has all committed records, as of its last append; None before an answer.

        As in Kafka, an answer without records does not change it.
        """
        self._env = env
        self._leader_end = -1
        self._expects_gaps = False
        """Whether the log store knows that the log has gaps."""
        self._gap: GapEpochs | None = None
        """The gap behind our log's end in which epochs began."""

    def begin(self) -> Next:
        """Prepare the log for fetching: without epochs, truncate to the committed records.

        KIP-101: a log without leader epochs has no other way to find where it diverges.
        """
        log = self.partition.log
        if log.epochs.latest is not None or log.high_watermark >= log.log_end_offset:
            return Next.FETCH
        return self._guarded(lambda: self._truncate(log.high_watermark))

    def position(self, max_bytes: int) -> FetchPosition:
        """Return the fields of this partition in the next request."""
        partition, log = self.partition, self.partition.log
        assert partition.leader_epoch == self.leader_epoch, partition.topic_partition
        return FetchPosition(
            partition.topic,
            log.log_end_offset,
            log.log_start_offset,
            self.leader_epoch,
            self._latest_epoch,
            max_bytes,
        )

    @property
    def _latest_epoch(self) -> int:
        """The newest leader epoch of our log, -1 for none."""
        latest = self.partition.log.epochs.latest
        return _NO_EPOCH if latest is None else latest

    @property
    def awaits_flush(self) -> bool:
        """Whether records must reach the disk before the leader may count on them."""
        log = self.partition.log
        return not self.partition.offline and log.unflushed_records >= log.config.flush_messages

    # -- answers ---------------------------------------------------------------------------------

    def fetched(
        self, asked: FetchPosition, data: PartitionData, now_ms: int, wall_ms: int
    ) -> Next | None:
        """Take an answer to a fetch from `asked`; None if it belongs to another position.

        After a truncation or a new epoch in between, the answer is about another log.
        """
        log = self.partition.log
        if asked.fetch_offset != log.log_end_offset:
            return None
        if asked.current_leader_epoch != self.leader_epoch:
            return None
        match data.error_code:
            case ErrorCode.NONE:
                diverging = data.diverging_epoch
                if diverging is not None and diverging.epoch >= 0:
                    return self._guarded(lambda: self._diverged(diverging, data))
                return self._guarded(lambda: self._append(data, now_ms, wall_ms))
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                return Next.LOCATE_END
            case _:
                return Next.REST

    def located_end(self, leader_end: int) -> Next:
        """Take the end of the leader's log, which did not have the offset that ours ends at.

        A shorter log than ours is the committed one, after an unclean election. Of a longer one the
        start is wanted next.
        """
        self._leader_end = leader_end
        if leader_end < 0:
            return Next.REST
        if leader_end >= self.partition.log.log_end_offset:
            return Next.LOCATE_START
        return self._guarded(lambda: self._truncate(Offset(leader_end)))

    def located_start(self, leader_start: int) -> Next:
        """Take the start of the leader's log: behind our end, ours begins again there."""
        log = self.partition.log
        if not log.log_end_offset < leader_start <= self._leader_end:
            return Next.REST  # there after all, or of a log that ends before it begins
        return self._guarded(lambda: self._restart_at(Offset(leader_start)))

    @property
    def asked_epoch(self) -> LeaderEpoch:
        """The epoch whose end is asked for after TRACE."""
        assert self._gap is not None, self.partition.topic_partition
        return self._gap.asked_epoch

    def traced(self, epoch: int, end_offset: int) -> Next:
        """Take the leader's largest epoch up to `asked_epoch`, and its end; -1 if it has none."""
        assert self._gap is not None, self.partition.topic_partition
        self._gap.take(epoch, end_offset)
        return Next.FETCH if self._gap.is_known else Next.TRACE

    def _guarded(self, step: Callable[[], Next]) -> Next:
        """Take a step that touches the disk or trusts the leader."""
        partition = self.partition
        if partition.offline:
            return Next.STOP
        try:
            return step()
        except StorageError as error:
            partition.failed(error)
        except RefusedRecords as refused:
            self._env.report(
                "replica_records_refused",
                partition=partition.topic_partition,
                leader_epoch=self.leader_epoch,
                reason=refused.reason,
            )
        return Next.STOP if partition.offline else Next.REST

    # -- records ---------------------------------------------------------------------------------

    def _append(self, data: PartitionData, now_ms: int, wall_ms: int) -> Next:
        """Append the valid records, then follow the leader's bounds."""
        records, next_step = data.records, Next.FETCH
        assert not isinstance(records, FileSlice), "an answer that came over a link is bytes"
        has_records = records is not None and len(records) > 0
        if records is not None and has_records:
            batches = self._batches(memoryview(records))
            if not batches:
                return Next.REST  # only of epochs that this leader did not have
            next_step = self._append_up_to_gap(batches, now_ms, wall_ms)
        if has_records or self.is_in_sync is None:
            self.is_in_sync = data.high_watermark <= self.partition.log.log_end_offset
        self._take_bounds(data)
        return next_step

    def _take_bounds(self, data: PartitionData) -> None:
        """Follow the leader's high watermark and log start, within our log's bounds."""
        partition, log = self.partition, self.partition.log
        high_watermark = Offset(min(data.high_watermark, log.log_end_offset))
        if high_watermark > log.high_watermark:
            log.high_watermark = high_watermark
            self._env.grew(partition)
        if log.log_start_offset < data.log_start_offset <= log.high_watermark:
            log.advance_log_start_offset(Offset(data.log_start_offset))

    def _batches(self, records: memoryview) -> list[RecordBatch]:
        """Check the records; an empty log may begin with a batch that contains its start offset.

        DeleteRecords can put a log's start into the middle of a batch; a fetch from there returns
        the whole batch (Kafka's UnexpectedAppendOffsetException).
        """
        log = self.partition.log
        try:
            return batches_to_append(
                records, log.log_end_offset, self._latest_epoch, self.leader_epoch
            )
        except RefusedRecords as refused:
            end = log.log_end_offset
            is_around_start = 0 <= refused.first_offset < end <= refused.last_offset
            if log.log_start_offset != end or not is_around_start:
                raise
            first = Offset(refused.first_offset)
        batches = batches_to_append(records, first, _NO_EPOCH, self.leader_epoch)
        if batches:
            log.truncate_fully_and_start_at(first)
        return batches

    def _append_up_to_gap(self, batches: list[RecordBatch], now_ms: int, wall_ms: int) -> Next:
        """Append batches up to a gap in which epochs began; the leader is asked for these first."""
        log, gap = self.partition.log, self._gap
        if gap is not None and gap.is_before(log.log_end_offset, batches[0]):
            self._expect_gaps()
            log.append(batches[0].view, batches[:1], now_ms, wall_ms, gap.begins)
            batches = batches[1:]
        self._gap = None
        count = len(batches)
        if self._env.asks_for_epochs:
            count = count_before_gap(batches, log.log_end_offset, self._latest_epoch)
        if count > 0:
            self._write(batches[:count], now_ms, wall_ms)
        if count == len(batches):
            return Next.FETCH
        self._gap = GapEpochs(log.log_end_offset, self._latest_epoch, batches[count])
        return Next.TRACE

    def _expect_gaps(self) -> None:
        """Record that gaps are valid: at a recovery the topic may have another policy."""
        if not self._expects_gaps:
            self._env.expect_gaps(self.partition.topic_partition)
            self._expects_gaps = True

    def _write(self, batches: list[RecordBatch], now_ms: int, wall_ms: int) -> None:
        """Append batches as they are, all at once where they fit into a segment."""
        log = self.partition.log
        expected = log.log_end_offset
        if not self._expects_gaps and any(
            batch.base_offset != before
            for batch, before in zip(
                batches, [expected, *(each.next_offset for each in batches)], strict=False
            )
        ):
            self._expect_gaps()
        size_bytes = sum(batch.size_bytes for batch in batches)
        span = batches[-1].next_offset - batches[0].base_offset
        if size_bytes <= log.config.segment_bytes and span <= _SPAN_MAX:
            data = b"".join([batch.view for batch in batches]) if len(batches) > 1 else None
            log.append(batches[0].view if data is None else data, batches, now_ms, wall_ms)
            return
        for batch in batches:
            log.append(batch.view, [batch], now_ms, wall_ms)

    # -- truncation ------------------------------------------------------------------------------

    def _diverged(self, diverging: EpochEndOffset, data: PartitionData) -> Next:
        """Truncate the log where it diverges from the leader's, or nearer to that offset (KIP-279).

        The leader names the largest epoch that it has up to our last one, and where that ends. If
        our log does not have that epoch, it is truncated to the end of the next smaller one, and
        fetches again. If it has that epoch, the rest matches the leader's log, and the leader's
        bounds apply: the session has sent them now, and sends them again only after they change.
        Not so if the rest ends below the start of the leader's log: the leader has no epochs of
        deleted records, names any older one as ending at that start, and cannot be compared.
        """
        log = self.partition.log
        # Non-obvious 27: a cut may take an epoch and no record.
        before = (log.log_end_offset, log.epochs.latest)
        if diverging.end_offset < 0:
            return Next.REST
        target, is_found = diverging.end_offset, False
        if log.epochs.latest is not None and diverging.epoch <= log.epochs.latest:
            ours = log.end_offset_for_epoch(LeaderEpoch(diverging.epoch))
            is_found = ours.epoch == diverging.epoch
            target = min(target, ours.offset) if is_found else ours.offset
        self._truncate(Offset(min(target, log.log_end_offset)))
        # A leader that contradicts its own last answer is wrong; it is not asked again at once.
        if (log.log_end_offset, log.epochs.latest) == before:
            return Next.REST
        if is_found and log.log_end_offset >= data.log_start_offset:
            self._take_bounds(data)
        return Next.FETCH

    def _truncate(self, offset: Offset) -> Next:
        """Truncate the log; report a truncation below the high watermark, as it loses records."""
        partition, log = self.partition, self.partition.log
        if offset < log.high_watermark:
            self._env.report(
                "replica_truncated_below_high_watermark",
                partition=partition.topic_partition,
                offset=offset,
                high_watermark=log.high_watermark,
                log_end_offset=log.log_end_offset,
                leader_epoch=self.leader_epoch,
            )
        log.truncate_to(offset)
        return Next.FETCH

    def _restart_at(self, offset: Offset) -> Next:
        """Drop all records: the leader has deleted the next ones."""
        partition, log = self.partition, self.partition.log
        self._env.report(
            "replica_restarted_at_log_start",
            partition=partition.topic_partition,
            offset=offset,
            log_end_offset=log.log_end_offset,
        )
        log.truncate_fully_and_start_at(offset)
        return Next.FETCH
