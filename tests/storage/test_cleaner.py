"""Compaction: the newest record of each key stays, everything that Kafka keeps is kept."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_wire.model import DiskFull, FsyncFailed, Offset, StorageError
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.cleaning.cleanable import cleanable_part
from kraft_wire.storage.cleaning.cleaner import (
    build_offset_map,
    compact,
)
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.storage.making import (
    DIRECTORY,
    Refusing,
    append,
    batch_bytes,
    contents,
    marker_bytes,
    open_at,
    parsed,
)

CONFIG = LogConfig(
    segment_bytes=300,
    index_interval_bytes=100,
    cleanup_policy=("compact",),
    delete_retention_ms=1000,
)


def put(log: Log, key: bytes, value: bytes | None, **more: int) -> None:
    data = batch_bytes(log.log_end_offset, key=key, value=value, **more)  # type: ignore[arg-type]  # of a batch
    append(log, data)
    log.update_high_watermark(log.log_end_offset)


def close_segment(log: Log) -> None:
    log.roll(1)
    log.update_high_watermark(log.log_end_offset)


def records(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    found = []
    for data in contents(log):
        found += [(r.offset, r.key, r.value) for r in parsed(data).iter_records()]
    return found


def test_newest_record_of_each_key_stays_at_its_offset() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), (b"b", b"5")):
        put(log, key, value)
    close_segment(log)
    result = compact(fs, log, Offset(0), 5000)
    assert records(log) == [(2, b"a", b"3"), (3, b"c", b"4"), (4, b"b", b"5")]
    assert result.next_dirty_offset == log.active_segment.base_offset == 5
    assert result.bytes_after < result.bytes_before
    assert result.bytes_after == sum(segment.size_bytes for segment in log.segments[:-1])
    for is_clean in (False, True):
        assert records(open_at(fs, CONFIG, is_clean=is_clean)) == records(log)
    assert not [name for name in fs.names(DIRECTORY) if name.count(".") > 1]


def test_active_segment_and_what_is_not_replicated_stay_dirty() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    put(log, b"a", b"1")
    put(log, b"a", b"2")
    assert compact(fs, log, Offset(0), 5000).next_dirty_offset == 0
    log.roll(1)
    log.high_watermark = Offset(1)
    assert compact(fs, log, Offset(0), 5000).next_dirty_offset == 0
    assert len(records(log)) == 2


def test_tombstone_goes_after_the_delete_horizon_of_its_first_pass() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    put(log, b"a", b"1")
    put(log, b"a", None)
    close_segment(log)
    compact(fs, log, Offset(0), 5000)
    assert records(log) == [(1, b"a", None)]
    (data,) = contents(log)
    assert parsed(data).delete_horizon_ms == 6000
    compact(fs, log, Offset(0), 6000)
    assert records(log) == [(1, b"a", None)]
    compact(fs, log, Offset(0), 6001)
    assert records(log) == []
    assert log.log_end_offset == 2


def test_tombstone_that_is_to_stay_for_ever_has_the_latest_horizon() -> None:
    fs, latest = SimFileSystem(), (1 << 63) - 1
    log = open_at(fs, replace(CONFIG, delete_retention_ms=latest))
    put(log, b"a", None)
    close_segment(log)
    for wall_ms in (5_000, 6_000):
        compact(fs, log, Offset(0), wall_ms)
        (data,) = contents(log)
        assert parsed(data).delete_horizon_ms == latest
    assert records(log) == [(0, b"a", None)]


def test_record_without_key_goes() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    append(log, batch_bytes(0, key=None))
    log.update_high_watermark(Offset(1))
    close_segment(log)
    compact(fs, log, Offset(0), 5000)
    assert records(log) == []


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_batch_that_loses_records_keeps_everything_else(compression: Compression) -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    kept = [Record(b"a", b"1", timestamp=7), Record(b"b", b"2", timestamp=9)]
    data = build_batch(
        kept,
        partition_leader_epoch=4,
        producer_id=7,
        producer_epoch=2,
        base_sequence=5,
        compression=compression,
    )
    append(log, bytes(data))
    append(log, batch_bytes(2, key=b"b", epoch=4))
    log.update_high_watermark(Offset(3))
    close_segment(log)
    compact(fs, log, Offset(0), 5000)
    before, after = parsed(bytes(data)), parsed(contents(log)[0])
    for name in ("base_offset", "last_offset_delta", "partition_leader_epoch", "producer_id"):
        assert getattr(after, name) == getattr(before, name), name
    assert (after.producer_epoch, after.base_sequence, after.last_sequence) == (2, 5, 6)
    assert (after.compression, after.records_count, after.max_timestamp) == (compression, 1, 7)
    assert after.crc_is_valid()


def test_last_batch_of_a_producer_stays_without_records() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    put(log, b"a", b"1", producer_id=7, sequence=0)
    put(log, b"a", b"2", producer_id=7, sequence=1)
    put(log, b"a", b"3")
    close_segment(log)
    compact(fs, log, Offset(0), 5000)
    empty, full = (parsed(data) for data in contents(log))
    assert (empty.records_count, empty.last_sequence, empty.max_timestamp) == (0, 1, 1001)
    assert full.base_offset == 2
    compact(fs, log, Offset(0), 9000)
    assert len(contents(log)) == 2
    again = open_at(fs, CONFIG)
    state = again.producer_states.get(7)
    assert state is not None
    assert state.last_sequence == 1


def test_segments_are_grouped_up_to_the_segment_size() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    for at in range(12):
        put(log, b"k%d" % (at % 3), b"x" * 60)
    close_segment(log)
    many = len(log.segments)
    compact(fs, log, Offset(0), 5000)
    compact(fs, log, Offset(0), 5000)
    assert len(log.segments) < many
    assert len(records(log)) == 3


def test_full_map_ends_the_pass_early_and_the_next_one_goes_on() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    for at in range(9):
        put(log, b"key that is longer than a digest %d" % (at % 4), b"x" * 60)
    close_segment(log)
    first = compact(fs, log, Offset(0), 5000, map_entries_max=1)
    assert 0 < first.next_dirty_offset < log.log_end_offset
    compact(fs, log, first.next_dirty_offset, 5000)
    assert [key for _, key, _ in records(log)] != []
    compact(fs, log, Offset(99), 5000)
    assert len(records(log)) == 4


def test_aborted_records_go_and_markers_follow_after_the_horizon() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    put(log, b"a", b"committed")
    append(log, batch_bytes(1, key=b"a", producer_id=7, sequence=0, transactional=True))
    append(log, marker_bytes(2, producer_id=7, abort=True))
    append(log, batch_bytes(3, key=b"b", producer_id=8, sequence=0, transactional=True))
    append(log, marker_bytes(4, producer_id=8, abort=False))
    append(log, batch_bytes(5, key=b"z", producer_id=8, sequence=1))
    append(log, batch_bytes(6, key=b"z", producer_id=7, sequence=1))
    log.update_high_watermark(Offset(7))
    close_segment(log)
    assert build_offset_map(log, Offset(0), Offset(7), 99)[0][b"a"] == 0
    compact(fs, log, Offset(0), 5000)
    assert [(offset, key) for offset, key, _ in records(log) if key in (b"a", b"b")] == [
        (0, b"a"),
        (3, b"b"),
    ]
    assert [parsed(data).base_offset for data in contents(log)] == [0, 2, 3, 4, 5, 6]
    assert log.aborted_transactions(Offset(0), Offset(7)) == [(7, 1, 2, 3)]
    put(log, b"b", b"newer")
    close_segment(log)
    compact(fs, log, Offset(0), 5500)  # both transactions are empty now: horizons are stamped
    compact(fs, log, Offset(0), 6000)
    assert 2 in [parsed(data).base_offset for data in contents(log)]
    compact(fs, log, Offset(0), 9000)
    assert [parsed(data).base_offset for data in contents(log) if parsed(data).is_control] == []


def test_marker_of_a_commit_stays_as_long_as_its_data() -> None:
    """Without it the transaction would be open again after the next start."""
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    append(log, batch_bytes(0, key=b"a", producer_id=8, sequence=0, transactional=True))
    append(log, marker_bytes(1, producer_id=8, abort=False))
    log.update_high_watermark(Offset(2))
    close_segment(log)
    for wall_ms in (5000, 9000, 13_000):
        compact(fs, log, Offset(0), wall_ms)
    assert [parsed(data).is_control for data in contents(log)] == [False, True]


def test_emptied_marker_of_the_leader_ends_what_is_open_here() -> None:
    """The next transaction of its producer is neither dropped nor taken for the aborted one."""
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    append(log, batch_bytes(0, key=b"a", sequence=0, producer_id=7, transactional=True))
    emptied = build_batch(
        [], base_offset=1, producer_id=7, is_control=True, last_offset=1, partition_leader_epoch=0
    )
    append(log, bytes(emptied))
    append(log, batch_bytes(2, key=b"b", sequence=1, producer_id=7, transactional=True))
    append(log, marker_bytes(3, producer_id=7, abort=False))
    close_segment(log)
    append(log, batch_bytes(4, key=b"c", sequence=2, producer_id=7, transactional=True))
    append(log, marker_bytes(5, producer_id=7, abort=True))
    log.update_high_watermark(Offset(6))
    close_segment(log)
    compact(fs, log, Offset(0), 5000)
    assert [key for _, key, _ in records(log) if key in (b"a", b"b", b"c")] == [b"b"]
    assert log.aborted_transactions(Offset(0), Offset(6)) == [(7, 0, 1, 2), (7, 4, 5, 6)]
    assert open_at(fs, CONFIG).log_end_offset == 6


def test_marker_that_alone_remembers_a_producers_epoch_is_emptied_not_dropped() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    append(log, marker_bytes(0, producer_id=7, abort=False))
    log.update_high_watermark(Offset(1))
    close_segment(log)
    for wall_ms in (5000, 7000, 9000):
        compact(fs, log, Offset(0), wall_ms)
    (data,) = contents(log)
    assert (parsed(data).records_count, parsed(data).is_control) == (0, True)


def test_other_control_batches_stay() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    leader_change = Record(bytes([0, 0, 0, 2]), b"?", timestamp=1)
    append(log, bytes(build_batch([leader_change], is_control=True, partition_leader_epoch=0)))
    log.update_high_watermark(Offset(1))
    close_segment(log)
    compact(fs, log, Offset(0), 5000)
    assert len(contents(log)) == 1


def test_full_disk_leaves_the_log_as_it_was() -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    for at in range(6):
        put(log, b"k%d" % at, b"x" * 60)
    close_segment(log)
    before = records(log)
    fs.capacity_bytes = fs.used_bytes() + 150
    with pytest.raises(DiskFull):
        compact(fs, log, Offset(0), 5000)
    assert records(log) == before
    assert not [name for name in fs.names(DIRECTORY) if "cleaned" in name]
    fs.capacity_bytes = None
    compact(fs, log, Offset(0), 5000)
    assert records(log) == before


CLEANED = f"{3:020d}.log.cleaned"
REFUSED = {
    "to name it": (("rename", CLEANED), ("unlink", CLEANED)),
    "to write it": (("write", CLEANED), ("unlink", CLEANED)),
    "for its index": (("open", f"{3:020d}.timeindex.cleaned"),),
}


@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED)
def test_what_a_full_disk_keeps_of_a_pass_costs_no_record_later(
    refused: tuple[tuple[str, str], ...],
) -> None:
    """A start takes a `.cleaned` for the sign that swaps behind it are not valid."""
    fs = Refusing()
    log = open_at(fs, CONFIG)
    for keys in (b"xxx", b"pq", b"rst", b"x"):
        for at in range(len(keys)):
            put(log, keys[at : at + 1], b"%d" % log.log_end_offset)
        close_segment(log)
    log.flush()
    fs.sync_directory("disk")
    fs.sync_directory("")
    newest = {key: value for _, key, value in records(log)}
    fs.refused = refused
    with pytest.raises(StorageError) as met:
        compact(fs, log, Offset(0), 5000)
    fs.refused = ()
    disks: list[SimFileSystem] = []

    def die() -> None:
        disks.append(fs.crashed([]))
        disks.append(fs.crashed([atom.number for atom in fs.pending_atoms()]))

    die()
    if isinstance(met.value, DiskFull):  # then another pass comes, and may be killed
        fs.before_change = die
        compact(fs, log, Offset(0), 6000)
    for disk in disks:
        assert {key: value for _, key, value in records(open_at(disk, CONFIG))} == newest


def test_a_swap_that_finds_no_room_is_undone_or_left_to_a_start() -> None:
    """A start puts a swap in place: nothing may be cut or appended beside one that is half done."""
    outcomes = []
    for call in range(200):
        fs = SimFileSystem()
        log = open_at(fs, CONFIG)
        for at in range(8):
            put(log, b"k%d" % (at % 3), b"%d" % at)
        close_segment(log)
        fs.fault = (fs.calls_count + call, DiskFault.ENOSPC)
        error: Exception | None = None
        try:
            compact(fs, log, Offset(0), 5000)
        except (StorageError, FsyncFailed) as met:
            error = met
        if fs.failed_operation != "rename":
            continue
        fs.fault = None
        if isinstance(error, DiskFull):
            assert not [name for name in fs.names(DIRECTORY) if name.count(".") > 1]
            compact(fs, log, Offset(0), 5000)
            assert [offset for offset, _, _ in records(log)] == [5, 6, 7]
        outcomes.append(type(error))
        killed = open_at(fs.crashed([atom.number for atom in fs.pending_atoms()]), CONFIG)
        found = {key: value for _, key, value in records(killed)}
        assert found == {b"k0": b"6", b"k1": b"7", b"k2": b"5"}, "of each key the newest"
    assert outcomes.count(DiskFull) >= 4
    assert outcomes.count(StorageError) >= 8


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 9)), min_size=1, max_size=40))
def test_compaction_never_changes_what_a_reader_ends_up_with(writes: list[tuple[str, int]]) -> None:
    fs = SimFileSystem()
    log = open_at(fs, CONFIG)
    twin: dict[bytes, bytes | None] = {}
    dirty = Offset(0)
    for at, (key, number) in enumerate(writes):
        value = None if number == 0 else b"%d" % number
        put(log, key.encode(), value)
        twin[key.encode()] = value
        if number == 9:
            dirty = compact(fs, log, dirty, 5000 + 700 * at).next_dirty_offset
            log = open_at(fs, CONFIG)
            log.update_high_watermark(log.log_end_offset)
    found = {key: value for _, key, value in records(log)}
    live = {key: value for key, value in twin.items() if value is not None}
    assert {key: value for key, value in found.items() if value is not None} == live


def test_batch_that_unfolds_beyond_what_clients_may_send_is_compacted_all_the_same() -> None:
    fs = SimFileSystem()
    log = open_at(fs, replace(CONFIG, segment_bytes=1 << 20))
    for value in (bytes(8 << 20), b"new"):
        record = Record(b"k", value, timestamp=0)
        data = build_batch([record], base_offset=log.log_end_offset, compression=Compression.ZSTD)
        append(log, bytes(data))
    log.update_high_watermark(log.log_end_offset)
    close_segment(log)
    compact(fs, log, Offset(0), 5000)
    assert records(log) == [(1, b"k", b"new")]


def test_segments_without_times_keep_those_of_their_files() -> None:
    fs = SimFileSystem()
    fs.wall_ms = 5_000
    log = open_at(fs, CONFIG)
    for offset in range(6):
        append(log, batch_bytes(offset, key=b"k", timestamp=-1))
    close_segment(log)
    lagging = replace(CONFIG, min_compaction_lag_ms=1_000)
    log.update_config(lagging)
    assert cleanable_part(log, Offset(0), 5_999).first_uncleanable_offset == 0
    assert cleanable_part(log, Offset(0), 6_000).first_uncleanable_offset == 6
    fs.wall_ms = 90_000
    compact(fs, log, Offset(0), 90_000)
    assert log.segments[0].file.modified_ms() == 5_000
