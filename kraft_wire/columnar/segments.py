"""The content of one entry of `log.dirs`: partitions, segment files, and checkpointed offsets.

Reads directories, `meta.properties`, the offset checkpoints and, for the log end, the last segment
from its last index entry on. Takes no lock and changes nothing, so a running node may own the
directory: a listed file may be gone when it is read. Deleted and future replicas are left out.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from kraft_wire.columnar.batch_columns import batch_columns
from kraft_wire.columnar.log_windows import read_windows
from kraft_wire.columnar.offset_index import index_entries
from kraft_wire.columnar.schemas import SEGMENTS
from kraft_wire.model import TopicPartition
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.checkpoints import (
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    read_offsets,
)
from kraft_wire.storage.directory.log_directory import partition_of_directory
from kraft_wire.storage.directory.meta_properties import read_meta_properties
from kraft_wire.storage.files import File, FileSystem, MissingFile
from kraft_wire.storage.segment import LOG_SUFFIX

__all__ = [
    "NO_OFFSET",
    "PartitionFiles",
    "SegmentFile",
    "list_partitions",
    "log_end_offset",
    "node_of",
    "segments_table",
]

NO_OFFSET: Final = -1
_NAME_DIGITS: Final = 20
_PARTITION_MAX: Final = (1 << 31) - 1
_OFFSET_MAX: Final = (1 << 63) - 1
"""A name with a higher number is not a partition or a segment, but a copy. Nor is a name with
characters that cannot be encoded."""


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One `.log` file."""

    file: str
    base_offset: int
    size_bytes: int


@dataclass(slots=True)
class PartitionFiles:
    """The log of one partition on one node."""

    node: str
    """`node.id` as text; empty if the directory does not have it."""
    topic: str
    partition: int
    directory: str
    segments: list[SegmentFile] = field(default_factory=list)
    """By base offset."""
    log_start_offset: int = NO_OFFSET
    """As checkpointed: only logs whose start is above their first segment are."""
    high_watermark: int = NO_OFFSET
    """As checkpointed: after a crash the true one may be above."""
    log_end_offset: int = NO_OFFSET
    """Offset after the last whole batch."""

    @property
    def earliest_offset(self) -> int:
        """Where a consumer would begin: records before it may still be on disk."""
        first = self.segments[0].base_offset if self.segments else 0
        return max(self.log_start_offset, first)


def list_partitions(
    fs: FileSystem, log_dir: str, *, with_ends: bool = True
) -> list[PartitionFiles]:
    """Return the partitions of a log directory, by topic and number.

    Without ends no segment is read, and `log_end_offset` stays unknown. A damaged checkpoint or
    `meta.properties` counts as absent, as for a starting node if nothing is lost by that. Errors:
    StorageError if the directory itself cannot be read.
    """
    node = node_of(fs, log_dir)
    starts = _checkpoint(fs, f"{log_dir}/{LOG_START_OFFSETS}")
    watermarks = _checkpoint(fs, f"{log_dir}/{HIGH_WATERMARKS}")
    found: list[PartitionFiles] = []
    for name in fs.names(log_dir):
        key = partition_of_directory(name)
        if (
            key is None
            or key.partition > _PARTITION_MAX
            or name != f"{key.topic}-{key.partition}"  # no zero before a number is Kafka's
            or not key.topic.isprintable()
            or not fs.is_directory(f"{log_dir}/{name}")
        ):
            continue
        files = PartitionFiles(node, key.topic, key.partition, f"{log_dir}/{name}")
        try:
            files.segments = _segments(fs, files.directory)
        except MissingFile:  # deleted since the names were read
            continue
        files.log_start_offset = starts.get(key, NO_OFFSET)
        files.high_watermark = watermarks.get(key, NO_OFFSET)
        if with_ends:
            files.log_end_offset = log_end_offset(fs, files)
        found.append(files)
    return sorted(found, key=lambda each: (each.topic, each.partition))


def segments_table(partitions: list[PartitionFiles]) -> pa.Table:
    """Return the view `segments`: one row a file."""
    rows = [
        {
            "node": each.node,
            "topic": each.topic,
            "partition": each.partition,
            "file": segment.file,
            "baseOffset": segment.base_offset,
            "logBytes": segment.size_bytes,
            "logStartOffset": each.log_start_offset,
            "logEndOffset": each.log_end_offset,
            "highWatermark": each.high_watermark,
        }
        for each in partitions
        for segment in each.segments
    ]
    return pa.Table.from_pylist(rows, schema=SEGMENTS)


def node_of(fs: FileSystem, log_dir: str) -> str:
    """Return the `node.id` of a log directory as text, "" if it has none."""
    try:
        meta = read_meta_properties(fs, log_dir)
    except CorruptCheckpoint:
        return ""
    return "" if meta is None else str(meta.node_id)


def _checkpoint(fs: FileSystem, path: str) -> dict[TopicPartition, int]:
    try:
        return {key: int(offset) for key, offset in read_offsets(fs, path).items()}
    except CorruptCheckpoint:
        return {}


def _segments(fs: FileSystem, directory: str) -> list[SegmentFile]:
    """Return the segments; a file that vanishes meanwhile is left out."""
    segments: list[SegmentFile] = []
    for name in fs.names(directory):
        stem = name.removesuffix(LOG_SUFFIX)
        if stem == name or len(stem) != _NAME_DIGITS or not stem.isascii() or not stem.isdigit():
            continue
        try:
            file = fs.open_for_reading(f"{directory}/{name}")
        except MissingFile:
            continue
        if int(stem) <= _OFFSET_MAX:
            segments.append(SegmentFile(name, int(stem), file.size_bytes()))
        file.close()
    return sorted(segments, key=lambda each: each.base_offset)


def log_end_offset(fs: FileSystem, files: PartitionFiles) -> int:
    """Return the offset after the last whole batch, else the base offset of the last file."""
    if not files.segments:
        return NO_OFFSET
    last = files.segments[-1]
    try:
        file = fs.open_for_reading(f"{files.directory}/{last.file}")
    except MissingFile:
        return last.base_offset
    positions = index_entries(fs, f"{files.directory}/{last.file}", last.size_bytes).positions
    start = int(positions[-1]) if len(positions) else 0
    end = _end_offset(file, start, last.size_bytes)
    if end is None and start:  # the index does not point to a batch: an index may be wrong
        end = _end_offset(file, 0, last.size_bytes)
    file.close()
    return last.base_offset if end is None else end


def _end_offset(file: File, start: int, size: int) -> int | None:
    """Return the end of the last whole batch from `start` on, None if none begins there."""
    end: int | None = None
    for window in read_windows(file, size, start):
        columns = batch_columns(window)
        valid = np.flatnonzero(columns.is_valid)
        if end is None and start and not (len(valid) and valid[0] == 0):
            return None
        if len(valid):
            end = int(columns.last_offset[valid[-1]]) + 1
    return end
