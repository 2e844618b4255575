"""Reading the records of batches that are on the disk, where a right CRC promises only the bytes.

A batch may be whole and still hold records that nobody can read: written by a defective client
under an older release, or by a program of another kind. Such a log is served as it is, as fetching
needs no record; what does need one fails with `UnreadableRecords`.
"""

from collections.abc import Iterator

from kraft_wire.model import StorageError
from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["UnreadableRecords", "stored_records"]


class UnreadableRecords(StorageError):
    """A batch whose CRC is right holds records that cannot be read."""

    def __init__(self, path: str, batch: RecordBatch, cause: CorruptRecordBatch) -> None:
        reason = f"records of the batch at offset {batch.base_offset}: {cause.reason}"
        super().__init__("decode", path, reason)


def stored_records(batch: RecordBatch, path: str) -> Iterator[Record]:
    """Iterate over the records of a batch in the file `path`; UnreadableRecords."""
    assert path, batch
    try:
        yield from batch.iter_records(STORED_LIMITS)
    except CorruptRecordBatch as cause:
        raise UnreadableRecords(path, batch, cause) from cause
