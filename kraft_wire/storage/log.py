"""One partition's log: segments, leader epochs, producers, and the offsets that bound them.

Reading order: `Log.append`, `Log.read`, then `flush`, `truncate_to` and the rest. Opening and
recovery are `recovery.open_log`; look-ups by time are `timestamps`, retention is `retention`,
compaction is `cleaner`. Offsets are record offsets, ranges half-open.

Durability: an append is durable only after `flush`; a truncation is durable when it returns. A
flush can run in another thread: `begin_flush` names the files, `PendingFlush.run` uses only them,
`complete_flush` moves the recovery point.

KIP-98 (producers, last stable offset), KIP-101 (epochs), KIP-107 (log start). Left out: tiered
storage, and validation of clients' batches, which the broker does.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kraft_wire.frozen import maker
from kraft_wire.model import (
    DiskFull,
    FileSlice,
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    StorageError,
    TopicPartition,
    Uuid,
)
from kraft_wire.storage.directory.partition_metadata import write_topic_id
from kraft_wire.storage.files import Buffer, FileSystem
from kraft_wire.storage.indexes import AbortedTransaction
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.log_read import LogRead, OffsetOutOfRange
from kraft_wire.storage.pending_flush import PendingFlush
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.storage.producers.snapshots import load_producers, remove_snapshots, take_snapshot
from kraft_wire.storage.segment import Segment
from kraft_wire.storage.space import DiskSpace
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["FIELDS", "Log"]

_NOTHING = b""
_new_read = maker(LogRead)
_new_slice = maker(FileSlice)


FIELDS: Final = (
    "_active",
    "_bases",
    "_cuts_count",
    "_directory_changes",
    "_directory_synced",
    "_fs",
    "_lower_cleaner_offset",
    "_persist_recovery_point",
    "_space",
    "config",
    "cut_bytes",
    "directory",
    "epochs",
    "first_unflushed_ms",
    "high_watermark",
    "log_end_offset",
    "log_start_offset",
    "producer_states",
    "recovery_point",
    "rolled",
    "segments",
    "topic_id",
    "topic_id_is_saved",
    "topic_partition",
)
"""All fields of a `Log`; a compiled class has no `__slots__` to read them from."""


class Log:
    """One partition's log. `recovery.open_log` makes one."""

    __slots__ = FIELDS

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        segments: list[Segment],
        epochs: LeaderEpochs,
        producer_states: ProducerStates,
        persist_recovery_point: Callable[[], None],
        lower_cleaner_offset: Callable[[Offset], None],
        space: DiskSpace,
        *,
        is_synced: bool,
    ) -> None:
        """`is_synced`: every name in the directory is durable, as a clean stop leaves it."""
        assert segments, directory
        self._fs = fs
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.topic_id_is_saved = True
        """Whether `partition.metadata` has it, as it must before the first record is written."""
        self.config = config
        self.segments = segments
        self.epochs = epochs
        self.producer_states = producer_states
        self._persist_recovery_point = persist_recovery_point
        self._lower_cleaner_offset = lower_cleaner_offset
        self._space = space
        self._directory_changes = 1  # of which the first ones are durable:
        self._directory_synced = int(is_synced)
        self._cuts_count = 0
        self.first_unflushed_ms: int | None = None
        self.log_start_offset = segments[0].base_offset
        self.log_end_offset = self.log_start_offset
        self.high_watermark = self.log_start_offset
        self.recovery_point = Offset(0)
        self.cut_bytes = 0
        """Bytes of a torn tail that recovery cut when this log was opened."""
        self.rolled: Callable[[Log], None] = lambda _: None
        """Called after each roll."""
        self._bases: list[Offset] = []
        self.segments_changed()

    # -- appending -------------------------------------------------------------------------------

    def append(
        self,
        data: Buffer,
        batches: Sequence[RecordBatch],
        now_ms: int,
        wall_ms: int,
        gap_epochs: Sequence[OffsetAndEpoch] = (),
    ) -> None:
        """Append validated batches with their offsets and epoch already in `data`.

        `data` is exactly `batches`, whose fields equal the bytes. `gap_epochs` began in the gap
        before them, oldest first; the last is that of the first batch. Rolls first when due.
        Errors: DiskFull and StorageError, with an unchanged log.
        """
        if self._space.is_full:
            raise DiskFull("append", self.directory, "too little space is left")
        first, last = batches[0], batches[-1]
        assert first.base_offset >= self.log_end_offset, (first, self.log_end_offset)
        last_offset = last.base_offset + last.last_offset_delta
        if not self.topic_id_is_saved or first.base_offset < self._active.base_offset:
            self._make_ready(Offset(first.base_offset))
        if not self._active.has_room_for(
            len(data), last_offset, self.config
        ) or self._is_time_to_roll(last.max_timestamp, wall_ms):
            self.roll(wall_ms, Offset(first.base_offset))
        epochs, producer_states = self.epochs, self.producer_states
        if epochs.is_unsaved:
            epochs.save(durable=False)
        if last.partition_leader_epoch != epochs.latest:
            self._append_in_new_epochs(data, batches, gap_epochs)
        else:
            self._active.append(data, batches)
        for batch in batches:
            if batch.producer_id >= 0:
                aborted = producer_states.update(batch)
                if aborted is not None:
                    self._active.indexes.note_aborted(aborted)
        self.log_end_offset = producer_states.map_end_offset = Offset(last_offset + 1)
        if self.first_unflushed_ms is None:
            self.first_unflushed_ms = now_ms

    def _append_in_new_epochs(
        self, data: Buffer, batches: Sequence[RecordBatch], gap_epochs: Sequence[OffsetAndEpoch]
    ) -> None:
        """Note the starts of new leader epochs, then write; undo both if the write fails.

        A replica with an epoch beyond its log could win an election although it lacks that
        epoch's records.
        """
        assert batches, self.directory
        before = self.epochs.entries
        try:
            for start, epoch in gap_epochs:
                assert self.log_end_offset <= start <= batches[0].base_offset, gap_epochs
                self.epochs.assign(epoch, start)
            for batch in batches:
                epoch = LeaderEpoch(batch.partition_leader_epoch)
                self.epochs.assign(epoch, Offset(batch.base_offset))
            self._active.append(data, batches)
        except StorageError:
            self.epochs.restore(before)
            raise

    def _make_ready(self, offset: Offset) -> None:
        """Save the topic id; remove an empty segment above the next batch.

        A full disk has refused that segment's batch. It was behind a gap, in which another leader
        may have records.
        """
        if not self.topic_id_is_saved:
            self._save_topic_id()
        while self._active.base_offset > offset:
            assert self._active.size_bytes == 0, self._active.path
            remove_snapshots(self._fs, self.directory, lambda taken_at: taken_at > offset)
            self._remove_last_segment()

    def _save_topic_id(self) -> None:
        """Write `partition.metadata`; the next flush makes its name durable with the records."""
        assert any(self.topic_id), self.directory
        write_topic_id(self._fs, self.directory, self.topic_id, durable=False)
        self._directory_changes += 1
        self.topic_id_is_saved = True

    def _is_time_to_roll(self, timestamp: int, wall_ms: int) -> bool:
        """Return whether the active segment is `segment.ms` old, by its first batch's time."""
        active, config = self._active, self.config
        if active.size_bytes == 0:
            return False
        assert wall_ms >= 0, wall_ms
        due_ms = config.segment_ms
        if config.segment_jitter_ms > 0:
            due_ms -= self._jitter_ms(active.base_offset)
        first_timestamp = active.unread_indexes.first_timestamp
        if first_timestamp >= 0 and timestamp >= 0:
            return timestamp - first_timestamp > due_ms
        return wall_ms - active.created_ms > due_ms

    def _jitter_ms(self, base_offset: Offset) -> int:
        """Return how much earlier a segment rolls, so that not all partitions roll at once.

        Derived from the segment's name, which spreads like a random number but is constant.
        """
        jitter_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        assert jitter_ms > 0, jitter_ms
        return crc32c(f"{self.topic_partition}:{base_offset}".encode()) % jitter_ms

    def roll(self, wall_ms: int, base_offset: Offset | None = None) -> None:
        """Seal the active segment and create a new one; an empty active segment is kept."""
        assert base_offset is None or base_offset >= 0, base_offset
        base = max(self.log_end_offset, base_offset or self.log_end_offset)
        if self._active.size_bytes == 0 and self._active.base_offset == base:
            return
        if self.config.flushes_every_append:
            # The next segment must not become durable before this one: a gap is not a torn tail.
            self.flush()
        self._active.seal()
        if not self._active.is_unflushed:
            self._active.indexes.save(sync=True)  # no later flush or recovery reads it
        self.producer_states.map_end_offset = base
        take_snapshot(self._fs, self.directory, self.producer_states)
        segment = Segment.create(self._fs, self.directory, base, self.config, wall_ms)
        self._directory_changes += 1
        self.segments.append(segment)
        self.segments_changed()
        assert self._active is segment, segment.path
        self.rolled(self)

    def segments_changed(self) -> None:
        """Update the look-up table from `segments`."""
        self._active = self.segments[-1]
        self._bases = [segment.base_offset for segment in self.segments]
        assert self._bases == sorted(set(self._bases)), self._bases

    # -- reading ---------------------------------------------------------------------------------

    def read(
        self, offset: Offset, max_bytes: int, *, upper_bound: Offset, min_one_batch: bool
    ) -> LogRead:
        """Return batches from the one that holds `offset`, none that reaches `upper_bound`.

        At most `max_bytes` (the last batch may be cut), but with `min_one_batch` the first batch
        is always whole. OffsetOutOfRange below the log's start and above its end.
        """
        log_end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= log_end_offset:
            raise OffsetOutOfRange(offset, self.log_start_offset, log_end_offset)
        if offset >= upper_bound or offset >= log_end_offset:
            return _new_read(_NOTHING, 0, offset)
        active = self._active
        first = len(self.segments) - 1
        if offset < active.base_offset:
            first = max(0, bisect_right(self._bases, offset) - 1)
        for at in range(first, len(self.segments)):
            segment = self.segments[at]
            base_offset = segment.base_offset
            frame = segment.locate(offset if offset > base_offset else base_offset)
            if frame is None:
                continue
            end_position = segment.size_bytes
            if upper_bound < log_end_offset:
                end_position = self._position_of(upper_bound, segment)
            available = end_position - frame.position
            if available <= 0:
                break
            segment_end = log_end_offset if segment is active else self._bases[at + 1]
            is_older = segment_end < upper_bound
            position = frame.position
            size = available if available < max_bytes else max_bytes
            if size < frame.size_bytes:
                if not min_one_batch:
                    first_offset = frame.base_offset
                    return _new_read(
                        _NOTHING, 0, first_offset, True, is_older, segment, position, segment_end
                    )
                size = frame.size_bytes
            end = position + size
            assert end <= segment.size_bytes, (frame, size)
            records = _new_slice(segment.file, position, size)
            return _new_read(
                records, size, frame.base_offset, False, is_older, segment, end, segment_end
            )
        return _new_read(_NOTHING, 0, offset)

    def _position_of(self, upper_bound: Offset, segment: Segment) -> int:
        """Return the position in the segment at which the batches below `upper_bound` end."""
        assert upper_bound >= 0, upper_bound
        frame = segment.locate(upper_bound)
        position = segment.size_bytes if frame is None else frame.position
        assert 0 <= position <= segment.size_bytes, (position, segment.path)
        return position

    def segments_from(self, offset: Offset) -> Iterator[Segment]:
        """Iterate over the segments from the one that may hold `offset`."""
        assert offset >= 0, offset
        yield from self.segments[max(0, bisect_right(self._bases, offset) - 1) :]

    def aborted_transactions(self, first: Offset, end: Offset) -> list[AbortedTransaction]:
        """Return the aborted transactions that a reader of [first, end) must know.

        The search stops at a marker when all transactions open at it begin at or after `end`: so
        do all later ones.
        """
        assert first <= end, (first, end)
        found: list[AbortedTransaction] = []
        for segment in self.segments_from(first):
            entries, is_all = segment.indexes.aborted_transactions(first, end)
            found += entries
            if is_all:
                break
        return found

    # -- offsets ---------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        assert self.segments, self.directory
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def active_segment(self) -> Segment:
        """The segment that gets the appends."""
        assert self._active is self.segments[-1], self.directory
        return self._active

    @property
    def latest_epoch(self) -> LeaderEpoch | None:
        """The newest leader epoch in the log."""
        return self.epochs.latest

    @property
    def last_stable_offset(self) -> Offset:
        """End of a read_committed reader (KIP-98): at most the high watermark."""
        high_watermark = self.high_watermark
        assert self.log_start_offset <= high_watermark, self.directory
        unstable = self.producer_states.first_unstable_offset(high_watermark)
        if unstable is None or unstable >= high_watermark:
            return high_watermark
        return max(unstable, self.log_start_offset)  # its first records may be removed already

    def update_high_watermark(self, offset: Offset) -> bool:
        """Set the high watermark, limited to the log; return whether it changed."""
        assert offset >= 0, offset
        bounded = max(self.log_start_offset, min(offset, self.log_end_offset))
        is_changed, self.high_watermark = bounded != self.high_watermark, bounded
        if bounded < self.producer_states.snapshot_offset:
            self._load_producers()  # as a log is opened before its high watermark is known
        return is_changed

    def _load_producers(self) -> None:
        """Read the producers again, up to the log's end."""
        self.producer_states = load_producers(
            self._fs, self.directory, self.segments, self.log_end_offset, self.high_watermark
        )

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> OffsetAndEpoch:
        """Return the largest known epoch up to `epoch` with its end; see `LeaderEpochs`."""
        return self.epochs.end_offset_for_epoch(epoch, self.log_end_offset, self.log_start_offset)

    def update_config(self, config: LogConfig) -> None:
        """Apply changed topic settings from now on."""
        assert config.segment_bytes > 0, config
        assert config.index_interval_bytes >= 0, config
        self.config = config
        for segment in self.segments:
            segment.unread_indexes.interval_bytes = config.index_interval_bytes
        assert self._active.size_bytes >= 0

    # -- durability ------------------------------------------------------------------------------

    @property
    def unflushed_records(self) -> int:
        """Number of records that are not durable, to be compared with `flush.messages`."""
        assert self.recovery_point <= self.log_end_offset, self.recovery_point
        return self.log_end_offset - self.recovery_point

    def begin_flush(self) -> PendingFlush:
        """Return the flush that makes everything appended so far durable."""
        segments = [segment for segment in self.segments if segment.is_unflushed]
        for segment in segments:
            if segment is not self._active:
                segment.indexes.save(sync=True)
        sync = None
        if self._directory_synced < self._directory_changes:
            sync = self._sync_directory
        files = [segment.file for segment in segments]
        assert len(files) == len(segments)
        covered = [(segment, segment.size_bytes) for segment in segments]
        return PendingFlush(
            self.log_end_offset,
            self._cuts_count,
            self._directory_changes,
            files,
            covered,
            sync,
        )

    def complete_flush(self, flushed: PendingFlush) -> None:
        """Note that `flushed.run()` returned; later appends stay unflushed."""
        assert flushed.cuts_count <= self._cuts_count, flushed
        if flushed.cuts_count != self._cuts_count:
            return  # truncated in between: other bytes were synced
        for segment, size_bytes in flushed.segments:
            segment.is_unflushed = segment.size_bytes > size_bytes
        self._directory_synced = max(self._directory_synced, flushed.directory_changes)
        self.recovery_point = max(self.recovery_point, flushed.end_offset)
        if self.recovery_point == self.log_end_offset:
            self.first_unflushed_ms = None
        assert self.recovery_point <= self.log_end_offset

    def flush(self) -> None:
        """Make everything appended so far durable; FsyncFailed must stop the process."""
        assert self.recovery_point <= self.log_end_offset, self.recovery_point
        is_synced = self._directory_synced == self._directory_changes
        if self.recovery_point == self.log_end_offset and is_synced:
            return
        pending = self.begin_flush()
        pending.run()
        self.complete_flush(pending)
        assert self.recovery_point == self.log_end_offset

    def _sync_directory(self) -> None:
        self._fs.sync_directory(self.directory)

    def _lower_recovery_point(self, offset: Offset) -> None:
        """Ensure that recovery after a crash verifies everything from `offset` on."""
        assert offset >= 0, offset
        if offset < self.recovery_point:
            before, self.recovery_point = self.recovery_point, offset
            try:
                self._persist_recovery_point()
            except StorageError:
                self.recovery_point = before  # nothing is truncated: the next attempt repeats this
                raise

    # -- cutting ---------------------------------------------------------------------------------

    def truncate_to(self, offset: Offset) -> bool:
        """Remove everything from the batch that has `offset` on, durably; return whether any was.

        Never below the high watermark in the metadata log; that is asserted by its caller, as a
        data replica may (KIP-101).
        """
        assert offset >= 0, offset
        if offset >= self.log_end_offset:
            # Other replicas may not know an announced epoch without records.
            self.epochs.truncate_from_end(self.log_end_offset)
            return False
        if offset <= self.log_start_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        segment = self.segments[bisect_left(self._bases, offset) - 1]
        first_cut, end = segment.locate(offset), segment.end_below(offset)
        self._lower_cleaner_offset(segment.base_offset)  # where the next appends go
        self._lower_recovery_point(end)
        remove_snapshots(self._fs, self.directory, lambda taken_at: taken_at > end)
        while self._active is not segment:
            self._remove_last_segment()
        if first_cut is not None:
            segment.cut(first_cut.position, first_cut.base_offset)
            segment.file.fsync()
            assert segment.size_bytes == first_cut.position, (segment.size_bytes, first_cut)
        # DeleteRecords may have set the start inside the truncated batch, or after the last one.
        self.log_start_offset = min(self.log_start_offset, end)
        self._end_changed(end)
        segment.indexes.save()  # last, as it needs room: a restart or the next save makes up for it
        assert self.log_end_offset <= offset, (self.log_end_offset, offset)
        return True

    def _remove_last_segment(self) -> None:
        """Remove the newest segment; back to front, each durably, so that no gap can remain."""
        assert len(self.segments) > 1, self.directory
        self.segments.pop().remove()
        self._sync_directory()
        self.segments_changed()

    def _end_changed(self, end: Offset) -> None:
        """Adjust producers, offsets and epochs to a new, lower end.

        The epochs' file is last, because it needs space on the disk: a log that continues after a
        full disk must not take truncated batches for a producer's last batch.
        """
        assert end <= self.log_end_offset or end == self.log_start_offset, end
        self._cuts_count += 1
        self.log_end_offset = end
        self.high_watermark = min(self.high_watermark, end)
        self._load_producers()
        if self.recovery_point >= end:
            self.first_unflushed_ms = None
        self.epochs.truncate_from_end(end)
        assert self.log_start_offset <= end, (self.log_start_offset, end)

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Drop everything, durably, and continue as an empty log that begins at `offset`."""
        assert offset >= 0, offset
        self._lower_cleaner_offset(Offset(0))  # a crash may leave any part, or an empty log at 0
        self._lower_recovery_point(Offset(0))
        remove_snapshots(self._fs, self.directory, lambda _: True)
        created_ms = self._active.created_ms
        while len(self.segments) > 1:
            self._remove_last_segment()
        self.segments.pop().remove()
        self._sync_directory()
        try:
            first = Segment.create(self._fs, self.directory, offset, self.config, created_ms)
        except DiskFull as full:  # only the next start can repair a log without a segment
            raise StorageError(full.operation, full.path, full.reason) from full
        self.segments.append(first)
        self._sync_directory()
        self._directory_synced = self._directory_changes
        self.segments_changed()
        self.log_start_offset = self.high_watermark = self.recovery_point = offset
        try:
            self.epochs.clear()
        finally:  # the old log is gone, even if this cannot be written
            self._end_changed(offset)

    def advance_log_start_offset(self, offset: Offset) -> bool:
        """Hide records below `offset` (DeleteRecords, KIP-107); return whether anything changed.

        The next `apply_retention` removes segments wholly below it, and their epochs with them: a
        crash may restore records while their segment exists.
        """
        assert offset >= 0, offset
        if offset <= self.log_start_offset:
            return False
        assert offset <= self.log_end_offset, (offset, self.log_end_offset)
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.producer_states.forget_below(offset)
        return True

    def remove_first_segments(self, count: int) -> None:
        """Remove the `count` oldest segments, oldest first and each durably."""
        assert 0 <= count < len(self.segments), (count, len(self.segments))
        if count == 0:
            return
        self.advance_log_start_offset(self.segments[count].base_offset)
        for _ in range(count):
            removed = self.segments.pop(0)
            self.segments_changed()  # before a disk error is possible: reads depend on it
            removed.remove()
            self._sync_directory()
        first = self.segments[0].base_offset
        self.epochs.truncate_from_start(first)
        remove_snapshots(self._fs, self.directory, lambda taken_at: taken_at < first)

    def close(self) -> None:
        """Flush and leave every file as Kafka leaves it after a clean stop."""
        assert self.segments, self.directory
        if not self.topic_id_is_saved:
            self._save_topic_id()
        self.flush()
        self.producer_states.map_end_offset = self.log_end_offset
        is_new = take_snapshot(self._fs, self.directory, self.producer_states)
        for segment in self.segments:
            segment.close()
        if is_new:
            self._sync_directory()
        assert self.unflushed_records == 0, self.directory
