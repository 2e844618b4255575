"""The one record batch of format 2 that a Produce request may carry for a partition.

KIP-98 (format 2), KIP-110 (zstd from version 7 on). Not here: the checks of the batch's content
(`append_validation`), and the other fields of the request (`handlers/produce`).
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, TypeAlias

from kraft_wire.broker.producing.append_validation import AppendRejected
from kraft_wire.model import FileSlice
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    RecordBatch,
    peek_header,
)

__all__ = ["first_corruption", "produced_batch"]

_FIRST_ZSTD_VERSION: Final = 7
_ZSTD: Final = Compression.ZSTD
_LENGTH: Final = Struct(">i")
_LENGTH_AT: Final = 8
_LENGTH_MIN: Final = 14
"""The overhead of a record of format 0, which Kafka takes as the least for every format."""
_MAGIC_AT: Final = 16


_Records: TypeAlias = bytes | bytearray | memoryview | FileSlice | None


def produced_batch(records: _Records, version: int) -> RecordBatch:
    """Return the batch in the records of a Produce request of a version.

    As in Kafka, a truncated batch counts as none, and so do truncated bytes after a whole one.
    Errors (`AppendRejected`), first match wins: INVALID_RECORD for no batch or one of another
    format, CORRUPT_MESSAGE, UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD for a second batch.
    """
    view = records if isinstance(records, memoryview) else _view(records)
    size_bytes = len(view)
    batch = RecordBatch(view) if size_bytes >= HEADER_BYTES else None
    is_all = batch is not None and batch.batch_length + LOG_OVERHEAD_BYTES == size_bytes
    if batch is None or not is_all or batch.magic != MAGIC:
        batch = _first_batch(view)
    if version < _FIRST_ZSTD_VERSION:
        _refuse_codec(batch.attributes & CODEC_MASK)
    if not is_all and _batch_size(view[len(batch.view) :]) is not None:
        raise AppendRejected(ErrorCode.INVALID_RECORD)
    return batch


def first_corruption(of_partitions: Iterable[_Records]) -> AppendRejected | None:
    """Return why a whole request is CORRUPT_MESSAGE, None if it is not.

    4.3.1 looks for transactional records before anything else (`RequestUtils`), at the first batch
    of each partition in turn, up to the first that is transactional. A batch with an impossible
    size or format fails the request there.
    """
    for records in of_partitions:
        view = _view(records)
        try:
            size = _batch_size(view)
        except AppendRejected as rejected:
            return rejected
        is_batch = size is not None and size >= HEADER_BYTES and view[_MAGIC_AT] == MAGIC
        if is_batch and RecordBatch(view).attributes & TRANSACTIONAL_BIT:
            return None
    return None


def _view(records: _Records) -> memoryview:
    assert not isinstance(records, FileSlice), "decoded requests carry bytes"
    return records if isinstance(records, memoryview) else memoryview(records or b"")


def _refuse_codec(codec: int) -> None:
    """Refuse the codecs that version 7 added, and unknown codecs."""
    if codec == _ZSTD:
        raise AppendRejected(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if codec > _ZSTD:
        raise AppendRejected(ErrorCode.UNKNOWN_SERVER_ERROR)


def _first_batch(view: memoryview) -> RecordBatch:
    """Return the batch at the start of the bytes. Errors: AppendRejected, with the reason."""
    size = _batch_size(view)
    if size is None or view[_MAGIC_AT] != MAGIC:
        raise AppendRejected(ErrorCode.INVALID_RECORD)
    try:
        return peek_header(view)
    except CorruptRecordBatch as corrupt:
        raise AppendRejected(ErrorCode.CORRUPT_MESSAGE) from corrupt


def _batch_size(view: memoryview) -> int | None:
    """Return the size of the whole batch at the start, None for a truncated one or none."""
    if len(view) <= _MAGIC_AT:
        return None
    length: int = _LENGTH.unpack_from(view, _LENGTH_AT)[0]
    if length < _LENGTH_MIN:
        message = f"Record size {length} is less than the minimum record overhead ({_LENGTH_MIN})"
        raise AppendRejected(ErrorCode.CORRUPT_MESSAGE, message)
    if view[_MAGIC_AT] > MAGIC:
        magic = (view[_MAGIC_AT] ^ 0x80) - 0x80  # a signed byte
        raise AppendRejected(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    size = length + LOG_OVERHEAD_BYTES
    return size if size <= len(view) else None
