"""The first and last offsets of a batch read of a log, from the options.

Records below the log start offset are still on disk. Only `physical` shows them, and the view
`batches`, which is about files, without a start option.
"""

from kraft_wire.columnar import PartitionFiles
from kraft_wire.model import TopicPartition
from kraft_wire.spark.kraftlog.options import LogOptions
from kraft_wire.spark.kraftlog.planning import EVERYTHING, OffsetRange
from kraft_wire.spark.kraftlog.replicas import log_end
from kraft_wire.spark.kraftwire.offsets import EARLIEST, LATEST
from kraft_wire.storage.files import FileSystem

__all__ = ["offset_range"]


def offset_range(fs: FileSystem, files: PartitionFiles, options: LogOptions) -> OffsetRange:
    """Return the range of the options for one log; a deleted start moves to the earliest offset."""
    key = TopicPartition(files.topic, files.partition)
    earliest = files.earliest_offset
    start = (options.starting_offsets or {}).get(key, EARLIEST)
    if start == EARLIEST:
        is_physical = options.starting == "physical"
        if options.view == "batches" and not options.is_start_explicit:
            is_physical = True
        start = EVERYTHING.start if is_physical else earliest
    elif start == LATEST:
        start = max(log_end(fs, files), 0)
    else:
        start = max(start, earliest)
    end: int | None = (options.ending_offsets or {}).get(key, LATEST)
    if end == LATEST:
        end = None
    elif end == EARLIEST:
        end = earliest
    ends = [each for each in (end, options.pushed.end_offset) if each is not None]
    return OffsetRange(max(start, options.pushed.start_offset), min(ends, default=None))
