"""Whom a flush that took a while speaks of, and what a full disk leaves to flush."""

import pytest

from kraft_wire.model import DiskFull
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.log import Log
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.replication.leading import Leading
from tests.broker.small_broker import partition_image


def test_a_flush_of_a_deleted_log_commits_nothing_in_the_one_that_was_made_again() -> None:
    """Whoever produced to the new topic would be told of records that only the page cache has."""
    alone = partition_image(0)
    leading = Leading(alone, config={"flush.messages": "1"})
    leading.produce(3)
    order = leading.flushing.begin(iter([1]))
    assert order is not None
    leading.partitions = {}
    leading.publish()
    leading.logs.fs = SimFileSystem()
    leading.partitions = {0: alone}
    leading.publish()
    waiting = leading.produce(2)
    for pending in order.targets:
        pending.run()
    ends = leading.flushing.completed(1)
    leading.broker.replicas.flushed(ends, leading.now_ms)
    assert (leading.high_watermark, waiting.is_parked) == (0, True)
    assert ends == {}
    leading.flush()
    assert leading.high_watermark == 2
    assert (waiting.produced.error_code, waiting.produced.base_offset) == (ErrorCode.NONE, 0)


def test_a_log_that_is_deleted_before_its_directory_is_synced_does_not_end_the_process() -> None:
    """Another thread flushes while the topic is deleted (KAFKA-15391)."""
    leading = Leading(partition_image(0), config={"flush.messages": "1", "segment.bytes": "150"})
    leading.produce(3)
    leading.produce(3)  # into a new segment, whose name is not durable yet
    order = leading.flushing.begin(iter([1]))
    assert order is not None
    (log,) = leading.logs.logs.values()
    leading.logs.fs.rename(log.directory, f"{log.directory}-delete")
    leading.partitions = {}
    leading.publish()
    assert order.run() is None
    assert leading.flushing.completed(1) == {}


def test_a_log_whose_indexes_find_no_room_is_flushed_another_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A flush saves the indexes of sealed segments, for which a full disk may have no room."""
    leading = Leading(partition_image(0), config={"flush.messages": "1"})
    waiting = leading.produce(3)
    with monkeypatch.context() as full:

        def begin_flush(_: Log) -> None:
            raise DiskFull("write", "0.index", "no space left on device")

        full.setattr(Log, "begin_flush", begin_flush)
        assert leading.flushing.begin(iter([1])) is None
    assert waiting.is_parked
    leading.flush()
    assert (waiting.produced.error_code, leading.high_watermark) == (ErrorCode.NONE, 3)
