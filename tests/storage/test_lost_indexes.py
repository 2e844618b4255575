"""Indexes that are gone, or that a crash left under other names, and batches that they cannot have.

A read_committed consumer drops the records of the aborted transactions that `.txnindex` lists:
without the file it would get them.
"""

import pytest

from kraft_wire.model import Offset
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.opening import finish_swaps
from kraft_wire.storage.segment import CorruptLog
from tests.storage.making import DIRECTORY, append, batch_bytes, fill, marker_bytes, open_at

CONFIG = LogConfig(index_interval_bytes=100)
COMPACTED = LogConfig(index_interval_bytes=100, cleanup_policy=("compact",))
STEM = f"{DIRECTORY}/{0:020d}"
ABORTED = (7, 0, 2, 3)
"""Producer, first offset, marker, last stable offset."""


def disk_with_an_aborted_transaction(config: LogConfig = CONFIG) -> SimFileSystem:
    """A log that was closed cleanly: two batches, their abort marker, and more batches."""
    fs = SimFileSystem()
    log = open_at(fs, config)
    for sequence in range(2):
        data = batch_bytes(
            log.log_end_offset, producer_id=7, sequence=sequence, transactional=True, size=100
        )
        append(log, data)
    append(log, marker_bytes(log.log_end_offset, producer_id=7, abort=True))
    fill(log, 4, size=100)
    log.close()
    assert fs.exists(f"{STEM}.txnindex")
    return fs


def aborted(fs: SimFileSystem, config: LogConfig = CONFIG) -> list[tuple[int, ...]]:
    """The aborted transactions of the log after a clean start."""
    log = open_at(fs, config, is_clean=True)
    return [tuple(each) for each in log.aborted_transactions(Offset(0), log.log_end_offset)]


def test_aborted_transactions_are_known_again_after_all_indexes_were_removed() -> None:
    """LogLoader.loadSegmentFiles of 4.3.1 recovers a segment without its offset index."""
    fs = disk_with_an_aborted_transaction()
    for suffix in (".index", ".timeindex", ".txnindex"):
        fs.unlink(STEM + suffix)
    assert aborted(fs) == [ABORTED]
    assert fs.exists(f"{STEM}.txnindex")


def test_an_offset_index_alone_is_rebuilt_without_a_recovery_of_its_segment() -> None:
    fs = disk_with_an_aborted_transaction()
    fs.unlink(f"{STEM}.index")
    log = open_at(fs, CONFIG, is_clean=True)
    assert [tuple(each) for each in log.aborted_transactions(Offset(0), Offset(7))] == [ABORTED]
    assert log.recovery_point == log.log_end_offset


@pytest.mark.parametrize("renamed", [(".txnindex",), (".index", ".timeindex", ".txnindex")])
def test_indexes_of_a_swap_get_their_names_although_the_log_has_its_own(
    renamed: tuple[str, ...],
) -> None:
    """LogLoader.load of 4.3.1 renames every `.swap`; a crash may come after that of the log."""
    fs = disk_with_an_aborted_transaction(COMPACTED)
    for suffix in renamed:
        fs.rename(STEM + suffix, f"{STEM}{suffix}.swap")
    assert aborted(fs, COMPACTED) == [ABORTED]
    assert not [name for name in fs.names(DIRECTORY) if name.endswith(".swap")]


def test_indexes_of_a_swap_replace_those_of_the_segments_that_it_covers() -> None:
    fs = disk_with_an_aborted_transaction(COMPACTED)
    replace_file(fs, f"{STEM}.log.swap", fs.read(f"{STEM}.log"))
    replace_file(fs, f"{STEM}.txnindex.swap", fs.read(f"{STEM}.txnindex"))
    replace_file(fs, f"{STEM}.txnindex", b"")
    assert aborted(fs, COMPACTED) == [ABORTED]


def test_indexes_that_were_renamed_before_the_log_of_their_swap_are_kept() -> None:
    """A compaction of ours renames the indexes first."""
    fs = disk_with_an_aborted_transaction(COMPACTED)
    fs.rename(f"{STEM}.log", f"{STEM}.log.swap")
    before = fs.names(DIRECTORY)
    finish_swaps(fs, DIRECTORY)
    assert fs.names(DIRECTORY) == [name.removesuffix(".swap") for name in before]
    assert aborted(fs, COMPACTED) == [ABORTED]


def test_a_swap_with_a_name_that_is_not_a_segments_stays() -> None:
    fs = disk_with_an_aborted_transaction(COMPACTED)
    replace_file(fs, f"{DIRECTORY}/notes.log.swap", b"?")
    assert aborted(fs, COMPACTED) == [ABORTED]
    assert fs.exists(f"{DIRECTORY}/notes.log.swap")


@pytest.mark.parametrize("base_offset", [0, 1 << 40])
def test_a_batch_that_no_index_can_have_is_damage(base_offset: int) -> None:
    """The CRC does not cover the base offset, which a clean start does not verify."""
    fs = disk_with_an_aborted_transaction()
    file = fs.open(f"{STEM}.log")
    file.pwrite(base_offset.to_bytes(8, "big"), len(batch_bytes(0, size=100)))
    fs.unlink(f"{STEM}.timeindex")
    with pytest.raises(CorruptLog, match="base offset"):
        open_at(fs, CONFIG, is_clean=True)


def test_a_batch_out_of_its_segments_range_is_damage_where_gaps_are_valid() -> None:
    """Kafka splits such a segment; here it can only be a wrong base offset."""
    fs = disk_with_an_aborted_transaction(COMPACTED)
    file = fs.open(f"{STEM}.log")
    last = len(fs.read(f"{STEM}.log")) - len(batch_bytes(0, size=100))
    file.pwrite((1 << 40).to_bytes(8, "big"), last)
    with pytest.raises(CorruptLog, match="out of the range"):
        open_at(fs, COMPACTED)


def test_a_last_batch_below_its_segment_is_damage_although_no_index_shows_it() -> None:
    fs = SimFileSystem()
    log = open_at(fs, LogConfig(segment_bytes=500))
    fill(log, 5, size=100)
    base = log.active_segment.base_offset
    append(log, batch_bytes(log.log_end_offset, timestamp=1))
    log.close()
    path = f"{DIRECTORY}/{base:020d}.log"
    assert base > 1
    last = len(fs.read(path)) - len(batch_bytes(0))
    fs.open(path).pwrite((1).to_bytes(8, "big"), last)
    with pytest.raises(CorruptLog, match="below that of the segment"):
        open_at(fs, LogConfig(segment_bytes=500), is_clean=True)


def compacted_disk(end: bytes) -> SimFileSystem:
    """Batches at 0 to 2, and a last segment at 6: compaction has removed what was between."""
    fs = SimFileSystem()
    log = open_at(fs, COMPACTED)
    fill(log, 3)
    log.close()
    replace_file(fs, f"{DIRECTORY}/{6:020d}.log", end)
    return fs


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("end", [b"", b"torn"])
def test_an_empty_last_segment_behind_a_gap_has_the_end_of_the_log(
    is_whole: bool, is_clean: bool, end: bytes
) -> None:
    """LogLoader.recoverLog of 4.3.1 takes the base of the last segment; nothing was lost."""
    fs = compacted_disk(end)
    if not is_whole:  # the first segment is recovered, too
        fs.unlink(f"{STEM}.index")
    for _ in range(2):
        log = open_at(fs, COMPACTED, is_clean=is_clean, recovery_point=Offset(6))
        assert log.log_end_offset == 6
    fill(log, 1)
    assert log.log_end_offset == 7


def test_empty_segments_behind_records_that_a_power_loss_took_are_removed() -> None:
    """Nothing of them was durable: the log continues behind the last record that is left."""
    fs = compacted_disk(b"")
    log = open_at(fs, COMPACTED, recovery_point=Offset(2))
    assert [segment.base_offset for segment in log.segments] == [0]
    assert log.log_end_offset == 3
    fill(log, 1)
    assert log.log_end_offset == 4
