"""The copy of a moving replica on disk: names, promotion, and what a start does with either."""

from collections.abc import Sequence

import pytest

from kraft_wire.metadata.directory_ids import MIGRATING_DIRECTORY
from kraft_wire.model import FsyncFailed, LeaderEpoch, Offset, StorageError, TopicPartition, Uuid
from kraft_wire.node.disks.future_opening import resolve_copies
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.directory import future_logs
from kraft_wire.storage.directory.future_logs import (
    adopt,
    create_future,
    drop_future,
    future_name,
    promote,
    set_future_aside,
)
from kraft_wire.storage.directory.log_directory import (
    LogDirectory,
    note_compaction,
    partition_of_future,
    set_damaged_aside,
)
from kraft_wire.storage.directory.meta_properties import MetaProperties
from kraft_wire.storage.files import remove_tree, replace_file
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.stored_records import UnreadableRecords
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.storage.making import (
    PARTITION,
    TOPIC_ID,
    append,
    batch_bytes,
    contents,
    flip,
)

A, B = "disk/a", "disk/b"
IDS = {A: Uuid(b"a" * 16), B: Uuid(b"b" * 16)}
SMALL = LogConfig(segment_bytes=400)
COPY = f"{B}/t-0.{TOPIC_ID.hex()}-future"


def opened(fs: SimFileSystem, *paths: str) -> list[LogDirectory]:
    """Start over these directories; the process before has ended."""
    found = []
    fs._locks.clear()
    for path in paths or (A, B):
        directory = LogDirectory.open(fs, path)
        directory.meta = MetaProperties("cluster", 1, IDS[path])
        directory.load_logs(lambda _: SMALL, 1)
        found.append(directory)
    for parent in ("", "disk"):
        fs.sync_directory(parent)
    return found


def moving(fs: SimFileSystem, *, is_whole: bool = True) -> tuple[LogDirectory, LogDirectory]:
    """A log of nine batches in A, and its copy in B, which lacks the last one if not whole."""
    source, target = opened(fs)
    log = source.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    for at in range(9):
        append(log, batch_bytes(log.log_end_offset, epoch=at // 4, producer_id=7, sequence=at))
    log.flush()
    log.update_high_watermark(Offset(8))
    copy = create_future(target, PARTITION, TOPIC_ID, SMALL, 1)
    copied(log, copy, 9 if is_whole else 8)
    return source, target


def copied(log: Log, copy: Log, count: int) -> None:
    for data in contents(log)[:count]:
        append(copy, data)


def resolved(
    fs: SimFileSystem, directories: Sequence[LogDirectory], assigned: Uuid | None
) -> list[tuple[str, str]]:
    """What is doomed and reported: event names, or `doomed` with the path."""
    lines: list[tuple[str, str]] = []

    def report(name: str, **fields: object) -> None:
        lines.append((name, str(fields.get("path", fields.get("directory")))))

    doomed = resolve_copies(fs, directories, lambda name, topic_id: assigned, 1, report)
    return lines + [("doomed", path) for _, path in doomed]


def test_names_are_those_of_kafka() -> None:
    """`LocalLog.logFutureDirName` and `FUTURE_DIR_PATTERN` of release 4.3.1."""
    long = TopicPartition("a-b.c", 12)
    assert future_name(long, TOPIC_ID) == f"a-b.c-12.{TOPIC_ID.hex()}-future"
    assert partition_of_future("a-b.c-12.33a1-future") == long
    for name in ("a-b.c-12", "t-future", "t-1.-future", "t-x.33-future", "t-1.33-delete"):
        assert partition_of_future(name) is None, name


def test_promoted_copy_has_all_of_the_log_under_the_same_object() -> None:
    fs = SimFileSystem()
    source, target = moving(fs)
    log = source.logs[PARTITION]
    log.advance_log_start_offset(Offset(2))
    note_compaction(source, PARTITION, Offset(5))
    log.epochs.announce(LeaderEpoch(9), log.log_end_offset)
    records, epochs = contents(log), log.epochs.entries
    producers = log.producer_states.snapshot()
    flush = log.begin_flush()
    doomed = promote(fs, source, target, PARTITION, 1)
    assert target.logs[PARTITION] is log
    assert (log.directory, PARTITION in source.logs) == (f"{B}/t-0", False)
    assert (contents(log), log.epochs.entries) == (records, epochs)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 8, 9)
    assert log.producer_states.snapshot() == producers
    assert target.cleaner_offsets[PARTITION] <= 5
    assert doomed.startswith(f"{A}/t-0.")
    assert doomed.endswith("-delete")
    append(log, batch_bytes(9, epoch=9, producer_id=7, sequence=9))
    log.complete_flush(flush)
    assert log.unflushed_records == 1, "a flush of the old files does not cover the copy"
    log.flush()
    source.settle()
    (again,) = opened(fs.crashed(()), B)
    restarted = again.logs[PARTITION]
    assert contents(restarted)[:-1] == records
    assert (restarted.log_start_offset, restarted.log_end_offset) == (2, 10)
    (old,) = opened(fs.crashed(()), A)
    assert (old.logs, old.cleaner_offsets) == ({}, {})


def test_promoted_copy_with_older_records_than_its_log_is_verified_after_a_power_failure() -> None:
    """The log began again within what the copy had: a follower of a leader without those."""
    fs = SimFileSystem()
    source, target = moving(fs)
    log, copy = source.logs[PARTITION], target.futures[PARTITION]
    log.truncate_fully_and_start_at(Offset(6))
    append(log, batch_bytes(6, epoch=5))
    copy.truncate_to(Offset(6))
    append(copy, batch_bytes(6, epoch=5))
    promote(fs, source, target, PARTITION, 1)
    assert log.epochs.entries == [(0, 0), (1, 4), (5, 6)]
    fs.unlink(f"{B}/recovery-point-offset-checkpoint")
    (again,) = opened(fs, B)
    assert not again.damaged
    restarted = again.logs[PARTITION]
    assert (restarted.log_start_offset, restarted.log_end_offset) == (6, 7)


def test_copy_without_its_log_is_the_log_whatever_directory_the_metadata_has() -> None:
    """The crash between the two renames."""
    for assigned in (IDS[A], IDS[B], MIGRATING_DIRECTORY):
        fs = SimFileSystem()
        source, target = moving(fs)
        records = contents(source.logs[PARTITION])
        fs.fault = None
        halfway(fs, source, target)
        both = opened(fs.crashed(()))
        assert [list(each.logs) for each in both] == [[], []]
        lines = resolved(both[0]._fs, both, assigned)  # type: ignore[arg-type]  # simulated
        assert lines == [("replica_moved", B)]
        assert contents(both[1].logs[PARTITION]) == records
        assert both[1].logs[PARTITION].directory == f"{B}/t-0"


def halfway(fs: SimFileSystem, source: LogDirectory, target: LogDirectory) -> None:
    """Promote up to the second rename, which fails."""
    failing = Stopping(fs)
    target._fs = source._fs = failing  # type: ignore[assignment]  # as much as is used
    with pytest.raises(StorageError, match="stopped"):
        promote(failing, source, target, PARTITION, 1)  # type: ignore[arg-type]  # likewise


class Stopping:
    """A file system that stops before a copy is renamed."""

    def __init__(self, fs: SimFileSystem) -> None:
        self._fs = fs

    def __getattr__(self, name: str) -> object:
        return getattr(self._fs, name)

    def rename(self, old: str, new: str) -> None:
        if old.endswith("-future"):
            raise StorageError("rename", old, "stopped")
        self._fs.rename(old, new)


def test_unfinished_copy_without_its_log_is_kept_aside_unless_it_is_assigned() -> None:
    for assigned, is_log in ((IDS[A], False), (IDS[B], True), (None, False)):
        fs = SimFileSystem()
        moving(fs, is_whole=False)
        fs.rename(f"{A}/t-0", f"{A}/lost")
        both = opened(fs)
        lines = resolved(fs, both, assigned)
        if is_log:
            assert lines == [("replica_moved", B)]
            assert both[1].logs[PARTITION].log_end_offset == 8
        else:
            assert lines == [("replica_copy_set_aside", COPY.replace("-future", "-stray"))]
            assert (both[1].logs, both[1].futures) == ({}, {})
            assert fs.exists(lines[0][1])


def test_copy_beside_its_log_stays_a_copy_even_if_its_directory_is_assigned() -> None:
    """4.3.1 takes the copy then, although the log may have newer records."""
    fs = SimFileSystem()
    source, _ = moving(fs, is_whole=False)
    records = contents(source.logs[PARTITION])
    both = opened(fs)
    assert resolved(fs, both, IDS[B]) == []
    assert contents(both[0].logs[PARTITION]) == records
    assert both[1].futures[PARTITION].log_end_offset == 8


def test_mark_of_an_earlier_attempt_does_not_make_an_unfinished_copy_the_log() -> None:
    fs = SimFileSystem()
    source, target = moving(fs)
    future_logs._prepare(fs, source, target, PARTITION)  # and a crash
    both = opened(fs.crashed(()))
    disk = both[0]._fs
    assert resolved(disk, both, IDS[A]) == []  # type: ignore[arg-type]  # simulated
    append(both[0].logs[PARTITION], batch_bytes(9, epoch=2))
    both[0].logs[PARTITION].flush()
    disk.rename(f"{A}/t-0", f"{A}/lost")
    again = opened(disk)  # type: ignore[arg-type]  # likewise
    lines = resolved(disk, again, IDS[A])  # type: ignore[arg-type]  # likewise
    assert [name for name, _ in lines] == ["replica_copy_set_aside"]


def test_two_logs_of_a_replica_are_decided_by_the_metadata_or_refused() -> None:
    """4.3.1 leaves both if it stops between its renames: the copy gets its name first."""
    for assigned, kept in ((IDS[B], B), (IDS[A], A)):
        fs = SimFileSystem()
        moving(fs)
        fs.rename(COPY, f"{B}/t-0")
        both = opened(fs)
        (line,) = resolved(fs, both, assigned)
        assert line[0] == "replica_copy_set_aside"
        assert [each.path for each in both if PARTITION in each.logs] == [kept]
        assert fs.exists(line[1])
        again = opened(fs)
        assert [each.path for each in again if PARTITION in each.logs] == [kept]
    fs = SimFileSystem()
    moving(fs)
    fs.rename(COPY, f"{B}/t-0")
    with pytest.raises(StorageError, match="two logs of one replica: disk/a/t-0 and disk/b/t-0"):
        resolved(fs, opened(fs), Uuid(b"c" * 16))


def test_copy_in_the_directory_of_its_log_and_a_second_copy_are_dropped() -> None:
    fs = SimFileSystem()
    moving(fs)
    fs.make_directory(f"{A}/t-0.beef-future")
    for name in fs.names(COPY):
        replace_file(fs, f"{A}/t-0.beef-future/{name}", fs.read(f"{COPY}/{name}"))
    remove_tree(fs, COPY)
    assert [name for name, _ in resolved(fs, opened(fs), IDS[A])] == ["doomed"]
    moving_again = SimFileSystem()
    moving(moving_again)
    other = f"{B}/t-0.ffff-future"
    moving_again.make_directory(other)
    both = opened(moving_again)
    assert both[1].refused_futures.keys() == {"t-0.ffff-future"}
    lines = resolved(moving_again, both, IDS[A])
    assert lines == [("replica_copy_set_aside", f"{B}/t-0.ffff-stray")]
    assert both[1].futures[PARTITION].log_end_offset == 9


def test_damaged_copy_is_kept_aside() -> None:
    fs = SimFileSystem()
    _, target = moving(fs)
    target.futures[PARTITION].flush()
    flip(fs, f"{COPY}/00000000000000000000.log", 70)
    both = opened(fs)
    assert both[1].futures == {}
    lines = resolved(fs, both, IDS[A])
    assert [name for name, _ in lines] == ["replica_copy_set_aside"]
    assert not both[1].damaged, "the replica itself is not"


def test_dropped_copy_leaves_neither_files_nor_offsets() -> None:
    fs = SimFileSystem()
    _, target = moving(fs)
    target.checkpoint()
    assert "t 0" in fs.read(f"{B}/recovery-point-offset-checkpoint").decode()
    doomed = drop_future(fs, target, PARTITION)
    target.settle()
    target.remove_deleted(doomed)
    assert "t 0" not in fs.read(f"{B}/recovery-point-offset-checkpoint").decode()
    assert not any(name.startswith("t-") for name in fs.names(B))
    assert create_future(target, PARTITION, TOPIC_ID, SMALL, 1).log_end_offset == 0


@pytest.mark.parametrize("fault", [DiskFault.EIO, DiskFault.ENOSPC])
def test_whichever_call_of_a_promotion_fails_one_log_has_all_records(fault: DiskFault) -> None:
    calls = 0
    while True:
        fs = SimFileSystem()
        source, target = moving(fs)
        records = contents(source.logs[PARTITION])
        fs.fault = (fs.calls_count + calls, fault)
        try:
            promote(fs, source, target, PARTITION, 1)
            is_done = fs.calls_count < fs.fault[0]
        except (StorageError, FsyncFailed):
            is_done = False
        fs.fault = None
        held = [each for each in (source, target) if PARTITION in each.logs]
        assert len(held) == 1, calls
        both = opened(fs.crashed(()))
        resolve_copies(both[0]._fs, both, lambda name, topic_id: IDS[A], 1)
        (log,) = [each.logs[PARTITION] for each in both if PARTITION in each.logs]
        assert contents(log) == records, calls
        if is_done:
            break
        calls += 1
    assert calls > 20


def test_copy_that_finds_no_room_leaves_nothing_that_a_start_would_continue() -> None:
    calls = refused = 0
    while True:
        fs = SimFileSystem()
        source, target = opened(fs)
        source.create_log(PARTITION, TOPIC_ID, SMALL, 1)
        fs.fault = (fs.calls_count + calls, DiskFault.ENOSPC)
        try:
            create_future(target, PARTITION, TOPIC_ID, SMALL, 1)
            if fs.calls_count <= fs.fault[0]:
                break
        except FsyncFailed:  # the process ends, and the request has no response
            pass
        except StorageError:
            refused += 1
            assert not target.futures
            assert not any(name.endswith("-future") for name in fs.names(B)), calls
            _, again = opened(fs.crashed(()))
            assert not again.futures, calls
        calls += 1
    assert refused > 3


def test_adopted_copy_is_there_after_a_power_failure() -> None:
    fs = SimFileSystem()
    source, target = moving(fs)
    records = contents(source.logs[PARTITION])
    source.delete_log(PARTITION)
    adopt(fs, target, PARTITION, 1)
    (again,) = opened(fs.crashed(()), B)
    assert contents(again.logs[PARTITION]) == records


def test_copy_on_a_failed_disk_cannot_be_dropped() -> None:
    fs = SimFileSystem()
    _, target = moving(fs)
    target.offline = StorageError("write", B, "Input/output error")
    with pytest.raises(StorageError) as refused:
        drop_future(fs, target, PARTITION)
    assert refused.value is target.offline
    assert PARTITION in target.futures


def test_copies_that_are_kept_aside_one_after_the_other_are_all_kept() -> None:
    fs = SimFileSystem()
    source, target = moving(fs)
    name, paths = COPY.rpartition("/")[2], []
    for _ in range(3):
        paths.append(set_future_aside(fs, target, name))
        create_future(target, PARTITION, TOPIC_ID, SMALL, 1)
    stem = COPY.removesuffix("-future")
    assert paths == [f"{stem}-stray", f"{stem}1-stray", f"{stem}2-stray"]
    assert all(fs.is_directory(path) for path in paths)
    assert PARTITION in source.logs


def test_log_that_cannot_be_decoded_is_not_compacted_after_its_move_either() -> None:
    fs = SimFileSystem()
    source, target = moving(fs)
    batch = RecordBatch(memoryview(contents(source.logs[PARTITION])[3]))
    problem = UnreadableRecords(f"{A}/t-0", batch, CorruptRecordBatch("not compressed by zstd"))
    source.unreadable[PARTITION] = problem
    promote(fs, source, target, PARTITION, 1)
    assert target.unreadable[PARTITION] is problem


def test_directory_that_only_looks_like_a_copy_is_left_alone() -> None:
    fs = SimFileSystem()
    moving(fs)
    fs.make_directory(f"{B}/notes-future")
    _, target = opened(fs)
    assert target.futures.keys() == {PARTITION}
    assert target.refused_futures == {}
    assert fs.is_directory(f"{B}/notes-future")


def test_damaged_logs_that_are_set_aside_one_after_the_other_are_all_kept() -> None:
    fs = SimFileSystem()
    (directory,) = opened(fs, A)
    paths = []
    for _ in range(3):
        fs.make_directory(f"{A}/{PARTITION}")
        directory.damaged[PARTITION] = StorageError("open", f"{A}/{PARTITION}", "damaged")
        paths.append(set_damaged_aside(fs, directory, PARTITION))
    assert len({*paths}) == 3
    assert all(fs.is_directory(path) for path in paths)
    assert directory.damaged == {}


def test_epoch_that_began_before_the_logs_first_record_is_named_once() -> None:
    """A copy still has the older records of the epoch that is the log's first one."""
    fs = SimFileSystem()
    source, target = moving(fs)
    log, copy = source.logs[PARTITION], target.futures[PARTITION]
    log.advance_log_start_offset(Offset(2))
    log.epochs.restore([(LeaderEpoch(0), Offset(2)), *log.epochs.entries[1:]])
    epochs = copy.epochs.entries
    promote(fs, source, target, PARTITION, 1)
    assert log.epochs.entries == epochs
