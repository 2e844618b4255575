"""Reads one share fetch: which share partitions have something, what is read, what is acquired.

Like a fetch it is run again from the top when one of its partitions changed, and a last time at its
deadline. Reading and acquiring are one step, so no other fetch comes between.

Not here: sessions, acknowledgements and the answer as a whole (`share_answer`).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.purgatory import DelayedFetch
from kraft_wire.broker.share_fetch.acquire import Fetched, acquire
from kraft_wire.broker.share_fetch.acquired import Acquired
from kraft_wire.broker.share_fetch.log_batches import read_batches, size_of, sliced
from kraft_wire.broker.share_fetch.session import SessionPartition
from kraft_wire.broker.share_fetch.share_partition import Life, Outcome, SharePartition
from kraft_wire.broker.share_fetch.share_partitions import SharePartitions
from kraft_wire.broker.share_persister import SharePartitionKey
from kraft_wire.model import FileSlice, Offset, RandomSource, StorageError
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.share_fetch import (
    AcquiredRecords,
    PartitionData,
    ShareFetchRequest,
)

__all__ = ["Results", "ShareFetchRun"]

_RECORD_LIMIT: Final = 1
_NO_RECORDS: Final = b""
_NO_ERROR: Final = ErrorCode.NONE

Results: TypeAlias = list[tuple[SessionPartition, PartitionData]]


class _Read(NamedTuple):
    """What was read of one candidate, for the fetch that may acquire it."""

    wanted: SessionPartition
    share: SharePartition
    partition: Partition
    fetch_offset: int
    records: FileSlice | bytes = _NO_RECORDS
    error: ErrorCode = _NO_ERROR
    aborted: Sequence[tuple[int, int]] = ()


class ShareFetchRun:
    """The fetching part of one ShareFetch, as often as it is run."""

    __slots__ = (
        "_answer",
        "_at",
        "_context",
        "_failed",
        "_is_satisfied",
        "_max_bytes",
        "_min_bytes",
        "_reads_committed",
        "_request",
        "_shares",
        "_wanted",
    )

    def __init__(
        self,
        shares: SharePartitions,
        context: RequestContext,
        request: ShareFetchRequest,
        answer: Callable[[Results, ClockReading], None],
    ) -> None:
        """`answer` is called once, with the results in the order of fetching."""
        broker = shares.broker
        self._shares = shares
        self._context = context
        self._request = request
        self._answer = answer
        self._at = ClockReading(context.now_ms, context.wall_ms)
        max_bytes = min(request.max_bytes, broker.settings.fetch_max_bytes)
        if broker.fetch_quota is not None:
            max_bytes = broker.fetch_quota.fetch_bytes_max(context, max_bytes)
        self._max_bytes = max_bytes
        self._min_bytes = min(request.min_bytes, max_bytes)
        self._reads_committed = shares.settings.of(request.group_id or "").reads_committed
        self._wanted: list[tuple[SessionPartition, SharePartition, Partition]] = []
        self._failed: Results = []
        """Partitions that cannot be fetched; the answer lists them when it leaves."""
        self._is_satisfied = False

    def begin(self, wanted: Sequence[SessionPartition], refused: Results) -> None:
        """Fetch at once, or wait for more."""
        self._failed = list(refused)
        request = self._request
        if not wanted or request.max_records == 0 or self._max_bytes == 0:
            self._answer(refused, self._at)
            return
        for each in wanted:
            self._use(each)
        if self._max_bytes < 0:
            failed = [(each, _unreadable(each.partition)) for each, *_ in self._wanted]
            self._answer(self._failed + failed, self._at)
            return
        if not self._wanted:
            self._answer(self._failed, self._at)
            return
        is_last = request.max_wait_ms <= 0 or self._shares.broker.is_stopping
        if not self._run(self._at, is_last=is_last):
            self._park()

    def _use(self, wanted: SessionPartition) -> None:
        shares = self._shares
        assert wanted.topic is not None, "topics without a name are refused before"
        key = SharePartitionKey(self._request.group_id or "", *wanted.key)
        error = shares.leader_error(wanted.topic, wanted.topic_id, wanted.partition)
        if error != _NO_ERROR:
            shares.drop(key)
            self._failed.append((wanted, failed_data(wanted.partition, error)))
            return
        partition = shares.broker.partitions[wanted.topic, wanted.partition]

        def failed(outcome: Outcome, at: ClockReading) -> None:
            self._failed.append((wanted, failed_data(wanted.partition, outcome.error)))

        share = shares.use(key, partition, self._at, failed)
        if share.life is not Life.FENCED:
            self._wanted.append((wanted, share, partition))

    def _park(self) -> None:
        context, purgatory = self._context, self._shares.broker.fetch_purgatory
        count = len(self._wanted)
        limit = self._shares.broker.settings.purgatory_max_partitions
        if purgatory.partitions_count + count > limit:
            self._run(self._at, is_last=True)
            return
        watched = [part for _, share, partition in self._wanted for part in (share, partition)]
        deadline_ms = context.now_ms + self._request.max_wait_ms
        purgatory.park(
            DelayedFetch(
                context.reply_to, deadline_ms, self._run_again, watched, partitions_count=count
            )
        )

    def _run_again(self, now_ms: int, expired: bool) -> bool:
        waited_ms = now_ms - self._context.now_ms
        at = ClockReading(now_ms, self._context.wall_ms + waited_ms)
        return self._run(at, is_last=expired)

    def _run(self, at: ClockReading, *, is_last: bool) -> bool:
        """Read and acquire if there is enough, or if this is the last time; answer then."""
        reads = self._read()
        if not is_last and not (reads and self._is_satisfied):
            return False
        results: Results = []
        left = self._request.max_records
        for read in reads:
            data, count = self._acquired(read, left, at)
            left -= count
            results.append((read.wanted, data))
        self._answer(results + self._failed, at)
        return True

    # -- reading -----------------------------------------------------------------------------------

    def _read(self) -> list[_Read]:
        """Read the share partitions that have room or something available, without acquiring."""
        candidates = [
            each for each in self._wanted if each[1].life is Life.ACTIVE and each[1].can_acquire()
        ]
        self._is_satisfied = False
        if not candidates:
            return []
        random = self._shares.broker.random_source
        sizes = split_bytes(self._max_bytes, len(candidates), random)
        reads: list[_Read] = []
        read_bytes = 0
        for (wanted, share, partition), max_bytes in zip(candidates, sizes, strict=True):
            read = self._read_one(wanted, share, partition, max_bytes, is_first=not read_bytes)
            read_bytes += size_of(read.records)
            reads.append(read)
        self._is_satisfied |= read_bytes >= self._min_bytes
        return reads

    def _read_one(
        self,
        wanted: SessionPartition,
        share: SharePartition,
        partition: Partition,
        max_bytes: int,
        *,
        is_first: bool,
    ) -> _Read:
        log, offset = partition.log, Offset(share.next_fetch_offset())
        read = _Read(wanted, share, partition, offset)
        if not log.log_start_offset <= offset <= log.log_end_offset:
            self._is_satisfied = True
            return read._replace(error=ErrorCode.OFFSET_OUT_OF_RANGE)
        bound = log.last_stable_offset if self._reads_committed else log.high_watermark
        if offset >= bound:
            return read
        try:
            found = log.read(offset, max_bytes, upper_bound=bound, min_one_batch=is_first)
            aborted = self._aborted(partition, offset, found.offset_behind)
        except StorageError as error:
            partition.failed(error)
            self._is_satisfied = True
            return read._replace(error=ErrorCode.KAFKA_STORAGE_ERROR)
        self._is_satisfied |= found.is_older
        return read._replace(records=found.records, aborted=aborted)

    def _aborted(
        self, partition: Partition, offset: Offset, end_offset: Offset
    ) -> Sequence[tuple[int, int]]:
        if not self._reads_committed:
            return ()
        found = partition.log.aborted_transactions(offset, end_offset)
        return [(each.producer_id, each.first_offset) for each in found]

    # -- acquiring ---------------------------------------------------------------------------------

    def _acquired(self, read: _Read, left: int, at: ClockReading) -> tuple[PartitionData, int]:
        """Acquire what one read allows; return the answer's part and the number of records."""
        number = read.wanted.partition
        if read.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            read.share.move_log_start(read.partition.log_start_offset)
            return empty_data(number), 0
        if read.error != _NO_ERROR:
            return failed_data(number, read.error), 0
        request, share = self._request, read.share
        try:
            batches = read_batches(
                read.records,
                read.fetch_offset,
                share.end_offset,
                left,
                finds_markers=bool(read.aborted),
            )
        except StorageError as error:
            read.partition.failed(error)
            return failed_data(number, ErrorCode.KAFKA_STORAGE_ERROR), 0
        fetched = Fetched(
            member_id=request.member_id or "",
            is_record_limit=request.share_acquire_mode == _RECORD_LIMIT,
            batch_size=request.batch_size,
            max_records=left,
            fetch_offset=read.fetch_offset,
            batches=batches,
            aborted=read.aborted,
        )
        acquired = acquire(share, fetched, at)
        if not acquired.ranges:
            return empty_data(number), 0
        first, last = acquired.ranges[0].first_offset, acquired.ranges[-1].last_offset
        records = sliced(read.records, batches, first, last)
        return _acquired_data(number, records, acquired), acquired.records_count


def split_bytes(max_bytes: int, count: int, random: RandomSource) -> list[int]:
    """Divide the bytes of an answer evenly; what is left over goes to partitions at random."""
    share, rest = divmod(max_bytes, count)
    sizes = [share] * count
    if rest:
        first = random.below(count)
        if share:
            sizes[first] += rest
        else:
            for step in range(rest):
                sizes[(first + step) % count] = 1
    return sizes


def empty_data(number: int) -> PartitionData:
    """Return the part of an answer for a partition without records."""
    return PartitionData(partition_index=number, records=_NO_RECORDS)


def failed_data(number: int, error: ErrorCode) -> PartitionData:
    """Return the part of an answer for a partition that could not be fetched."""
    return PartitionData(partition_index=number, error_code=error, records=_NO_RECORDS)


def _unreadable(number: int) -> PartitionData:
    """Return what Kafka answers to a MaxBytes below 0."""
    return failed_data(number, ErrorCode.UNKNOWN_SERVER_ERROR)


def _acquired_data(number: int, records: FileSlice | bytes, acquired: Acquired) -> PartitionData:
    return PartitionData(
        partition_index=number,
        records=records,
        acquired_records=[
            AcquiredRecords(
                first_offset=each.first_offset,
                last_offset=each.last_offset,
                delivery_count=each.delivery_count,
            )
            for each in acquired.ranges
        ],
    )
