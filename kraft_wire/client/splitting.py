"""Splits a batch that is too large for a broker, as Apache's producer does (KIP-126).

The sequence numbers (KIP-98) stay: the first piece begins with the batch's sequence, each other one
where the one before it ends, so that a broker accepts them like the whole batch.
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.wire.compression.codecs import STORED_LIMITS
from kraft_wire.wire.records.batch_builder import BatchBuilder
from kraft_wire.wire.records.record import NO_SEQUENCE, Header, increment_sequence
from kraft_wire.wire.records.record_batch import HEADER_BYTES, RecordBatch

__all__ = ["record_bytes_at_most", "split", "unpacked_bytes"]

_RECORD_OVERHEAD_BYTES: Final = 36
"""Sizes, deltas and attributes of a record, at most."""
_HEADER_OVERHEAD_BYTES: Final = 10


def record_bytes_at_most(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """Return how many bytes a record takes in a batch, without compression."""
    size = _RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += 3 * len(name) + len(content or b"") + _HEADER_OVERHEAD_BYTES
    return size


def unpacked_bytes(batch: RecordBatch) -> int:
    """Return how large a batch of ours is without compression."""
    return HEADER_BYTES + len(batch.body(STORED_LIMITS))


def split(batch: RecordBatch, bytes_max: int) -> list[bytearray]:
    """Return two batches or more: each of that size at most, unpacked, or of one record."""
    count = batch.records_count
    assert count > 1, batch
    assert bytes_max < unpacked_bytes(batch), (bytes_max, batch)
    pieces: list[BatchBuilder] = []
    sequence = batch.base_sequence
    for record in batch.iter_records(STORED_LIMITS):
        size = record_bytes_at_most(record.key, record.value, record.headers)
        if pieces and pieces[-1].size_bytes + size <= bytes_max:
            piece = pieces[-1]
        else:
            piece = _begin_like(batch, sequence)
            pieces.append(piece)
        piece.append(record.timestamp, record.key, record.value, record.headers)
        if sequence != NO_SEQUENCE:
            sequence = increment_sequence(sequence, 1)
    assert len(pieces) > 1, (bytes_max, batch)
    assert sum(piece.records_count for piece in pieces) == count, batch
    return [piece.build() for piece in pieces]


def _begin_like(batch: RecordBatch, sequence: int) -> BatchBuilder:
    return BatchBuilder(
        compression=batch.compression,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=sequence,
    )
