"""Records and markers of one replica of a coordinator's partition, in the order of the log.

A coordinator that loads its partition takes records one by one, and markers of transactions between
them (KIP-98). Batches that cannot be read are left out.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np

from kraft_wire.columnar.batch_columns import BatchColumns, batch_columns
from kraft_wire.columnar.log_windows import Window, read_windows
from kraft_wire.columnar.records import read_records
from kraft_wire.columnar.segments import PartitionFiles
from kraft_wire.storage.files import FileSystem, MissingFile

__all__ = ["LoggedMarker", "LoggedRecord", "coordinator_log"]


class LoggedRecord(NamedTuple):
    """One record; `key` and `value` begin with an int16, the type and the version."""

    offset: int
    timestamp: int
    """Milliseconds since 1970, -1 for none."""
    key: bytes | None
    value: bytes | None
    producer_id: int | None
    """Not None in a transaction: its marker decides about the record."""


class LoggedMarker(NamedTuple):
    """The end of a producer's transaction."""

    offset: int
    timestamp: int
    producer_id: int
    kind: int
    """`ControlRecordType`, or -1."""


def coordinator_log(fs: FileSystem, files: PartitionFiles) -> Iterator[LoggedRecord | LoggedMarker]:
    """Yield records and markers; a segment that is removed meanwhile has none."""
    for segment in files.segments:
        try:
            file = fs.open_for_reading(f"{files.directory}/{segment.file}")
        except MissingFile:
            continue
        with closing(file):
            for window in read_windows(file, file.size_bytes()):
                yield from _of_window(window, batch_columns(window))


def _of_window(window: Window, columns: BatchColumns) -> Iterator[LoggedRecord | LoggedMarker]:
    rows = np.flatnonzero(columns.is_valid & columns.is_control).tolist()
    markers = iter([(row, _marker(columns, row)) for row in rows] + [(len(columns), None)])
    marker_row, marker = next(markers)
    transactional = columns.is_transactional
    for records in read_records(window, columns, content=("key", "value")):
        keys, values = (records.content[name].to_pylist() for name in ("key", "value"))
        producers = columns.producer_id[records.row].tolist()
        if not transactional.all():
            for at in np.flatnonzero(~transactional[records.row]).tolist():
                producers[at] = None
        columns_of_records = (records.offset.tolist(), records.timestamp.tolist(), keys, values)
        of_records = map(LoggedRecord._make, zip(*columns_of_records, producers, strict=True))
        for row, record in zip(records.row.tolist(), of_records, strict=True):
            while row > marker_row:
                assert marker is not None, row
                yield marker
                marker_row, marker = next(markers)
            yield record
    while marker is not None:
        yield marker
        _, marker = next(markers)


def _marker(columns: BatchColumns, row: int) -> LoggedMarker:
    return LoggedMarker(
        int(columns.base_offset[row]),
        int(columns.max_timestamp[row]),
        int(columns.producer_id[row]),
        int(columns.control_type[row]),
    )
