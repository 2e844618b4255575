"""The copy of a replica follows its log through truncations, restarts and leader epochs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.replication.replica_copy import ReplicaCopy
from kraft_wire.model import LeaderEpoch, Offset, StorageError
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from tests.storage.making import TOPIC_ID, append, batch_bytes, contents, open_at

SMALL = LogConfig(segment_bytes=300)


class Pair:
    """A log of batches of two records, and its copy in another directory."""

    def __init__(self) -> None:
        self.fs = SimFileSystem()
        self.log = open_at(self.fs, SMALL, directory="disk/a/t-0")
        self.twin = open_at(self.fs, SMALL, directory="disk/b/t-0")
        self.errors: list[StorageError] = []
        self.partition, copy = (
            Partition("t", TOPIC_ID, 0, log, LeaderEpoch(0)) for log in (self.log, self.twin)
        )
        copy.failed = self.errors.append
        self.replica = ReplicaCopy(self.partition, copy)

    def write(self, batches: int, epoch: int = 0) -> None:
        self.partition.leader_epoch = LeaderEpoch(epoch)
        for _ in range(batches):
            append(self.log, batch_bytes(self.log.log_end_offset, count=2, epoch=epoch))

    def catch_up(self) -> int:
        """Read until the ends are equal; return the number of reads."""
        for reads in range(100):
            if self.replica.has_equal_end:
                return reads
            assert self.replica.follow(200, 1, 1) is not None, (self.log, self.twin)
        raise AssertionError("it never came to be")

    def is_copied(self) -> bool:
        """The copy has the log's records, and may have older ones below the log's start."""
        log, twin = self.log, self.twin
        count, epochs = len(contents(log)), len(log.epochs.entries)
        return (
            contents(twin)[-count:] == contents(log)
            and twin.epochs.entries[-epochs:] == log.epochs.entries
            and twin.log_start_offset == log.log_start_offset
        )


def truncate(pair: Pair) -> None:
    pair.log.truncate_to(Offset(6))


def truncate_and_write_as_much(pair: Pair) -> None:
    """The ends are equal again, but the records are those of another leader."""
    pair.log.truncate_to(Offset(6))
    pair.write(7, epoch=2)


def truncate_to_nothing(pair: Pair) -> None:
    pair.log.truncate_to(Offset(0))
    pair.write(1, epoch=2)


def restart_behind_the_end(pair: Pair) -> None:
    pair.log.truncate_fully_and_start_at(Offset(500))
    append(pair.log, batch_bytes(500, epoch=1))


def restart_within(pair: Pair) -> None:
    pair.log.truncate_fully_and_start_at(Offset(10))
    pair.write(1, epoch=4)


@pytest.mark.parametrize(
    "change",
    [
        truncate,
        truncate_and_write_as_much,
        truncate_to_nothing,
        restart_behind_the_end,
        restart_within,
    ],
)
def test_copy_follows_whatever_happens_to_the_log(change: Callable[[Pair], None]) -> None:
    pair = Pair()
    pair.write(5)
    pair.write(5, epoch=1)
    assert pair.catch_up() > 1
    assert pair.is_copied()
    change(pair)
    assert not pair.replica.has_equal_end
    pair.catch_up()
    assert pair.is_copied()
    pair.write(2, epoch=5)
    pair.catch_up()
    assert pair.is_copied()


def test_copy_begins_at_the_start_of_the_log_and_follows_its_bounds() -> None:
    pair = Pair()
    pair.write(9)
    pair.log.update_high_watermark(Offset(16))
    pair.log.advance_log_start_offset(Offset(7))
    pair.log.remove_first_segments(1)
    pair.catch_up()
    log, twin = pair.log, pair.twin
    assert (twin.log_start_offset, twin.high_watermark) == (7, 16)
    assert contents(twin) == [each for each in contents(log) if each in contents(twin)]
    assert twin.segments[0].base_offset == 6, "the batch that has the start"
    log.advance_log_start_offset(Offset(11))
    pair.write(1)
    pair.catch_up()
    assert twin.log_start_offset == 11


def restarted_lower(count: int = 2, epoch: int = 4) -> Pair:
    """A log that began again, at an offset below the start of its copy."""
    pair = Pair()
    pair.write(9)
    pair.log.update_high_watermark(Offset(16))
    pair.log.advance_log_start_offset(Offset(12))
    pair.catch_up()
    assert pair.twin.log_start_offset == 12
    pair.log.truncate_fully_and_start_at(Offset(3))
    pair.write(count, epoch=epoch)
    return pair


@pytest.mark.parametrize("count", [2, 6, 20])
@pytest.mark.parametrize("epoch", [0, 4])
def test_copy_begins_again_where_the_log_began_again_below_its_start(
    count: int, epoch: int
) -> None:
    """Also where the log ends within the copy, or behind it."""
    pair = restarted_lower(count, epoch)
    pair.catch_up()
    assert (pair.twin.log_start_offset, pair.twin.log_end_offset) == (3, 3 + 2 * count)
    assert contents(pair.twin) == contents(pair.log)
    assert pair.twin.epochs.entries == pair.log.epochs.entries


def test_disk_that_does_not_let_the_copy_begin_again_is_the_copy_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = restarted_lower()
    error = StorageError("open", "disk/b/t-0", "EIO")

    def refuse(log: Log, offset: Offset) -> None:
        raise error

    monkeypatch.setattr(Log, "truncate_fully_and_start_at", refuse)
    assert pair.replica.follow(200, 1, 1) is None
    assert pair.errors == [error]
    assert pair.twin.log_start_offset == 12


def test_longer_copy_of_a_log_that_lost_its_end_is_cut() -> None:
    """A power failure takes unflushed records of the log that the copy has flushed."""
    pair = Pair()
    pair.write(4)
    for _ in range(2):
        append(pair.twin, batch_bytes(pair.twin.log_end_offset, count=2))
    pair.catch_up()
    append(pair.twin, batch_bytes(8, epoch=7))
    assert not pair.replica.has_equal_end
    pair.catch_up()
    assert pair.is_copied()


def test_disk_of_the_copy_is_blamed_for_its_own_errors_only() -> None:
    pair = Pair()
    pair.write(3)
    pair.log.flush()
    pair.fs.fault = (pair.fs.calls_count + 1, DiskFault.EIO)
    found: list[StorageError] = []
    try:
        pair.replica.follow(200, 1, 1)
    except StorageError as error:
        found.append(error)
    assert [each.path.startswith("disk/a") for each in found] == [True] * len(found)
    assert [each.path.startswith("disk/b") for each in pair.errors] == [True] * len(pair.errors)
    assert len(found) + len(pair.errors) == 1


def test_unflushed_part_of_a_copy_stays_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.broker.replication.replica_copy._FLUSH_BYTES", 400)
    pair = Pair()
    pair.write(9)
    most = 0
    while not pair.replica.has_equal_end:
        pair.replica.follow(200, 1, 1)
        pair.replica.flush_at_times()
        most = max(most, pair.twin.unflushed_records)
    assert most < pair.twin.log_end_offset // 2
    assert isinstance(pair.twin, Log)


def test_copy_is_flushed_from_32_mebibytes_on() -> None:
    pair = Pair()
    pair.write(1)
    pair.catch_up()
    for unflushed_bytes, expected in (((32 << 20) - 1, 2), (32 << 20, 0)):
        pair.replica._unflushed_bytes = unflushed_bytes
        pair.replica.flush_at_times()
        assert pair.twin.unflushed_records == expected
    assert pair.replica._unflushed_bytes == 0
