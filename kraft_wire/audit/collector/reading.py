"""Reads the files of one replica for the checks.

Segments go through windows of some megabytes, so memory holds one window and the headers of one
partition. Their owner may run: a segment is read as it is now, which may be longer than listed. A
listed segment that is gone was deleted by design, and does not belong to the log any more.
"""

import time
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from kraft_wire.audit.index_checks import OFFSET_ENTRY, TIME_ENTRY, SegmentIndexEntries
from kraft_wire.audit.layout import Layout
from kraft_wire.audit.ledger import Acknowledged, wanted_offsets
from kraft_wire.audit.partition_audit import METADATA_TOPIC
from kraft_wire.audit.replica import Batches, Replica, batches_of_columns, joined_batches
from kraft_wire.audit.transaction_checks import IndexEntry, ProducerEntry, TransactionFiles
from kraft_wire.columnar import (
    PartitionFiles,
    SegmentFile,
    batch_columns,
    read_records,
    read_windows,
)
from kraft_wire.columnar.arrays import Int64s
from kraft_wire.columnar.segments import NO_OFFSET
from kraft_wire.model import Offset
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.files import FileSystem, MissingFile
from kraft_wire.storage.indexes import CorruptIndex, TransactionIndex
from kraft_wire.storage.leader_epochs import FILE_NAME as EPOCHS_FILE
from kraft_wire.storage.leader_epochs import LeaderEpochs
from kraft_wire.storage.producers.producer_state import (
    CorruptSnapshot,
    ProducerState,
    ProducerStates,
)
from kraft_wire.storage.producers.snapshots import snapshot_offsets
from kraft_wire.storage.segment import LOG_SUFFIX

__all__ = [
    "read_acknowledged",
    "read_indexes",
    "read_replica",
    "read_segment",
    "read_transaction_files",
]

_CHUNK_BYTES: Final = 3 << 16
"""A multiple of both entry sizes: most of a preallocated index is zeros that are not read."""
_SETTLING_SECONDS: Final = 0.5
_SETTLING_TIMES: Final = 4


def read_segment(fs: FileSystem, files: PartitionFiles, segment: SegmentFile) -> Batches:
    """Return the batches of one segment."""
    try:
        file = fs.open_for_reading(f"{files.directory}/{segment.file}")
    except MissingFile:
        return joined_batches([])
    try:
        return joined_batches(
            [
                batches_of_columns(batch_columns(window), segment.base_offset)
                for window in read_windows(file, file.size_bytes())
            ]
        )
    finally:
        file.close()


def read_replica(
    fs: FileSystem,
    files: PartitionFiles,
    is_compacted: bool,
    read: Sequence[Batches] | None = None,
) -> Replica | None:
    """Return a replica; `read` are the batches of its segments, if other tasks have read them.

    None if all its listed files are gone.
    """
    if read is None:
        read = [read_segment(fs, files, segment) for segment in files.segments]
    held = _still_there(fs, files, read)
    if files.segments and not held:
        return None
    epochs, damage = _leader_epochs(fs, files.directory)
    lost_from = _lost_from(fs, files, epochs)
    files = replace(files, segments=[segment for segment, _ in held])
    batches = joined_batches([own for _, own in held])
    if not epochs and not damage and _needs_epochs(fs, files, batches):
        damage = "it has no epoch"
    return Replica(
        files.node,
        files.topic,
        files.partition,
        batches,
        files.earliest_offset,
        files.high_watermark,
        is_compacted or _lacks_records(batches),
        epochs,
        damage,
        [segment.base_offset for segment in files.segments],
        lost_from,
    )


def _still_there(
    fs: FileSystem, files: PartitionFiles, read: Sequence[Batches]
) -> list[tuple[SegmentFile, Batches]]:
    """Return the segments without those that were deleted before they could be read.

    If one was deleted, segments before it that were read just in time are deleted too.
    """
    held = list(zip(files.segments, read, strict=True))

    def is_there(segment: SegmentFile) -> bool:
        return fs.exists(f"{files.directory}/{segment.file}")

    gone = [at for at, (segment, own) in enumerate(held) if not len(own) and not is_there(segment)]
    newest = max(gone, default=-1)
    return [each for at, each in enumerate(held) if at > newest or is_there(each[0])]


def _lost_from(fs: FileSystem, files: PartitionFiles, epochs: Sequence[tuple[int, int]]) -> int:
    """Return where the leader epochs begin, if that is before the first file, else -1.

    A node that deletes from the beginning moves the first epoch up (KIP-101), a moment before or
    after: a directory that has just changed is read again. A log that continues in remote storage
    is not such a case: then the checkpointed log start is before the first file too. Nor does a
    metadata log need the records that a snapshot has.
    """
    if not files.segments or files.log_start_offset >= 0 or files.topic == METADATA_TOPIC:
        return NO_OFFSET
    first = files.segments[0].base_offset
    for _ in range(_SETTLING_TIMES):
        if not epochs or epochs[0][1] >= first:
            return NO_OFFSET
        if not _has_just_changed(fs, files.directory):
            break
        time.sleep(_SETTLING_SECONDS)
        epochs, _ = _leader_epochs(fs, files.directory)
    return epochs[0][1] if epochs and epochs[0][1] < first else NO_OFFSET


def _has_just_changed(fs: FileSystem, directory: str) -> bool:
    """Whether files changed in the last seconds; a clock that differs only costs a wait."""
    try:
        file = fs.open_for_reading(directory)
    except MissingFile:
        return False
    changed_ms = file.modified_ms()
    file.close()
    return time.time() - changed_ms / 1000 < _SETTLING_TIMES * _SETTLING_SECONDS


def _lacks_records(batches: Batches) -> bool:
    """Whether a batch has fewer records than offsets, as only compaction leaves it."""
    width = batches.last_offset - batches.base_offset + 1
    return bool(np.any(batches.is_valid & (batches.magic > 1) & (batches.count < width)))


def _needs_epochs(fs: FileSystem, files: PartitionFiles, batches: Batches) -> bool:
    """Whether there is a checkpoint, and batches with an epoch: it is written before they are."""
    has_epochs = np.any(batches.is_valid & (batches.magic > 1) & (batches.leader_epoch >= 0))
    return bool(has_epochs) and fs.exists(f"{files.directory}/{EPOCHS_FILE}")


def _leader_epochs(fs: FileSystem, directory: str) -> tuple[list[tuple[int, int]], str]:
    """Return the checkpoint's (epoch, offset) pairs, or none and the reason."""
    epochs = LeaderEpochs(fs, directory)
    try:
        epochs.load()
    except CorruptCheckpoint as error:
        return [], error.reason
    return [(int(epoch), int(offset)) for epoch, offset in epochs.entries], ""


def read_indexes(
    fs: FileSystem, files: PartitionFiles, segment: SegmentFile
) -> SegmentIndexEntries:
    """Return the entries of both indexes of a segment; a missing file has none."""
    stem = f"{files.directory}/{segment.file.removesuffix(LOG_SUFFIX)}"
    offsets, odd_offsets = _entries(fs, f"{stem}.index", OFFSET_ENTRY)
    times, odd_times = _entries(fs, f"{stem}.timeindex", TIME_ENTRY)
    return SegmentIndexEntries(
        segment.base_offset,
        _size_bytes(fs, f"{files.directory}/{segment.file}"),
        offsets["relative_offset"].astype(np.int64),
        offsets["position"].astype(np.int64),
        times["timestamp"].astype(np.int64),
        times["relative_offset"].astype(np.int64),
        (odd_offsets, odd_times),
    )


def read_transaction_files(fs: FileSystem, files: PartitionFiles) -> TransactionFiles:
    """Return the transaction indexes and producer snapshots of a replica."""
    indexes: dict[int, list[IndexEntry]] = {}
    snapshots: dict[int, list[ProducerEntry]] = {}
    damage: dict[str, str] = {}
    for segment in files.segments:
        name = segment.file.replace(LOG_SUFFIX, ".txnindex")
        index = TransactionIndex(f"{files.directory}/{name}")
        try:
            index.load(fs)
            indexes[segment.base_offset] = [
                (producer_id, int(first), int(last), int(stable))
                for producer_id, first, last, stable in index.entries
            ]
        except CorruptIndex as error:
            damage[name] = error.reason
        except MissingFile:
            continue
    for offset in _snapshot_offsets(fs, files.directory):
        name = f"{offset:020d}.snapshot"
        table = ProducerStates()
        try:
            table.load_snapshot(fs.read(f"{files.directory}/{name}"), offset)
            snapshots[offset] = [_producer_entry(each) for each in table.active_producers()]
        except CorruptSnapshot as error:
            damage[name] = str(error)
        except MissingFile:
            continue
    return TransactionFiles(indexes, snapshots, damage)


def _snapshot_offsets(fs: FileSystem, directory: str) -> list[Offset]:
    return snapshot_offsets(fs, directory) if fs.exists(directory) else []


def _producer_entry(each: ProducerState) -> ProducerEntry:
    first = each.transaction_first_offset
    numbers = each.producer_id, each.producer_epoch, each.last_sequence, int(each.last_offset)
    return (*numbers, NO_OFFSET if first is None else int(first))


def _size_bytes(fs: FileSystem, path: str) -> int:
    """Return the length of a file, -1 if it is gone."""
    try:
        file = fs.open_for_reading(path)
    except MissingFile:
        return -1
    size = file.size_bytes()
    file.close()
    return size


def _entries(
    fs: FileSystem, path: str, kind: "np.dtype[np.void]"
) -> tuple["np.ndarray[tuple[int], np.dtype[np.void]]", int]:
    """Return the entries before the zeros at the end, and how many bytes are not a whole entry."""
    data = b""
    try:
        file = fs.open_for_reading(path)
    except MissingFile:
        return np.zeros(0, kind), 0
    while chunk := file.pread(_CHUNK_BYTES, len(data)):
        data += chunk
        if len(chunk) < _CHUNK_BYTES or chunk.count(0) == len(chunk):
            break
    file.close()
    used = -(-len(data.rstrip(b"\0")) // kind.itemsize) * kind.itemsize
    odd = len(data) % kind.itemsize if used > len(data) else 0
    return np.frombuffer(data[: min(used, len(data) - len(data) % kind.itemsize)], kind), odd


def read_acknowledged(
    fs: FileSystem, files: PartitionFiles, layout: Layout, ledger: Acknowledged
) -> tuple[Int64s, Int64s]:
    """Return offset and checksum of the values of the records that a ledger is about, by offset.

    Reads only the segments that can hold them.
    """
    wanted = np.unique(ledger.offsets[wanted_offsets(layout, ledger)])
    found: list[tuple[int, int]] = []
    batches = layout.replica.batches
    for segment in files.segments:
        rows = layout.rows[batches.segment[layout.rows] == segment.base_offset]
        first = np.searchsorted(wanted, batches.base_offset[rows])
        after = np.searchsorted(wanted, batches.last_offset[rows], side="right")
        chosen = rows[after > first]
        if len(chosen):
            positions = batches.position[chosen]
            end = int(batches.position[chosen[-1]] + batches.size_bytes[chosen[-1]])
            found += _checksums(fs, files, segment, positions, end, wanted)
    entries = np.array(sorted(found), np.int64).reshape(-1, 2)
    return entries[:, 0], entries[:, 1]


def _checksums(
    fs: FileSystem,
    files: PartitionFiles,
    segment: SegmentFile,
    positions: Int64s,
    end: int,
    wanted: Int64s,
) -> list[tuple[int, int]]:
    """Return (offset, checksum) of the wanted records in the batches at some positions."""
    try:
        file = fs.open_for_reading(f"{files.directory}/{segment.file}")
    except MissingFile:
        return []
    found: list[tuple[int, int]] = []
    for window in read_windows(file, end, int(positions.min())):
        columns = batch_columns(window)
        selected = np.isin(columns.position, positions)
        for records in read_records(window, columns, selected, content=("value",)):
            is_wanted = np.isin(records.offset, wanted)
            values = records.content["value"].filter(is_wanted).to_pylist()
            for offset, value in zip(records.offset[is_wanted].tolist(), values, strict=True):
                found.append((offset, zlib.crc32(value or b"")))
    file.close()
    return found
