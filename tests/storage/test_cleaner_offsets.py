"""The cleaner offset of a log that is cut: a key that is deleted behind the cut stays deleted."""

from collections.abc import Callable
from contextlib import suppress

import pytest

from kraft_wire.model import DiskFull, FsyncFailed, Offset, StorageError
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.directory.checkpoints import CLEANER_OFFSETS, read_offsets
from kraft_wire.storage.directory.log_directory import LogDirectory, note_compaction
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.damage import inspect
from kraft_wire.storage.recovery.repair import cut
from tests.storage.making import PARTITION, TOPIC_ID, append, batch_bytes, contents, flip, parsed

D = "disk/d"
CONFIG = LogConfig(
    segment_bytes=300,
    cleanup_policy=("compact",),
    delete_retention_ms=1000,
)
NEEDS_ROOM = ("open", "write", "rename")
"""What a disk without room refuses; it cuts and reads as ever."""

Cut = Callable[[Log], object]
CUTS: dict[str, Cut] = {
    "in the first segment": lambda log: log.truncate_to(Offset(3)),
    "in a later segment": lambda log: log.truncate_to(Offset(10)),
    "at the start": lambda log: log.truncate_to(Offset(0)),
    "anew at the start": lambda log: log.truncate_fully_and_start_at(Offset(0)),
    "anew below the cleaner offset": lambda log: log.truncate_fully_and_start_at(Offset(5)),
    "anew above the cleaner offset": lambda log: log.truncate_fully_and_start_at(Offset(40)),
}
every_cut = pytest.mark.parametrize("cut_log", CUTS.values(), ids=CUTS)


def opened(fs: SimFileSystem) -> LogDirectory:
    directory = LogDirectory.open(fs, D)
    directory.load_logs(lambda _: CONFIG, 1)
    return directory


def put(log: Log, key: bytes, value: bytes | None) -> None:
    append(log, batch_bytes(log.log_end_offset, key=key, value=value))


def compact_once(fs: SimFileSystem, directory: LogDirectory, wall_ms: int) -> None:
    """Do what the node's timer does for a log that is due, and its checkpoint."""
    log = directory.logs[PARTITION]
    log.update_high_watermark(log.log_end_offset)
    dirty_from = directory.cleaner_offsets.get(PARTITION, Offset(0))
    note_compaction(directory, PARTITION, dirty_from)
    done = compact(fs, log, dirty_from, wall_ms)
    directory.cleaner_offsets[PARTITION] = done.next_dirty_offset
    directory.checkpoint()


def compacted(fs: SimFileSystem) -> LogDirectory:
    """A log of twelve keys in several segments, compacted up to its end, and all of it durable."""
    directory = opened(fs)
    fs.sync_directory("disk")
    fs.sync_directory("")
    log = directory.create_log(PARTITION, TOPIC_ID, CONFIG, 1)
    for at in range(12):
        put(log, b"key %d" % at, b"old")
    log.roll(1)
    log.flush()
    compact_once(fs, directory, 2000)
    assert len(log.segments) >= 3
    assert saved(fs) == directory.cleaner_offsets[PARTITION] == 12
    return directory


def saved(fs: SimFileSystem) -> Offset:
    """What the checkpoint says; a start that finds no entry would call the gaps damage."""
    return read_offsets(fs, f"{D}/{CLEANER_OFFSETS}")[PARTITION]


def values_of_deleted(fs: SimFileSystem, directory: LogDirectory) -> list[bytes | None]:
    """Write and delete a key, compact until the tombstone is gone; what a reader finds of it."""
    log = directory.logs[PARTITION]
    put(log, b"k", b"old")
    put(log, b"k", None)
    while log.log_end_offset < 16:
        put(log, b"later %d" % log.log_end_offset, b"new")
    log.roll(1)
    log.flush()
    for wall_ms in (5000, 7000, 9000):
        compact_once(fs, directory, wall_ms)
    found = [record for data in contents(log) for record in parsed(data).iter_records()]
    return [record.value for record in found if record.key == b"k"]


@every_cut
def test_a_key_that_is_deleted_behind_a_cut_stays_deleted(cut_log: Cut) -> None:
    """Apache's LogManager lowers the cleaner's checkpoint where it cuts a log."""
    fs = SimFileSystem()
    directory = compacted(fs)
    cut_log(directory.logs[PARTITION])
    assert values_of_deleted(fs, directory) == []


def test_a_cut_lowers_the_cleaner_offset_to_the_base_of_the_active_segment() -> None:
    """As Apache's does: the cleaner counts whole segments as clean or dirty."""
    fs = SimFileSystem()
    log = compacted(fs).logs[PARTITION]
    log.truncate_to(Offset(10))
    assert saved(fs) == log.active_segment.base_offset
    assert 0 < saved(fs) < 10


def test_a_cut_above_what_was_compacted_leaves_the_cleaner_offset() -> None:
    fs = SimFileSystem()
    log = compacted(fs).logs[PARTITION]
    put(log, b"k", b"new")
    put(log, b"k", b"newer")
    log.truncate_to(Offset(13))
    assert (saved(fs), log.log_end_offset) == (12, 13)


def test_a_log_that_was_never_compacted_gets_no_cleaner_offset_by_a_cut() -> None:
    """A start would take damage in it for the gaps of compaction."""
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, CONFIG, 1)
    for _ in range(9):
        put(log, b"k", b"old")
    log.truncate_to(Offset(1))
    log.truncate_fully_and_start_at(Offset(5))
    directory.checkpoint()
    assert read_offsets(fs, f"{D}/{CLEANER_OFFSETS}") == directory.cleaner_offsets == {}


@every_cut
def test_a_process_that_dies_at_a_cut_leaves_no_cleaner_offset_above_the_log(cut_log: Cut) -> None:
    fs = SimFileSystem()
    directory = compacted(fs)
    disks: list[SimFileSystem] = []

    def die() -> None:
        """Nothing of what is not synced is on the disk by then, or all of it."""
        disks.append(fs.crashed([]))
        disks.append(fs.crashed([atom.number for atom in fs.pending_atoms()]))

    fs.before_change = die
    cut_log(directory.logs[PARTITION])
    die()
    cuts = 0
    for disk in disks:
        cleaned_to = saved(disk)
        again = opened(disk)
        log = again.logs[PARTITION]
        if log.log_end_offset < 12:
            cuts += 1
            assert cleaned_to <= log.active_segment.base_offset
        assert values_of_deleted(disk, again) == []
    assert cuts > 0 or directory.logs[PARTITION].log_end_offset == 40


@every_cut
def test_a_cut_on_a_full_disk_lowers_the_cleaner_offset_first_or_cuts_nothing(cut_log: Cut) -> None:
    tried = 0
    for call in range(60):
        fs = SimFileSystem()
        directory = compacted(fs)
        log = directory.logs[PARTITION]
        fs.fault = (fs.calls_count + call, DiskFault.ENOSPC)
        error: Exception | None = None
        try:
            cut_log(log)
        except (StorageError, FsyncFailed) as met:
            error = met
        if fs.failed_operation not in NEEDS_ROOM:
            continue
        tried += 1
        killed = fs.crashed([atom.number for atom in fs.pending_atoms()])
        assert values_of_deleted(killed, opened(killed)) == []
        if isinstance(error, DiskFull):
            for disk in (fs.crashed([]), fs):
                assert saved(disk) == 12 or directory.cleaner_offsets[PARTITION] == saved(disk)
            cut_log(log)
            assert saved(fs) <= log.active_segment.base_offset
            assert values_of_deleted(fs, directory) == []
    assert tried >= 3


def test_a_start_lowers_the_cleaner_offset_of_a_log_that_was_cut_meanwhile() -> None:
    """`repair` cuts without the checkpoint, and a start cuts a torn tail."""
    fs = SimFileSystem()
    compacted(fs).release()
    flip(fs, f"{D}/{PARTITION}/{0:020d}.log", 70)
    for damage in inspect(fs, D, PARTITION):
        cut(fs, D, damage)
    for call in range(60):
        disk = fs.crashed([atom.number for atom in fs.pending_atoms()])
        disk.fault = (call, DiskFault.ENOSPC)
        with suppress(StorageError, FsyncFailed):
            opened(disk)
        disk.fault = None
        disk.release_locks()
        again = opened(disk)
        assert saved(disk.crashed([])) == again.cleaner_offsets[PARTITION] == 0
        assert values_of_deleted(disk, again) == []
