"""Log compaction (`cleanup.policy=compact`): keeps the newest record of each key (KIP-58, KIP-534).

One pass: `build_offset_map` reads the part that was never compacted. `compact` rewrites the
segments up to its end in groups, each to one new segment that replaces them atomically. Offsets,
producers, epochs and sequences of batches are kept. The last batch of a producer stays even without
records, because it has the producer's last sequence. A tombstone or a transaction marker stays
until the delete horizon, which the first pass over it writes into its batch.

Crash safety: new files are written under `.cleaned`, synced, renamed to `.swap` (valid from then
on), the old ones are renamed to `.deleted`, the new ones get their names; the directory is synced
between the steps. `recovery.finish_swaps` completes this after a crash.

Left out: throttling. A pass stops when its map is full, and the next one continues.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b

from kraft_wire.frozen import frozen
from kraft_wire.model import DiskFull, Offset, StorageError
from kraft_wire.storage.cleaning.cleanable import cleanable_part, sealed_segments
from kraft_wire.storage.files import FileSystem, MissingFile
from kraft_wire.storage.indexes import AbortedTransaction
from kraft_wire.storage.log import Log
from kraft_wire.storage.producers.producer_state import ProducerStates, read_marker
from kraft_wire.storage.producers.snapshots import snapshot_path
from kraft_wire.storage.recovery.opening import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX
from kraft_wire.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX, Segment, file_name
from kraft_wire.storage.stored_records import UnreadableRecords
from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.records.batch_builder import BatchBuilder
from kraft_wire.wire.records.corruption import CorruptRecordBatch, InvalidRecord
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches

__all__ = ["CompactionResult", "compact"]

_KEY_BYTES_MAX = 16
_INT32_MAX = (1 << 31) - 1
_INT64_MAX = (1 << 63) - 1


@frozen
class CompactionResult:
    """The result of a pass; the caller writes `next_dirty_offset` into the cleaner checkpoint."""

    next_dirty_offset: Offset
    bytes_before: int
    bytes_after: int


def compact(
    fs: FileSystem,
    log: Log,
    first_dirty_offset: Offset,
    wall_ms: int,
    *,
    map_entries_max: int = 1_000_000,
) -> CompactionResult:
    """Compact the cleanable part of a log (`cleanable`); durable when it returns.

    A first dirty offset outside the log counts as its start. A pass advances by one segment at
    least, unless nothing is cleanable. Errors: CorruptLog for a damaged segment, UnreadableRecords,
    DiskFull and StorageError, with unchanged segments of the current group (leftovers are removed
    at start).
    """
    part = cleanable_part(log, first_dirty_offset, wall_ms)
    dirty, limit = part.first_dirty_offset, part.first_uncleanable_offset
    newest, end = build_offset_map(log, dirty, limit, map_entries_max)
    assert end > dirty or limit == dirty, (dirty, end, limit)
    sources = [(segment, stop) for segment, stop in sealed_segments(log) if stop <= end]
    start = log.segments[0].base_offset
    transactions = _Transactions(log.aborted_transactions(start, end) if sources else [])
    last_of_producer = _last_offsets(log.producer_states)
    before = after = 0
    for group in _groups(sources, log.config.segment_bytes):
        # A topic may keep tombstones for ever; in 4.3.1 the sum wraps, and they go at once.
        horizon = min(wall_ms + log.config.delete_retention_ms, _INT64_MAX)
        rewrite = _Rewrite(newest, transactions, last_of_producer, wall_ms, horizon)
        cleaned = _clean_group(fs, log, group, rewrite, wall_ms)
        before += sum(segment.size_bytes for segment in group)
        after += cleaned.size_bytes
        _swap(fs, log, group, cleaned)
    return CompactionResult(end, before, after)


def build_offset_map(
    log: Log, start: Offset, limit: Offset, entries_max: int
) -> tuple[dict[bytes, Offset], Offset]:
    """Return key -> newest offset over whole segments of [start, limit), and the map's end.

    Control records and records of aborted transactions are ignored. When the map is full it ends
    before the segment that did not fit, but it has one segment at least. Errors: CorruptLog,
    UnreadableRecords.
    """
    assert entries_max > 0, entries_max
    newest: dict[bytes, Offset] = {}
    end = start
    aborted = _Transactions(log.aborted_transactions(start, max(start, limit)))
    for segment, segment_end in sealed_segments(log):
        if segment_end <= start:
            continue
        if segment_end > limit or len(newest) >= entries_max:
            break
        for _, batch in segment.batches_from(0):
            if batch.last_offset < start:
                continue
            try:
                if not aborted.is_discardable(batch) and not batch.is_control:
                    _note_keys(newest, batch)
            except CorruptRecordBatch as cause:
                raise UnreadableRecords(segment.path, batch, cause) from cause
        end = segment_end
    return newest, end


def _note_keys(newest: dict[bytes, Offset], batch: RecordBatch) -> None:
    """Add the keys of a data batch to the map."""
    assert not batch.is_control, batch
    for record in batch.iter_records(STORED_LIMITS):
        if record.key is not None:
            newest[_map_key(record.key)] = Offset(record.offset)


def _map_key(key: bytes) -> bytes:
    """Return the key, or a digest of a long one, so that the map's memory is bounded."""
    if len(key) < _KEY_BYTES_MAX:
        return bytes(key)
    digest = blake2b(key, digest_size=_KEY_BYTES_MAX).digest()
    assert len(digest) == _KEY_BYTES_MAX, digest
    return digest


def _groups(sources: Sequence[tuple[Segment, Offset]], bytes_max: int) -> Iterator[list[Segment]]:
    """Split neighbours, given with their ends, into groups that fit one segment each.

    The indexes of a segment hold offsets relative to its base in 31 bits (KAFKA-6264).
    """
    group: list[Segment] = []
    size = 0
    for segment, end in sources:
        fits = (
            size + segment.size_bytes <= bytes_max
            and bool(group)
            and end - group[0].base_offset <= _INT32_MAX
        )
        if group and not fits:
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size_bytes
    assert size >= 0, size
    if group:
        yield group


def _last_offsets(states: ProducerStates) -> dict[int, tuple[Offset, int]]:
    """Return producer id -> (offset of its last data, epoch): those batches must stay."""
    found = {
        state.producer_id: (state.last_offset, state.producer_epoch)
        for state in states.active_producers()
    }
    assert len(found) == len(states), found
    return found


@dataclass(slots=True)
class _Transactions:
    """Batches of aborted transactions, and markers that are no longer needed."""

    aborted: list[AbortedTransaction]
    _open_aborted: dict[int, AbortedTransaction] = field(default_factory=dict)
    _seen_data: set[int] = field(default_factory=set)
    _open_committed: dict[int, None] = field(default_factory=dict)
    kept: list[AbortedTransaction] = field(default_factory=list)
    _next: int = 0

    def __post_init__(self) -> None:
        self.aborted.sort(key=lambda entry: entry.first_offset)
        assert self._next == 0

    def is_discardable(self, batch: RecordBatch) -> bool:
        """Return whether a batch is removed by its transaction; call for each, in log order."""
        while self._next < len(self.aborted) and (
            self.aborted[self._next].first_offset <= batch.last_offset
        ):
            entry = self.aborted[self._next]
            self._open_aborted[entry.producer_id] = entry
            self._next += 1
        assert self._next <= len(self.aborted), batch
        producer_id = batch.producer_id  # any number below 0 is none: clients send what they want
        if batch.is_control:
            return self._ends_unneeded(batch)
        if not batch.is_transactional:
            return False
        if producer_id in self._open_aborted:
            self._seen_data.add(producer_id)
            return True
        self._open_committed[producer_id] = None
        return False

    def _ends_unneeded(self, batch: RecordBatch) -> bool:
        """Return whether the marker's transaction has no data left; other control batches stay.

        A marker that the leader has emptied aborts what was open here (`ProducerStates`).
        """
        marker, producer_id = read_marker(batch), batch.producer_id
        if marker is None:
            opened = self._open_aborted.get(producer_id)
            if opened is None or opened.last_offset != batch.base_offset:
                return False
        if marker is not None and not marker[0]:
            return self._open_committed.pop(producer_id, 0) == 0
        entry = self._open_aborted.pop(producer_id, None)
        has_data = producer_id in self._seen_data
        self._seen_data.discard(producer_id)
        if entry is not None and has_data:
            self.kept.append(entry)
        assert producer_id not in self._open_aborted, batch
        return not (entry is not None and has_data)


@dataclass(slots=True)
class _Rewrite:
    """Decides on each batch and record of one pass."""

    newest: dict[bytes, Offset]
    transactions: _Transactions
    last_of_producer: dict[int, tuple[Offset, int]]
    wall_ms: int
    new_horizon_ms: int

    def rewritten(self, batch: RecordBatch) -> bytes | memoryview | None:
        """Return the batch to keep, or None to remove it."""
        discardable = self.transactions.is_discardable(batch)
        horizon = batch.delete_horizon_ms
        is_due = horizon is not None and horizon < self.wall_ms
        if batch.is_control:
            return self._control(batch, discardable, is_due)
        records = list(batch.iter_records(STORED_LIMITS))
        kept = [] if discardable else [record for record in records if self._stays(record, is_due)]
        needs_horizon = horizon is None and any(record.value is None for record in kept)
        if len(kept) == len(records) and not needs_horizon and records:
            return batch.view
        if not kept and not self._is_last_of_producer(batch):
            return None
        if needs_horizon:
            horizon = self.new_horizon_ms
        assert batch.records_count >= len(kept), batch
        return _rebuilt(batch, kept, horizon)

    def _control(
        self, batch: RecordBatch, discardable: bool, is_due: bool
    ) -> bytes | memoryview | None:
        """Keep a marker until its transaction is empty and the horizon has passed."""
        assert batch.is_control, batch
        if not discardable or batch.records_count == 0:
            return batch.view
        if batch.delete_horizon_ms is None:
            return _rebuilt(batch, list(batch.iter_records(STORED_LIMITS)), self.new_horizon_ms)
        if not is_due:
            return batch.view
        if self._is_last_of_producer(batch):
            return _rebuilt(batch, [], batch.delete_horizon_ms)
        return None

    def _stays(self, record: Record, is_due: bool) -> bool:
        """Return whether a record is the newest of its key and not an expired tombstone."""
        if record.key is None:
            return False
        if record.offset < self.newest.get(_map_key(record.key), -1):
            return False
        return record.value is not None or not is_due

    def _is_last_of_producer(self, batch: RecordBatch) -> bool:
        """Return whether the batch has its producer's last sequence (of a marker: last epoch)."""
        last_offset, epoch = self.last_of_producer.get(batch.producer_id, (Offset(-1), -1))
        assert batch.last_offset >= 0, batch
        if last_offset >= 0:
            return last_offset == batch.last_offset
        return batch.is_control and batch.producer_epoch == epoch


def _rebuilt(batch: RecordBatch, kept: Sequence[Record], horizon: int | None) -> bytes:
    """Return the batch with fewer records (or a delete horizon), otherwise unchanged.

    InvalidRecord if its records are not in the order of their offsets: a producer may have sent
    them so, and the leader has stored them.
    """
    assert len(kept) <= batch.records_count, batch
    before = batch.base_offset - 1
    for record in kept:
        if not before < record.offset <= batch.last_offset:
            raise InvalidRecord(f"offset {record.offset} follows {before}")
        before = record.offset
    assert before <= batch.last_offset, batch
    builder = BatchBuilder(
        base_offset=batch.base_offset,
        partition_leader_epoch=batch.partition_leader_epoch,
        compression=batch.compression,
        log_append_time=batch.max_timestamp if batch.is_log_append_time else None,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        delete_horizon_ms=horizon,
    )
    for record in kept:
        builder.append(
            record.timestamp, record.key, record.value, record.headers, offset=record.offset
        )
    emptied = None if kept else batch.max_timestamp
    return bytes(builder.build(last_offset=batch.last_offset, max_timestamp=emptied))


def _clean_group(
    fs: FileSystem, log: Log, group: Sequence[Segment], rewrite: _Rewrite, wall_ms: int
) -> Segment:
    """Write the kept batches of the group to a `.cleaned` segment, durably."""
    assert group, log.directory
    base = group[0].base_offset
    cleaned = Segment.create(fs, log.directory, base, log.config, wall_ms, CLEANED_SUFFIX)
    rewrite.transactions.kept.clear()
    try:
        _fill(cleaned, group, rewrite)
        cleaned.file.set_modified_ms(group[-1].file.modified_ms())  # retention may use it
        cleaned.indexes.save(sync=True)
        cleaned.file.fsync()
    except StorageError:
        cleaned.remove()  # a start removes the rest: it must not meet a later swap
        raise
    fs.sync_directory(log.directory)
    assert cleaned.base_offset == base, cleaned.path
    return cleaned


def _fill(cleaned: Segment, group: Sequence[Segment], rewrite: _Rewrite) -> None:
    """Append the kept batches of the group."""
    for segment in group:
        for _, batch in segment.batches_from(0):
            try:
                data = rewrite.rewritten(batch)
            except CorruptRecordBatch as cause:
                raise UnreadableRecords(segment.path, batch, cause) from cause
            if data is not None:
                cleaned.append(data, parse_batches(data))
    for aborted in rewrite.transactions.kept:
        cleaned.indexes.note_aborted(aborted)
    cleaned.seal()
    assert cleaned.size_bytes >= 0, cleaned.path


def _swap(fs: FileSystem, log: Log, group: Sequence[Segment], cleaned: Segment) -> None:
    """Replace the group by the cleaned segment; atomic under any crash.

    DiskFull with an unchanged log; StorageError if only a restart can continue.
    """
    assert group, log.directory
    directory, base = log.directory, cleaned.base_offset
    try:
        _rename_all(fs, directory, base, CLEANED_SUFFIX, SWAP_SUFFIX)
    except StorageError:
        _drop(fs, directory, base, CLEANED_SUFFIX, SWAP_SUFFIX)
        raise
    try:
        fs.sync_directory(directory)
        for segment in group:
            _rename_all(fs, directory, segment.base_offset, "", DELETED_SUFFIX)
        fs.sync_directory(directory)
        _rename_all(fs, directory, base, SWAP_SUFFIX, "")
    except DiskFull as full:  # a start would put it in place, whatever was appended or cut by then
        raise StorageError(full.operation, full.path, full.reason) from full
    fs.sync_directory(directory)
    with suppress(StorageError):  # what the disk keeps does not count, and goes at the next start
        for segment in group:
            _drop(fs, directory, segment.base_offset, DELETED_SUFFIX)
        for segment in group[1:]:  # no segment begins there any more
            fs.unlink(snapshot_path(directory, segment.base_offset))
    at = log.segments.index(group[0])
    fresh = Segment.open_existing(fs, directory, base, log.config, cleaned.created_ms)
    log.segments[at : at + len(group)] = [fresh]
    log.segments_changed()
    assert log.segments[at] is fresh, directory


def _rename_all(fs: FileSystem, directory: str, base: Offset, old: str, new: str) -> None:
    """Change the suffix of a segment's files, indexes first: the log file decides."""
    assert old != new, (old, new)
    for suffix in (*INDEX_SUFFIXES, LOG_SUFFIX):
        path = f"{directory}/{file_name(base, suffix)}"
        try:
            fs.rename(path + old, path + new)
        except MissingFile:
            assert suffix == ".txnindex" or suffix != LOG_SUFFIX, path


def _drop(fs: FileSystem, directory: str, base: Offset, *suffixes: str) -> None:
    """Remove obsolete files; StorageError for the first that cannot be removed."""
    assert all(suffixes), directory
    for suffix in suffixes:
        for kind in (LOG_SUFFIX, *INDEX_SUFFIXES):
            fs.unlink(f"{directory}/{file_name(base, kind)}{suffix}")
