"""The cleanable part of a log, and whether compaction is due (KIP-58, KIP-354).

A log has three parts. The clean part ends at the first dirty offset, which is in the cleaner
checkpoint. The cleanable part follows and ends at the first uncleanable offset. A pass cleans only
whole segments, so a segment that reaches the last stable offset is uncleanable and does not count:
a pass over it would make no progress.
"""

from itertools import pairwise
from typing import Final

from kraft_wire.frozen import frozen
from kraft_wire.model import Offset
from kraft_wire.storage.cleaning.retention import newest_ms
from kraft_wire.storage.log import Log
from kraft_wire.storage.segment import Segment

__all__ = ["COMPACTED_TOPICS", "Cleanable", "cleanable_part", "sealed_segments"]

COMPACTED_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that brokers create with `cleanup.policy=compact`."""


@frozen
class Cleanable:
    """The cleanable part of a log: [first dirty, first uncleanable) in whole segments."""

    first_dirty_offset: Offset
    first_uncleanable_offset: Offset
    """Base of the first segment that a pass cannot clean; the first dirty offset if none is."""
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool
    """Whether a dirty segment is older than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        """Share of the cleanable bytes in the bytes that a pass would read; 0 in an empty log."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_dirty_ratio: float) -> bool:
        """Return whether a pass is due, which would advance the first dirty offset."""
        assert self.first_dirty_offset <= self.first_uncleanable_offset, self
        if self.cleanable_bytes == 0:
            return False
        return self.is_overdue or self.dirty_ratio > min_dirty_ratio


def sealed_segments(log: Log) -> list[tuple[Segment, Offset]]:
    """Return each segment except the active one with its end: the base of the next segment."""
    return [(segment, following.base_offset) for segment, following in pairwise(log.segments)]


def cleanable_part(log: Log, checkpoint: Offset, wall_ms: int) -> Cleanable:
    """Return the cleanable part of the log; `checkpoint` is the log's cleaner offset.

    A checkpoint outside the log counts as the log start. Errors: CorruptLog and StorageError, if
    the indexes of a segment must be read for its times.
    """
    is_inside = log.log_start_offset <= checkpoint <= log.log_end_offset
    dirty = checkpoint if is_inside else log.log_start_offset
    sealed = sealed_segments(log)
    limit = _limit(log, [segment for segment, end in sealed if end > dirty], wall_ms)
    uncleanable, clean_bytes, cleanable_bytes = dirty, 0, 0
    for segment, end in sealed:
        if end <= dirty:
            clean_bytes += segment.size_bytes
        elif end <= limit:
            cleanable_bytes += segment.size_bytes
            uncleanable = end
    is_overdue = any(_is_overdue(log, segment, wall_ms) for segment, end in sealed if end > dirty)
    assert dirty <= uncleanable <= max(dirty, log.last_stable_offset), (dirty, uncleanable)
    return Cleanable(dirty, uncleanable, clean_bytes, cleanable_bytes, is_overdue)


def _limit(log: Log, dirty: list[Segment], wall_ms: int) -> Offset:
    """Return the largest possible end of the cleanable part.

    That is the last stable offset, or the first dirty segment with a record younger than
    `min.compaction.lag.ms`. The active segment is not in `dirty`.
    """
    # Non-obvious 33: a segment that ends after it is neither clean nor cleanable.
    limit = log.last_stable_offset
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.base_offset >= limit:
                break
            if newest_ms(segment) > wall_ms - lag_ms:
                return segment.base_offset
    return limit


def _is_overdue(log: Log, segment: Segment, wall_ms: int) -> bool:
    """Return whether the first record of a dirty segment is older than `max.compaction.lag.ms`."""
    oldest_ms = wall_ms - log.config.max_compaction_lag_ms
    if oldest_ms <= 0:  # the default lag: saves the reading of indexes
        return False
    return 0 <= segment.indexes.first_timestamp < oldest_ms
