"""One entry of log.dirs: lock, identity, checkpoints, clean stops, damage, a full disk."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from kraft_wire.model import (
    DiskFull,
    ElectionState,
    FsyncFailed,
    LeaderEpoch,
    Offset,
    ReplicaId,
    StorageError,
    TopicPartition,
    Uuid,
)
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.directory.checkpoint_text import CorruptCheckpoint
from kraft_wire.storage.directory.log_directory import (
    METADATA_PARTITION,
    LogDirectory,
    log_bytes,
    note_compaction,
    set_stray_aside,
)
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.directory.quorum_state import read_quorum_state, write_quorum_state
from kraft_wire.storage.files import LockHeld, replace_file
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.damage import inspect
from kraft_wire.storage.recovery.repair import cut
from kraft_wire.storage.space import DiskSpace
from tests.storage.making import (
    PARTITION,
    TOPIC_ID,
    Refusing,
    append,
    batch_bytes,
    contents,
    fill,
    flip,
)

D = "disk/d"
OTHER = TopicPartition("a-b.c", 3)
SMALL = LogConfig(segment_bytes=400)
COMPACTED = LogConfig(segment_bytes=400, cleanup_policy=("compact",))


def opened(fs: SimFileSystem, **settings: int) -> LogDirectory:
    directory = LogDirectory.open(fs, D, **settings)
    directory.load_logs(lambda _: SMALL, 1)
    return directory


@pytest.mark.parametrize("durable", [True, False])
def test_log_that_finds_no_room_leaves_no_directory_beside_one_elsewhere(durable: bool) -> None:
    """Another log directory gets the log, and two of them would keep the next start from ending."""
    calls = refused = 0
    while True:
        fs = SimFileSystem()
        fs.make_directory(D)
        for parent in ("", "disk"):
            fs.sync_directory(parent)
        directory = opened(fs)
        fs.fault = (fs.calls_count + calls, DiskFault.ENOSPC)
        try:
            directory.create_log(PARTITION, TOPIC_ID, SMALL, 1, durable=durable)
            if fs.calls_count <= fs.fault[0]:
                break
        except FsyncFailed:  # the process ends, and nothing is created elsewhere
            pass
        except StorageError:
            refused += 1
            assert PARTITION not in directory.logs
            assert not fs.exists(f"{D}/{PARTITION}"), calls
            assert PARTITION not in opened(fs.crashed(())).logs, calls
        calls += 1
    assert refused > 3


def test_directory_that_was_there_before_a_log_keeps_what_it_has() -> None:
    """They may be of another log."""
    fs = SimFileSystem()
    fs.make_directory(f"{D}/{PARTITION}")
    directory = LogDirectory.open(fs, D)
    fs.open(f"{D}/{PARTITION}/notes", create=True).close()
    fs.fault = (fs.calls_count + 1, DiskFault.ENOSPC)
    with pytest.raises(DiskFull):
        directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    assert fs.exists(f"{D}/{PARTITION}/notes")


def test_clean_stop_leaves_kafkas_files_and_is_believed_once() -> None:
    fs = SimFileSystem()
    fs.make_directory(D)
    for parent in ("", "disk"):
        fs.sync_directory(parent)
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    added = fill(log, 3)
    log.update_high_watermark(Offset(2))
    directory.create_log(OTHER, TOPIC_ID, SMALL, 1)
    directory.close(broker_epoch=15)
    assert fs.read(f"{D}/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":15}'
    assert fs.read(f"{D}/recovery-point-offset-checkpoint") == b"0\n2\na-b.c 3 0\nt 0 3\n"
    assert fs.read(f"{D}/replication-offset-checkpoint") == b"0\n2\na-b.c 3 0\nt 0 2\n"
    assert fs.read(f"{D}/log-start-offset-checkpoint") == b"0\n0\n"
    again = opened(fs)
    assert (again.was_clean, again.previous_broker_epoch) == (True, 15)
    after_power_loss = fs.crashed(())
    assert after_power_loss.exists(f"{D}/recovery-point-offset-checkpoint")
    assert not opened(after_power_loss).was_clean, "nor again if the power is lost now"
    assert sorted(again.logs) == [OTHER, PARTITION]
    assert contents(again.logs[PARTITION]) == added
    assert (again.logs[PARTITION].high_watermark, again.logs[PARTITION].topic_id) == (2, TOPIC_ID)
    again.release()
    assert not opened(fs).was_clean


@pytest.mark.parametrize("is_clean", [True, False])
def test_stop_before_the_logs_were_opened_is_as_clean_as_the_one_before(is_clean: bool) -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    fill(directory.create_log(PARTITION, TOPIC_ID, SMALL, 1), 3)
    if is_clean:
        directory.close(broker_epoch=15)
    else:
        directory.release()
    LogDirectory.open(fs, D).close()
    assert opened(fs).was_clean is is_clean, "KAFKA-10471"


@pytest.mark.parametrize("topic", ["t", "t" * 249])
def test_strays_are_kept_however_often_and_their_names_can_be_given_again(topic: str) -> None:
    fs = SimFileSystem()
    partition = TopicPartition(topic, 0)
    strays = []
    for _ in range(3):
        directory = opened(fs)
        log = directory.create_log(partition, TOPIC_ID, SMALL, 1)
        fill(log, 3)
        log.advance_log_start_offset(Offset(1))
        directory.close()
        directory = opened(fs)
        strays.append(set_stray_aside(fs, directory, partition))
        directory.settle()
        again = directory.create_log(partition, Uuid(b"another topic id"), SMALL, 1)
        assert (again.log_start_offset, again.log_end_offset) == (0, 0)
        directory.close()
        directory = opened(fs)
        directory.delete_log(partition)
        directory.release()
    assert len(set(strays)) == 3
    for stray in strays:
        assert len(stray.rpartition("/")[2]) <= 255
        assert stray.endswith("-stray")
        assert fs.exists(f"{stray}/{0:020}.log")


@pytest.mark.parametrize(
    "marker",
    [
        b"",
        pytest.param(b"[" * 100_000, id="deep"),
        b"[]",
        b'{"version":0}',
        b'{"brokerEpoch":"x"}',
    ],
)
def test_marker_of_any_content_counts_without_epoch(marker: bytes) -> None:
    fs = SimFileSystem()
    fs.make_directory(D)
    replace_file(fs, f"{D}/.kafka_cleanshutdown", marker)
    directory = opened(fs)
    assert (directory.was_clean, directory.previous_broker_epoch) == (True, -1)


def test_directory_is_locked() -> None:
    fs = SimFileSystem()
    first = opened(fs)
    with pytest.raises(LockHeld):
        LogDirectory.open(fs, D)
    first.release()
    opened(fs).release()


def test_identity_is_read_and_a_damaged_one_refused_without_holding_the_lock() -> None:
    fs = SimFileSystem()
    fs.make_directory(D)
    write_meta_properties(fs, D, MetaProperties("c", 1, TOPIC_ID))
    directory = opened(fs)
    assert directory.meta == MetaProperties("c", 1, TOPIC_ID)
    directory.release()
    replace_file(fs, f"{D}/meta.properties", b"?")
    for _ in range(2):
        with pytest.raises(CorruptCheckpoint):
            LogDirectory.open(fs, D)


def test_damaged_log_start_checkpoint_is_refused_and_the_derived_ones_start_over() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    fill(directory.create_log(PARTITION, TOPIC_ID, SMALL, 1), 2)
    directory.checkpoint()
    directory.release()
    for name in ("recovery-point", "replication", "cleaner"):
        replace_file(fs, f"{D}/{name}-offset-checkpoint", b"?")
    again = opened(fs)
    assert again.logs[PARTITION].log_end_offset == 2
    again.release()
    replace_file(fs, f"{D}/log-start-offset-checkpoint", b"?")
    with pytest.raises(CorruptCheckpoint):
        LogDirectory.open(fs, D)


def test_log_start_survives_a_restart() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    fill(log, 2)
    log.advance_log_start_offset(Offset(1))
    directory.checkpoint()
    directory.release()
    again = opened(fs)
    assert again.logs[PARTITION].log_start_offset == 1
    again.logs[PARTITION].truncate_fully_and_start_at(Offset(9))
    again.checkpoint()
    assert fs.read(f"{D}/log-start-offset-checkpoint") == b"0\n0\n"


def test_high_watermarks_alone_are_written_where_one_has_moved_and_are_found_after_a_kill() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    fill(log, 3)
    log.update_high_watermark(Offset(2))
    directory.checkpoint()
    files = {name: fs.read(f"{D}/{name}") for name in fs.names(D) if name.endswith("checkpoint")}
    log.update_high_watermark(Offset(3))
    directory.checkpoint(high_watermarks_only=True)
    written = f"{D}/replication-offset-checkpoint"
    assert fs.read(written) == b"0\n1\nt 0 3\n"
    assert {name: fs.read(f"{D}/{name}") for name in files if not written.endswith(name)} == {
        name: data for name, data in files.items() if not written.endswith(name)
    }
    changes = fs.next_atom
    directory.checkpoint(high_watermarks_only=True)
    assert fs.next_atom == changes, "nothing has moved"
    directory.release()
    assert opened(fs).logs[PARTITION].high_watermark == 3


def test_other_directories_are_left_alone_and_deleted_topics_removed() -> None:
    fs = SimFileSystem()
    for name in ("t-0.0a-delete", "t-1.0a-future", "nodash", "-1", "t-x", "__cluster_metadata-0"):
        fs.make_directory(f"{D}/{name}")
    replace_file(fs, f"{D}/file-0", b"")
    directory = opened(fs)
    assert directory.logs == {}
    assert "t-0.0a-delete" not in fs.names(D)
    assert "t-1.0a-future" in fs.names(D)


def test_topic_is_deleted_by_renaming_and_can_be_made_again() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    fill(log, 5)
    log.update_high_watermark(Offset(5))
    log.advance_log_start_offset(Offset(2))
    directory.checkpoint()
    doomed = directory.delete_log(PARTITION)
    assert doomed == f"{D}/t-0.{TOPIC_ID.hex()}-delete"
    directory.remove_deleted(doomed)
    assert not fs.exists(doomed)
    fresh = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    assert (fresh.log_start_offset, fresh.log_end_offset) == (0, 0)
    long = TopicPartition("x" * 249, 0)
    directory.create_log(long, TOPIC_ID, SMALL, 1)
    assert len(directory.delete_log(long).rpartition("/")[2]) == 255


def test_offsets_of_a_topic_that_is_gone_do_not_apply_to_its_namesake() -> None:
    fs = SimFileSystem()
    fs.make_directory(D)
    replace_file(fs, f"{D}/log-start-offset-checkpoint", b"0\n1\nt 0 7\n")
    directory = opened(fs)
    assert fs.read(f"{D}/log-start-offset-checkpoint") == b"0\n0\n"
    assert directory.create_log(PARTITION, TOPIC_ID, SMALL, 1).log_start_offset == 0


def test_damaged_log_is_set_aside_and_the_others_are_served() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    fill(directory.create_log(PARTITION, TOPIC_ID, SMALL, 1), 3)
    fill(directory.create_log(OTHER, TOPIC_ID, SMALL, 1), 1)
    directory.release()
    flip(fs, f"{D}/t-0/{0:020d}.log", 70)
    again = opened(fs)
    assert list(again.logs) == [OTHER]
    assert "a valid batch follows" in str(again.damaged[PARTITION])
    again.close()
    assert not fs.exists(f"{D}/.kafka_cleanshutdown")
    for damage in inspect(fs, D, PARTITION):
        cut(fs, D, damage)
    allowed = LogDirectory.open(fs, D)
    allowed.load_logs(lambda _: SMALL, 1)
    assert allowed.logs[PARTITION].log_end_offset == 0
    allowed.delete_log(PARTITION)


def test_gaps_of_a_log_that_was_compacted_once_are_no_damage() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    fill(log, 2)
    append(log, batch_bytes(7))
    directory.release()
    assert list(opened_and_released(fs).damaged) == [PARTITION]
    again = LogDirectory.open(fs, D)
    again.load_logs(lambda _: COMPACTED, 1)
    for _ in range(2):
        note_compaction(again, PARTITION, Offset(0))
    again.release()
    assert opened_and_released(fs).logs[PARTITION].log_end_offset == 8


def opened_and_released(fs: SimFileSystem) -> LogDirectory:
    """The directory as a start sees it, with the lock given back."""
    directory = opened(fs)
    directory.release()
    return directory


def test_gap_that_could_not_be_noted_is_noted_when_there_is_room() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    fill(directory.create_log(PARTITION, TOPIC_ID, SMALL, 1), 3)
    directory.checkpoint()
    fs.capacity_bytes = fs.used_bytes()
    with pytest.raises(DiskFull):
        note_compaction(directory, PARTITION, Offset(0))
    fs.capacity_bytes = None
    note_compaction(directory, PARTITION, Offset(0))
    directory.release()
    assert opened(fs).cleaner_offsets == {PARTITION: 0}


def test_damaged_log_can_be_deleted() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    fill(directory.create_log(PARTITION, TOPIC_ID, SMALL, 1), 3)
    directory.release()
    flip(fs, f"{D}/t-0/{0:020d}.log", 70)
    again = opened(fs)
    assert log_bytes(fs, f"{D}/t-0") == len(fs.read(f"{D}/t-0/{0:020d}.log"))
    assert again.delete_log(PARTITION).endswith(f"t-0.{'0' * 32}-delete")
    assert again.damaged == {}


def test_errors_take_the_log_or_the_directory_out_of_service() -> None:
    fs = SimFileSystem()
    directory = opened(fs, ballast_bytes=4096)
    directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    directory.note_error(PARTITION, DiskFull("write", "x", "full"))
    assert directory.space.is_full
    assert directory.offline is None
    directory.note_error(PARTITION, CorruptCheckpoint("x", "y"))
    assert list(directory.damaged) == [PARTITION]
    first = StorageError("read", "x", "EIO")
    directory.note_error(None, first)
    directory.note_error(None, StorageError("read", "x", "EROFS"))
    assert directory.offline is first
    with pytest.raises(StorageError, match="EIO"):
        directory.delete_log(PARTITION)
    directory.close()
    assert not fs.exists(f"{D}/.kafka_cleanshutdown")


def test_interrupted_creation_is_completed_by_the_topic_id() -> None:
    fs = SimFileSystem()
    fs.make_directory(f"{D}/t-0")
    directory = opened(fs)
    assert directory.logs[PARTITION].topic_id == Uuid(bytes(16))
    directory.assign_topic_id(PARTITION, TOPIC_ID)
    directory.release()
    assert opened(fs).logs[PARTITION].topic_id == TOPIC_ID


def test_metadata_log_is_verified_whole_and_in_no_checkpoint() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.open_metadata_log(SMALL, 1)
    assert fs.read(f"{D}/__cluster_metadata-0/partition.metadata").endswith(
        b"AAAAAAAAAAAAAAAAAAAAAQ"
    )
    fill(log, 3)
    directory.close()
    assert b"cluster" not in fs.read(f"{D}/recovery-point-offset-checkpoint")
    again = opened(fs)
    assert METADATA_PARTITION not in again.logs
    assert again.open_metadata_log(SMALL, 1).log_end_offset == 3


def test_recovery_points_are_lowered_on_disk_before_a_truncation() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    fill(log, 4)
    log.flush()
    directory.checkpoint()
    log.truncate_to(Offset(1))
    assert fs.read(f"{D}/recovery-point-offset-checkpoint") == b"0\n1\nt 0 1\n"


# -- space ---------------------------------------------------------------------------------------


def test_full_disk_refuses_appends_and_heals_without_restart() -> None:
    fs = SimFileSystem()
    directory = opened(fs, ballast_bytes=4096, reserve_bytes=1000)
    log = directory.create_log(PARTITION, TOPIC_ID, LogConfig(), 1)
    added = fill(log, 2)
    fs.capacity_bytes = fs.used_bytes() + 999
    directory.space.refresh()
    with pytest.raises(DiskFull):
        fill(log, 1)
    directory.space.note_full()
    directory.checkpoint()  # the ballast made room
    directory.space.refresh()
    assert directory.space.is_full
    fs.capacity_bytes = fs.used_bytes() + 50_000
    directory.space.refresh()
    assert not directory.space.is_full
    added += fill(log, 1)
    assert contents(log) == added


def test_ballast_that_cannot_be_taken_means_full() -> None:
    fs = SimFileSystem(capacity_bytes=2000)
    fs.make_directory(D)
    space = DiskSpace(fs, D, ballast_bytes=4096)
    space.refresh()
    assert space.is_full
    assert (space.free_bytes(), space.needed_bytes) == (fs.free_bytes(D), 4096)
    DiskSpace(fs, D).note_full()


def test_ballast_of_the_last_run_is_kept_as_it_is() -> None:
    fs = Refusing()
    fs.make_directory(D)
    DiskSpace(fs, D, ballast_bytes=4096).refresh()
    before = fs.everything()
    fs.refused = (("open", ""), ("reserve", ""), ("write", ""))
    again = DiskSpace(fs, D, ballast_bytes=4096)
    again.refresh()
    assert not again.is_full
    assert fs.everything() == before


def test_directory_tells_of_each_roll_of_its_logs() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    fill(log, 1)
    log.roll(1)
    told: list[tuple[TopicPartition, int]] = []
    directory.rolled = lambda rolled: told.append(
        (rolled.topic_partition, rolled.active_segment.base_offset)
    )
    fill(log, 1)
    log.roll(1)
    directory.close()
    again = opened(fs)
    again.rolled = directory.rolled
    fill(again.logs[PARTITION], 1)
    again.logs[PARTITION].roll(1)
    assert told == [(PARTITION, 2), (PARTITION, 3)]


def test_logs_made_and_deleted_together_are_settled_at_once() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    for partition in (PARTITION, OTHER):
        directory.create_log(partition, TOPIC_ID, SMALL, 1, durable=False)
    directory.settle()
    added = fill(directory.logs[PARTITION], 2)
    directory.delete_log(OTHER, durable=False)
    directory.settle()
    assert sorted(directory.logs) == [PARTITION]
    assert b"a-b.c" not in fs.read(f"{D}/recovery-point-offset-checkpoint")
    directory.close()
    assert contents(opened(fs).logs[PARTITION]) == added


def test_disk_that_fails_while_it_is_noted_as_full_takes_the_directory_offline() -> None:
    fs = SimFileSystem()
    directory = opened(fs, ballast_bytes=4096)
    fs.fault = (fs.calls_count, DiskFault.EIO)
    directory.note_error(PARTITION, DiskFull("write", "x", "full"))
    assert directory.offline is not None
    assert directory.offline.operation == "unlink"


def test_announced_epoch_is_on_the_disk_with_its_first_record() -> None:
    fs = SimFileSystem()
    directory = opened(fs)
    log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    path = f"{D}/{PARTITION}/leader-epoch-checkpoint"
    log.epochs.announce(LeaderEpoch(7), Offset(0))
    assert not fs.exists(path) or b"7 0" not in fs.read(path)
    fill(log, 1, epoch=7)
    assert b"7 0" in fs.read(path)


# -- the k-th call -------------------------------------------------------------------------------


def work(fs: SimFileSystem, acknowledged: list[bytes]) -> None:
    """A life of a node: start, create, append, flush, roll, truncate, checkpoint, stop."""
    directory = LogDirectory.open(fs, D)
    directory.load_logs(lambda _: SMALL, 1)
    log = directory.logs.get(PARTITION)
    if log is None:
        log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
    for _ in range(5):
        data = fill(log, 1)
        log.flush()
        acknowledged += data
    directory.checkpoint()
    directory.close(broker_epoch=1)


@pytest.mark.parametrize("fault", list(DiskFault))
def test_whichever_call_fails_nothing_acknowledged_is_lost(fault: DiskFault) -> None:
    counting = SimFileSystem()
    counting.make_directory("disk")
    work(counting, [])
    for number in range(counting.calls_count):
        fs = SimFileSystem()
        fs.make_directory("disk")
        fs.sync_directory("")
        fs.fault = (number, fault)
        acknowledged: list[bytes] = []
        ended = False
        with suppress(StorageError, FsyncFailed):
            work(fs, acknowledged)
            ended = True
        assert ended == (fs.failed_operation is None), (number, fs.failed_operation)
        after = SimFileSystem.from_image(fs.everything())
        directory = opened(after)
        found = contents(directory.logs[PARTITION]) if PARTITION in directory.logs else []
        assert found[: len(acknowledged)] == acknowledged, number
        assert not directory.damaged


def formatted() -> SimFileSystem:
    """An empty directory whose own name is durable, as `format` leaves it."""
    fs = SimFileSystem()
    fs.make_directory(D)
    return SimFileSystem.from_image(fs.everything())


class Killed(BaseException):
    """SIGKILL: nothing runs behind it."""


def killed_at(fs: SimFileSystem, number: int, doing: Callable[[], None]) -> None:
    """Do something until it begins the change of that number; what was written stays."""
    left = number

    def before_change() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    fs.before_change = before_change
    with suppress(Killed):
        doing()
    fs.before_change = None
    fs.release_locks()


def test_records_after_a_kill_at_any_change_and_a_restart_outlast_a_loss_of_power() -> None:
    counting = formatted()
    work(counting, [])
    for number in range(counting.changes_count):
        fs = formatted()
        acknowledged: list[bytes] = []
        killed_at(fs, number, partial(work, fs, acknowledged))
        directory = opened(fs)
        log = directory.logs.get(PARTITION)
        if log is None:
            log = directory.create_log(PARTITION, TOPIC_ID, SMALL, 1)
        found = contents(log)
        assert found[: len(acknowledged)] == acknowledged, number
        found += fill(log, 1)
        log.flush()
        after = opened(SimFileSystem.from_image(fs.image([])))
        assert PARTITION in after.logs, number
        assert contents(after.logs[PARTITION]) == found, number


def work_on_metadata(fs: SimFileSystem) -> None:
    """A life of a controller: votes, records, a snapshot, another vote."""
    directory = LogDirectory.open(fs, D)
    log = directory.open_metadata_log(SMALL, 1)
    for epoch in range(1, 4):
        write_quorum_state(fs, log.directory, ElectionState(LeaderEpoch(epoch), ReplicaId(2)), 1)
        fill(log, 3, epoch=epoch)
        log.flush()


def metadata_seen(fs: SimFileSystem) -> object:
    """What a start finds."""
    directory = LogDirectory.open(fs, D)
    log = directory.open_metadata_log(SMALL, 1)
    return contents(log), read_quorum_state(fs, log.directory)


def test_vote_and_metadata_seen_after_a_kill_at_any_change_outlast_a_loss_of_power() -> None:
    counting = formatted()
    work_on_metadata(counting)
    for number in range(counting.changes_count):
        fs = formatted()
        killed_at(fs, number, partial(work_on_metadata, fs))
        seen = metadata_seen(fs)
        assert metadata_seen(SimFileSystem.from_image(fs.image([]))) == seen, number


@pytest.mark.parametrize("has_reached", [False, True])
def test_start_after_any_failed_call_serves_only_what_outlasts_a_loss_of_power(
    has_reached: bool,
) -> None:
    """The same kernel serves the next process, with the pages that a failed fsync left clean."""
    counting = formatted()
    work(counting, [])
    for number in range(counting.calls_count):
        fs = formatted()
        fs.reached = lambda _: has_reached
        fs.fault = (number, DiskFault.EIO)
        acknowledged: list[bytes] = []
        with suppress(StorageError, FsyncFailed):
            work(fs, acknowledged)
        fs.fault = None
        fs.release_locks()
        directory = opened(fs)
        assert not directory.damaged
        found = contents(directory.logs[PARTITION]) if PARTITION in directory.logs else []
        assert found[: len(acknowledged)] == acknowledged, number
        after = opened(SimFileSystem.from_image(fs.image([])))
        kept = contents(after.logs[PARTITION]) if PARTITION in after.logs else []
        assert kept[: len(found)] == found, number
