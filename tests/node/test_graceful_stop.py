"""A graceful stop as Apache's broker leaves it: leader of nothing, and fenced."""

from kraft_wire.metadata.image import NO_LEADER, MetadataImage
from kraft_wire.node.outputs import FlushLogs, StopProcess
from kraft_wire.node.quorum.committed import CommittedMetadata
from kraft_wire.node.quorum.metadata_opening import open_metadata_log
from kraft_wire.raft.events import TimerFired
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import LogDirectory
from tests.broker.groups.harness import WALL_MS
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.node.test_disk_errors import produced


def image_of_all(fs: SimFileSystem, directory: LogDirectory) -> MetadataImage:
    """The image of a quorum of one, of whose log everything is committed."""
    log = open_metadata_log(fs, directory, NodeSettings(), None, WALL_MS).log
    committed = CommittedMetadata(log)
    committed.advance(log.log_end_offset)
    return committed.image


def test_stopped_broker_is_fenced_leads_nothing_and_leads_again_after_a_start() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs)
    door.prepare("t", 3)
    epoch = door.node.broker.partitions["t", 0].leader_epoch
    door.node.begin_stop(door.now_ms, door.wall_ms)
    door.stop()
    directory = LogDirectory.open(fs, DIRECTORY)
    assert directory.was_clean
    image = image_of_all(fs, directory)
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


def test_stop_after_the_replica_has_seen_a_later_time_than_the_controller_says_farewell() -> None:
    """A peer's request steps the replica only; the farewell is appended at the stop's own time."""
    door = NodeDoor(SimFileSystem())
    later_ms = door.now_ms + 1_000
    door.node.raft.take(TimerFired(), later_ms, door.wall_ms)
    door.node.begin_stop(later_ms, door.wall_ms)
    door.node.stop(later_ms, door.wall_ms)
    assert door.node.raft.committed.image.brokers[1].fenced


def test_a_lone_node_that_stops_is_done_within_the_calls_that_its_flushes_take() -> None:
    """No clock has to move on for it."""
    door = NodeDoor(SimFileSystem())
    door.prepare("t", 3)
    left: list[object] = []
    door.node.begin_stop(door.now_ms, door.wall_ms)
    for _ in range(10):
        outputs, door.node.outputs = door.node.outputs, []
        left += [each for each in outputs if isinstance(each, StopProcess)]
        for order in outputs:
            if isinstance(order, FlushLogs):
                assert order.run() is None
                door.node.flushed(order.flush_id, door.now_ms, door.wall_ms)
    assert left == [StopProcess(None)]
    assert not door.node.serves_clients
