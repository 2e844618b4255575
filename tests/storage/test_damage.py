"""What an operator sees of damage, what cutting does, and that no byte is lost by it."""

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch, TopicPartition
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION, LogDirectory
from kraft_wire.storage.files import replace_file
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.damage import Damage, inspect, partitions_of
from kraft_wire.storage.recovery.repair import cut
from kraft_wire.storage.snapshots.metadata_snapshot import SnapshotWriter
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.storage.making import (
    DIRECTORY,
    PARTITION,
    append,
    batch_bytes,
    contents,
    cut_all,
    fill,
    flip,
    open_at,
)

DISK = "disk"
SMALL = LogConfig(segment_bytes=500, index_interval_bytes=100)
LOG = f"{DIRECTORY}/{0:020d}.log"
METADATA = f"{DISK}/{METADATA_PARTITION}"


def disk_with(count: int, config: LogConfig | None = None) -> tuple[SimFileSystem, list[bytes]]:
    """A disk that a process left behind when it was killed."""
    fs = SimFileSystem()
    return fs, fill(open_at(fs, config), count)


def cut_files(fs: SimFileSystem) -> dict[str, bytes]:
    """The side files of the log, by name."""
    names = [name for name in fs.names(DIRECTORY) if name.endswith(".cut")]
    return {name: fs.read(f"{DIRECTORY}/{name}") for name in names}


def the_damage(fs: SimFileSystem, partition: TopicPartition | None = PARTITION) -> Damage:
    """The one thing that is wrong; looking must not change anything."""
    before = fs.everything()
    (damage,) = inspect(fs, DISK, partition)
    assert fs.everything() == before
    return damage


def test_whole_logs_and_torn_tails_are_no_damage() -> None:
    fs, added = disk_with(9, SMALL)
    assert inspect(fs, DISK, PARTITION) == []
    assert inspect(fs, DISK, None) == []
    file = fs.open(LOG)
    file.truncate(len(added[0]) + 7)
    for name in fs.names(DIRECTORY):
        if name > f"{0:020d}.z" and name.endswith(".log"):
            fs.unlink(f"{DIRECTORY}/{name}")
    assert inspect(fs, DISK, PARTITION) == []


def test_damage_tells_what_would_be_cut_and_cutting_keeps_it() -> None:
    fs, added = disk_with(6)
    sizes = list(map(len, added))
    position = sum(sizes[:2])
    flip(fs, LOG, position + 70)
    flip(fs, LOG, sum(sizes[:4]) + 70)
    behind = fs.read(LOG)[position:]
    damage = the_damage(fs)
    assert (damage.position, damage.first_offset, damage.last_offset) == (position, 2, 5)
    assert (damage.cut_bytes, damage.readable_batches) == (sum(sizes[2:]), 2)
    assert "a valid batch follows" in damage.reason
    assert cut_all(fs) == [damage]
    assert cut_files(fs) == {f"{0:020d}.{position}.cut": behind}
    log = open_at(fs)
    assert contents(log) == added[:2]
    fill(log, 1)
    assert open_at(fs).log_end_offset == 3


def test_cutting_across_segments_keeps_each_whole() -> None:
    fs, added = disk_with(16, SMALL)
    bases = [segment.base_offset for segment in open_at(fs, SMALL).segments]
    assert len(bases) >= 4
    second = f"{DIRECTORY}/{bases[1]:020d}.log"
    flip(fs, second, 70)  # the first batch of the segment
    whole = {f"{base:020d}.0.cut": fs.read(f"{DIRECTORY}/{base:020d}.log") for base in bases[1:]}
    cut_all(fs)
    assert cut_files(fs) == whole
    log = open_at(fs, SMALL)
    assert contents(log) == added[: bases[1]]
    assert len(log.segments) == 1
    assert inspect(fs, DISK, PARTITION) == []


def test_damage_at_the_very_beginning_leaves_an_empty_log_at_its_offset() -> None:
    fs = SimFileSystem()
    log = open_at(fs, log_start_offset=40)
    fill(log, 3)
    path = log.active_segment.path
    flip(fs, path, 70)
    damage = the_damage(fs)
    assert (damage.position, damage.first_offset) == (0, 40)
    cut_all(fs)
    assert open_at(fs).log_end_offset == 40


def test_two_cuts_at_one_place_keep_both() -> None:
    fs, added = disk_with(3)
    flip(fs, LOG, 70)
    cut_all(fs)
    fill(open_at(fs), 3)
    flip(fs, LOG, 70)
    cut_all(fs)
    assert list(cut_files(fs)) == [f"{0:020d}.0.2.cut", f"{0:020d}.0.cut"]
    assert sum(map(len, cut_files(fs).values())) == 2 * sum(map(len, added))


def test_log_that_is_shorter_than_it_was_durable_is_accepted_on_demand() -> None:
    fs, added = disk_with(3)
    replace_file(fs, f"{DISK}/recovery-point-offset-checkpoint", b"0\n1\nt 0 3\n")
    fs.open(LOG).truncate(len(added[0]))
    damage = the_damage(fs)
    assert "ends at 1; offsets below 3 were durable" in damage.reason
    assert cut(fs, DISK, damage) == []
    assert inspect(fs, DISK, PARTITION) == []
    replace_file(fs, f"{DISK}/recovery-point-offset-checkpoint", b"0\n1\nt 0 3\n")
    fs.unlink(LOG)
    assert the_damage(fs).first_offset == 0
    cut_all(fs)
    assert open_at(fs).log_end_offset == 0


def test_unreadable_recovery_points_demand_nothing() -> None:
    fs, _ = disk_with(3)
    replace_file(fs, f"{DISK}/recovery-point-offset-checkpoint", b"?")
    assert inspect(fs, DISK, PARTITION) == []
    flip(fs, LOG, 70)
    cut_all(fs)
    assert open_at(fs).log_end_offset == 0


@pytest.mark.parametrize("checkpoint", [b"0\n1\nt 0 0\n", b"?"])
def test_gaps_are_damage_only_where_nothing_was_compacted(checkpoint: bytes) -> None:
    fs, _ = disk_with(2)
    append(open_at(fs), batch_bytes(7))
    copied = "; no damage if the log was copied from one that was compacted"
    assert the_damage(fs).reason == "base offset is 7, expected 2" + copied
    replace_file(fs, f"{DISK}/cleaner-offset-checkpoint", checkpoint)
    assert inspect(fs, DISK, PARTITION) == []


def test_gap_before_other_damage_is_not_excused() -> None:
    fs, _ = disk_with(2)
    log = open_at(fs)
    append(log, batch_bytes(7))
    append(log, batch_bytes(8))
    flip(fs, LOG, log.active_segment.size_bytes - 1)
    assert the_damage(fs).reason == "base offset is 7, expected 2"


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_gaps_are_no_damage_in_topics_that_are_always_compacted(topic: str) -> None:
    """A follower of Apache Kafka copies its leader's gaps, and notes only its own compactions."""
    fs, _ = disk_with(2)
    append(open_at(fs), batch_bytes(7))
    partition = TopicPartition(topic, 49)
    fs.rename(DIRECTORY, f"{DISK}/{partition}")
    assert inspect(fs, DISK, partition) == []


@pytest.mark.parametrize("content", [b"?", b"0\n1\n5 0\n"])
def test_epoch_checkpoint_is_blamed_where_it_alone_is_wrong(content: bytes) -> None:
    fs, added = disk_with(3)
    replace_file(fs, f"{DIRECTORY}/leader-epoch-checkpoint", content)
    damage = the_damage(fs)
    assert damage.path.endswith("/leader-epoch-checkpoint")
    assert damage.cut_bytes == 0
    cut_all(fs)
    log = open_at(fs)
    assert contents(log) == added
    assert log.epochs.entries == [(0, 0)]
    assert fs.read(f"{DIRECTORY}/leader-epoch-checkpoint.0.cut") == content


def test_damaged_topic_id_and_compacted_segment_are_set_aside() -> None:
    fs, added = disk_with(3)
    replace_file(fs, f"{DIRECTORY}/partition.metadata", b"?")
    replace_file(fs, f"{DIRECTORY}/{0:020d}.log.swap", added[0] + added[1][:-1])
    found = cut_all(fs)
    assert [damage.path.rpartition("/")[2] for damage in found] == [
        f"{0:020d}.log.swap",
        "partition.metadata",
    ]
    assert inspect(fs, DISK, PARTITION) == []
    assert contents(open_at(fs)) == added
    replace_file(fs, f"{DIRECTORY}/{0:020d}.log.swap", added[0])
    assert inspect(fs, DISK, PARTITION) == []


def test_shared_checkpoint_is_set_aside() -> None:
    fs, _ = disk_with(1)
    replace_file(fs, f"{DISK}/log-start-offset-checkpoint", b"?")
    assert cut(fs, DISK, the_damage(fs, None)) == [f"{DISK}/log-start-offset-checkpoint.0.cut"]
    LogDirectory.open(fs, DISK).release()


def metadata_disk(*snapshots: int) -> SimFileSystem:
    """A metadata log of four batches with snapshots at these offsets."""
    fs = SimFileSystem()
    directory = LogDirectory.open(fs, DISK)
    log = directory.open_metadata_log(LogConfig(), 1)
    fill(log, 4)
    log.flush()
    directory.release()
    for offset in snapshots:
        writer = SnapshotWriter(fs, METADATA, OffsetAndEpoch(Offset(offset), LeaderEpoch(0)), 1)
        for data in snapshot_batches():
            writer.append(data)
        writer.freeze()
    return fs


def snapshot_batches() -> list[bytes]:
    """A header and a footer."""
    return [
        bytes(
            build_batch(
                [Record(bytes([0, 0, 0, kind]), b"\x00\x00\x00", timestamp=1)],
                base_offset=at,
                partition_leader_epoch=0,
                is_control=True,
            )
        )
        for at, kind in enumerate((3, 4))
    ]


def test_metadata_log_is_cut_like_any_other() -> None:
    fs = metadata_disk()
    assert partitions_of(fs, DISK) == [METADATA_PARTITION]
    flip(fs, f"{METADATA}/{0:020d}.log", 70)
    damage = the_damage(fs, METADATA_PARTITION)
    assert (damage.first_offset, damage.last_offset, damage.readable_batches) == (0, 3, 3)
    cut(fs, DISK, damage)
    assert inspect(fs, DISK, METADATA_PARTITION) == []
    directory = LogDirectory.open(fs, DISK)
    assert directory.open_metadata_log(LogConfig(), 1).log_end_offset == 0


@pytest.mark.parametrize("snapshots", [(2,), (1, 2)])
def test_damaged_snapshot_is_set_aside_where_the_log_is_whole(snapshots: tuple[int, ...]) -> None:
    fs = metadata_disk(*snapshots)
    assert inspect(fs, DISK, METADATA_PARTITION) == []
    path = f"{METADATA}/{2:020d}-{0:010d}.checkpoint"
    flip_read_only(fs, path)
    damage = the_damage(fs, METADATA_PARTITION)
    assert damage.path == path
    assert damage.can_be_cut
    cut(fs, DISK, damage)
    assert inspect(fs, DISK, METADATA_PARTITION) == []


@pytest.mark.parametrize(("snapshots", "is_enough"), [((2,), False), ((1, 2), True)])
def test_log_from_offset_1_on_replaces_a_snapshot_only_behind_an_older_one(
    snapshots: tuple[int, ...], is_enough: bool
) -> None:
    """Nothing else says what the record before its first was."""
    fs = metadata_disk(*snapshots)
    data = fs.read(f"{METADATA}/{0:020d}.log")
    first = next(iter(parse_batches(bytearray(data))))
    replace_file(fs, f"{METADATA}/{1:020d}.log", data[first.size_bytes :])
    fs.unlink(f"{METADATA}/{0:020d}.log")
    flip_read_only(fs, f"{METADATA}/{2:020d}-{0:010d}.checkpoint")
    found = [each for each in inspect(fs, DISK, METADATA_PARTITION) if "checkpoint" in each.path]
    assert [each.can_be_cut for each in found] == [is_enough]


def flip_read_only(fs: SimFileSystem, path: str) -> None:
    """Damage a frozen file: its mode stops nobody at rest."""
    image = fs.read(path)
    fs.unlink(path)
    replace_file(fs, path, image[:30] + bytes([image[30] ^ 1]) + image[31:])


def test_snapshot_that_the_log_cannot_replace_and_votes_are_not_cut() -> None:
    fs = metadata_disk(2)
    flip_read_only(fs, f"{METADATA}/{2:020d}-{0:010d}.checkpoint")
    fs.unlink(f"{METADATA}/{0:020d}.log")
    replace_file(fs, f"{METADATA}/quorum-state", b"?")
    found = inspect(fs, DISK, METADATA_PARTITION)
    assert [damage.can_be_cut for damage in found] == [False, False]
