"""The log: appends, reads, rolls, truncation, flushes, and a dumb twin that must agree."""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.model import (
    DiskFull,
    FileSlice,
    FsyncFailed,
    LeaderEpoch,
    Offset,
    OffsetAndEpoch,
    StorageError,
)
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.directory.partition_metadata import read_topic_id
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.log_read import OffsetOutOfRange
from kraft_wire.storage.os_files import OsFileSystem
from tests.storage.making import (
    DIRECTORY,
    PARTITION,
    TOPIC_ID,
    Refusing,
    append,
    batch_bytes,
    contents,
    fill,
    marker_bytes,
    open_at,
    parsed,
)

OTHER_STEPS = ["reopen", "clean", "roll", "epoch", "flush"]
SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100)


def test_append_and_read_return_the_clients_bytes() -> None:
    log = open_at(SimFileSystem())
    added = fill(log, 3)
    read = log.read(Offset(0), 1 << 20, upper_bound=Offset(3), min_one_batch=True)
    assert isinstance(read.records, FileSlice)
    assert read.records.read() == b"".join(added)
    assert (read.size_bytes, read.first_offset) == (sum(map(len, added)), 0)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (0, 3, read.size_bytes)


def test_read_stops_at_the_upper_bound_and_starts_at_the_batch_that_holds_the_offset() -> None:
    log = open_at(SimFileSystem())
    first, second = batch_bytes(0, count=4), batch_bytes(4, count=4)
    append(log, first)
    append(log, second)
    fill(log, 2)
    read = log.read(Offset(6), 1 << 20, upper_bound=Offset(8), min_one_batch=True)
    assert isinstance(read.records, FileSlice)
    assert read.records.read() == second
    assert read.first_offset == 4
    assert log.read(Offset(6), 1 << 20, upper_bound=Offset(6), min_one_batch=True).records == b""
    assert log.read(Offset(6), 1 << 20, upper_bound=Offset(5), min_one_batch=True).size_bytes == 0
    assert log.read(Offset(6), 9 << 20, upper_bound=Offset(7), min_one_batch=True).size_bytes == 0


def test_read_at_the_end_is_empty_and_outside_is_out_of_range() -> None:
    log = open_at(SimFileSystem(), log_start_offset=5)
    fill(log, 2)
    assert log.read(Offset(7), 99, upper_bound=Offset(99), min_one_batch=True).records == b""
    for offset in (4, 8):
        with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is not in") as outside:
            log.read(Offset(offset), 99, upper_bound=Offset(99), min_one_batch=True)
        told = outside.value.offset, outside.value.log_start_offset, outside.value.log_end_offset
        assert told == (offset, log.log_start_offset, log.log_end_offset)


def test_first_batch_is_whole_or_nothing() -> None:
    log = open_at(SimFileSystem())
    (added,) = fill(log, 1)
    small = log.read(Offset(0), 10, upper_bound=Offset(1), min_one_batch=False)
    assert (small.records, small.first_batch_is_larger) == (b"", True)
    whole = log.read(Offset(0), 10, upper_bound=Offset(1), min_one_batch=True)
    assert whole.size_bytes == len(added)


def test_segments_roll_by_size_and_reads_cross_them() -> None:
    log = open_at(SimFileSystem(), SMALL)
    added = fill(log, 20)
    assert len(log.segments) > 3
    assert contents(log) == added
    read = log.read(Offset(0), 1 << 20, upper_bound=Offset(20), min_one_batch=True)
    assert read.size_bytes == log.segments[0].size_bytes
    assert next(log.segments_from(Offset(7))).base_offset <= 7


def test_segment_rolls_by_the_first_batchs_time() -> None:
    log = open_at(SimFileSystem(), LogConfig(segment_ms=100))
    append(log, batch_bytes(0, timestamp=1000))
    append(log, batch_bytes(1, timestamp=1100))
    assert len(log.segments) == 1
    append(log, batch_bytes(2, timestamp=1101))
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_jitter_rolls_segments_early_each_at_its_own_time() -> None:
    lengths: list[int] = []
    log = open_at(SimFileSystem(), LogConfig(segment_ms=100, segment_jitter_ms=60))
    for time_ms in range(2000):
        append(log, batch_bytes(log.log_end_offset, timestamp=time_ms))
    bases = [segment.base_offset for segment in log.segments]
    lengths = [after - before for before, after in pairwise(bases)]
    assert min(lengths) > 40
    assert max(lengths) <= 101
    assert len(set(lengths)) > 5
    log = open_at(SimFileSystem(), LogConfig(segment_ms=100, segment_jitter_ms=1 << 40))
    for time_ms in range(300):
        append(log, batch_bytes(log.log_end_offset, timestamp=time_ms))
    assert len(log.segments) < 30, "no jitter is longer than a segment lasts"


def test_segment_without_timestamps_rolls_by_the_wall_clock() -> None:
    log = open_at(SimFileSystem(), LogConfig(segment_ms=100))
    append(log, batch_bytes(0, timestamp=-1), wall_ms=50)
    append(log, batch_bytes(1, timestamp=-1), wall_ms=100)
    append(log, batch_bytes(2, timestamp=-1), wall_ms=102)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_segment_rolls_when_its_index_is_full_and_before_offsets_overflow() -> None:
    log = open_at(SimFileSystem(), LogConfig(segment_index_bytes=36, index_interval_bytes=0))
    fill(log, 6)
    assert len(log.segments) > 1
    for room in (3, 4, 7, 8):  # one entry of the time index is kept for a later end
        fs = SimFileSystem()
        log = open_at(fs, LogConfig(segment_index_bytes=12 * room, index_interval_bytes=0))
        for number in range(40):
            append(log, batch_bytes(number, timestamp=1_000 + number))
        sealed = [name for name in fs.names(DIRECTORY) if name.endswith(".timeindex")][:-1]
        assert {len(fs.read(f"{DIRECTORY}/{name}")) for name in sealed} == {12 * room - 12}
    log = open_at(SimFileSystem())
    fill(log, 1)
    append(log, batch_bytes((1 << 31) + 5, timestamp=1000))
    assert [segment.base_offset for segment in log.segments] == [0, (1 << 31) + 5]
    append(log, batch_bytes((1 << 31) + 6, timestamp=1000))
    append(log, batch_bytes((1 << 32) + 4, timestamp=1000))
    assert len(log.segments) == 2, "the last offset that four bytes say from there"
    append(log, batch_bytes((1 << 32) + 5, timestamp=1000))
    assert log.segments[-1].base_offset == (1 << 32) + 5


def test_rolling_an_empty_log_in_place_does_nothing() -> None:
    log = open_at(SimFileSystem())
    log.roll(1)
    assert len(log.segments) == 1
    fill(log, 1)
    log.roll(1)
    log.roll(1)
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_roll_leaves_kafkas_files_and_a_producer_snapshot() -> None:
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    fill(log, 6)
    base = log.segments[1].base_offset
    stem = f"{base:020d}"
    assert fs.names(DIRECTORY)[:3] == [f"{0:020d}{end}" for end in (".index", ".log", ".timeindex")]
    assert f"{stem}.snapshot" in fs.names(DIRECTORY)
    assert len(fs.read(f"{DIRECTORY}/{stem}.snapshot")) == 10


def test_preallocated_segment_is_trimmed_when_sealed_and_recovered_before() -> None:
    fs = SimFileSystem()
    config = replace(SMALL, preallocate=True)
    log = open_at(fs, config)
    added = fill(log, 2)
    assert len(fs.read(log.active_segment.path)) == 500
    again = open_at(fs, config)
    assert contents(again) == added
    again.close()
    assert len(fs.read(again.active_segment.path)) == sum(map(len, added))


def test_epochs_follow_appends() -> None:
    log = open_at(SimFileSystem())
    append(log, batch_bytes(0, epoch=1) + batch_bytes(1, epoch=3))
    append(log, batch_bytes(2, epoch=3))
    assert log.epochs.entries == [(1, 0), (3, 1)]
    assert log.latest_epoch == 3
    assert log.end_offset_for_epoch(LeaderEpoch(2)) == OffsetAndEpoch(Offset(1), LeaderEpoch(1))


def test_flush_moves_the_recovery_point_and_only_then_it_is_durable() -> None:
    fs = SimFileSystem()
    fs.make_directory("disk")
    fs.sync_directory("")
    log = open_at(fs)
    fs.sync_directory("disk")
    added = fill(log, 2)
    assert log.unflushed_records == 2
    assert log.first_unflushed_ms == 1
    log.flush()
    assert (log.recovery_point, log.unflushed_records, log.first_unflushed_ms) == (2, 0, None)
    fill(log, 1)
    assert contents(open_at(fs.crashed([]))) == added
    syncs = fs.syncs_count
    log.flush()
    log.flush()
    assert fs.syncs_count == syncs + 1


def test_flush_done_elsewhere_covers_what_was_appended_before_it_began() -> None:
    log = open_at(SimFileSystem(), SMALL)
    fill(log, 6)
    pending = log.begin_flush()
    fill(log, 1)
    pending.run()
    log.complete_flush(pending)
    assert (log.recovery_point, log.unflushed_records) == (6, 1)
    assert log.active_segment.is_unflushed
    assert log.first_unflushed_ms is not None
    pending = log.begin_flush()
    pending.run()
    log.truncate_to(Offset(6))
    log.complete_flush(pending)
    assert log.recovery_point == 6


def test_segment_that_grew_and_was_sealed_during_a_flush_is_flushed_by_the_next_one() -> None:
    fs = SimFileSystem()
    fs.make_directory("disk")
    fs.sync_directory("")
    log = open_at(fs, SMALL)
    fs.sync_directory("disk")
    added = fill(log, 2)
    pending = log.begin_flush()
    while len(log.segments) == 1:
        added += fill(log, 1)
    pending.run()
    log.complete_flush(pending)
    assert log.segments[0].is_unflushed
    log.flush()
    assert contents(open_at(fs.crashed([]), SMALL)) == added


def test_failed_append_leaves_the_log_as_it_was() -> None:
    for fault in (DiskFault.EIO, DiskFault.SHORT_WRITE, DiskFault.ENOSPC):
        fs = SimFileSystem()
        log = open_at(fs)
        added = fill(log, 2)
        fs.fault = (fs.calls_count, fault)
        with pytest.raises(StorageError):
            fill(log, 1)
        assert contents(log) == added
        added += fill(log, 1)
        assert contents(open_at(fs)) == added


def test_whichever_call_of_an_append_fails_a_clean_restart_finds_everything() -> None:
    """The append rolls and begins an epoch; what follows it is small and needs no roll."""
    config = LogConfig(segment_bytes=400)
    large = batch_bytes(2, size=300, epoch=1)
    counting = SimFileSystem()
    log = open_at(counting, config)
    fill(log, 2)
    before = counting.calls_count
    append(log, large)
    for number in range(counting.calls_count - before):
        fs = SimFileSystem()
        log = open_at(fs, config)
        added = fill(log, 2)
        fs.fault = (fs.calls_count + number, DiskFault.ENOSPC)
        try:
            append(log, large)
            added.append(large)
        except DiskFull:
            assert contents(log) == added
        except FsyncFailed:
            continue
        data = batch_bytes(log.log_end_offset, size=1, epoch=1)
        append(log, data)
        log.close()
        again = open_at(fs, config, is_clean=True)
        assert contents(again) == [*added, data], number
        assert again.epochs.entries == log.epochs.entries
        assert again.latest_epoch == 1


@pytest.mark.parametrize("base", [2, 3])
def test_a_batch_may_follow_in_a_gap_that_a_full_disk_has_refused(base: int) -> None:
    """Another leader may have records there, or this replica may lead and continue at its end."""
    config = LogConfig(segment_bytes=400, cleanup_policy=("compact",))
    fs = Refusing()
    log = open_at(fs, config)
    added = fill(log, 2)
    fs.refused = (("write", f"{50:020d}.log"),)
    with pytest.raises(DiskFull):
        append(log, batch_bytes(50, size=200))
    fs.refused = ()
    for offset in (base, 55, 60):
        added.append(batch_bytes(offset, size=1, producer_id=offset, sequence=0))
        append(log, added[-1])
    assert contents(log) == added
    log.truncate_to(Offset(60))
    assert [state.last_offset for state in log.producer_states.active_producers()] == [base, 55]
    log.close()
    again = open_at(fs, config, is_clean=True)
    assert (contents(again), again.log_end_offset) == (added[:-1], 56)


def test_an_append_that_finds_no_room_begins_no_epoch() -> None:
    """A vote and a truncation go by the newest epoch: one that no record has would be a lie."""
    data = batch_bytes(2, epoch=1) + batch_bytes(3, epoch=1) + batch_bytes(4, epoch=4)
    counting = SimFileSystem()
    log = open_at(counting)
    fill(log, 2)
    before = counting.calls_count
    append(log, data)
    for number in range(counting.calls_count - before):
        fs = SimFileSystem()
        log = open_at(fs)
        added = fill(log, 2)
        fs.fault = (fs.calls_count + number, DiskFault.ENOSPC)
        with suppress(FsyncFailed):
            with pytest.raises(DiskFull):
                append(log, data)
            assert (log.latest_epoch, log.epochs.entries) == (0, [(0, 0)]), number
            assert log.end_offset_for_epoch(LeaderEpoch(4)) == OffsetAndEpoch(2, 0)
            append(log, batch_bytes(2, epoch=0))
            log.close()
            again = open_at(fs, is_clean=True)
            assert contents(again) == [*added, batch_bytes(2, epoch=0)]
            assert again.epochs.entries == [(0, 0)]


def test_a_segment_that_a_full_disk_neither_makes_nor_removes_hides_nothing() -> None:
    """Left empty, it would hide from a start what is appended to the segment before it."""
    config = LogConfig(segment_bytes=500)
    for is_clean in (False, True):
        fs = Refusing()
        log = open_at(fs, config)
        added = fill(log, 3)
        fs.refused = ("open", f"{3:020d}.timeindex"), ("unlink", f"{3:020d}")
        with pytest.raises(StorageError) as met:
            append(log, batch_bytes(3, size=400))
        fs.refused = ()
        if isinstance(met.value, DiskFull):  # then it goes on
            added += fill(log, 2, size=4)
            if is_clean:
                log.close()
        assert contents(open_at(fs, config, is_clean=is_clean)) == added


def test_bytes_that_a_full_disk_neither_takes_nor_gives_back_end_the_log_for_this_start() -> None:
    """Whole batches among them, behind a shorter one, would be damage to the next start."""
    fs = Refusing()
    log = open_at(fs)
    added = fill(log, 2)
    data = batch_bytes(2, size=200) + batch_bytes(3) + batch_bytes(4, size=200)
    fs.capacity_bytes = fs.used_bytes() + len(data) - 9
    fs.refused = (("cut", ".log"),)
    with pytest.raises(StorageError) as met:
        append(log, data)
    fs.refused, fs.capacity_bytes = (), None
    if isinstance(met.value, DiskFull):  # then it goes on
        added += fill(log, 1)
    assert contents(open_at(fs))[: len(added)] == added


def test_append_refuses_before_writing_while_space_is_low() -> None:
    fs = SimFileSystem()
    log = open_at(fs)
    log._space.is_full = True
    with pytest.raises(DiskFull, match="too little space"):
        fill(log, 1)
    assert log.size_bytes == 0


@pytest.mark.parametrize("offset", range(12))
def test_truncation_across_segments_leaves_exactly_the_batches_below(offset: int) -> None:
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    added = fill(log, 10)
    log.update_high_watermark(Offset(10))
    log.flush()
    assert log.truncate_to(Offset(offset)) == (offset < 10)
    assert contents(log) == added[:offset]
    assert log.log_end_offset == log.high_watermark == min(offset, 10)
    assert contents(open_at(fs, SMALL)) == added[:offset]
    more = fill(log, 3)
    assert contents(log) == added[:offset] + more


NEEDS_ROOM = ("open", "write", "rename")
"""What a disk without room refuses; it cuts and reads as ever."""


def test_a_log_that_is_cut_on_a_full_disk_ends_at_the_cut_and_goes_on_there() -> None:
    """Else an append would leave a hole behind the cut, and times of records that are gone."""
    config = replace(SMALL, segment_bytes=10_000)
    tried = 0
    for call in range(40):
        fs = SimFileSystem()
        log = open_at(fs, config)
        added = fill(log, 20)
        log.flush()
        fs.sync_directory("disk")
        fs.sync_directory("")
        fs.fault = (fs.calls_count + call, DiskFault.ENOSPC)
        with suppress(StorageError, FsyncFailed):
            log.truncate_to(Offset(10))
        if fs.failed_operation not in NEEDS_ROOM:
            continue
        tried += 1
        assert log.log_end_offset == 10
        assert contents(open_at(fs.crashed([]), config)) == added[:10], "durable all the same"
        added[10:] = [batch_bytes(at, timestamp=990 + 2 * at) for at in range(10, 30)]
        append(log, b"".join(added[10:]))
        assert contents(log) == added
    assert tried >= 2


def test_a_cut_that_a_full_disk_does_not_let_go_on_is_left_to_the_next_start() -> None:
    """Who went on would leave segments above the cut, which are damage to the next start."""
    bases = [segment.base_offset for segment in logged(SimFileSystem(), 20).segments]
    assert len(bases) > 4
    refused = [
        ("unlink", f"{base:020d}{kind}") for base in bases[2:] for kind in (".log", ".index")
    ]
    for one in [*refused, ("cut", f"{bases[1]:020d}.log")]:
        fs = Refusing()
        log = logged(fs, 20)
        added = contents(log)
        log.flush()
        fs.refused = (one,)
        with pytest.raises(StorageError) as met:
            log.truncate_to(Offset(bases[1] + 1))
        fs.refused = ()
        if isinstance(met.value, DiskFull):  # then it is tried again, and goes on
            log.truncate_to(Offset(bases[1] + 1))
            fill(log, 1)
        again = open_at(fs, SMALL)
        again.truncate_to(Offset(bases[1] + 1))
        assert contents(again) == added[: bases[1] + 1], one


def logged(fs: SimFileSystem, count: int) -> Log:
    log = open_at(fs, SMALL)
    fill(log, count)
    return log


def test_a_log_that_begins_anew_on_a_full_disk_has_nothing_of_the_former_one() -> None:
    """Else the next append would go to an offset that the log does not reach."""
    tried = 0
    for call in range(40):
        fs = SimFileSystem()
        log = open_at(fs)
        fill(log, 20, epoch=3)
        fs.fault = (fs.calls_count + call, DiskFault.ENOSPC)
        is_usable = True
        try:
            log.truncate_fully_and_start_at(Offset(100))
        except (StorageError, FsyncFailed) as error:
            is_usable = isinstance(error, DiskFull)
        if not is_usable or fs.failed_operation not in NEEDS_ROOM:
            continue
        tried += 1
        assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (100, 100, None)
        added = fill(log, 1, epoch=2)
        assert contents(open_at(fs)) == contents(log) == added
        assert open_at(fs).epochs.entries == log.epochs.entries == [(2, 100)]
    assert tried >= 3


def test_truncation_inside_a_batch_has_recovery_ask_for_no_more_than_it_leaves() -> None:
    fs = SimFileSystem()
    log = open_at(fs)
    append(log, batch_bytes(0, count=3))
    append(log, batch_bytes(3, count=3))
    log.flush()
    seen: list[int] = []
    log._persist_recovery_point = lambda: seen.append(log.recovery_point)
    log.truncate_to(Offset(4))
    killed = fs.crashed([atom.number for atom in fs.pending_atoms()])
    for recovery_point in seen:
        assert open_at(killed, recovery_point=recovery_point).log_end_offset == 3


def test_truncation_inside_a_batch_removes_it_whole() -> None:
    log = open_at(SimFileSystem())
    append(log, batch_bytes(0, count=3))
    append(log, batch_bytes(3, count=3))
    log.truncate_to(Offset(4))
    assert log.log_end_offset == 3


def test_truncation_lowers_the_recovery_point_on_disk_before_anything_is_cut() -> None:
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    fill(log, 6)
    log.flush()
    seen: list[tuple[int, int]] = []
    log._persist_recovery_point = lambda: seen.append((log.recovery_point, log.size_bytes))
    size = log.size_bytes
    log.truncate_to(Offset(2))
    assert seen == [(2, size)]


def test_nothing_is_cut_where_the_recovery_point_finds_no_room() -> None:
    log = open_at(SimFileSystem(), SMALL)
    added = fill(log, 6)
    log.flush()
    seen: list[int] = []

    def refuse() -> None:
        seen.append(log.recovery_point)
        raise DiskFull("write", DIRECTORY, "no space left on device")

    log._persist_recovery_point = refuse
    for _ in range(2):
        with pytest.raises(DiskFull):
            log.truncate_to(Offset(2))
    assert (seen, log.recovery_point, contents(log)) == ([2, 2], 6, added)


def test_full_truncation_starts_at_the_offset() -> None:
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    fill(log, 8)
    log.truncate_fully_and_start_at(Offset(50))
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (50, 50, 50)
    assert log.latest_epoch is None
    fill(log, 1)
    assert log.log_end_offset == 51
    again = open_at(fs, SMALL)
    assert (again.log_start_offset, again.log_end_offset) == (50, 51)


def test_log_start_advances_and_segments_below_it_can_go() -> None:
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    fill(log, 10)
    assert log.advance_log_start_offset(Offset(3))
    assert not log.advance_log_start_offset(Offset(3))
    with pytest.raises(OffsetOutOfRange):
        log.read(Offset(2), 9, upper_bound=Offset(10), min_one_batch=True)
    log.remove_first_segments(0)
    log.remove_first_segments(1)
    assert log.segments[0].base_offset <= 4
    assert log.epochs.entries == [(0, log.segments[0].base_offset)]


def test_what_a_cut_leaves_unflushed_still_has_the_time_of_its_first_record() -> None:
    """`flush.ms` counts from it; else the rest would wait for the next append."""
    log = open_at(SimFileSystem())
    fill(log, 3)
    log.truncate_to(Offset(2))
    assert log.unflushed_records == 2
    assert log.first_unflushed_ms is not None
    log.flush()
    assert log.first_unflushed_ms is None


def test_producers_of_removed_segments_stay_known_after_a_crash() -> None:
    """`deleteSnapshotsBefore`: the snapshot at the first segment has those that wrote below it."""
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    while len(log.segments) < 2:
        offset = sequence = log.log_end_offset
        producer_id = 7 if sequence == 0 else 8
        append(log, batch_bytes(offset, size=100, producer_id=producer_id, sequence=sequence))
    log.flush()
    log.remove_first_segments(1)
    first = log.log_start_offset
    assert first > 0
    again = open_at(fs, SMALL, is_clean=False, recovery_point=log.recovery_point)
    assert again.log_start_offset == first
    for producer_id, last_sequence in ((7, 0), (8, log.log_end_offset - 1)):
        state = again.producer_states.get(producer_id)
        assert state is not None
        assert state.last_sequence == last_sequence


def test_high_watermark_stays_inside_the_log() -> None:
    log = open_at(SimFileSystem())
    fill(log, 3)
    assert log.update_high_watermark(Offset(2))
    assert not log.update_high_watermark(Offset(2))
    log.update_high_watermark(Offset(99))
    assert (log.high_watermark, log.last_stable_offset) == (3, 3)


def test_last_stable_offset_and_aborted_transactions() -> None:
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    append(log, batch_bytes(0, producer_id=7, sequence=0, transactional=True))
    fill(log, 1)
    log.update_high_watermark(Offset(2))
    assert log.last_stable_offset == 0
    append(log, marker_bytes(2, producer_id=7, abort=True))
    assert log.last_stable_offset == 0  # the marker is not below the high watermark yet
    log.update_high_watermark(Offset(3))
    assert log.last_stable_offset == 3
    (aborted,) = log.aborted_transactions(Offset(0), Offset(3))
    assert aborted == (7, 0, 2, 3)
    fill(log, 6)
    assert log.aborted_transactions(Offset(5), Offset(6)) == []
    log.close()
    for is_clean in (True, False):
        again = open_at(fs, SMALL, is_clean=is_clean)
        assert again.aborted_transactions(Offset(0), Offset(3)) == [aborted]
    log.truncate_to(Offset(2))
    assert log.aborted_transactions(Offset(0), Offset(2)) == []
    assert log.last_stable_offset == 0


def test_aborted_transactions_that_begin_behind_what_is_read_are_left_out() -> None:
    log = open_at(SimFileSystem(), SMALL)
    for producer_id in (7, 8):
        append(
            log,
            batch_bytes(producer_id - 7, producer_id=producer_id, sequence=0, transactional=True),
        )
    append(log, marker_bytes(2, producer_id=8, abort=True))
    append(log, marker_bytes(3, producer_id=7, abort=True))
    log.update_high_watermark(Offset(4))
    assert [each[:3] for each in log.aborted_transactions(Offset(0), Offset(1))] == [(7, 0, 3)]
    found = [each[:3] for each in log.aborted_transactions(Offset(0), Offset(2))]
    assert found == [(8, 1, 2), (7, 0, 3)]


def test_last_stable_offset_is_not_below_the_log_start() -> None:
    """Retention may remove the records of a transaction that nobody ends (as 4.3.1 has it)."""
    log = open_at(SimFileSystem(), SMALL)
    append(log, batch_bytes(0, producer_id=7, sequence=0, transactional=True))
    fill(log, 5)
    log.update_high_watermark(Offset(6))
    log.advance_log_start_offset(Offset(3))
    assert log.last_stable_offset == 3


def test_what_lies_behind_a_read_is_known_by_the_index_the_segment_or_the_log() -> None:
    log = open_at(SimFileSystem(), replace(SMALL, index_interval_bytes=200))
    size = len(fill(log, 12)[0])
    last = log.active_segment.base_offset
    assert len(log.segments) == 3, "of four batches each"

    def behind(offset: int, count: int) -> int:
        where, end = Offset(offset), log.log_end_offset
        return log.read(where, count * size, upper_bound=end, min_one_batch=False).offset_behind

    assert [behind(0, count) for count in range(5)] == [2, 2, 2, 4, 4]
    assert behind(last + 3, 1) == behind(log.log_end_offset, 1) == log.log_end_offset
    offsets = log.segments[0].indexes.offsets
    offsets.truncate_to(Offset(0))
    offsets.append(Offset(0), 2 * size)
    assert behind(0, 2) == 4, "an index that lies is not believed"


def test_config_changes_take_effect() -> None:
    log = open_at(SimFileSystem())
    fill(log, 3)
    log.update_config(LogConfig.from_mapping({"segment.bytes": "100", "x": "y"}))
    assert log.config.texts == {"segment.bytes": "100", "x": "y"}
    fill(log, 1)
    assert len(log.segments) == 2


def test_durable_setting_flushes_a_segment_before_the_next_one_begins() -> None:
    log = open_at(SimFileSystem(), replace(SMALL, flush_messages=1))
    while len(log.segments) == 1:
        fill(log, 1)
    assert log.recovery_point == log.segments[1].base_offset


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 300)),
            st.tuples(st.just("truncate"), st.integers(0, 40), st.just(0)),
            st.tuples(st.just("start"), st.integers(0, 40), st.just(0)),
            st.tuples(
                st.sampled_from(["reopen", "clean", "roll", "epoch", "flush"]),
                st.just(0),
                st.just(0),
            ),
        ),
        max_size=25,
    )
)
def test_log_agrees_with_a_list_of_batches(steps: list[tuple[str, int, int]]) -> None:
    """The twin is a list of (base offset, next offset, bytes)."""
    fs = SimFileSystem()
    log = open_at(fs, SMALL)
    twin: list[tuple[int, int, bytes]] = []
    start, epoch = 0, 0
    for step, number, size in steps:
        end = log.log_end_offset
        if step == "append":
            data = batch_bytes(
                end, count=number, size=size, epoch=epoch, producer_id=number, sequence=end
            )
            append(log, data)
            twin.append((end, end + number, data))
        elif step == "truncate" and keeps_start(twin, start, number):
            log.truncate_to(Offset(number))
            twin = [entry for entry in twin if entry[1] <= number]
        elif step == "start" and start < number <= end:
            log.advance_log_start_offset(Offset(number))
            start = number
        elif step in ("reopen", "clean"):
            if step == "clean":
                log.close()
            log = open_at(
                fs,
                SMALL,
                is_clean=step == "clean",
                log_start_offset=start,
                recovery_point=log.recovery_point,
            )
        elif step == "epoch":
            epoch += 1
        elif step == "flush":
            log.flush()
        elif step == "roll":
            log.roll(1)
        check_against(log, twin, start)


def keeps_start(twin: list[tuple[int, int, bytes]], start: int, cut: int) -> bool:
    """Whether a cut leaves the log's start where it is; for others there is a test below."""
    return start <= cut and not any(base < start < cut < end for base, end, _ in twin)


def check_against(log: Log, twin: list[tuple[int, int, bytes]], start: int) -> None:
    """Everything visible of the log is what the list says."""
    visible = [entry for entry in twin if entry[1] > start]
    assert log.log_start_offset == start
    assert (log.first_unflushed_ms is None) == (log.unflushed_records == 0)
    assert log.log_end_offset == max([start, *(entry[1] for entry in twin)])
    assert contents(log) == [data for _, _, data in visible]
    for base, following, data in visible:
        for offset in range(max(base, start), following):
            read = log.read(Offset(offset), 1, upper_bound=Offset(following), min_one_batch=True)
            assert isinstance(read.records, FileSlice)
            assert read.records.read() == data
        assert log.epochs.epoch_at(Offset(base)) == parsed(data).partition_leader_epoch


def test_same_code_runs_on_the_real_disk(tmp_path_factory: pytest.TempPathFactory) -> None:
    fs, directory = OsFileSystem(), f"{tmp_path_factory.mktemp('log')}/t-0"
    log = open_at(fs, SMALL, directory=directory)
    added = fill(log, 12)
    log.flush()
    assert contents(open_at(fs, SMALL, directory=directory)) == added
    log.close()
    assert contents(open_at(fs, SMALL, directory=directory, is_clean=True)) == added


def test_topic_id_is_on_the_disk_before_the_first_record_and_after_a_stop_without_any() -> None:
    for appends in (0, 1):
        fs = SimFileSystem()
        fs.make_directory("disk")
        fs.sync_directory("")
        directory = LogDirectory.open(fs, "disk")
        log = directory.create_log(PARTITION, TOPIC_ID, LogConfig(), 1, durable=False)
        directory.settle()
        assert read_topic_id(fs, DIRECTORY) is None
        fill(log, appends)
        assert read_topic_id(fs, DIRECTORY) == (TOPIC_ID if appends else None)
        directory.close()
        assert read_topic_id(fs.crashed(()), DIRECTORY) == TOPIC_ID


def test_log_that_nobody_wrote_to_is_closed_without_touching_the_disk() -> None:
    fs = SimFileSystem()
    fs.make_directory("disk")
    fs.sync_directory("")
    directory = LogDirectory.open(fs, "disk")
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    added = fill(log, 5)
    log.close()
    again = open_at(fs, SMALL, is_clean=True)
    before = fs.changes_count
    again.close()
    assert fs.changes_count == before
    after_power_loss = open_at(fs.crashed(()), SMALL, is_clean=True)
    assert contents(after_power_loss) == added
    fill(after_power_loss, 1)
    after_power_loss.close()
    assert after_power_loss.recovery_point == 6


def test_truncation_inside_the_batch_that_the_log_starts_in_takes_the_start_back() -> None:
    """DeleteRecords put the start into a batch, of which a follower then loses the rest."""
    log = open_at(SimFileSystem())
    append(log, batch_bytes(0, count=4))
    append(log, batch_bytes(4, count=4))
    log.high_watermark = Offset(8)
    log.advance_log_start_offset(Offset(6))
    log.truncate_to(Offset(7))
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (4, 4, 4)


def test_truncation_at_the_end_forgets_an_epoch_without_records() -> None:
    """KIP-101: its leader wrote nothing, and nobody else knows of it."""
    log = open_at(SimFileSystem())
    append(log, batch_bytes(0, count=4, epoch=2))
    log.epochs.announce(LeaderEpoch(5), log.log_end_offset)
    assert not log.truncate_to(Offset(4))
    assert log.epochs.entries == [(2, 0)]
