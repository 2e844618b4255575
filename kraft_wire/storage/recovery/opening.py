"""Opening a log: leftovers of interrupted work, then verification, then the tables.

After a clean stop only the end of the log is read. Otherwise every batch from the segment of the
recovery point on is checked, as it is on the disk (`_read_anew`): length, magic, CRC, place in the
sequence of offsets, leader epoch. Invalid bytes are a **torn tail** only if no valid batch follows
and no part of them was known to be durable; they are cut, and the result is flushed. Anything else
is damage: `CorruptLog` names file and position, nothing is changed, and the log is not served,
because a cut there could lose acknowledged records.

If a transaction index is invalid or lost, its segment is verified, and the index is rebuilt.

Order: `open_log`, `finish_swaps`, `_Recovery`.
"""

from collections.abc import Callable, Sequence

from kraft_wire.model import LeaderEpoch, Offset, TopicPartition, Uuid
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.indexes import CorruptIndex, TransactionIndex
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.producer_state import ProducerStates
from kraft_wire.storage.producers.replay import ProducerReplay
from kraft_wire.storage.producers.snapshots import (
    load_producers,
    remove_snapshots,
    remove_stray_snapshots,
)
from kraft_wire.storage.recovery.verification import BEFORE_FIRST, LogVerifier, damage_behind
from kraft_wire.storage.scan import BadBatch, batches
from kraft_wire.storage.segment import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    CorruptLog,
    Segment,
    file_name,
    offset_in,
)
from kraft_wire.storage.space import DiskSpace
from kraft_wire.wire.records.corruption import CorruptRecordBatch

__all__ = ["CLEANED_SUFFIX", "DELETED_SUFFIX", "SWAP_SUFFIX", "finish_swaps", "open_log"]

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_SUFFIX = ".deleted"
_TEMPORARY_SUFFIX = ".tmp"
_OFFSET_SUFFIX = ".index"
_TRANSACTION_SUFFIX = ".txnindex"
_BEGINNING = Offset(0)


def open_log(
    fs: FileSystem,
    directory: str,
    topic_partition: TopicPartition,
    topic_id: Uuid,
    config: LogConfig,
    *,
    wall_ms: int,
    is_clean: bool = False,
    recovery_point: Offset = _BEGINNING,
    log_start_offset: Offset = _BEGINNING,
    persist_recovery_point: Callable[[], None] = lambda: None,
    lower_cleaner_offset: Callable[[Offset], None] = lambda _: None,
    space: DiskSpace | None = None,
    was_compacted: bool = False,
) -> Log:
    """Open the log in `directory`, created if missing, and bring it into a valid state.

    `is_clean`: the directory has a clean-shutdown marker. `was_compacted`: gaps are valid.
    Errors: CorruptLog and CorruptCheckpoint name the damage; StorageError, FsyncFailed.
    """
    assert recovery_point >= 0, recovery_point
    fs.make_directory(directory)
    finish_swaps(fs, directory)
    segments = _existing_segments(fs, directory, config, wall_ms)
    spoilt_from = _first_spoilt(fs, directory, segments)
    is_clean = is_clean and spoilt_from is None
    if is_new := not segments:
        segments = [Segment.create(fs, directory, log_start_offset, config, wall_ms)]
    epochs = LeaderEpochs(fs, directory)
    epochs.load()
    recovery = _Recovery(
        fs,
        directory,
        segments,
        epochs,
        recovery_point,
        recovery_point if spoilt_from is None else min(spoilt_from, recovery_point),
        is_contiguous=not (config.is_compacted or was_compacted),
    )
    end = recovery.end(is_clean=is_clean)
    log = Log(
        fs,
        directory,
        topic_partition,
        topic_id,
        config,
        segments,
        epochs,
        recovery.producers,
        persist_recovery_point,
        lower_cleaner_offset,
        space or DiskSpace(fs, directory),
        is_synced=is_clean and not is_new,
    )
    log.cut_bytes = recovery.cut_bytes
    _bound(log, log_start_offset, end, end if is_clean else min(recovery_point, end))
    if not is_clean:
        log.flush()
    return log


def _bound(log: Log, start: Offset, end: Offset, recovery_point: Offset) -> None:
    """Set the bounds of an opened log; if its start is after its end, it restarts at the start."""
    log.recovery_point = recovery_point
    log.log_end_offset = end
    if start > end:
        log.truncate_fully_and_start_at(start)
    else:
        log.log_start_offset = max(log.log_start_offset, start)
        # A power loss may restore entries of removed segments. The front is truncated first:
        # otherwise an entry at the end of an empty log would stay until the next start.
        log.epochs.truncate_from_start(log.segments[0].base_offset)
        log.epochs.truncate_from_end(end)
    log.high_watermark = log.log_start_offset
    assert log.log_start_offset <= log.log_end_offset, log.directory


def finish_swaps(fs: FileSystem, directory: str) -> None:
    """Complete or undo an interrupted compaction, deletion or replacement.

    `.cleaned` files were never valid: they are removed. A `.swap` file is a complete replacement,
    unless its group was still being renamed from `.cleaned`: the segments that it covers are
    removed, then it gets its final name, and its indexes get theirs (Kafka: LogLoader.load).
    """
    names = fs.names(directory)
    assert names == sorted(names), directory
    undone = [_base_offset(name) for name in names if name.endswith(LOG_SUFFIX + CLEANED_SUFFIX)]
    swaps: list[str] = []
    for name in names:
        base = _base_offset(name)
        if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, _TEMPORARY_SUFFIX)):
            fs.unlink(f"{directory}/{name}")
        elif name.endswith(SWAP_SUFFIX) and base >= 0:
            if all(base < other for other in undone):
                swaps.append(name)
            else:
                fs.unlink(f"{directory}/{name}")
    if names != fs.names(directory):
        fs.sync_directory(directory)
    for name in swaps:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            _finish_swap(fs, directory, _base_offset(name))
    indexes = [name for name in swaps if not name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    for name in indexes:  # after the log: `_finish_swap` removes the indexes of the replaced one
        fs.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    if indexes:
        fs.sync_directory(directory)


def _finish_swap(fs: FileSystem, directory: str, base: int) -> None:
    """Replace the segments that one `.log.swap` covers by it.

    If the replaced segment of its name is gone, indexes of that name are the swap's own.
    """
    assert base >= 0, base
    swap_path = f"{directory}/{file_name(base, LOG_SUFFIX + SWAP_SUFFIX)}"
    file = fs.open(swap_path)
    end = base
    try:
        for _, batch in batches(file, 0, file.size_bytes()):
            end = batch.next_offset
    except BadBatch as bad:
        raise CorruptLog(swap_path, bad.position, bad.reason) from bad
    finally:
        file.close()
    replaces_own = fs.exists(swap_path.removesuffix(SWAP_SUFFIX))
    for name in fs.names(directory):
        if not name.endswith((LOG_SUFFIX, *INDEX_SUFFIXES)):
            continue
        if base < _base_offset(name) < end or (replaces_own and _base_offset(name) == base):
            fs.unlink(f"{directory}/{name}")
    fs.sync_directory(directory)
    fs.rename(swap_path, swap_path.removesuffix(SWAP_SUFFIX))
    fs.sync_directory(directory)
    assert not fs.exists(swap_path), swap_path


def _base_offset(name: str) -> int:
    """Return the offset in a segment file's name, -1 for a name not of Kafka's form."""
    stem, dot, suffixes = name.partition(".")
    assert stem or name.startswith("."), name
    found = offset_in(name, dot + suffixes)
    return -1 if found is None else found


def _existing_segments(
    fs: FileSystem, directory: str, config: LogConfig, wall_ms: int
) -> list[Segment]:
    """Open every segment, in offset order, and remove index files without a segment."""
    names = fs.names(directory)
    bases = [_base_offset(name) for name in names if name.endswith(LOG_SUFFIX)]
    known = [base for base in bases if base >= 0]
    for name in names:
        if name.endswith(INDEX_SUFFIXES) and _base_offset(name) not in known:
            fs.unlink(f"{directory}/{name}")
    assert known == sorted(known), known
    return [Segment.open_existing(fs, directory, Offset(base), config, wall_ms) for base in known]


def _first_spoilt(fs: FileSystem, directory: str, segments: Sequence[Segment]) -> Offset | None:
    """Return the base of the first segment whose transaction index is invalid or may be lost.

    The index has no checksum, and only the log can rebuild it, with the producers before the
    segment: the segment is recovered, as in Kafka (LogLoader.loadSegmentFiles). Most segments have
    none. One that also lacks its offset index lost both, as after a removal of all indexes.
    """
    names = dict.fromkeys(fs.names(directory))
    filled = {segment.base_offset for segment in segments if segment.size_bytes}
    for name in names:
        base = _base_offset(name)
        if base < 0:
            continue
        if name.endswith(LOG_SUFFIX) and base in filled:
            own = [file_name(base, suffix) for suffix in (_OFFSET_SUFFIX, _TRANSACTION_SUFFIX)]
            if not any(each in names for each in own):
                return Offset(base)
        elif name.endswith(_TRANSACTION_SUFFIX):
            index = TransactionIndex(f"{directory}/{name}")
            try:
                index.load(fs)
            except CorruptIndex:
                return Offset(base)
            if index.entries and index.entries[0].last_offset < base:
                return Offset(base)
    return None


def _read_anew(segments: Sequence[Segment]) -> None:
    """Make verification read the disk's own bytes, which may differ after a failed fsync.

    The process with the failed fsync has ended, and its file is not known. Unwritten bytes are
    written first, so that all later reads come from the disk.
    """
    assert segments, "a log has a segment"
    for segment in segments:
        if segment.size_bytes:
            segment.file.fsync()
            # Non-obvious 17: pages of a failed fsync are marked clean, but are not on the disk.
            segment.file.forget_clean_pages()
            segment.size_bytes = segment.file.size_bytes()


class _Recovery:
    """One verification of one log; changes `segments`, `epochs` and files in place."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        segments: list[Segment],
        epochs: LeaderEpochs,
        recovery_point: Offset,
        verified_from: Offset,
        *,
        is_contiguous: bool,
    ) -> None:
        assert segments, directory
        self._fs = fs
        self._directory = directory
        self._segments = segments
        self._epochs = epochs
        self._recovery_point = recovery_point
        self._verified_from = verified_from
        start = segments[0].base_offset
        self._has_gaps = not is_contiguous
        self._verifier = LogVerifier(start, epochs, recovery_point, is_contiguous=is_contiguous)
        self._latest_epoch = LeaderEpoch(-1)
        self.producers = ProducerStates()
        self.cut_bytes = 0
        """Bytes of a torn tail."""

    def end(self, *, is_clean: bool) -> Offset:
        """Return the end of the log; afterwards no snapshot is left that belongs to no segment."""
        end = self.clean_end() if is_clean else self.verified_end()
        bases = [segment.base_offset for segment in self._segments]
        remove_stray_snapshots(self._fs, self._directory, bases)
        return end

    def clean_end(self) -> Offset:
        """Return the end of a log that was closed cleanly; CorruptLog if it was not."""
        assert self._segments, self._directory
        last = self._segments[-1]
        frame = last.last_frame()
        end = last.base_offset if frame is None else Offset(frame.last_offset + 1)
        if frame is not None and frame.base_offset < last.base_offset:
            reason = f"base offset is {frame.base_offset}, below that of the segment"
            raise CorruptLog(last.path, frame.position, reason)
        self._refuse_short(end)
        self.producers = load_producers(self._fs, self._directory, self._segments, end)
        return end

    def verified_end(self) -> Offset:
        """Verify from the recovery point's segment on, cut a torn tail, return the end."""
        assert self._segments, self._directory
        first = 0
        for index, segment in enumerate(self._segments):
            if segment.base_offset <= self._verified_from:
                first = index
        _read_anew(self._segments[first:])
        start = self._segments[first].base_offset
        self._verifier.expected = start
        self.producers = load_producers(self._fs, self._directory, self._segments, start)
        for index in range(first, len(self._segments)):
            if not self._verify(index):
                break
        end = self._verifier.expected
        self._remove_empty_behind(end)
        self._refuse_short(end)
        remove_snapshots(self._fs, self._directory, lambda offset: offset > end)
        self.producers.map_end_offset = end
        assert end >= start, (end, start)
        return end

    def _remove_empty_behind(self, end: Offset) -> None:
        """Remove empty segments behind the end, where a power loss took what was before them."""
        while len(self._segments) > 1 and self._segments[-1].base_offset > end:
            assert not self._segments[-1].size_bytes, self._segments[-1].path
            self._segments.pop().remove()
            self._fs.sync_directory(self._directory)

    def _verify(self, index: int) -> bool:
        """Check one segment and rebuild its indexes; False if the log was cut in it."""
        segment = self._segments[index]
        indexes = segment.unread_indexes
        indexes.clear()
        note, replay = indexes.note, ProducerReplay(self.producers)
        try:
            for found in self._verifier.batches_of(segment):
                position, size, base, last, epoch, timestamp, producer_id, view, at = found
                note(position, size, last, timestamp)
                if epoch > self._latest_epoch:
                    self._take_epoch(epoch, base)
                if producer_id >= 0:
                    aborted = replay.take(producer_id, view, at, size)
                    if aborted is not None:
                        indexes.note_aborted(aborted)
        except BadBatch as bad:
            self._cut_torn_tail(index, bad)
            return False
        except CorruptRecordBatch as error:  # a marker that cannot be read
            raise CorruptLog(segment.path, position, error.reason) from error
        finally:
            replay.settle()
        segment.is_unflushed = True
        if index < len(self._segments) - 1:
            segment.seal()
        else:
            indexes.save()
        assert segment.size_bytes >= 0, segment.path
        return True

    def _take_epoch(self, epoch: int, base_offset: int) -> None:
        """Note that a leader epoch began at a batch, unless the checkpoint has it."""
        assert epoch > self._latest_epoch, epoch
        self._latest_epoch = LeaderEpoch(epoch)
        if self._epochs.latest is None or epoch > self._epochs.latest:
            self._epochs.assign(self._latest_epoch, Offset(base_offset))

    def _cut_torn_tail(self, index: int, bad: BadBatch) -> None:
        """Cut the log at a bad batch; CorruptLog if that could lose more than a torn write."""
        assert bad.position >= BEFORE_FIRST, bad
        segment, end = self._segments[index], self._verifier.expected
        reason = damage_behind(bad, self._segments[index:], end, self._recovery_point)
        if reason is not None:
            raise CorruptLog(segment.path, bad.position, reason)
        behind = sum(each.size_bytes for each in self._segments[index + 1 :])
        self.cut_bytes = behind + segment.size_bytes - max(0, bad.position)
        # Where gaps are valid, an empty segment keeps the offset at which the log ended.
        stays = bad.position > 0 or index == 0 or (end == segment.base_offset and self._has_gaps)
        while len(self._segments) > (index + 1 if stays else index):
            self._segments.pop().remove()
            self._fs.sync_directory(self._directory)
        if self._segments[-1] is segment:
            segment.cut(max(0, bad.position), end)
            segment.indexes.save()
            segment.file.fsync()
        assert self._segments, self._directory

    def _refuse_short(self, end: Offset) -> None:
        """Raise CorruptLog if a log ends, without invalid bytes, below its known durable offset."""
        assert end >= 0, end
        if end < self._recovery_point:
            last = self._segments[-1]
            reason = f"the log ends at {end}; offsets below {self._recovery_point} were durable"
            raise CorruptLog(last.path, last.size_bytes, reason)
