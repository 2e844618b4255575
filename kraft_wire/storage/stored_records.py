"""Reads the records of batches on the disk, where a valid CRC only guarantees the bytes.

A whole batch may have unreadable records: written by a defective client under an older release, or
by another program. Such a log is served unchanged, because a fetch does not decode records; an
operation that does raises `UnreadableRecords`.
"""

from collections.abc import Iterator

from kraft_wire.model import StorageError
from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["UnreadableRecords", "stored_records"]


class UnreadableRecords(StorageError):
    """A batch with a valid CRC has records that cannot be read."""

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
