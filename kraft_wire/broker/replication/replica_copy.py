"""The copy of a replica in another log directory, which follows the replica's log.

It does so as a follower does: the same `FollowedPartition` truncates, restarts and appends it, and
the leader's answers are made here from the replica's log, without a request. The log of a follower
may be truncated at any time, and one that lost its end in a power failure may be shorter than its
copy; leader epochs show both, as between brokers (KIP-101).

Not here: when to copy, and the end of a move (`moving`).
"""

from typing import Final

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import PartitionLog
from kraft_wire.broker.replication.fetch_session_handler import FetchPosition
from kraft_wire.broker.replication.following import FollowedPartition, FollowerEnvironment, Next
from kraft_wire.model import FileSlice, LeaderEpoch, Offset, StorageError
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import EpochEndOffset, PartitionData

__all__ = ["ReplicaCopy"]

_FLUSH_BYTES: Final = 32 << 20
"""Copied bytes after which they are flushed, so that the last flush is short."""


class ReplicaCopy:
    """A replica, and its copy as a partition of its own."""

    __slots__ = ("_followed", "_unflushed_bytes", "copy", "partition")

    def __init__(self, partition: Partition, copy: Partition) -> None:
        self.partition = partition
        self.copy = copy
        self._unflushed_bytes = 0
        self._followed: FollowedPartition | None = None
        """Follows under the replica's present leader epoch; None before the first read."""

    @property
    def has_equal_end(self) -> bool:
        """Whether the copy has exactly the records of the replica's log."""
        log, copy = self.partition.log, self.copy.log
        return (
            copy.log_end_offset == log.log_end_offset
            and copy.log_start_offset <= log.log_start_offset
            and self._diverging_point() is None
        )

    def follow(self, max_bytes: int, now_ms: int, wall_ms: int) -> int | None:
        """Take one read of the replica's log; return its size, None if nothing has changed.

        Errors: StorageError of the replica's log; those of the copy's disk go to `copy.failed`.
        """
        log, copy = self.partition.log, self.copy.log
        before = (copy.log_start_offset, copy.log_end_offset, copy.epochs.latest)
        if copy.log_start_offset > log.log_start_offset:  # the log began again, lower
            try:
                copy.truncate_fully_and_start_at(log.log_start_offset)
            except StorageError as error:
                self.copy.failed(error)
                return None
        followed = self._following()
        asked = followed.position(max_bytes)
        answer = self._bounds(asked)
        is_readable = answer.diverging_epoch is None and answer.error_code == ErrorCode.NONE
        records = answer.records = _bytes_from(log, asked) if is_readable else b""
        following = followed.fetched(asked, answer, now_ms, wall_ms)
        if following is Next.LOCATE_END:
            following = followed.located_end(log.log_end_offset)
        if following is Next.LOCATE_START:
            followed.located_start(log.log_start_offset)
        self._unflushed_bytes += len(records)
        if before == (copy.log_start_offset, copy.log_end_offset, copy.epochs.latest):
            return None
        return len(records)

    def flush_at_times(self) -> None:
        """Flush the copy if much of it is unflushed. Errors: StorageError."""
        if self._unflushed_bytes >= _FLUSH_BYTES:
            self._unflushed_bytes = 0
            self.copy.log.flush()

    def _diverging_point(self) -> EpochEndOffset | None:
        """Return where the copy must be truncated, None if it agrees with the replica's log."""
        latest = self.copy.log.epochs.latest
        end = self.copy.log.log_end_offset
        if latest is None or end < self.partition.log.log_start_offset:
            return None
        point = self.partition.diverging_point(end, latest)
        return None if point is None else EpochEndOffset(epoch=point.epoch, end_offset=point.offset)

    def _following(self) -> FollowedPartition:
        """Return the follower under the replica's present leader epoch."""
        epoch: LeaderEpoch = self.partition.leader_epoch
        if self._followed is None or self._followed.leader_epoch != epoch:
            self.copy.leader_epoch = epoch
            env = FollowerEnvironment(
                report=_no_report,
                expect_gaps=lambda _: None,
                grew=lambda _: None,
                asks_for_epochs=False,  # at its end the copy takes the replica's own
            )
            self._followed = FollowedPartition(self.copy, env)
        return self._followed

    def _bounds(self, asked: FetchPosition) -> PartitionData:
        """Return the answer of the replica's log to a fetch of its copy, but for the records."""
        log = self.partition.log
        answer = PartitionData(
            partition_index=self.partition.partition,
            high_watermark=log.high_watermark,
            log_start_offset=log.log_start_offset,
            diverging_epoch=self._diverging_point(),
        )
        is_inside = log.log_start_offset <= asked.fetch_offset <= log.log_end_offset
        if answer.diverging_epoch is None and not is_inside:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        return answer


def _bytes_from(log: PartitionLog, asked: FetchPosition) -> bytes:
    """Return whole batches of a log as bytes, and perhaps a part of one more."""
    read = log.read(
        Offset(asked.fetch_offset),
        asked.partition_max_bytes,
        upper_bound=log.log_end_offset,
        min_one_batch=True,
    )
    records = read.records
    return records.read() if isinstance(records, FileSlice) else records


def _no_report(name: str, **fields: object) -> None:
    """Report nothing: what the copy does follows from the replica's log, which is reported."""
