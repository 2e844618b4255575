"""No work leaves a file open that nothing uses any more: a broker runs for years."""

import gc
from collections.abc import Callable

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.disk.open_files import SimFile
from kraft_wire.storage.cleaning.cleaner import compact
from kraft_wire.storage.cleaning.retention import apply_retention
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.files import File
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.damage import inspect
from kraft_wire.storage.snapshots.contents import SnapshotHead
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotReader, SnapshotWriter
from kraft_wire.storage.snapshots.store import open_snapshots
from tests.storage.making import (
    DIRECTORY,
    PARTITION,
    TOPIC_ID,
    append,
    batch_bytes,
    cut_all,
    fill,
    flip,
    open_at,
)

SMALL = LogConfig(segment_bytes=400, index_interval_bytes=100)
COMPACTED = LogConfig(segment_bytes=400, cleanup_policy=("compact",))
ID = OffsetAndEpoch(Offset(3), LeaderEpoch(1))
HEAD = SnapshotHead(last_contained_timestamp_ms=7, wall_ms=9)


class Kept(SimFile):
    """An open file that tells when it is closed, or when nothing refers to it any more.

    A real file is closed then too: a response may read a segment that was removed.
    """

    __slots__ = ("_opened",)

    def __init__(self, made: SimFile, opened: list[str]) -> None:
        super().__init__(made._fs, made.path, made._node)
        self._opened = opened
        opened.append(made.path)

    def close(self) -> None:
        if self._is_open:
            self._opened.remove(self.path)
        super().close()

    def __del__(self) -> None:
        self.close()


class Remembering(SimFileSystem):
    """A disk that knows the paths of its open files."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    def open(self, path: str, *, create: bool = False) -> File:
        return self._kept(super().open(path, create=create))

    def open_for_reading(self, path: str) -> File:
        return self._kept(super().open_for_reading(path))

    def _kept(self, file: File) -> File:
        assert isinstance(file, SimFile)
        return Kept(file, self.opened)


def write_and_stop(fs: SimFileSystem) -> None:
    directory = LogDirectory.open(fs, "disk")
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    fill(log, 12)
    log.flush()
    directory.checkpoint()
    directory.close()


def recover_and_stop(fs: SimFileSystem) -> None:
    write_and_stop(fs)
    log = open_at(fs, SMALL)
    fill(log, 3)
    log.close()


def truncate(fs: SimFileSystem) -> None:
    log = open_at(fs, SMALL)
    fill(log, 12)
    log.truncate_to(Offset(2))
    log.close()


def start_anew(fs: SimFileSystem) -> None:
    log = open_at(fs, SMALL)
    fill(log, 12)
    log.truncate_fully_and_start_at(Offset(50))
    log.close()


def retain(fs: SimFileSystem) -> None:
    log = open_at(fs, LogConfig(segment_bytes=400, retention_ms=0))
    fill(log, 12)
    log.update_high_watermark(log.log_end_offset)
    assert apply_retention(log, 1 << 40) > 1
    log.close()


def compact_twice(fs: SimFileSystem) -> None:
    log = open_at(fs, COMPACTED)
    for start in (0, 12):
        for at in range(start, start + 12):
            append(log, batch_bytes(at, key=b"%d" % (at % 3)))
        log.roll(1)
        log.update_high_watermark(log.log_end_offset)
        assert compact(fs, log, Offset(0), 1 << 40).next_dirty_offset > start
    log.close()


def delete(fs: SimFileSystem) -> None:
    directory = LogDirectory.open(fs, "disk")
    fill(directory.create_log(PARTITION, TOPIC_ID, SMALL, 1), 12)
    directory.remove_deleted(directory.delete_log(PARTITION))
    directory.close()


def abandon_snapshot(fs: SimFileSystem) -> None:
    fs.make_directory("d")
    writer = SnapshotWriter(fs, "d", ID, 1)
    writer.append(b"abc")
    writer.abandon()


def freeze_snapshots(fs: SimFileSystem) -> None:
    fs.make_directory("d")
    for attempt in (1, 2):
        writer = SnapshotWriter(fs, "d", ID, attempt)
        writer.append(b"abc")
        writer.freeze()
    SnapshotReader(fs, "d", ID).close()


def snapshots_of_a_log(fs: SimFileSystem) -> None:
    directory = LogDirectory.open(fs, "disk")
    log = directory.open_metadata_log(SMALL, 1)
    for _ in range(5):
        append(log, batch_bytes(log.log_end_offset, epoch=1, key=None))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    snapshots = open_snapshots(fs, log)
    unfinished = snapshots.writing(ID, HEAD, [b"a", b"b"])
    next(unfinished)
    unfinished.close()
    assert list(snapshots.writing(ID, HEAD, [b"a", b"b"]))
    assert list(snapshots.batches(ID))
    assert snapshots.header_timestamp_ms(ID) == 7
    log.close()


def inspect_and_cut(fs: SimFileSystem) -> None:
    log = open_at(fs, SMALL)
    fill(log, 12)
    log.close()
    flip(fs, f"{DIRECTORY}/{0:020d}.log", 30)
    assert inspect(fs, "disk", PARTITION)
    assert cut_all(fs)


@pytest.mark.parametrize(
    "work",
    [
        write_and_stop,
        recover_and_stop,
        truncate,
        start_anew,
        retain,
        compact_twice,
        delete,
        abandon_snapshot,
        freeze_snapshots,
        snapshots_of_a_log,
        inspect_and_cut,
    ],
    ids=lambda work: work.__name__,
)
def test_work_leaves_no_file_open(work: Callable[[SimFileSystem], None]) -> None:
    fs = Remembering()
    work(fs)
    gc.collect()  # errors keep the frames that they came through
    assert fs.opened == []
