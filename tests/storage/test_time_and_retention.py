"""Offsets by time, and the removal of old segments."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.model import FsyncFailed, Offset, StorageError
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.disk.open_files import DiskFault
from kraft_wire.storage.cleaning.retention import apply_retention, newest_ms
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.producers.snapshots import snapshot_offsets
from kraft_wire.storage.timestamps import (
    TimestampAndOffset,
    offset_for_timestamp,
    offset_of_max_timestamp,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.storage.making import DIRECTORY, append, batch_bytes, contents, open_at, parsed

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)


def log_with(times: list[int], config: LogConfig = SMALL) -> Log:
    log = open_at(SimFileSystem(), config)
    for time in times:
        append(log, batch_bytes(log.log_end_offset, timestamp=time))
    log.update_high_watermark(log.log_end_offset)
    return log


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-1, 60), st.integers(1, 3)), max_size=25),
    st.integers(-1, 65),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_search_by_time_agrees_with_a_walk_over_all_records(
    written: list[tuple[int, int]], target: int, start: int, bound: int
) -> None:
    log = open_at(SimFileSystem(), SMALL)
    for time, count in written:
        append(log, batch_bytes(log.log_end_offset, timestamp=time, count=count))
    log.advance_log_start_offset(Offset(min(start, log.log_end_offset)))
    upper = Offset(min(max(bound, log.log_start_offset), log.log_end_offset))
    records = [
        (record.timestamp, record.offset)
        for data in contents(log)
        for record in parsed(data).iter_records()
        if record.offset >= log.log_start_offset
    ]
    newer = [entry for entry in records if entry[0] >= target and entry[1] < upper]
    found = offset_for_timestamp(log, target, upper_bound=upper)
    if found is not None or newer:
        assert found is not None
        assert found[:2] == newer[0]


def test_newest_records_below_the_log_start_do_not_count() -> None:
    log = open_at(SimFileSystem(), SMALL)
    append(log, batch_bytes(0, timestamp=10, count=3))
    append(log, batch_bytes(3, timestamp=5))
    log.advance_log_start_offset(Offset(1))
    assert offset_for_timestamp(log, 12, upper_bound=Offset(4)) == (12, 2, 0)
    assert offset_for_timestamp(log, 13, upper_bound=Offset(4)) is None
    log.advance_log_start_offset(Offset(3))
    assert offset_for_timestamp(log, 12, upper_bound=Offset(4)) is None


def test_batch_across_the_log_start_counts_with_its_visible_records() -> None:
    log = open_at(SimFileSystem(), SMALL)
    records = [Record(b"k", b"v", timestamp=time) for time in (20, 5)]
    append(log, bytes(build_batch(records, partition_leader_epoch=0)))
    append(log, batch_bytes(2, timestamp=7))
    log.advance_log_start_offset(Offset(1))
    assert offset_for_timestamp(log, 6, upper_bound=Offset(3)) == (7, 2, 0)
    assert offset_of_max_timestamp(log, upper_bound=Offset(3)) == (7, 2, 0)
    assert offset_of_max_timestamp(log, upper_bound=Offset(2)) == (5, 1, 0)
    log.advance_log_start_offset(Offset(2))
    assert offset_of_max_timestamp(log, upper_bound=Offset(3)) == (7, 2, 0)


def test_search_finds_the_record_inside_a_batch_with_its_epoch() -> None:
    log = open_at(SimFileSystem(), SMALL)
    append(log, batch_bytes(0, timestamp=10, count=5, epoch=3))
    assert offset_for_timestamp(log, 12, upper_bound=Offset(5)) == (12, 2, 3)
    assert offset_for_timestamp(log, 12, upper_bound=Offset(2)) is None
    assert offset_for_timestamp(log, 15, upper_bound=Offset(5)) is None


def test_largest_time_is_the_first_record_that_has_it() -> None:
    log = log_with([5, 90, 7, 90, 3, 60, 20])
    assert offset_of_max_timestamp(log, upper_bound=Offset(7)) == TimestampAndOffset(
        90, Offset(1), log.latest_epoch or 0
    )
    log.advance_log_start_offset(Offset(4))
    found = offset_of_max_timestamp(log, upper_bound=Offset(7))
    assert found is not None
    assert found[:2] == (60, 5)
    found = offset_of_max_timestamp(log, upper_bound=Offset(5))
    assert found is not None
    assert found[:2] == (3, 4)


def test_log_without_times_has_no_largest() -> None:
    log = log_with([-1, -1])
    assert offset_of_max_timestamp(log, upper_bound=Offset(2)) is None
    assert offset_of_max_timestamp(log_with([]), upper_bound=Offset(0)) is None
    assert offset_for_timestamp(log, 0, upper_bound=Offset(2)) is None


@pytest.mark.parametrize("is_clean", [True, False])
def test_search_works_after_a_restart(is_clean: bool) -> None:
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    for offset in range(12):
        append(log, batch_bytes(offset, timestamp=100 * offset))
    log.close()
    again = open_at(fs, SMALL, is_clean=is_clean)
    for offset in range(12):
        found = offset_for_timestamp(again, 100 * offset - 1, upper_bound=Offset(12))
        assert found is not None
        assert found.offset == offset


# -- retention -----------------------------------------------------------------------------------


def test_expired_segments_go_oldest_first_with_their_producer_snapshots() -> None:
    log = log_with([1000] * 6 + [5000] * 3, LogConfig(segment_bytes=400, retention_ms=1000))
    last_old = [segment for segment in log.segments if segment.indexes.max_timestamp == 1000][-1]
    assert apply_retention(log, 2000) == 0
    assert apply_retention(log, 2001) > 0
    assert log.segments[0].base_offset > last_old.base_offset
    assert log.log_start_offset == log.segments[0].base_offset
    assert all(offset >= log.log_start_offset for offset in snapshot_offsets(log._fs, DIRECTORY))


def test_what_is_left_is_found_where_the_disk_had_no_room_to_note_what_went() -> None:
    """Else readers would be given what stands as many segments further on, and miss the rest."""
    tried = 0
    for call in range(60):
        log = log_with([1_000_000 + at for at in range(40)])
        assert len(log.segments) > 4
        log.update_config(LogConfig(segment_bytes=400, retention_bytes=log.size_bytes - 1_200))
        fs = log._fs
        assert isinstance(fs, SimFileSystem)
        fs.fault = (fs.calls_count + call, DiskFault.ENOSPC)
        with suppress(StorageError, FsyncFailed):
            apply_retention(log, 2_000_000)
        if fs.failed_operation not in ("open", "write", "rename"):
            continue
        tried += 1
        for offset in range(log.log_start_offset, log.log_end_offset):
            end = log.log_end_offset
            read = log.read(Offset(offset), 1, upper_bound=end, min_one_batch=True)
            assert (read.first_offset, read.size_bytes > 0) == (offset, True)
    assert tried >= 3


def test_newest_time_of_a_flushed_segment_survives_whatever_a_loss_of_power_takes() -> None:
    """Recovery does not read such a segment again, and retention goes by that time."""
    fs = SimFileSystem()
    config = LogConfig(segment_bytes=1_000, index_interval_bytes=100, flush_messages=1)
    log = open_at(fs, config)
    fs.sync_directory("")
    fs.sync_directory("disk")
    while len(log.segments) == 1:
        end = log.log_end_offset
        append(log, batch_bytes(end, timestamp=9_000 if end == 2 else 1_000 + end))
        log.flush()
    pending = [atom.number for atom in fs.pending_atoms()]
    kept = [pending[:count] for count in range(len(pending) + 1)]
    kept += [pending[count:] for count in range(len(pending))]
    for survivors in kept:
        again = open_at(fs.crashed(survivors), config, recovery_point=log.log_end_offset)
        found = offset_for_timestamp(again, 9_000, upper_bound=again.log_end_offset)
        assert found is not None, survivors
        assert found.offset == 2
        assert newest_ms(again.segments[0]) == 9_000


def test_expired_active_segment_is_rolled_first() -> None:
    log = log_with([1000] * 2, LogConfig(retention_ms=1000))
    assert apply_retention(log, 9000) == 1
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (2, 2, 0)
    assert apply_retention(log, 9000) == 0


def test_nothing_above_the_high_watermark_goes() -> None:
    log = log_with([1000] * 9, LogConfig(segment_bytes=400, retention_ms=1000, retention_bytes=0))
    log.high_watermark = Offset(1)
    assert apply_retention(log, 9000) == 0


def test_size_limit_keeps_at_least_that_many_bytes() -> None:
    log = log_with([1000] * 12, LogConfig(segment_bytes=400, retention_bytes=700, retention_ms=-1))
    assert apply_retention(log, 1 << 40) > 0
    assert log.size_bytes >= 700
    assert log.size_bytes - log.segments[0].size_bytes < 700


@pytest.mark.parametrize(("more_bytes", "removed"), [(0, 1), (1, 0)])
def test_segment_goes_when_exactly_the_limit_is_left(more_bytes: int, removed: int) -> None:
    """`UnifiedLog.deleteRetentionSizeBreachedSegments`: while the difference is not negative."""
    config = LogConfig(segment_bytes=400, retention_ms=-1)
    whole = log_with([1000] * 9, config)
    limit = whole.size_bytes - whole.segments[0].size_bytes + more_bytes
    log = log_with([1000] * 9, replace(config, retention_bytes=limit))
    assert apply_retention(log, 1 << 40) == removed


@pytest.mark.parametrize(("retention_ms", "removed"), [(-1, 0), (0, 3), (10, 0), (9, 3)])
def test_time_limit_of_zero_keeps_nothing_and_a_negative_one_all(
    retention_ms: int, removed: int
) -> None:
    """`UnifiedLog.deleteRetentionMsBreachedSegments`: off below 0, else strictly older."""
    log = log_with([1000] * 9, LogConfig(segment_bytes=400, retention_ms=retention_ms))
    assert len(log.segments) == 3
    assert apply_retention(log, 1010) == removed


def test_size_limit_never_takes_the_active_segment() -> None:
    log = log_with([1000] * 9, LogConfig(segment_bytes=400, retention_bytes=0, retention_ms=-1))
    apply_retention(log, 1)
    assert [segment is log.active_segment for segment in log.segments] == [True]


def test_compacted_only_logs_keep_old_segments_but_not_deleted_ones() -> None:
    config = LogConfig(segment_bytes=400, retention_ms=1, cleanup_policy=("compact",))
    log = log_with([1000] * 9, config)
    assert apply_retention(log, 9000) == 0
    log.advance_log_start_offset(Offset(log.segments[2].base_offset))
    assert apply_retention(log, 9000) == 2


@pytest.mark.parametrize(("timestamp", "removed"), [(-1, 0), (0, 3), (1, 3)])
def test_time_0_is_a_time_and_minus_1_is_none(timestamp: int, removed: int) -> None:
    """`LogSegment.largestTimestamp` of 4.3.1 compares with `>= 0`."""
    fs = SimFileSystem()
    fs.wall_ms = 10_000
    log = open_at(fs, LogConfig(segment_bytes=400, retention_ms=1_000))
    for offset in range(9):
        append(log, batch_bytes(offset, timestamp=timestamp))
    log.update_high_watermark(Offset(9))
    assert apply_retention(log, 10_500) == removed


def test_segment_without_times_is_as_old_as_its_file() -> None:
    fs = SimFileSystem()
    fs.wall_ms = 10_000
    log = open_at(fs, LogConfig(segment_bytes=400, retention_ms=1_000))
    for offset in range(9):
        fs.wall_ms += 100
        append(log, batch_bytes(offset, timestamp=-1))
    log.update_high_watermark(Offset(9))
    written = [segment.file.modified_ms() for segment in log.segments]
    assert written == sorted(written)
    assert written[-1] == 10_900
    assert apply_retention(log, written[0] + 1_000) == 0
    assert apply_retention(log, written[0] + 1_001) == 1
    assert apply_retention(log, 11_901) == len(written) - 1


@pytest.mark.parametrize("seed", range(10))
def test_largest_and_first_times_below_a_bound_are_those_of_a_plain_list(seed: int) -> None:
    """KIP-79, KIP-734: the bound is the high watermark or the last stable offset, anywhere."""
    chance = Random(seed)
    log = open_at(SimFileSystem(), LogConfig(segment_bytes=400, index_interval_bytes=1))
    times = [chance.randrange(1, 12) * 100 for _ in range(14)]
    for time_ms in times:
        append(log, batch_bytes(log.log_end_offset, timestamp=time_ms))
    assert len(log.segments) > 2
    for bound in range(len(times) + 1):
        newest = max(times[:bound], default=None)
        found = offset_of_max_timestamp(log, upper_bound=Offset(bound))
        expected = None if newest is None else (newest, times.index(newest))
        assert (None if found is None else (found.timestamp, found.offset)) == expected
        for time_ms in range(50, 1_250, 100):
            first = next((at for at in range(bound) if times[at] >= time_ms), None)
            at_time = offset_for_timestamp(log, time_ms, upper_bound=Offset(bound))
            assert (None if at_time is None else at_time.offset) == first
