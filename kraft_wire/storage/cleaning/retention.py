"""Removing old segments: by time, by size, and below the log's start (KIP-107).

Only whole segments are removed, oldest first, and never one that reaches the high watermark. `-1`
means no limit. A segment whose records have no timestamps has the age of its file's last write: a
copy of a directory should keep those times, as it should for Kafka.
"""

from collections.abc import Callable

from kraft_wire.storage.log import Log
from kraft_wire.storage.segment import Segment

__all__ = ["apply_retention", "newest_ms"]


def apply_retention(log: Log, wall_ms: int) -> int:
    """Remove segments by the topic's settings; return the number of removed segments.

    Time and size apply if `cleanup.policy` includes delete; the log start always applies. If the
    active segment is due itself, a new one is created first. Errors: those of `files`.
    """
    assert wall_ms >= 0, wall_ms
    removed = 0
    if log.config.is_deleted:
        removed += _remove_while(log, lambda segment: _is_expired(log, segment, wall_ms), wall_ms)
        removed += _remove_beyond_size(log)
    start = log.log_start_offset
    ends = [following.base_offset for following in log.segments[1:]]
    below = sum(1 for end in ends if end <= start)
    log.remove_first_segments(below)
    assert log.segments, log.directory
    return removed + below


def _is_expired(log: Log, segment: Segment, wall_ms: int) -> bool:
    """Return whether the newest record of the segment is older than `retention.ms`."""
    retention_ms = log.config.retention_ms
    if retention_ms < 0 or segment.size_bytes == 0:
        return False
    return wall_ms - newest_ms(segment) > retention_ms


def newest_ms(segment: Segment) -> int:
    """Return the largest time of a segment's records; without any, its file's last write."""
    newest = segment.indexes.max_timestamp
    assert newest >= -1, newest
    return newest if newest >= 0 else segment.file.modified_ms()


def _remove_while(log: Log, is_due: Callable[[Segment], bool], wall_ms: int) -> int:
    """Remove the leading segments that are due and below the high watermark."""
    count = 0
    for segment, following in zip(log.segments, [*log.segments[1:], None], strict=True):
        end = log.log_end_offset if following is None else following.base_offset
        if end > log.high_watermark or not is_due(segment):
            break
        count += 1
    if count == len(log.segments):
        log.roll(wall_ms)
    assert count < len(log.segments), log.directory
    log.remove_first_segments(count)
    return count


def _remove_beyond_size(log: Log) -> int:
    """Remove leading segments while the rest has at least `retention.bytes`."""
    if log.config.retention_bytes < 0:
        return 0
    excess = log.size_bytes - log.config.retention_bytes
    count = 0
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        if segment.size_bytes > excess or following.base_offset > log.high_watermark:
            break
        excess -= segment.size_bytes
        count += 1
    log.remove_first_segments(count)
    assert count < len(log.segments) + count, count
    return count
