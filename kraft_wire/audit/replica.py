"""One replica of a partition, as the checks need it: its batches as arrays, and offsets.

Built from tables of the view `batches`, which may come from Spark, or straight from the columns
that `columnar` reads. Rows are in the order of the log: by segment, then by position.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Final

import numpy as np
import pyarrow as pa

from kraft_wire.columnar.arrays import Bools, Int64s
from kraft_wire.columnar.batch_columns import BatchColumns
from kraft_wire.columnar.log_windows import Status
from kraft_wire.columnar.schemas import BATCHES

__all__ = ["Batches", "Replica", "batches_of", "batches_of_columns", "joined_batches"]

_UNKNOWN: Final = -1
_LOG_SUFFIX: Final = ".log"
_STATUS: Final = {status.name.lower(): int(status) for status in Status}


@dataclass(frozen=True, slots=True)
class Batches:
    """Columns of the view `batches` of one replica; unknown numbers are -1."""

    segment: Int64s
    """The base offset in the name of the file."""
    position: Int64s
    size_bytes: Int64s
    base_offset: Int64s
    last_offset: Int64s
    count: Int64s
    leader_epoch: Int64s
    magic: Int64s
    crc: Int64s
    max_timestamp: Int64s
    producer_id: Int64s
    producer_epoch: Int64s
    base_sequence: Int64s
    is_transactional: Bools
    is_control: Bools
    control_type: Int64s
    """Of markers and other control batches; -1 in rows from a table, which does not have it."""
    status: Int64s
    """One `Status` a row."""

    def __len__(self) -> int:
        return len(self.position)

    @property
    def is_valid(self) -> Bools:
        """Whether each is a whole batch with a right checksum."""
        return np.equal(self.status, Status.OK)

    @property
    def is_batch(self) -> Bools:
        """Whether each is a whole batch, with a right checksum or a wrong one."""
        return self.status <= Status.CRC

    def file(self, row: int) -> str:
        """Return the name of a row's file."""
        return segment_file(int(self.segment[row]))


@dataclass(frozen=True, slots=True)
class Replica:
    """One partition on one node."""

    node: str
    topic: str
    partition: int
    batches: Batches
    log_start_offset: int
    """Where consumers begin; the log's first offset if none is checkpointed."""
    high_watermark: int = -1
    """As checkpointed."""
    is_compacted: bool = False
    """Whether records may be missing inside by design."""
    leader_epochs: list[tuple[int, int]] = field(default_factory=list)
    """(epoch, start offset) of `leader-epoch-checkpoint`; empty without the file."""
    epochs_damage: str = ""
    """The fault of the file of `leader_epochs`, empty without one."""
    segments: list[int] = field(default_factory=list)
    """Base offsets in the names of all files, of empty ones too."""
    lost_from: int = -1
    """Where the log began, if its first files were not deleted by design."""


def segment_file(base_offset: int) -> str:
    """Return the name of the log file that begins at an offset."""
    return f"{base_offset:020d}{_LOG_SUFFIX}"


def batches_of(table: pa.Table) -> Batches:
    """Return the batches of a table of one replica; its rows may have any order."""
    order = [("segment", "ascending"), ("position", "ascending")]
    table = table.sort_by(order)

    def numbers(name: str) -> Int64s:
        column = table[name].cast(pa.int64()).fill_null(_UNKNOWN).combine_chunks()
        values: Int64s = column.to_numpy(zero_copy_only=False)
        return values

    def flags(name: str) -> Bools:
        column = table[name].fill_null(False).combine_chunks()
        values: Bools = column.to_numpy(zero_copy_only=False).astype(np.bool_)
        return values

    names = table["segment"].to_pylist()
    return Batches(
        segment=np.array([int(name.removesuffix(_LOG_SUFFIX)) for name in names], np.int64),
        position=numbers("position"),
        size_bytes=numbers("sizeInBytes"),
        base_offset=numbers("baseOffset"),
        last_offset=numbers("lastOffset"),
        count=numbers("count"),
        leader_epoch=numbers("leaderEpoch"),
        magic=numbers("magic"),
        crc=numbers("crc"),
        max_timestamp=numbers("maxTimestamp"),
        producer_id=numbers("producerId"),
        producer_epoch=numbers("producerEpoch"),
        base_sequence=numbers("baseSequence"),
        is_transactional=flags("isTransactional"),
        is_control=flags("isControl"),
        control_type=np.full(len(names), _UNKNOWN, np.int64),
        status=np.array([_STATUS[name] for name in table["status"].to_pylist()], np.int64),
    )


def batches_of_columns(columns: BatchColumns, segment: int) -> Batches:
    """Return the batches that were read from one window of a segment."""

    def known(values: Int64s) -> Int64s:
        return np.where(columns.is_batch, values, _UNKNOWN)

    return Batches(
        segment=np.full(len(columns), segment, np.int64),
        position=columns.position,
        size_bytes=columns.size_bytes,
        base_offset=known(columns.base_offset),
        last_offset=known(columns.last_offset),
        count=known(columns.count),
        leader_epoch=known(columns.leader_epoch),
        magic=known(columns.magic),
        crc=known(columns.crc),
        max_timestamp=known(columns.max_timestamp),
        producer_id=known(columns.producer_id),
        producer_epoch=known(columns.producer_epoch),
        base_sequence=known(columns.base_sequence),
        is_transactional=columns.is_transactional & columns.is_batch,
        is_control=columns.is_control & columns.is_batch,
        control_type=columns.control_type,
        status=columns.status,
    )


def joined_batches(parts: Sequence[Batches]) -> Batches:
    """Return the batches of several stretches of a log, given in their order."""

    def joined(name: str) -> Int64s:
        values: Int64s = np.concatenate([getattr(part, name) for part in parts])
        return values

    if not parts:
        return batches_of(BATCHES.empty_table())
    columns = {each.name: joined(each.name) for each in fields(Batches)}
    is_transactional: Bools = columns.pop("is_transactional").astype(np.bool_)
    is_control: Bools = columns.pop("is_control").astype(np.bool_)
    return Batches(**columns, is_transactional=is_transactional, is_control=is_control)
