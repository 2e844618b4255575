"""Which part of a log compaction can clean, and when a pass is due."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.cleaning.cleanable import Cleanable, cleanable_part
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from tests.storage.making import append, batch_bytes, marker_bytes, open_at
from tests.storage.test_cleaner import CONFIG, close_segment, put

RATIO = CONFIG.min_cleanable_dirty_ratio


def is_due(log: Log, checkpoint: int, wall_ms: int) -> bool:
    ratio = log.config.min_cleanable_dirty_ratio
    return cleanable_part(log, Offset(checkpoint), wall_ms).is_due(ratio)


def test_min_lag_keeps_young_segments_dirty() -> None:
    log = open_at(SimFileSystem(), replace(CONFIG, min_compaction_lag_ms=100))
    for at in (1_000, 2_000):
        put(log, b"a", b"1", timestamp=at)
        close_segment(log)

    def end(wall_ms: int, checkpoint: int = 0) -> int:
        return cleanable_part(log, Offset(checkpoint), wall_ms).first_uncleanable_offset

    assert [end(wall_ms) for wall_ms in (1_050, 1_100, 2_050, 2_099, 2_100)] == [0, 1, 1, 1, 2]
    put(log, b"a", b"1", timestamp=1_000)
    close_segment(log)
    assert end(2_050) == 1, "an old segment behind a young one waits"
    assert end(2_050, checkpoint=2) == 3, "the age of a clean segment does not count"
    log.high_watermark = Offset(0)
    assert end(2_050) == 0, "the high watermark is below the young segment"


def test_due_by_ratio_and_by_age() -> None:
    log = open_at(SimFileSystem(), CONFIG)
    put(log, b"a", b"1", timestamp=1000)
    close_segment(log)
    assert is_due(log, 0, 1500)
    assert not is_due(log, 1, 1500)
    log.high_watermark = Offset(0)
    assert not is_due(log, 0, 1500)
    log.high_watermark = Offset(1)
    put(log, b"a", b"1", timestamp=1000)
    close_segment(log)
    assert not is_due(log, 1, 1500)  # one half is not more than one half
    log.update_config(replace(CONFIG, max_compaction_lag_ms=100))
    assert is_due(log, 1, 1500)
    assert not is_due(log, 1, 1100)  # of just that age
    assert not is_due(log, 2, 1500)


def test_a_segment_that_reaches_the_last_stable_offset_is_not_cleanable() -> None:
    """Neither its bytes nor its age make a pass due, which could not clean it."""
    log = open_at(SimFileSystem(), replace(CONFIG, max_compaction_lag_ms=1))
    for transactional in (False, True, False):
        data = batch_bytes(
            log.log_end_offset,
            producer_id=7 if transactional else -1,
            sequence=0 if transactional else -1,
            transactional=transactional,
        )
        append(log, data)
    close_segment(log)
    assert log.last_stable_offset == 1
    assert cleanable_part(log, Offset(0), 9_000) == Cleanable(Offset(0), Offset(0), 0, 0, True)
    assert not is_due(log, 0, 9_000)
    append(log, marker_bytes(3, producer_id=7, abort=True))
    log.update_high_watermark(Offset(3))
    assert not is_due(log, 0, 9_000)
    log.update_high_watermark(Offset(4))
    assert is_due(log, 0, 9_000)


def test_a_checkpoint_outside_the_log_counts_as_the_log_start() -> None:
    """Apache's cleaner offset may be above a log that was cut, or below one that was deleted."""
    log = open_at(SimFileSystem(), CONFIG)
    for _ in range(6):
        put(log, b"a", b"1")
        close_segment(log)
    log.advance_log_start_offset(Offset(2))
    found = [cleanable_part(log, Offset(at), 1).first_dirty_offset for at in (0, 2, 3, 6, 7, 99)]
    assert found == [2, 2, 3, 6, 2, 2]


def test_a_segment_with_the_first_dirty_offset_inside_is_dirty_as_a_whole() -> None:
    """Apache's cleaner may stop inside a segment, and DeleteRecords may move the start into it."""
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    for _ in range(2):
        put(log, b"a", b"1")
    close_segment(log)
    part = cleanable_part(log, Offset(1), 1)
    assert (part.first_uncleanable_offset, part.clean_bytes) == (2, 0)
    assert part.cleanable_bytes == log.segments[0].size_bytes
    assert compact(fs, log, Offset(1), 1).next_dirty_offset == 2


TIMES = st.integers(0, 400)
OFFSETS = st.integers(0, 17)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(TIMES, st.booleans(), st.sampled_from("abc")), max_size=16),
    st.tuples(OFFSETS, OFFSETS, OFFSETS),
    st.tuples(st.sampled_from([0, 0, 100, 200]), st.sampled_from([50, 1 << 62])),
    st.sampled_from([1, 2, 99]),
)
def test_a_pass_that_is_due_advances_to_where_nothing_more_can_be_cleaned(
    writes: list[tuple[int, bool, str]],
    offsets: tuple[int, int, int],
    lags: tuple[int, int],
    entries_max: int,
) -> None:
    """The twin goes over the records: a segment is clean, cleanable or neither by its own."""
    fs = SimFileSystem()
    checkpoint, watermark, start = offsets
    config = replace(CONFIG, min_compaction_lag_ms=lags[0], max_compaction_lag_ms=lags[1])
    log = open_at(fs, config)
    times = []
    for time, rolls, key in writes:
        if rolls:
            log.roll(1)
        put(log, key.encode(), b"1", timestamp=time)
        times.append(time)
    log.high_watermark = Offset(min(watermark, log.log_end_offset))
    log.advance_log_start_offset(Offset(min(start, log.high_watermark)))
    wall_ms = 350
    dirty = checkpoint
    if not log.log_start_offset <= checkpoint <= log.log_end_offset:
        dirty = log.log_start_offset
    expected, overdue = dirty, False
    stopped = False
    for base, end in pairwise([segment.base_offset for segment in log.segments]):
        held = range(base, end)
        if not any(offset >= dirty for offset in held):
            continue
        overdue = overdue or times[base] < wall_ms - lags[1]
        is_young = lags[0] > 0 and any(times[offset] > wall_ms - lags[0] for offset in held)
        stopped = stopped or is_young or any(offset >= log.high_watermark for offset in held)
        if not stopped:
            expected = end
    part = cleanable_part(log, Offset(checkpoint), wall_ms)
    assert (part.first_dirty_offset, part.first_uncleanable_offset) == (dirty, expected)
    assert (part.cleanable_bytes > 0) == (expected > dirty)
    assert part.is_overdue == overdue
    passes, reached = 0, Offset(checkpoint)
    while cleanable_part(log, reached, wall_ms).cleanable_bytes > 0:
        before = cleanable_part(log, reached, wall_ms).first_dirty_offset
        reached = compact(fs, log, reached, wall_ms, map_entries_max=entries_max).next_dirty_offset
        assert before < reached <= expected, "every pass makes progress"
        passes += 1
    assert reached == (expected if passes else checkpoint)
    assert passes <= len(writes)


def test_a_log_without_bytes_is_never_due() -> None:
    log = open_at(SimFileSystem(), LogConfig(cleanup_policy=("compact",)))
    assert cleanable_part(log, Offset(0), 1) == Cleanable(Offset(0), Offset(0), 0, 0, False)
    assert not Cleanable(Offset(0), Offset(5), 0, 0, True).is_due(0.0)
