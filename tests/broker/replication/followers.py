"""A follower over real logs on a simulated disk, and answers as a leader would write them."""

from collections.abc import Iterable, Mapping
from typing import Any

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.replication.fetcher import Fetcher
from kraft_wire.broker.replication.fetchers import ReplicaFetchers
from kraft_wire.broker.replication.following import FollowerEnvironment
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.model import LeaderEpoch, Offset, StorageError, TopicPartition, Uuid
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.directory.log_directory import LogDirectory, note_compaction
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.generated.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    EpochEndOffset as EndOfEpoch,
)
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kraft_wire.wire.records.record_batch import parse_batches

LEADER = 2
REPLICA = 1
BROKER_EPOCH = 77
BACKOFF_MS = 1_000
WALL_MS = 1_700_000_000_000


def id_of(topic: str) -> Uuid:
    """The id of a topic in these tests."""
    return Uuid(topic.encode().ljust(16, b"."))


class Follower:
    """Broker 1, which follows partitions of leader 2; `lines` holds what it reported."""

    def __init__(self, **settings: Any) -> None:
        self.fs = SimFileSystem()
        self.fs.make_directory("/disk")
        self.fs.sync_directory("/")
        self.directory = LogDirectory.open(self.fs, "/disk")
        self.settings = BrokerSettings(**settings)
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.to_flush: list[Partition] = []
        self.failures: list[StorageError] = []
        self.now_ms = 10_000
        self.env = FollowerEnvironment(
            report=lambda name, **fields: self.lines.append((name, fields)),
            expect_gaps=lambda name: note_compaction(self.directory, name, Offset(0)),
            grew=lambda partition: None,
        )
        self.fetchers = ReplicaFetchers(
            REPLICA, lambda: self.settings, self.env, self.to_flush.append
        )
        self.remembered: dict[tuple[str, int], FetchPartition] = {}
        """What the leader's session knows of each partition, as a leader keeps it (KIP-227)."""
        self.logs: dict[TopicPartition, Log] = {}
        self.partitions: dict[TopicPartition, Partition] = {}

    @property
    def fetcher(self) -> Fetcher:
        """What is followed of the leader."""
        return self.fetchers.by_leader[LEADER]

    def make(
        self,
        name: tuple[str, int] = ("t", 0),
        batches: Iterable[bytes] = (),
        *,
        high_watermark: int = 0,
        config: Mapping[str, str] | None = None,
    ) -> Log:
        """Make a log with these batches."""
        topic_partition = TopicPartition(*name)
        log = self.directory.create_log(
            topic_partition, id_of(name[0]), LogConfig.from_mapping(config or {}), WALL_MS
        )
        for data in batches:
            log.append(data, parse_batches(bytearray(data)), self.now_ms, WALL_MS)
        log.high_watermark = Offset(high_watermark)
        self.logs[topic_partition] = log
        partition = Partition(name[0], id_of(name[0]), name[1], log, LeaderEpoch(0))
        partition.is_leader = False

        def failed(error: StorageError) -> None:
            self.failures.append(error)
            self.directory.note_error(topic_partition, error)
            partition.offline = self.directory.offline is not None

        partition.failed = failed
        self.partitions[topic_partition] = partition
        return log

    def follow(self, *names: tuple[str, int], epoch: int = 5, leader: int = LEADER) -> None:
        """Follow partitions under a leader epoch."""
        for name in names or (("t", 0),):
            partition = self.partitions[TopicPartition(*name)]
            partition.leader_epoch = LeaderEpoch(epoch)
            self.fetchers.follow(partition, leader, self.now_ms)

    def request(self) -> FetchRequest:
        """The fetch that is sent now."""
        request = self.fetcher.request(BROKER_EPOCH, self.now_ms)
        assert isinstance(request, FetchRequest), request
        if request.session_epoch == 0:
            self.remembered = {}
        for topic in request.topics:
            for each in topic.partitions:
                self.remembered[text_of(topic.topic_id), each.partition] = each
        for name in forgotten_names(request):
            del self.remembered[name]
        return request

    def offsets_request(self) -> ListOffsetsRequest:
        """The ListOffsets that is sent now."""
        request = self.fetcher.request(BROKER_EPOCH, self.now_ms)
        assert isinstance(request, ListOffsetsRequest), request
        return request

    def epoch_request(self) -> OffsetForLeaderEpochRequest:
        """The OffsetForLeaderEpoch that is sent now."""
        request = self.fetcher.request(BROKER_EPOCH, self.now_ms)
        assert isinstance(request, OffsetForLeaderEpochRequest), request
        return request

    def asks_nothing(self) -> bool:
        """Whether nothing is to be sent now."""
        return self.fetcher.request(BROKER_EPOCH, self.now_ms) is None

    def answer(self, *data: PartitionData, topic: str = "t", session_id: int = 9) -> None:
        """Answer the fetch that is under way."""
        answered = FetchableTopicResponse(topic_id=id_of(topic), partitions=list(data))
        response = FetchResponse(session_id=session_id, responses=[answered] if data else [])
        self.answer_with(response)

    def answer_with(self, response: FetchResponse) -> None:
        """Answer the fetch that is under way, with this, as it comes off the wire."""
        version = FetchResponse.MAX_VERSION
        decoded, _ = FetchResponse.decode(response.encode(version), version)
        self.fetcher.answered(decoded, self.now_ms, WALL_MS)

    def answer_offset(self, offset: int, error: int = 0, name: str = "t") -> None:
        """Answer the ListOffsets that is under way."""
        partition = ListOffsetsPartitionResponse(
            partition_index=0, error_code=error, timestamp=-1, offset=offset
        )
        topic = ListOffsetsTopicResponse(name=name, partitions=[partition])
        self.fetcher.answered(ListOffsetsResponse(topics=[topic]), self.now_ms, WALL_MS)

    def answer_epoch(self, epoch: int, end_offset: int, error: int = 0, name: str = "t") -> None:
        """Answer the OffsetForLeaderEpoch that is under way."""
        partition = EndOfEpoch(
            partition=0, error_code=error, leader_epoch=epoch, end_offset=end_offset
        )
        topic = OffsetForLeaderTopicResult(topic=name, partitions=[partition])
        response = OffsetForLeaderEpochResponse(topics=[topic])
        self.fetcher.answered(response, self.now_ms, WALL_MS)

    def said(self) -> list[str]:
        """The names of the lines that were reported."""
        return [name for name, _ in self.lines]


def text_of(topic_id: Uuid) -> str:
    """The topic that has an id."""
    return bytes(topic_id).rstrip(b".").decode()


def asked_names(request: FetchRequest) -> list[tuple[str, int]]:
    """The partitions that a request lists."""
    return [
        (text_of(topic.topic_id), each.partition)
        for topic in request.topics
        for each in topic.partitions
    ]


def forgotten_names(request: FetchRequest) -> list[tuple[str, int]]:
    """The partitions that a request drops."""
    return [
        (text_of(topic.topic_id), each)
        for topic in request.forgotten_topics_data
        for each in topic.partitions
    ]


def data(
    *batches: bytes,
    partition: int = 0,
    high_watermark: int = 0,
    log_start_offset: int = 0,
    error: int = 0,
    diverging: tuple[int, int] | None = None,
) -> PartitionData:
    """What a leader answers for one partition; `diverging` is (epoch, end offset)."""
    found = PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        records=b"".join(batches),
    )
    if diverging is not None:
        found.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
    return found


def content(log: Log) -> bytes:
    """The bytes of a log."""
    return b"".join(segment.file.pread(segment.size_bytes, 0) for segment in log.segments)
