"""Log files and fetched batches to Arrow, with numpy and without Spark: the extra `columnar`.

Read in this order: `log_windows` walks over bytes, `batch_columns` reads headers, `record_starts`
and `record_fields` the records of many batches at once, `records` puts them together,
`transactions` decides which are committed, `segments` lists a log directory. Importing this package
without the extra raises `MissingExtra`, whose message has the command to install it.

It does not know start offsets, tasks or Spark: these belong to its callers.
"""

from kraft_wire.columnar.available import MissingExtra, require
from kraft_wire.columnar.batch_columns import (
    BatchColumns,
    BatchSource,
    batch_columns,
    batches_table,
)
from kraft_wire.columnar.log_windows import MemoryFile, Status, Window, read_windows, window_of
from kraft_wire.columnar.offset_index import IndexEntries, index_entries
from kraft_wire.columnar.records import RecordColumns, Unreadable, read_records, records_table
from kraft_wire.columnar.schemas import BATCHES, RECORDS, SEGMENTS, records_schema
from kraft_wire.columnar.segments import (
    PartitionFiles,
    SegmentFile,
    list_partitions,
    log_end_offset,
    node_of,
    segments_table,
)
from kraft_wire.columnar.transactions import (
    AbortedRange,
    TransactionScan,
    committed_rows,
    fetched_ranges,
)

__all__ = [
    "BATCHES",
    "RECORDS",
    "SEGMENTS",
    "AbortedRange",
    "BatchColumns",
    "BatchSource",
    "IndexEntries",
    "MemoryFile",
    "MissingExtra",
    "PartitionFiles",
    "RecordColumns",
    "SegmentFile",
    "Status",
    "TransactionScan",
    "Unreadable",
    "Window",
    "batch_columns",
    "batches_table",
    "committed_rows",
    "fetched_ranges",
    "index_entries",
    "list_partitions",
    "log_end_offset",
    "node_of",
    "read_records",
    "read_windows",
    "records_schema",
    "records_table",
    "require",
    "segments_table",
    "window_of",
]
