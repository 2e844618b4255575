"""A topic with `internal.segment.bytes`, as Kafka Streams' own tests create them (4.3.1)."""

from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tests.broker.groups.node_door import DIRECTORY, NodeDoor
from tests.node.test_disk_errors import produced


def segments(fs: SimFileSystem) -> int:
    return sum(name.endswith(".log") for name in fs.names(f"{DIRECTORY}/t-0"))


def test_records_are_in_small_segments_and_retention_removes_those_of_deleted_records() -> None:
    fs = SimFileSystem()
    door = NodeDoor(fs)
    config = CreatableTopicConfig(name="internal.segment.bytes", value="2000")
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=[config])
    assert door.send(CreateTopicsRequest(topics=[topic]), 7).response.topics[0].error_code == 0
    for _ in range(6):
        assert produced(door, "t", size_bytes=900) == 0
    assert segments(fs) == 3
    gone = DeleteRecordsPartition(partition_index=0, offset=6)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="t", partitions=[gone])], timeout_ms=1_000
    )
    assert door.send(request, 2).response.topics[0].partitions[0].low_watermark == 6
    door.advance(300_000)  # log.retention.check.interval.ms
    assert segments(fs) == 1
