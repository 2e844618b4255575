"""Opening after a crash: torn tails are cut, damage is refused by name, nothing is guessed."""

import struct

import pytest

from kraft_wire.model import FsyncFailed, Offset, StorageError
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.segment import CorruptLog
from tests.storage.making import (
    DIRECTORY,
    append,
    batch_bytes,
    contents,
    cut_all,
    fill,
    flip,
    open_at,
)

SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100)
COMPACTED = LogConfig(segment_bytes=500, index_interval_bytes=100, cleanup_policy=("compact",))
LOG = f"{DIRECTORY}/{0:020d}.log"


def disk_with(count: int, config: LogConfig | None = None) -> tuple[SimFileSystem, list[bytes]]:
    """A disk that a process left behind when it was killed."""
    fs = SimFileSystem()
    return fs, fill(open_at(fs, config), count)


def test_every_length_of_a_torn_last_batch_is_cut() -> None:
    fs, added = disk_with(3)
    image, whole = fs.everything(), fs.read(LOG)
    for length in range(len(added[0]) + len(added[1]), len(whole)):
        torn = SimFileSystem.from_image({**image, LOG: whole[:length]})
        log = open_at(torn)
        assert contents(log) == added[:2]
        assert torn.read(LOG) == whole[: len(added[0]) + len(added[1])]
        assert log.cut_bytes == length - len(added[0]) - len(added[1])


def test_what_a_failed_fsync_lost_silently_is_not_served_by_the_next_process() -> None:
    """Every choice of what the disk took all the same; the fsync of the new process succeeds."""
    ends: set[int] = set()
    refused = 0
    for choice in range(1 << 5):
        fs, added = disk_with(2)
        log = open_at(fs)
        fs.sync_directory("")
        fs.sync_directory("disk")
        first = fs.next_atom
        fs.reached = {first + at for at in range(5) if choice >> at & 1}.__contains__
        added += fill(log, 2, size=300)
        fs.fault = (fs.calls_count, DiskFault.EIO)
        with pytest.raises(FsyncFailed):
            log.flush()
        try:
            again = open_at(fs)
        except CorruptLog:
            refused += 1
            continue
        found = contents(again)
        assert found == added[: len(found)]
        assert len(found) >= 2, "what was flushed before stays"
        power_lost = SimFileSystem.from_image(fs.image([]))
        assert contents(open_at(power_lost)) == found, "served, so it is on the disk"
        ends.add(len(found))
    assert ends == {2, 3, 4}
    assert refused, "a hole before a batch that reached the disk"


def test_zeros_and_garbage_at_the_tail_are_cut() -> None:
    for tail in (bytes(5), bytes(4096), b"\x02" * 700, bytes(range(256)) * 9):
        fs, added = disk_with(3)
        file = fs.open(LOG)
        file.pwrite(tail, file.size_bytes())
        assert contents(open_at(fs)) == added


def test_no_flipped_bit_goes_unseen_or_costs_a_valid_batch() -> None:
    """Each bit of the first of three batches: refused, as two valid batches follow."""
    fs, added = disk_with(3)
    image = fs.everything()
    for position in range(len(added[0])):
        for bit in range(8):
            damaged = SimFileSystem.from_image(image)
            flip(damaged, LOG, position, 1 << bit)
            with pytest.raises(CorruptLog):
                open_at(damaged)
            assert len(damaged.read(LOG)) == sum(map(len, added))


def test_flipped_bits_of_the_last_batch_are_cut_or_refused_never_served() -> None:
    fs, added = disk_with(3)
    image, start = fs.everything(), len(added[0]) + len(added[1])
    for position in range(start, start + len(added[2])):
        damaged = SimFileSystem.from_image(image)
        flip(damaged, LOG, position)
        try:
            found = contents(open_at(damaged))
        except CorruptLog:
            continue
        # The leader epoch of the last batch stands under no checksum and has no neighbour.
        assert found == added[:2] or position - start in range(12, 16)


def test_operator_may_cut_a_damaged_log_at_the_damage() -> None:
    fs, added = disk_with(3)
    flip(fs, LOG, len(added[0]) + 70)
    with pytest.raises(CorruptLog, match="a valid batch follows"):
        open_at(fs)
    cut_all(fs)
    assert contents(open_at(fs)) == added[:1]


def test_damage_in_a_segment_before_a_good_one_is_refused_and_cut_on_demand() -> None:
    fs, added = disk_with(9, SMALL)
    flip(fs, LOG, len(added[0]) * 2 + 70)
    with pytest.raises(CorruptLog, match="a valid batch follows"):
        open_at(fs, SMALL)
    cut_all(fs)
    log = open_at(fs, SMALL)
    assert contents(log) == added[:2]
    assert len(log.segments) == 1


def test_torn_batch_below_the_recovery_point_is_no_torn_tail() -> None:
    fs, added = disk_with(3)
    fs.open(LOG).truncate(sum(map(len, added)) - 3)
    torn = fs.read(LOG)
    with pytest.raises(CorruptLog, match="offsets below 3 were durable"):
        open_at(fs, recovery_point=3)
    assert fs.read(LOG) == torn, "what is refused is not cut"


def test_log_that_ends_between_batches_below_the_recovery_point_is_refused() -> None:
    fs, added = disk_with(3)
    fs.open(LOG).truncate(sum(map(len, added[:2])))
    for is_clean in (False, True):
        with pytest.raises(CorruptLog, match="the log ends at 2; offsets below 3 were durable"):
            open_at(fs, recovery_point=3, is_clean=is_clean)


def test_segments_below_the_recovery_points_are_not_read_again() -> None:
    fs, added = disk_with(12, SMALL)
    flip(fs, LOG, 70)
    log = open_at(fs, SMALL, recovery_point=11)
    assert log.log_end_offset == len(added)


def test_damage_below_the_recovery_point_is_met_where_producers_are_replayed() -> None:
    fs, _ = disk_with(12, SMALL)
    flip(fs, LOG, 70)
    for name in fs.names(DIRECTORY):
        if name.endswith(".snapshot"):
            fs.unlink(f"{DIRECTORY}/{name}")
    with pytest.raises(CorruptLog, match="position 0: the CRC does not match"):
        open_at(fs, SMALL, recovery_point=11)


def test_hole_between_segments_is_refused_unless_the_log_is_compacted() -> None:
    fs, added = disk_with(9, SMALL)
    second = open_at(fs, SMALL).segments[1].path
    fs.unlink(second)
    with pytest.raises(CorruptLog, match="the segment before ends at"):
        open_at(fs, SMALL)
    assert len(contents(open_at(fs, COMPACTED))) < len(added)


def test_empty_segment_beyond_a_torn_one_is_removed() -> None:
    fs, added = disk_with(3)
    log = open_at(fs)
    log.roll(1)
    fs.open(LOG).truncate(len(fs.read(LOG)) - len(added[2]))
    again = open_at(fs)
    assert contents(again) == added[:2]
    assert len(again.segments) == 1


def test_torn_first_batch_of_a_second_segment_leaves_the_first() -> None:
    fs, _ = disk_with(3)
    log = open_at(fs)
    log.roll(1)
    (last,) = fill(log, 1)
    fs.open(log.active_segment.path).truncate(len(last) - 1)
    again = open_at(fs)
    assert again.log_end_offset == 3
    fill(again, 1)
    assert open_at(fs).log_end_offset == 4


def test_leader_epoch_that_goes_back_is_damage() -> None:
    fs = SimFileSystem()
    log = open_at(fs)
    append(log, batch_bytes(0, epoch=4))
    append(log, batch_bytes(1, epoch=4))
    file = fs.open(LOG)
    file.pwrite(struct.pack(">i", 3), file.size_bytes() // 2 + 12)
    with pytest.raises(CorruptLog, match="leader epoch 3 after 4"):
        open_at(fs)
    cut_all(fs)
    assert open_at(fs).log_end_offset == 1


def test_wrong_offset_over_a_sector_border_is_a_torn_write() -> None:
    fs = SimFileSystem()
    log = open_at(fs)
    filler = 512 - 8 - len(batch_bytes(0, size=0))
    append(log, batch_bytes(0, size=filler - 1))
    append(log, batch_bytes(1))
    position = len(batch_bytes(0, size=filler - 1))
    assert position % 512 > 512 - 17
    file = fs.open(LOG)
    file.pwrite(struct.pack(">q", 0), position)
    assert open_at(fs).log_end_offset == 1


def test_epoch_checkpoint_is_completed_from_the_log() -> None:
    fs, _ = disk_with(2)
    log = open_at(fs)
    append(log, batch_bytes(2, epoch=5))
    fs.unlink(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert open_at(fs).epochs.entries == [(0, 0), (5, 2)]


def test_epochs_beyond_the_end_are_dropped() -> None:
    fs, _ = disk_with(2)
    replace_file(fs, f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n2\n0 0\n7 2\n")
    assert open_at(fs).epochs.entries == [(0, 0)]


def test_damaged_epoch_checkpoint_is_refused() -> None:
    fs, _ = disk_with(2)
    replace_file(fs, f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n1\n0 x\n")
    with pytest.raises(CorruptCheckpoint):
        open_at(fs)


def test_log_start_beyond_the_end_begins_afresh_there() -> None:
    fs, _ = disk_with(2)
    log = open_at(fs, log_start_offset=9)
    assert (log.log_start_offset, log.log_end_offset) == (9, 9)


def test_batches_without_epoch_are_accepted() -> None:
    fs = SimFileSystem()
    append(open_at(fs), batch_bytes(0, epoch=-1))
    assert open_at(fs).epochs.entries == []


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "zeros", "nonsense"])
def test_index_files_are_rebuilt(is_clean: bool, suffix: str, damage: str) -> None:
    fs = SimFileSystem()
    log = open_at(fs, LogConfig(index_interval_bytes=100))
    added = fill(log, 20)
    log.close()
    path = f"{DIRECTORY}/{0:020d}{suffix}"
    good = fs.read(path)
    assert good
    if damage == "missing":
        fs.unlink(path)
    elif damage == "cut":
        fs.open(path).truncate(len(good) - 1)
    elif damage == "flipped":
        for position in range(0, len(good), 3):
            flip(fs, path, position, 0x11)
    else:
        filler = 0 if damage == "zeros" else 0x77
        fs.open(path).pwrite(bytes([filler]) * 4096, 0)
    again = open_at(fs, LogConfig(index_interval_bytes=100), is_clean=is_clean)
    assert contents(again) == added
    for offset in (0, 7, 19):
        first = again.segments[0]
        position = first.indexes.position_before_timestamp(first, 1000 + offset)
        _, batch = next(first.batches_from(position))
        assert batch.base_offset <= offset
    again.close()
    assert fs.read(path) == good


def test_clean_start_reads_the_end_only_and_refuses_a_torn_one() -> None:
    fs, added = disk_with(3)
    assert open_at(fs, is_clean=True).log_end_offset == 3
    fs.open(LOG).truncate(len(fs.read(LOG)) - 1)
    with pytest.raises(CorruptLog):
        open_at(fs, is_clean=True)
    assert len(added) == 3


def test_clean_start_that_has_to_replay_producers_refuses_a_damaged_batch() -> None:
    fs, config = SimFileSystem(), LogConfig(index_interval_bytes=100)
    log = open_at(fs, config)
    added = fill(log, 20)
    log.close()
    for name in fs.names(DIRECTORY):
        if name.endswith(".snapshot"):
            fs.unlink(f"{DIRECTORY}/{name}")
    flip(fs, LOG, len(added[0]) + 16)
    with pytest.raises(CorruptLog):
        open_at(fs, config, is_clean=True)


# -- leftovers -----------------------------------------------------------------------------------


def test_leftovers_and_orphaned_indexes_are_removed() -> None:
    fs, added = disk_with(2)
    for name in (
        *(f"{5:020d}{suffix}" for suffix in (".index", ".timeindex", ".txnindex")),
        f"{5:020d}.log.deleted",
        f"{5:020d}.log.cleaned",
        f"{5:020d}.timeindex.swap",
        "leader-epoch-checkpoint.tmp",
    ):
        replace_file(fs, f"{DIRECTORY}/{name}x", b"?")
        fs.rename(f"{DIRECTORY}/{name}x", f"{DIRECTORY}/{name}")
    replace_file(fs, f"{DIRECTORY}/notes.log", b"not a segment")
    assert contents(open_at(fs)) == added
    assert fs.names(DIRECTORY) == [
        f"{0:020d}.index",
        f"{0:020d}.log",
        f"{0:020d}.timeindex",
        "leader-epoch-checkpoint",
        "notes.log",
    ]


def test_complete_swap_replaces_the_segments_that_it_covers() -> None:
    fs, added = disk_with(9, COMPACTED)
    log = open_at(fs, COMPACTED)
    bases = [segment.base_offset for segment in log.segments]
    kept = added[bases[2] - 1]
    replace_file(fs, f"{DIRECTORY}/{0:020d}.log.swap", kept)
    again = open_at(fs, COMPACTED)
    assert contents(again) == [kept, *added[bases[2] :]]
    assert [segment.base_offset for segment in again.segments] == [0, *bases[2:]]


def test_swap_at_or_after_an_unfinished_renaming_does_not_count() -> None:
    fs, added = disk_with(9, COMPACTED)
    replace_file(fs, f"{DIRECTORY}/{0:020d}.log.cleaned", added[0])
    replace_file(fs, f"{DIRECTORY}/{0:020d}.log.swap", added[0])
    assert contents(open_at(fs, COMPACTED)) == added


def test_damaged_swap_is_refused() -> None:
    fs, _ = disk_with(3)
    replace_file(fs, f"{DIRECTORY}/{0:020d}.log.swap", b"nonsense" * 20)
    with pytest.raises(CorruptLog, match="swap"):
        open_at(fs)


def test_errors_of_the_disk_pass_through() -> None:
    fs, _ = disk_with(3)
    fs.make_read_only(LOG)
    with pytest.raises(StorageError, match="permission denied"):
        open_at(fs)


def test_offsets_of_a_compacted_log_only_have_to_grow() -> None:
    fs = SimFileSystem()
    log = open_at(fs, COMPACTED)
    append(log, batch_bytes(0))
    append(log, batch_bytes(5))
    assert open_at(fs, COMPACTED).log_end_offset == 6
    with pytest.raises(CorruptLog, match="base offset is 5, expected 1"):
        open_at(fs)
    assert (
        open_at(fs, COMPACTED)
        .read(Offset(2), 1, upper_bound=Offset(6), min_one_batch=True)
        .first_offset
        == 5
    )
