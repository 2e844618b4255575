"""A graceful stop as Apache's broker leaves it: leader of nothing, and fenced."""

from kraft_wire.controller.image import NO_LEADER
from kraft_wire.node.metadata_log import MetadataLog
from kraft_wire.sim.files import SimFileSystem
from kraft_wire.storage.log_directory import LogDirectory
from tests.broker.groups.harness import WALL_MS
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.node.test_disk_errors import produced


def test_stopped_broker_is_fenced_leads_nothing_and_leads_again_after_a_start() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs)
    door.prepare("t", 3)
    epoch = door.node.broker.partitions["t", 0].leader_epoch
    door.node.begin_stop(door.now_ms)
    door.node.stop()
    directory = LogDirectory.open(fs, DIRECTORY)
    assert directory.was_clean
    image = MetadataLog(fs, directory, 1, WALL_MS).image
    broker = image.brokers[1]
    assert broker.fenced
    assert broker.in_controlled_shutdown
    topic = image.topic("t")
    assert topic is not None
    assert [each.leader for each in topic.partitions.values()] == [NO_LEADER] * 3
    directory.release()
    again = NodeDoor(fs, door.now_ms)
    assert all(each.is_leader for each in again.node.broker.partitions.values())
    assert again.node.broker.partitions["t", 0].leader_epoch > epoch
    assert not again.node.controller.image.brokers[1].fenced
    assert produced(again) == 0
