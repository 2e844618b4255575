"""The batches of a metadata log with the bytes of their records, cut out a window at a time.

Finding a batch's records one by one costs more than decoding them; `columnar` finds all records of
a window at once, for batches of any size. No Spark here.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kraft_wire.columnar import RecordColumns, read_records
from kraft_wire.spark.kraftlog.log_walk import LogWindow
from kraft_wire.spark.kraftlog.planning import LogPart
from kraft_wire.spark.metadata.metadata_views import batches_of, metadata_windows
from kraft_wire.storage.files import FileSystem
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["Entry", "LoggedBatch", "logged_batches"]

Entry = tuple[int, int, bytes]
"""A record: its offset, its time in milliseconds and its value, empty for none."""


class LoggedBatch(NamedTuple):
    """A batch, and its records unless it is a control batch."""

    batch: RecordBatch
    entries: Sequence[Entry]


def logged_batches(fs: FileSystem, part: LogPart) -> Iterator[LoggedBatch]:
    """Yield all batches of a metadata log in order.

    Errors: PipelineError if it is damaged, CorruptRecordBatch for unreadable records.
    """
    for found in metadata_windows(fs, part):
        by_row = _entries(found)
        for row, batch in batches_of(found):
            yield LoggedBatch(batch, by_row.get(row, ()))


def _entries(found: LogWindow) -> dict[int, list[Entry]]:
    """Return the records of every row of a window that has some."""
    by_row: dict[int, list[Entry]] = {}
    for records in read_records(found.window, found.columns, found.in_range, content=("value",)):
        for each in records.unreadable:
            raise CorruptRecordBatch(each.reason, each.position)
        by_row |= _grouped(records)
    return by_row


def _grouped(records: RecordColumns) -> dict[int, list[Entry]]:
    """Divide records at the batches that they are in."""
    values = records.content["value"].fill_null(b"").to_pylist()
    entries = list(zip(records.offset.tolist(), records.timestamp.tolist(), values, strict=True))
    begins = np.flatnonzero(np.diff(records.row, prepend=-1)).tolist()
    rows = records.row[begins].tolist()
    ends = pairwise([*begins, len(entries)])
    return {row: entries[begin:end] for row, (begin, end) in zip(rows, ends, strict=True)}
