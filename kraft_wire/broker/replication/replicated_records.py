"""Checks a leader's records before they are written: batches that fit the end of our log.

A follower writes the leader's bytes as they are: offsets, leader epochs and checksums stay. Records
that recovery would call damage at the next start are refused, so that a leader's mistake or damage
in transit is not stored. Offsets and epochs must be in the log's order; the checksum does not cover
them.

Not here: sizes, times and keys, which the leader has checked; whether a producer's batch is next.
"""

from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import HEADER_BYTES, RecordBatch, peek_header

__all__ = ["RefusedRecords", "batches_to_append"]


class RefusedRecords(Exception):
    """The records cannot follow the log's end; the reason is for a log line."""

    def __init__(self, reason: str, first_offset: int = -1, last_offset: int = -1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.first_offset = first_offset
        """Offset of the first batch if its offset is wrong, else -1."""
        self.last_offset = last_offset


def batches_to_append(
    records: memoryview, end_offset: Offset, latest_epoch: int, leader_epoch: LeaderEpoch
) -> list[RecordBatch]:
    """Return the whole batches that may be appended at `end_offset`, in order.

    A truncated batch ends them: an answer is cut at its byte limit. So does a batch of a higher
    leader epoch than the requested one: it was written after this leader resigned, and may be gone
    (KAFKA-18723). Gaps between batches are valid: compaction makes them. Errors: RefusedRecords, in
    the order of the checks: form, checksum, offsets, epoch, markers.
    """
    found: list[RecordBatch] = []
    position, expected, epoch = 0, int(end_offset), latest_epoch
    try:
        while len(records) - position >= HEADER_BYTES:
            batch = peek_header(records, position)
            if batch.size_bytes > len(records) - position:
                break
            _check_batch(batch, expected, epoch)
            if batch.partition_leader_epoch > leader_epoch:
                return found
            found.append(batch)
            expected, epoch = batch.next_offset, batch.partition_leader_epoch
            position += batch.size_bytes
    except CorruptRecordBatch as error:
        raise RefusedRecords(f"{error.reason} at byte {position}") from error
    if not found and len(records) > 0:
        raise RefusedRecords(f"{len(records)} bytes hold no complete batch")
    return found


def _check_batch(batch: RecordBatch, expected: int, epoch: int) -> None:
    if not batch.crc_is_valid():
        raise RefusedRecords(f"the checksum of the batch at offset {batch.base_offset} is wrong")
    if batch.last_offset_delta < 0 or not 0 <= batch.base_offset < batch.next_offset:
        raise RefusedRecords(f"offsets {batch.base_offset} to {batch.last_offset} are impossible")
    if batch.base_offset < expected:
        reason = f"base offset is {batch.base_offset}, expected {expected}"
        raise RefusedRecords(reason, batch.base_offset, batch.last_offset)
    if batch.partition_leader_epoch < max(epoch, 0):
        raise RefusedRecords(f"leader epoch {batch.partition_leader_epoch} after {epoch}")
    if batch.is_control:
        batch.check_records()  # the log reads markers, which it must not find damaged
        for _ in batch.iter_records():
            pass
