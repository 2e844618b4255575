"""The views `records` and `batches`: Arrow batches of one task's parts of logs. No Spark here.

For read_committed a task reads headers first, those of its own segments and of the others that
decide about its transactions; the second pass reads the records up to the last stable offset.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kraft_wire.columnar import (
    AbortedRange,
    BatchColumns,
    BatchSource,
    batches_table,
    committed_rows,
    read_records,
    records_table,
)
from kraft_wire.columnar.arrays import Bools
from kraft_wire.columnar.records import CONTENT
from kraft_wire.spark.kraftlog.log_walk import LogWindow, complain, judge_damage, walk
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.planning import LogPart, OffsetRange
from kraft_wire.spark.kraftlog.transactions import scan_around
from kraft_wire.storage.files import FileSystem

__all__ = ["kept_rows", "read_batches_view", "read_records_view"]


def read_batches_view(
    fs: FileSystem, part: LogPart, options: LogOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part's batches; damage between them has separate rows."""
    for found in walk(fs, part, fail_on_loss=options.fail_on_data_loss):
        place = _place(found)
        table = batches_table(found.columns, place).select(schema.names)
        if not table.schema.equals(schema, check_metadata=True):
            table = table.cast(schema)
        if not found.in_range.all():
            table = table.filter(pa.array(found.in_range))
        yield from _in_batches(table, options)


def read_records_view(
    fs: FileSystem, part: LogPart, options: LogOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a part that are in its range."""
    aborted: list[AbortedRange] = list(part.aborted or ())
    last_stable_offset: int | None = None
    if options.read_committed and part.aborted is None:
        aborted, last_stable_offset = scan_around(fs, part, options)
    content = [name for name in CONTENT if name in schema.names]
    for found in walk(fs, part, fail_on_loss=options.fail_on_data_loss):
        judge_damage(found, options.on_corrupt)
        selected = found.in_range
        if options.read_committed:
            selected = selected & committed_rows(found.columns, aborted, last_stable_offset)
        yield from _records(found, selected, content, options, schema)


def _records(
    found: LogWindow,
    selected: Bools,
    content: list[str],
    options: LogOptions,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    place = _place(found)
    for records in read_records(found.window, found.columns, selected, content=content):
        for each in records.unreadable:
            complain(
                found, each.position, f"records cannot be read: {each.reason}", options.on_corrupt
            )
        table = records_table(records, place, schema, found.columns)
        kept = kept_rows(records.offset, found.columns, selected, found.part.offsets)
        if kept is not None:
            table = table.filter(pa.array(kept))
        yield from _in_batches(table, options)


def kept_rows(
    offset: np.ndarray[tuple[int], np.dtype[np.int64]],
    columns: BatchColumns,
    selected: Bools,
    offsets: OffsetRange,
) -> Bools | None:
    """Return the records in the range, None for all: it may begin inside a batch."""
    rows = selected & columns.is_valid
    if not rows.any():
        return None
    starts = int(columns.base_offset[rows].min()) < offsets.start
    ends = offsets.end is not None and int(columns.last_offset[rows].max()) >= offsets.end
    if not starts and not ends:
        return None
    kept: Bools = offset >= offsets.start
    if offsets.end is not None:
        kept &= offset < offsets.end
    return kept


def _place(found: LogWindow) -> BatchSource:
    part = found.part
    return BatchSource(part.topic, part.partition, part.node, found.stretch.segment)


def _in_batches(table: pa.Table, options: LogOptions) -> Iterator[pa.RecordBatch]:
    if table.num_rows:
        yield from table.to_batches(max_chunksize=options.arrow_batch_rows)
