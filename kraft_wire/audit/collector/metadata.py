"""The metadata log of several nodes: which copy is trusted, its end, its snapshots.

The trusted copy is, among the copies that no majority contradicts, the one with the newest leader
epoch and then the longest, up to the first place where it is damaged. Snapshots are compared with a
strict fold of that copy, begun at its first record or at the oldest snapshot that it still reaches.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final

import numpy as np

from kraft_wire.audit.collector.reading import read_replica
from kraft_wire.audit.comparison import disagreements
from kraft_wire.audit.fault import END_OF_LOG
from kraft_wire.audit.finding import Finding
from kraft_wire.audit.layout import Layout, layout_of
from kraft_wire.audit.metadata_facts import MetadataFacts, MetadataFold
from kraft_wire.audit.replica_checks import epoch_faults
from kraft_wire.audit.snapshot_checks import SnapshotCopy, check_snapshot
from kraft_wire.columnar import PartitionFiles, batch_columns, read_windows
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.metadata.image_draft import MetadataFault
from kraft_wire.metadata.loader import MetadataLoader
from kraft_wire.metadata.records import decode_message
from kraft_wire.model import OffsetAndEpoch, StorageError
from kraft_wire.storage.files import FileSystem, MissingFile
from kraft_wire.storage.segment import LOG_SUFFIX
from kraft_wire.storage.snapshots.metadata_snapshot import (
    CorruptMetadataSnapshot,
    SnapshotReader,
    list_snapshots,
    snapshot_name,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.control_records import ControlRecordType, parse_control_key
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["MetadataLog", "audit_snapshots", "cluster_facts", "quorum_high_watermark"]

_OFFSET_MAX: Final = (1 << 63) - 1
_VERSION_BYTES: Final = 2
"""Of a control record: its version comes first."""


@dataclass(frozen=True, slots=True)
class CollectedBatch:
    """One batch of data records of the log or of a snapshot."""

    base_offset: int
    last_offset: int
    epoch: int
    values: list[bytes | None]


class MetadataLog:
    """The copies of the metadata log, and the trusted one."""

    def __init__(self, fs: FileSystem, copies: Sequence[PartitionFiles]) -> None:
        self._fs = fs
        held = [each for each in copies if each.segments or list_snapshots(fs, each.directory)]
        read = [(files, read_replica(fs, files, False)) for files in held]
        self.copies = [files for files, replica in read if replica is not None]
        self.layouts = [layout_of(replica) for _, replica in read if replica is not None]
        ends = [_trusted_end(layout) for layout in self.layouts]
        odd = _outvoted(self.layouts)
        order = [
            (layout.replica.node not in odd, *end, -index)
            for index, (layout, end) in enumerate(zip(self.layouts, ends, strict=True))
        ]
        self._best = order.index(max(order)) if order else -1
        self._trusted_end = ends[self._best][1] if ends else 0

    @property
    def is_empty(self) -> bool:
        """Whether the copy that is trusted holds nothing, as after a snapshot was fetched."""
        return not len(self.layouts[self._best].rows)

    @property
    def start(self) -> int:
        """The first offset of the copy that is trusted."""
        layout = self.layouts[self._best]
        rows = layout.rows
        return int(layout.replica.batches.base_offset[rows[0]]) if len(rows) else 0

    def epoch_before(self, offset: int) -> int | None:
        """Return the epoch of the record before an offset, None if the log does not have it."""
        if self._best < 0 or offset > self._trusted_end:
            return None
        layout = self.layouts[self._best]
        batches = layout.replica.batches
        found = np.searchsorted(batches.last_offset[layout.rows], offset - 1)
        if found >= len(layout.rows):
            return None
        row = layout.rows[found]
        is_end = int(batches.last_offset[row]) == offset - 1
        return int(batches.leader_epoch[row]) if is_end else None

    def has_batch_around(self, offset: int) -> bool:
        """Whether a batch begins before an offset and ends behind it."""
        if self._best < 0 or offset > self._trusted_end:
            return False
        layout = self.layouts[self._best]
        batches = layout.replica.batches
        bases, lasts = batches.base_offset[layout.rows], batches.last_offset[layout.rows]
        return bool(np.any((bases < offset) & (lasts >= offset)))

    def snapshot_ids(self) -> dict[OffsetAndEpoch, list[PartitionFiles]]:
        """Return the nodes' directories that have each snapshot, oldest snapshot first."""
        found: dict[OffsetAndEpoch, list[PartitionFiles]] = {}
        for files in self.copies:
            for snapshot_id in list_snapshots(self._fs, files.directory):
                found.setdefault(snapshot_id, []).append(files)
        return dict(sorted(found.items(), key=lambda each: (each[0].offset, each[0].epoch)))

    def beyond(self) -> dict[OffsetAndEpoch, list[PartitionFiles]]:
        """Return the snapshots that end behind every log; none where a log continues meanwhile."""
        end = max((layout.log_end_offset for layout in self.layouts), default=0)
        found = {each: files for each, files in self.snapshot_ids().items() if each.offset > end}
        is_growing = bool(found) and any(_has_grown(self._fs, files) for files in self.copies)
        return {} if is_growing else found

    def unreached(self) -> frozenset[OffsetAndEpoch]:
        """Return those of `beyond`, if only a minority of nodes has any.

        A snapshot holds committed records, which a majority has in its logs: a few files with more
        records prove no loss.
        """
        beyond = self.beyond()
        holders = {each.node for files in beyond.values() for each in files}
        return frozenset(beyond) if 2 * len(holders) < len(self.copies) else frozenset()

    def batches(self, offset: int) -> Iterator[CollectedBatch]:
        """Yield the batches of data records from an offset on, up to the first damage."""
        if self._best < 0:
            return
        files, expected = self.copies[self._best], offset
        for segment, after in zip_longest(files.segments, files.segments[1:]):
            if after is not None and after.base_offset <= offset:
                continue
            try:
                file = self._fs.open_for_reading(f"{files.directory}/{segment.file}")
            except MissingFile:  # its owner runs
                return
            try:
                for window in read_windows(file, file.size_bytes()):  # it may have grown since
                    columns = batch_columns(window)
                    for row in range(len(columns)):
                        if not columns.is_valid[row] or columns.base_offset[row] > expected:
                            return
                        if columns.base_offset[row] < expected:
                            continue
                        expected = int(columns.last_offset[row]) + 1
                        start = int(window.starts[row])
                        data = memoryview(window.data)[start : start + int(window.sizes[row])]
                        yield _batch_of(RecordBatch(data))
            except CorruptRecordBatch:
                return
            finally:
                file.close()


def _has_grown(fs: FileSystem, files: PartitionFiles) -> bool:
    """Whether a log continues after its listed part."""
    newest = max(
        (name for name in fs.names(files.directory) if name.endswith(LOG_SUFFIX)), default=""
    )
    if not files.segments or newest != files.segments[-1].file:
        return bool(newest)
    try:
        file = fs.open_for_reading(f"{files.directory}/{newest}")
    except MissingFile:
        return True
    size_bytes = file.size_bytes()
    file.close()
    return size_bytes > files.segments[-1].size_bytes


def _trusted_end(layout: Layout) -> tuple[int, int]:
    """Return the newest epoch of a copy and the end of its sound part."""
    faults = [*layout.faults, *epoch_faults(layout.replica, layout.rows)[0]]
    first_fault = min((each.first_offset for each in faults if each.end_offset), default=END_OF_LOG)
    batches = layout.replica.batches
    rows = layout.rows[batches.base_offset[layout.rows] < min(first_fault, _OFFSET_MAX)]
    if not len(rows):
        return -1, 0
    return int(batches.leader_epoch[rows[-1]]), int(batches.last_offset[rows[-1]]) + 1


def _outvoted(layouts: Sequence[Layout]) -> list[str]:
    """Return the nodes whose copy differs from that of a majority."""
    doubtful = {each.replica.node: epoch_faults(each.replica, each.rows)[1] for each in layouts}
    odd = [each.odd for each in disagreements(layouts, doubtful)]
    return [node for nodes in odd if 2 * len(nodes) < len(layouts) for node in nodes]


def _batch_of(batch: RecordBatch) -> CollectedBatch:
    values = (
        []
        if batch.is_control
        else [
            None if record.value is None else bytes(record.value) for record in batch.iter_records()
        ]
    )
    last = batch.next_offset - 1
    return CollectedBatch(batch.base_offset, last, batch.partition_leader_epoch, values)


def quorum_high_watermark(fs: FileSystem, log: MetadataLog) -> int:
    """Return an offset below which everything is committed: records in a snapshot are."""
    end = max((layout.log_end_offset for layout in log.layouts), default=0)
    known = [snapshot_id.offset for snapshot_id in log.snapshot_ids() if snapshot_id.offset <= end]
    unreached = log.unreached()
    for snapshot_id, holders in log.beyond().items():
        if (
            snapshot_id not in unreached
            and _most_common_values(fs, snapshot_id, holders) is not None
        ):
            known.append(snapshot_id.offset)
    return max(known, default=-1)


def cluster_facts(fs: FileSystem, log: MetadataLog) -> MetadataFacts:
    """Fold the end of the metadata log: from its beginning, or from the newest usable snapshot."""
    if not log.copies:
        return MetadataFacts()
    fold = MetadataFold()
    begin = 0
    unreached = log.unreached()
    for snapshot_id, holders in reversed(log.snapshot_ids().items()):
        if snapshot_id in unreached:
            continue
        if not log.is_empty and (log.start == 0 or snapshot_id.offset < log.start):
            break
        values = _most_common_values(fs, snapshot_id, holders)
        if values is not None:
            fold.take(values)
            begin = snapshot_id.offset
            break
    for batch in log.batches(begin):
        fold.take(batch.values)
    return fold.finish()


def _digests(
    fs: FileSystem, snapshot_id: OffsetAndEpoch, holders: Sequence[PartitionFiles]
) -> list[bytes]:
    name = snapshot_name(snapshot_id)
    return [hashlib.sha256(fs.read(f"{each.directory}/{name}")).digest() for each in holders]


def _most_common_values(
    fs: FileSystem, snapshot_id: OffsetAndEpoch, holders: list[PartitionFiles]
) -> list[bytes | None] | None:
    """Return the record values of most of the readable copies, None without one."""
    copies: list[list[bytes | None]] = []
    for files in holders:
        try:
            copies.append(_snapshot_values(fs, files, snapshot_id))
        except (StorageError, CorruptRecordBatch):
            continue
    keys = [hash(tuple(sorted(value or b"" for value in values))) for values in copies]
    best = max(range(len(copies)), key=lambda index: keys.count(keys[index]), default=None)
    return None if best is None else copies[best]


def _snapshot_values(
    fs: FileSystem, files: PartitionFiles, snapshot_id: OffsetAndEpoch
) -> list[bytes | None]:
    reader = SnapshotReader(fs, files.directory, snapshot_id)
    try:
        return [value for batch in reader.batches() for value in _batch_of(batch).values]
    finally:
        reader.close()


def audit_snapshots(fs: FileSystem, log: MetadataLog) -> list[Finding]:
    """Judge every snapshot of all nodes."""
    findings: list[Finding] = []
    fold = _StrictFold(log)
    unreached = log.unreached()
    for snapshot_id, holders in log.snapshot_ids().items():
        try:
            copies = _copies(fs, snapshot_id, holders)
        except MissingFile:  # its owner runs, and has a newer one
            continue
        folded = fold.image_at(snapshot_id.offset)
        epoch = log.epoch_before(snapshot_id.offset)
        is_inside = log.has_batch_around(snapshot_id.offset)
        found = [
            *check_snapshot(
                snapshot_id,
                copies,
                folded,
                epoch,
                is_inside_batch=is_inside,
                is_unreached=snapshot_id in unreached,
            )
        ]
        findings += found
        images = [copy.image for copy in copies if copy.image is not None]
        if not found and images:
            fold.begin(images[0], snapshot_id)
    return findings


def _copies(
    fs: FileSystem, snapshot_id: OffsetAndEpoch, holders: list[PartitionFiles]
) -> list[SnapshotCopy]:
    """Read all copies; those of equal bytes are decoded once."""
    known: dict[bytes, SnapshotCopy] = {}
    copies = []
    for files, digest in zip(holders, _digests(fs, snapshot_id, holders), strict=True):
        if digest not in known:
            known[digest] = _read_copy(fs, files, snapshot_id)
        copies.append(replace(known[digest], node=files.node))
    return copies


def _read_copy(fs: FileSystem, files: PartitionFiles, snapshot_id: OffsetAndEpoch) -> SnapshotCopy:
    """Return the content, or the reason and place of an error."""
    content: list[bytes] = []
    controls: list[bytes] = []
    reader = SnapshotReader(fs, files.directory, snapshot_id)
    loader = MetadataLoader()
    try:
        records = (
            record
            for batch in reader.batches()
            for record in _taken(batch, controls if batch.is_control else content)
        )
        last = max(snapshot_id.offset - 1, 0)
        image = loader.replay_snapshot(records, last, snapshot_id.epoch)
    except CorruptMetadataSnapshot as error:
        return SnapshotCopy(files.node, b"", b"", None, error.reason, error.position)
    except (MetadataFault, CorruptRecordBatch) as error:
        return SnapshotCopy(files.node, b"", b"", None, str(error))
    finally:
        reader.close()
    digest = hashlib.sha256(b"".join([*sorted(controls), *sorted(content)])).digest()
    return SnapshotCopy(files.node, digest, b"".join(sorted(controls)), image)


def _taken(batch: RecordBatch, content: list[bytes]) -> Iterator[Message]:
    """Yield the data records of a batch, and collect the bytes of every record.

    The time in the header is left out: a leader of Apache's writes the time of the append of the
    last batch, the others the time in that batch, which is when it was begun.
    """
    for record in batch.iter_records():
        key, value = bytes(record.key or b""), bytes(record.value or b"")
        if batch.is_control and parse_control_key(key) is ControlRecordType.SNAPSHOT_HEADER:
            value = value[:_VERSION_BYTES]
        content.append(b"%d %d " % (len(key), len(value)) + key + value)
        if not batch.is_control:
            yield decode_message(value)


def _decoded(values: list[bytes | None]) -> list[Message]:
    if None in values:
        raise MetadataFault("a metadata record has no value")
    return [decode_message(value) for value in values if value is not None]


class _StrictFold:
    """The trusted copy of the log as images, going on from one snapshot's end to the next."""

    def __init__(self, log: MetadataLog) -> None:
        self._log = log
        self._loader: MetadataLoader | None = None
        self._batches: Iterator[CollectedBatch] = iter(())
        if log.layouts and log.start == 0:
            self._loader, self._batches = MetadataLoader(), log.batches(0)
        self._end = 0

    def begin(self, image: MetadataImage, snapshot_id: OffsetAndEpoch) -> None:
        """Start from a snapshot, if the log does not reach back to its own beginning."""
        if self._loader is None and snapshot_id.offset >= max(self._log.start, 1):
            self._loader = MetadataLoader(image)
            self._batches = self._log.batches(snapshot_id.offset)
            self._end = snapshot_id.offset

    def image_at(self, offset: int) -> MetadataImage | None:
        """Return the image of the log before an offset, None if the log does not reach it."""
        while self._loader is not None and self._end < offset:
            batch = next(self._batches, None)
            if batch is None:
                return None
            try:
                self._loader.take_batch(_decoded(batch.values), batch.base_offset, batch.epoch)
            except MetadataFault:
                self._loader = None
                return None
            self._end = batch.last_offset + 1
        is_there = self._loader is not None and self._end == offset > 0
        return self._loader.image if self._loader is not None and is_there else None
