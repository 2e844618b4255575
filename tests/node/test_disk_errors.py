"""What a whole node does when its disk is full or fails, on the simulated disk in virtual time."""

import struct

import pytest

from kraft_wire.model import DiskFull, FsyncFailed, StorageError, TopicPartition
from kraft_wire.node.event_log import Line
from kraft_wire.sim.disk.files import DiskFault, SimFileSystem
from kraft_wire.storage.files import File
from kraft_wire.storage.log import Log
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.describe_log_dirs import DescribeLogDirsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import CHECKED_FROM, HEADER_BYTES
from tests.broker.groups.harness import WALL_MS
from tests.broker.groups.node_door import DIRECTORY, NodeDoor

_CRC_AT = 17
MEBIBYTE = 1 << 20
BALLAST = str(MEBIBYTE)
OTHER = "/more"
TWO_DIRECTORIES = f"{DIRECTORY},{OTHER}"
"""The metadata log is in the first; replicas go where the fewest are, the first one there too."""
FAILED = ErrorCode.KAFKA_STORAGE_ERROR


def produced(
    door: NodeDoor, topic: str = "t", size_bytes: int = 10, key: bytes | None = None
) -> int:
    batch = bytes(build_batch([Record(key, bytes(size_bytes), timestamp=WALL_MS)]))
    data = PartitionProduceData(index=0, records=batch)
    parts = [TopicProduceData(name=topic, partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=parts)
    answer = door.send(request, 9).response.responses[0].partition_responses[0]
    return int(answer.error_code)


def fetched(door: NodeDoor, topic: str = "t") -> int:
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=0)
    parts = [FetchTopic(topic=topic, partitions=[wanted])]
    request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=0, topics=parts)
    return int(door.send(request, 11).response.responses[0].partitions[0].error_code)


def created(door: NodeDoor, topic: str, partitions: int = 1) -> int:
    wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    answer = door.send(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7).response
    return int(answer.topics[0].error_code)


def deleted(door: NodeDoor, topic: str) -> int:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=1)
    return int(door.send(request, 6).response.responses[0].error_code)


def names(door: NodeDoor) -> list[str]:
    return [name for name, _ in door.lines]


def fill(fs: SimFileSystem, left_bytes: int) -> None:
    """Let others take the disk, up to some bytes."""
    fs.capacity_bytes = fs.used_bytes() + left_bytes


class Failing(SimFileSystem):
    """A disk on which chosen operations fail, until they no longer do."""

    def __init__(self) -> None:
        super().__init__()
        self.fails: tuple[str, str] | None = None
        """Operation, and a part of the path."""
        self.kind: type[StorageError] = StorageError

    def enter(self, operation: str, path: str) -> DiskFault | None:
        if self.fails is not None and self.fails[0] == operation and self.fails[1] in path:
            raise self.kind(operation, path, "input/output error")
        return super().enter(operation, path)


def test_appends_are_refused_on_a_full_disk_and_go_on_when_there_is_room() -> None:
    fs = SimFileSystem(capacity_bytes=100 * MEBIBYTE)
    door = NodeDoor(fs, storage_ballast_bytes=BALLAST)
    door.prepare("t")
    assert produced(door) == ErrorCode.NONE
    fill(fs, 50)
    assert produced(door, size_bytes=500) == FAILED
    assert produced(door) == FAILED, "refused before it is written"
    assert fetched(door) == ErrorCode.NONE, "what is there can be read"
    assert names(door).count("log_directory_full") == 1
    fs.capacity_bytes = 100 * MEBIBYTE
    door.advance(2_000)
    assert produced(door, size_bytes=500) == ErrorCode.NONE
    assert names(door).count("log_directory_has_room") == 1
    assert door.node.broker.partitions["t", 0].log_end_offset == 2


def test_a_topic_that_is_made_again_on_a_full_disk_keeps_what_is_acknowledged() -> None:
    """A start would else give its log the offsets that the checkpoint has of the former one."""
    fs = Failing()
    door = NodeDoor(fs, storage_ballast_bytes="0")
    assert created(door, "t") == ErrorCode.NONE
    assert [produced(door) for _ in range(3)] == [ErrorCode.NONE] * 3
    wanted = DeleteRecordsPartition(partition_index=0, offset=2)
    topics = [DeleteRecordsTopic(name="t", partitions=[wanted])]
    answer = door.send(DeleteRecordsRequest(topics=topics, timeout_ms=1_000), 2)
    assert answer.response.topics[0].partitions[0].error_code == ErrorCode.NONE
    door.advance(61_000)
    assert fs.read(f"{DIRECTORY}/log-start-offset-checkpoint") == b"0\n1\nt 0 2\n"
    fs.fails, fs.kind = ("open", "log-start-offset-checkpoint"), DiskFull
    assert deleted(door, "t") == ErrorCode.NONE
    assert created(door, "t") == ErrorCode.NONE
    door.advance(2_000)
    assert produced(door) == FAILED, "room for records is none while there is none for that"
    fs.fails = None
    door.advance(2_000)
    assert produced(door) == ErrorCode.NONE
    killed = fs.crashed([atom.number for atom in fs.pending_atoms()])
    restarted = NodeDoor(killed, door.now_ms, storage_ballast_bytes="0")
    log = restarted.node.broker.partitions["t", 0].log
    assert (log.log_start_offset, log.log_end_offset) == (0, 1)


def test_the_ballast_keeps_metadata_writable_on_a_full_disk() -> None:
    fs = SimFileSystem(capacity_bytes=100 * MEBIBYTE)
    door = NodeDoor(fs, storage_ballast_bytes=BALLAST)
    door.prepare("t")
    fill(fs, 10)
    assert deleted(door, "t") == ErrorCode.NONE
    door.advance(1_000)
    assert names(door).count("log_directory_full") == 1


def test_metadata_without_any_room_is_refused_and_heals() -> None:
    fs = SimFileSystem(capacity_bytes=100 * MEBIBYTE)
    door = NodeDoor(fs, storage_ballast_bytes="0")
    door.prepare("t")
    fill(fs, 10)
    before = door.node.broker.image
    assert created(door, "u") == FAILED
    assert deleted(door, "t") == FAILED
    assert door.node.broker.image is before
    fs.capacity_bytes = 100 * MEBIBYTE
    assert created(door, "u") == ErrorCode.NONE
    door.advance(2_000)
    assert produced(door, "u") == ErrorCode.NONE
    restarted = NodeDoor(fs.crashed(()), door.now_ms)
    assert {"t", "u"} <= {topic.name for topic in restarted.node.broker.image.topics()}


def test_topic_whose_logs_found_no_room_is_served_once_there_is_some() -> None:
    fs = Failing()
    door = NodeDoor(fs, storage_ballast_bytes="0")
    fs.fails, fs.kind = ("mkdir", "wide-39"), DiskFull  # directories and names take space, too
    assert created(door, "wide", 40) == ErrorCode.NONE
    assert door.node.broker.partitions["wide", 39].offline
    fs.fails = None
    door.advance(3_000)
    assert not any(each.offline for each in door.node.broker.partitions.values())
    assert produced(door, "wide") == ErrorCode.NONE


@pytest.mark.parametrize("operation", ["write", "open"])
def test_any_other_error_takes_the_directory_offline_with_one_line(operation: str) -> None:
    fs = Failing()
    door = NodeDoor(fs, log_dirs=TWO_DIRECTORIES, log_segment_bytes="1048576")
    for topic in ("s", "t", "r", "u"):
        created(door, topic)
        assert produced(door, topic) == ErrorCode.NONE
    fs.fails = (operation, f"{OTHER}/t-0/")
    for _ in range(1_200):
        error = produced(door, size_bytes=1_000)
        if error != ErrorCode.NONE:
            break
    assert error == FAILED
    assert [produced(door, topic) for topic in ("t", "u")] == [FAILED] * 2
    assert [fetched(door, topic) for topic in ("t", "u")] == [FAILED] * 2
    assert [produced(door, topic) for topic in ("r", "s")] == [ErrorCode.NONE] * 2
    assert names(door).count("log_directory_offline") == 1
    reason = door.lines[0][1]["reason"]
    assert isinstance(reason, Line)
    assert "t-0" in reason.text
    door.advance(70_000)
    found = {*names(door)} - {"isr_shrunk", "partition_offline"}
    assert found == {"log_directory_offline"}
    assert names(door).count("log_directory_offline") == 1


def test_log_that_the_disk_does_not_let_go_of_is_not_served_to_its_successor() -> None:
    fs = Failing()
    door = NodeDoor(fs, log_dirs=TWO_DIRECTORIES)
    for topic in ("s", "t", "r", "u"):
        created(door, topic)
        assert produced(door, topic) == ErrorCode.NONE
    fs.fails = ("rename", f"{OTHER}/t-0")
    assert deleted(door, "t") == ErrorCode.NONE
    assert fetched(door, "u") == FAILED, "what is beside it went offline with it"
    assert created(door, "t") == ErrorCode.NONE
    assert (fetched(door), door.node.broker.partitions["t", 0].log_end_offset) == (0, 0)
    fs.fails = None
    restarted = NodeDoor(fs.crashed(()), door.now_ms, log_dirs=TWO_DIRECTORIES)
    assert [name for name, _ in restarted.lines] == ["stray_log_set_aside"]
    assert restarted.node.broker.partitions["t", 0].log_end_offset == 0


def test_log_that_cannot_be_flushed_in_time_leaves_the_node_to_its_host() -> None:
    """flush.ms: what an fsync has lost nobody can know, also if no client waits for it."""
    fs = Failing()
    door = NodeDoor(fs, log_flush_interval_ms="500")
    door.prepare("t")
    assert produced(door) == ErrorCode.NONE
    fs.fails = ("fsync", f"{DIRECTORY}/t-0/")
    with pytest.raises(FsyncFailed):
        door.advance(5_000)


def test_directory_that_cannot_be_measured_is_told_as_offline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DescribeLogDirs (KIP-827): KAFKA_STORAGE_ERROR, and no partitions, for that directory."""
    fs = Failing()
    door = NodeDoor(fs, log_dirs=TWO_DIRECTORIES)
    for topic in ("s", "t"):
        created(door, topic)

    def total_bytes(path: str) -> int:
        if path.startswith(OTHER):
            raise StorageError("statvfs", path, "input/output error")
        return 7

    monkeypatch.setattr(fs, "total_bytes", total_bytes)
    for _ in range(2):
        told = door.send(DescribeLogDirsRequest(topics=None), 4).response.results
        found = {each.log_dir: (each.error_code, each.total_bytes) for each in told}
        assert found == {DIRECTORY: (ErrorCode.NONE, 7), OTHER: (FAILED, -1)}
        assert [each.topics for each in told if each.log_dir == OTHER] == [[]]
    assert produced(door, "t") == FAILED
    assert produced(door, "s") == ErrorCode.NONE
    assert names(door).count("log_directory_offline") == 1


def test_error_in_the_directory_of_the_metadata_log_leaves_the_node_to_its_host() -> None:
    """4.3.1 halts, whatever file it was: a sole directory is the last one, too."""
    fs = Failing()
    door = NodeDoor(fs, log_dirs=TWO_DIRECTORIES)
    for topic in ("s", "t"):
        created(door, topic)
    fs.fails = ("write", f"{DIRECTORY}/s-0/")
    with pytest.raises(StorageError, match="s-0"):
        produced(door, "s")
    assert names(door) == ["log_directory_offline"]


def test_failed_fsync_leaves_the_node_to_its_host() -> None:
    fs = Failing()
    door = NodeDoor(fs, log_flush_interval_messages="1")
    door.prepare("t")
    fs.fails = ("fsync", f"{DIRECTORY}/t-0/")
    with pytest.raises(FsyncFailed):
        produced(door)
    fs.fails = ("fsync", "__cluster_metadata-0")
    with pytest.raises(FsyncFailed):
        created(door, "u")


def test_error_of_the_metadata_log_leaves_the_node_to_its_host() -> None:
    fs = Failing()
    door = NodeDoor(fs)
    fs.fails = ("write", "__cluster_metadata-0")
    with pytest.raises(StorageError):
        created(door, "u")


def test_unreadable_records_cost_an_answer_and_the_compaction_but_not_the_partition() -> None:
    door = NodeDoor(
        SimFileSystem(), log_cleanup_policy="compact", log_cleaner_min_cleanable_ratio="0"
    )
    created(door, "t")
    assert produced(door, key=b"k") == ErrorCode.NONE
    log = door.node.broker.logs.get(TopicPartition("t", 0))
    assert isinstance(log, Log)
    spoil_first_record(log.active_segment.file)
    log.roll(WALL_MS)
    door.advance(60_000)
    assert names(door).count("records_unreadable") == 1
    wanted = ListOffsetsPartition(partition_index=0, timestamp=0)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
    answer = door.send(request, 7).response.topics[0].partitions[0]
    assert answer.error_code == FAILED
    assert names(door).count("records_unreadable") == 1
    assert fetched(door) == ErrorCode.NONE
    assert produced(door, key=b"k") == ErrorCode.NONE


def spoil_first_record(file: File) -> None:
    """Give the first record another size than it keeps to, under a right CRC."""
    data = bytearray(file.pread(file.size_bytes(), 0))
    data[HEADER_BYTES] ^= 0x08
    struct.pack_into(">I", data, _CRC_AT, crc32c(bytes(data[CHECKED_FROM:])))
    file.pwrite(data, 0)
