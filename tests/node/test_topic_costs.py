"""What creating and deleting a topic costs the disk, and that nothing acknowledged pays for it."""

import pytest

from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.groups.node_door import NodeDoor
from tests.node.test_disk_errors import created, deleted, produced


def test_syncs_do_not_grow_with_the_partitions_that_are_created_or_deleted() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs)
    costs = []
    for partitions in (10, 110):
        before = fs.syncs_count
        assert created(door, "t", partitions) == ErrorCode.NONE
        between = fs.syncs_count
        assert deleted(door, "t") == ErrorCode.NONE
        costs.append((between - before, fs.syncs_count - between))
    (few, few_deleted), (many, many_deleted) = costs
    assert many == few
    assert many_deleted == few_deleted


def test_partitions_of_a_topic_share_the_settings_that_are_looked_up_once() -> None:
    door = NodeDoor(SimFileSystem())
    assert created(door, "t", 3) == ErrorCode.NONE
    for life in (door, NodeDoor(door.fs.crashed(()), door.now_ms)):
        first, *others = (life.node.broker.partitions["t", each].log.config for each in range(3))
        assert all(each is first for each in others)


@pytest.mark.parametrize("appends", [1, 3])
def test_flushed_record_of_a_new_topic_survives_power_loss(appends: int) -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, log_flush_interval_messages="1")
    assert created(door, "t", 3) == ErrorCode.NONE
    for _ in range(appends):
        assert produced(door) == ErrorCode.NONE
    again = NodeDoor(fs.crashed(()), door.now_ms)
    assert again.lines == []
    partitions = again.node.broker.partitions
    assert partitions["t", 0].log_end_offset == appends
    assert not any(each.offline for each in partitions.values())
    assert partitions["t", 0].log.epochs.latest == 2, "nobody led, then this broker, as in Kafka"


def test_deleted_topic_stays_deleted_over_power_loss() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs, log_flush_interval_messages="1")
    assert created(door, "t", 3) == ErrorCode.NONE
    assert produced(door) == ErrorCode.NONE
    assert deleted(door, "t") == ErrorCode.NONE
    assert created(door, "t") == ErrorCode.NONE
    again = NodeDoor(fs.crashed(()), door.now_ms)
    assert again.node.broker.partitions["t", 0].log_end_offset == 0
    assert set(again.node.broker.partitions) == {("t", 0)}
    assert produced(again) == ErrorCode.NONE
