"""Offsets by timestamp, for ListOffsets (KIP-79, KIP-734).

The earliest offset is `Log.log_start_offset`, the latest a bound that the caller chooses; searches
are here. Compressed batches are decoded with the caps of `wire.compression`.
"""

from typing import NamedTuple

from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.storage.log import Log
from kraft_wire.storage.stored_records import stored_records
from kraft_wire.wire.records.record_batch import RecordBatch

__all__ = ["TimestampAndOffset", "offset_for_timestamp", "offset_of_max_timestamp"]


class TimestampAndOffset(NamedTuple):
    """A record found by its time, with the leader epoch of its batch."""

    timestamp: int
    offset: Offset
    leader_epoch: LeaderEpoch


def offset_for_timestamp(
    log: Log, timestamp: int, *, upper_bound: Offset
) -> TimestampAndOffset | None:
    """Return the first record at or after the log start whose time is at least `timestamp`.

    None without one below `upper_bound`. Errors: CorruptLog for invalid bytes, UnreadableRecords
    for a batch that cannot be decoded.
    """
    assert upper_bound <= log.log_end_offset, (upper_bound, log.log_end_offset)
    for segment in log.segments_from(log.log_start_offset):
        if segment.base_offset >= upper_bound:
            return None
        if segment.indexes.max_timestamp < timestamp:
            continue
        position = segment.indexes.position_before_timestamp(segment, timestamp)
        for _, batch in segment.batches_from(position):
            if batch.max_timestamp >= timestamp and batch.last_offset >= log.log_start_offset:
                found = _first_in(batch, segment.path, timestamp, log.log_start_offset)
                if found is not None:
                    return found if found.offset < upper_bound else None
    return None


def offset_of_max_timestamp(log: Log, *, upper_bound: Offset) -> TimestampAndOffset | None:
    """Return the first record with the largest time below `upper_bound` (KIP-734), or None.

    Errors: those of `offset_for_timestamp`.
    """
    assert upper_bound >= 0, upper_bound
    newest, holder, path = -1, None, ""
    for segment in log.segments_from(log.log_start_offset):
        if segment.base_offset >= upper_bound or segment.indexes.max_timestamp <= newest:
            continue
        position = segment.indexes.position_before_timestamp(segment, segment.indexes.max_timestamp)
        if segment.locate(upper_bound) is not None:
            position = 0  # the largest time may be after the bound
        for _, batch in segment.batches_from(position):
            if batch.base_offset >= upper_bound:
                break
            timestamp = _newest_in(batch, segment.path, log.log_start_offset)
            if timestamp > newest:
                newest, holder, path = timestamp, batch, segment.path
    return None if holder is None else _first_in(holder, path, newest, log.log_start_offset)


def _newest_in(batch: RecordBatch, path: str, start: Offset) -> int:
    """Return the largest time among the batch's records at or after `start`, -1 for none."""
    assert start >= 0, start
    if batch.base_offset >= start:
        return batch.max_timestamp
    if batch.last_offset < start:
        return -1
    times = [record.timestamp for record in stored_records(batch, path) if record.offset >= start]
    return max(times, default=-1)


def _first_in(
    batch: RecordBatch, path: str, timestamp: int, start: Offset
) -> TimestampAndOffset | None:
    """Return the batch's first record at or after `start` with at least that time, or None.

    The times of the records may differ from the largest one in the header, as in Kafka: a client
    can send a batch as if it had append times, and the leader then takes back the type alone.
    """
    epoch = LeaderEpoch(batch.partition_leader_epoch)
    assert start >= 0, start
    for record in stored_records(batch, path):
        if record.timestamp >= timestamp and record.offset >= start:
            return TimestampAndOffset(record.timestamp, Offset(record.offset), epoch)
    return None
