"""The periodic tasks of a node's disks: when each runs, and that one failure stops no other."""

import pytest

from kraft_wire.model import Offset, StorageError, TopicPartition
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.storage.directory.future_logs import create_future
from kraft_wire.storage.log_config import LogConfig
from tests.node.test_compaction import WALL_MS, Cleaning, write
from tests.storage.making import append, batch_bytes


@pytest.mark.parametrize(
    ("settings", "check_ms"),
    [
        ({"log.flush.scheduler.interval.ms": "100"}, 100),
        ({"log.flush.interval.ms": "70", "log.flush.scheduler.interval.ms": "100"}, 70),
        ({"log.flush.interval.ms": "70", "log.flush.scheduler.interval.ms": "50"}, 50),
        ({"log.flush.interval.ms": "70"}, 70),
        ({"log.flush.interval.ms": "10"}, 10),
        ({"log.flush.interval.ms": "9"}, 10),
        ({"log.flush.interval.ms": "0"}, 10),
        ({"log.flush.interval.ms": "-1"}, 10),
        ({"log.flush.scheduler.interval.ms": "0"}, 10),
        ({"log.flush.offset.checkpoint.interval.ms": "0"}, 10),
        ({"replica.high.watermark.checkpoint.interval.ms": "-1"}, 10),
    ],
)
def test_logs_are_looked_at_for_flushing_as_often_as_is_said(
    settings: dict[str, str], check_ms: int
) -> None:
    cleaning = Cleaning(**settings)
    assert cleaning.maintenance.deadline_ms() == check_ms
    cleaning.maintenance.tick(check_ms, WALL_MS)
    assert cleaning.maintenance.deadline_ms() == 2 * check_ms


def test_an_interval_that_is_changed_counts_from_the_last_run() -> None:
    cleaning = Cleaning(**{"log.flush.interval.ms": "400"})
    cleaning.maintenance.tick(400, WALL_MS)
    cleaning.maintenance.configure(NodeSettings({"log.flush.interval.ms": "300"}))
    assert cleaning.maintenance.deadline_ms() == 700
    cleaning.maintenance.configure(NodeSettings({"log.flush.interval.ms": "500"}))
    assert cleaning.maintenance.deadline_ms() == 900


def test_a_log_is_flushed_when_its_first_record_has_waited_long_enough() -> None:
    cleaning = Cleaning(**{"log.flush.scheduler.interval.ms": "10"})
    log = cleaning.log("t", config=LogConfig(flush_ms=100))
    data = batch_bytes(0)
    append(log, data)
    first = log.first_unflushed_ms
    assert first is not None
    cleaning.maintenance.tick(first + 99, WALL_MS)
    assert log.unflushed_records == 1
    cleaning.maintenance.tick(first + 109, WALL_MS)
    assert (log.unflushed_records, log.first_unflushed_ms) == (0, None)


@pytest.mark.parametrize("due", [(0,), (1,), (2,), (0, 2), (1, 2)])
def test_each_log_is_flushed_by_its_own_time_whatever_those_before_it_need(
    due: tuple[int, ...],
) -> None:
    cleaning = Cleaning(**{"log.flush.scheduler.interval.ms": "10"})
    logs = [
        cleaning.log(f"t{at}", config=LogConfig(flush_ms=1 if at in due else 1 << 40))
        for at in range(3)
    ]
    for log in (logs[0], logs[2]):
        append(log, batch_bytes(0))
    if 1 in due:
        append(logs[1], batch_bytes(0))
    cleaning.maintenance.tick(10_000, WALL_MS)
    flushed = [at for at, log in enumerate(logs) if log.recovery_point > 0]
    assert flushed == list(due)


@pytest.mark.parametrize("moving", range(3))
def test_retention_passes_over_a_replica_that_moves_and_no_other(moving: int) -> None:
    """KIP-113: as in Kafka, only the log that is being copied keeps its old segments."""
    cleaning = Cleaning(2)
    config = LogConfig(segment_bytes=300, retention_ms=1)
    logs = [cleaning.log(f"t{at}", config=config) for at in range(3)]
    for log in logs:
        write(log, 12)
        assert len(log.segments) > 1
    moved = logs[moving]
    create_future(cleaning.directories[1], moved.topic_partition, moved.topic_id, config, 1)
    cleaning.maintenance.tick(10_000_000, WALL_MS)
    kept = [at for at, log in enumerate(logs) if log.log_start_offset == 0]
    assert kept == [moving]


def test_segments_that_retention_removes_are_logged_with_the_new_start() -> None:
    """Of the other log nothing is old enough, and there is no line about it."""
    cleaning = Cleaning()
    config = LogConfig(segment_bytes=3 * len(batch_bytes(0)), retention_ms=1_000)
    log, kept = (cleaning.log(name, config=config) for name in ("t", "u"))
    write(kept, 12)
    for at, written_ms in enumerate([0] * 6 + [5_000] * 6):
        append(log, batch_bytes(at, timestamp=written_ms))
    log.update_high_watermark(log.log_end_offset)
    cleaning.maintenance.tick(10_000_000, 2_000)
    fields = {"partition": TopicPartition("t", 0), "count": 2, "log_start_offset": 6}
    assert cleaning.lines == [("segments_deleted", fields)]
    assert len(log.segments) == 2
    cleaning.maintenance.tick(20_000_000, 2_000)
    assert len(cleaning.lines) == 1


def test_a_log_that_expires_whole_is_logged_with_every_segment_that_went() -> None:
    """A new segment is made first, which is none of those."""
    cleaning = Cleaning()
    log = cleaning.log("t", config=LogConfig(retention_ms=1_000))
    append(log, batch_bytes(0, count=3, timestamp=0))
    log.update_high_watermark(log.log_end_offset)
    cleaning.maintenance.tick(10_000_000, 2_000)
    fields = {"partition": TopicPartition("t", 0), "count": 1, "log_start_offset": 3}
    assert cleaning.lines == [("segments_deleted", fields)]


def test_directories_that_are_offline_are_left_alone() -> None:
    cleaning = Cleaning(directories=2, **{"log.flush.scheduler.interval.ms": "10"})
    logs = [cleaning.log(f"t{at}", at, LogConfig(flush_ms=1)) for at in range(2)]
    for log in logs:
        append(log, batch_bytes(0))
    cleaning.directories[0].offline = StorageError("write", "d0", "gone")
    cleaning.maintenance.tick(10, WALL_MS)
    assert [log.unflushed_records for log in logs] == [1, 0]


def test_producers_that_were_idle_for_too_long_are_forgotten() -> None:
    cleaning = Cleaning()
    log = cleaning.log("t")
    append(log, batch_bytes(0, producer_id=7, sequence=0, timestamp=1_000))
    cleaning.maintenance.tick(10_000_000, 1_000 + 86_400_000 - 1)
    assert log.producer_states.get(7) is not None
    cleaning.maintenance.tick(20_000_000, 1_000 + 86_400_000)
    assert log.producer_states.get(7) is None
    assert log.log_end_offset == Offset(1)
