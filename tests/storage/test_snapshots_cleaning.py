"""Which snapshots and segments of the metadata log may go."""

import pytest

from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.settings.broker import BROKER_KEYS
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION, LogDirectory
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.snapshots.cleaning import SnapshotRetention, clean
from kraft_wire.storage.snapshots.contents import SnapshotHead
from kraft_wire.storage.snapshots.store import MetadataSnapshots, open_snapshots
from tests.storage.making import take_snapshot

from .making import append, batch_bytes

D = f"disk/{METADATA_PARTITION}"
NO_LIMIT = SnapshotRetention(bytes_max=-1, age_max_ms=-1)


def at(offset: int, epoch: int = 1) -> OffsetAndEpoch:
    return OffsetAndEpoch(Offset(offset), LeaderEpoch(epoch))


def test_limits_are_those_of_the_keys() -> None:
    limits = SnapshotRetention()
    assert limits.bytes_max == BROKER_KEYS["metadata.max.retention.bytes"].default
    assert limits.age_max_ms == BROKER_KEYS["metadata.max.retention.ms"].default


def log_of(fs: SimFileSystem, batches: int, *, count: int = 1, epoch: int = 1) -> Log:
    """A committed log of batches of about 300 bytes, some four to a segment."""
    config = LogConfig(segment_bytes=1300, retention_ms=-1, retention_bytes=-1)
    log = LogDirectory.open(fs, "disk").open_metadata_log(config, 1)
    for _ in range(batches):
        size = 220 // count
        append(log, batch_bytes(log.log_end_offset, epoch=epoch, key=None, size=size, count=count))
    log.flush()
    log.update_high_watermark(log.log_end_offset)
    return log


def taken(log: Log, *offsets: int, size: int = 400) -> tuple[SimFileSystem, MetadataSnapshots]:
    """Snapshots at these offsets; the one at offset n contains records up to the time 1000 * n."""
    fs = log._fs
    assert isinstance(fs, SimFileSystem)
    snapshots = open_snapshots(fs, log)
    for offset in offsets:
        take_snapshot(snapshots, at(offset), SnapshotHead(1000 * offset, 1), [bytes([1]) * size])
    return fs, snapshots


def total(log: Log, snapshots: MetadataSnapshots) -> int:
    return log.size_bytes + sum(snapshots.size_bytes(known) or 0 for known in snapshots.ids)


def test_oldest_snapshot_and_the_segments_below_the_next_go_when_the_size_passes_the_limit() -> (
    None
):
    log = log_of(SimFileSystem(), 20)
    fs, snapshots = taken(log, 5, 10, 15)
    limit = total(log, snapshots) - 1
    retired = clean(log, snapshots, SnapshotRetention(bytes_max=limit, age_max_ms=-1), 1)
    assert [path.rpartition("/")[2] for path in retired] == [
        "00000000000000000005-0000000001.checkpoint.deleted"
    ]
    assert snapshots.ids == [at(10), at(15)]
    assert log.log_start_offset == 10
    assert log.segments[0].base_offset <= 10 < log.segments[1].base_offset
    assert total(log, snapshots) <= limit
    assert all(path in [f"{D}/{name}" for name in fs.names(D)] for path in retired)


def test_cleaning_by_size_stops_at_the_newest_snapshot() -> None:
    log = log_of(SimFileSystem(), 20)
    _, snapshots = taken(log, 5, 10, 15)
    assert len(clean(log, snapshots, SnapshotRetention(bytes_max=0, age_max_ms=-1), 1)) == 2
    assert snapshots.ids == [at(15)]
    assert log.log_start_offset == 15
    assert clean(log, snapshots, SnapshotRetention(bytes_max=0, age_max_ms=-1), 1) == []


@pytest.mark.parametrize(
    ("wall_ms", "left"), [(15_000, 3), (15_001, 2), (20_001, 1), (1_000_000, 1)]
)
def test_snapshots_older_than_the_limit_go_but_never_the_newest(wall_ms: int, left: int) -> None:
    log = log_of(SimFileSystem(), 20)
    _, snapshots = taken(log, 5, 10, 15)
    retention = SnapshotRetention(bytes_max=-1, age_max_ms=10_000)
    assert len(clean(log, snapshots, retention, wall_ms)) == 3 - left
    assert len(snapshots.ids) == left
    assert log.log_start_offset == (0 if left == 3 else snapshots.ids[0].offset)


def test_size_rule_is_asked_before_the_time_rule_and_both_count() -> None:
    log = log_of(SimFileSystem(), 20)
    _, snapshots = taken(log, 5, 10, 15)
    by_size_one = SnapshotRetention(bytes_max=total(log, snapshots) - 1, age_max_ms=10_000)
    assert len(clean(log, snapshots, by_size_one, 20_001)) == 2


def test_limits_that_are_off_keep_everything() -> None:
    log = log_of(SimFileSystem(), 20)
    _, snapshots = taken(log, 5, 10, 15)
    assert clean(log, snapshots, NO_LIMIT, 10**12) == []
    assert len(snapshots.ids) == 3


def test_single_snapshot_and_its_log_stay() -> None:
    log = log_of(SimFileSystem(), 20)
    _, snapshots = taken(log, 5)
    assert clean(log, snapshots, SnapshotRetention(0, 0), 10**12) == []
    assert log.log_start_offset == 0


@pytest.mark.parametrize(("high_watermark", "start"), [(9, 0), (10, 10), (14, 10), (15, 15)])
def test_log_is_cut_at_a_snapshot_whose_records_are_all_committed(
    high_watermark: int, start: int
) -> None:
    """A snapshot's end is exclusive: at the high watermark it holds committed records alone."""
    log = log_of(SimFileSystem(), 20)
    _, snapshots = taken(log, 5, 10, 15)
    log.high_watermark = Offset(high_watermark)
    clean(log, snapshots, SnapshotRetention(0, -1), 1)
    assert log.log_start_offset == start


def test_log_is_not_cut_at_a_snapshot_beyond_the_high_watermark() -> None:
    log = log_of(SimFileSystem(), 20)
    _, snapshots = taken(log, 5, 10, 15)
    log.high_watermark = Offset(12)
    assert len(clean(log, snapshots, SnapshotRetention(0, -1), 1)) == 1
    assert log.log_start_offset == 10


def test_log_always_reaches_down_to_a_complete_snapshot() -> None:
    log = log_of(SimFileSystem(), 40)
    fs, snapshots = taken(log, 5, 15, 25, 35)
    clean(log, snapshots, SnapshotRetention(bytes_max=6_000, age_max_ms=-1), 1)
    assert snapshots.earliest_id is not None
    assert log.log_start_offset == snapshots.earliest_id.offset
    again = LogDirectory.open(SimFileSystem.from_image(fs.everything()), "disk")
    reopened = again.open_metadata_log(LogConfig(), 1)
    assert open_snapshots(again._fs, reopened).ids == snapshots.ids
