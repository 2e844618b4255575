"""Broker 1 leads partitions that others replicate: real logs, a clock by hand, requests as decoded.

`Leading` has the image that the test wants, sends what followers and clients would, and keeps what
the broker asks of the controller until the test answers. Brokers 1 to 4 are registered under the
epochs 11 to 14.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, RequestContext
from kraft_wire.broker.handlers import delete_records, fetch, list_offsets, produce
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.metadata.image import MetadataImage, PartitionImage
from kraft_wire.model import ANONYMOUS, Offset, TopicPartition, Uuid
from kraft_wire.node.disks.flushing import Flushing
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.recovery.opening import open_log
from kraft_wire.storage.timestamps import (
    TimestampAndOffset,
    offset_for_timestamp,
    offset_of_max_timestamp,
)
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ResponsePartitionData,
    ResponseTopicData,
)
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.message import Message
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import parse_batches
from tests.broker.fetch_client import SeededRandomSource
from tests.broker.small_broker import (
    Controller,
    NumbersLogs,
    broker_image,
    id_of,
    image_of,
    publish,
)

FETCH_VERSION = 18
PRODUCE_VERSION = 12
LAG_MAX_MS = 30_000
TOPIC = "t"


class RealLogs(NumbersLogs):
    """The port `LogStore` over logs on one simulated disk."""

    def __init__(self, high_watermarks: Mapping[int, int]) -> None:
        super().__init__()
        self.fs = SimFileSystem()
        self.high_watermarks = high_watermarks
        """What a checkpoint says of partitions, by number."""
        self.written: dict[int, int] = {}
        """Records that a log has before the broker sees it, by partition."""

    def create(
        self, partition: TopicPartition, topic_id: Uuid, config: Mapping[str, str], wall_ms: int
    ) -> Log:
        log_config = LogConfig.from_mapping(config)
        self.fs.make_directory(f"/{partition}")
        log = open_log(self.fs, f"/{partition}", partition, topic_id, log_config, wall_ms=0)
        for _ in range(self.written.get(partition.partition, 0)):
            append(log)
        log.update_high_watermark(Offset(self.high_watermarks.get(partition.partition, 0)))
        self.logs[partition] = log
        return log

    def offset_for_timestamp(
        self, log: Log, timestamp: int, *, upper_bound: Offset
    ) -> TimestampAndOffset | None:
        return offset_for_timestamp(log, timestamp, upper_bound=upper_bound)

    def offset_of_max_timestamp(
        self, log: Log, *, upper_bound: Offset
    ) -> TimestampAndOffset | None:
        return offset_of_max_timestamp(log, upper_bound=upper_bound)


def batch(count: int = 1, *, time_ms: int = 0, **more: Any) -> bytearray:
    """Records as a producer sends them."""
    return build_batch([Record(b"k", b"v" * 10, timestamp=time_ms) for _ in range(count)], **more)


def append(log: Log) -> None:
    """Write one record of epoch 0 behind the broker's back."""
    data = batch(base_offset=log.log_end_offset, partition_leader_epoch=0)
    log.append(data, parse_batches(memoryview(data)), 0, 0)


class Leading:
    """The broker, its controller, and a clock."""

    def __init__(
        self,
        *partitions: PartitionImage,
        high_watermarks: Mapping[int, int] | None = None,
        written: Mapping[int, int] | None = None,
        config: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self.now_ms = 1_000_000
        self.broker_epoch = 11
        """Of this life, which the image may not tell."""
        self.controller = Controller()
        self.logs = RealLogs(high_watermarks or {})
        self.logs.written.update(written or {})
        self.config = {
            "message.timestamp.before.max.ms": str(1 << 62),
            **(config or {}),
        }
        self.brokers = {number: broker_image(number) for number in (1, 2, 3, 4)}
        self.partitions = {each.partition: each for each in partitions}
        self.lines: list[tuple[str, dict[str, object]]] = []
        """Name and fields of each line that the broker logged."""
        self.broker = Broker(
            node_id=1,
            cluster_id="tests",
            settings=BrokerSettings(replica_lag_time_max_ms=LAG_MAX_MS, **settings),
            logs=self.logs,
            controller=self.controller,
            image=MetadataImage(),
            random_source=SeededRandomSource(),
            broker_epoch=lambda: self.broker_epoch,
            report=lambda name, **fields: self.lines.append((name, fields)),
        )
        self.controller.broker = self.broker
        self.flushing = Flushing(self.broker.replicas)
        self._connections = 0
        self.publish()

    # -- the metadata ----------------------------------------------------------------------------

    def publish(self) -> None:
        """Publish the image as the test has changed it."""
        topics = {TOPIC: self.partitions.values()} if self.partitions else {}
        image = image_of(topics, self.brokers.values())
        publish(self.broker, _with_config(image, self.config), self.now_ms)

    def change(self, number: int = 0, **fields: Any) -> None:
        """Publish a partition's next state; its partition epoch rises unless it is given."""
        before = self.partitions[number]
        fields.setdefault("partition_epoch", before.partition_epoch + 1)
        self.partitions[number] = before._replace(**fields)
        self.publish()

    def partition(self, number: int = 0) -> Partition:
        return self.broker.partitions[TOPIC, number]

    @property
    def high_watermark(self) -> int:
        return self.partition().high_watermark

    # -- requests --------------------------------------------------------------------------------

    def context(self, version: int) -> RequestContext:
        """Each request on a connection of its own."""
        self._connections += 1
        return RequestContext(
            self._connections, 1, version, self.now_ms, 0, None, "127.0.0.1", "PLAINTEXT", ANONYMOUS
        )

    def produce(
        self,
        count: int = 1,
        *,
        acks: int = -1,
        number: int = 0,
        timeout_ms: int = 1_500,
        **more: Any,
    ) -> "Waiting":
        """Produce one batch."""
        data = PartitionProduceData(index=number, records=memoryview(batch(count, **more)))
        request = ProduceRequest(
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        context = self.context(PRODUCE_VERSION)
        return Waiting(self, context, produce.handle(self.broker, context, request))

    def fetch(
        self,
        offset: int,
        *,
        replica: int = 2,
        broker_epoch: int | None = None,
        version: int = FETCH_VERSION,
        number: int = 0,
        leader_epoch: int | None = None,
        last_fetched_epoch: int = -1,
        log_start_offset: int = 0,
        max_wait_ms: int = 0,
        rack: str = "",
    ) -> "Waiting":
        """Fetch as a follower does, or with replica -1 as a consumer."""
        if broker_epoch is None:
            broker_epoch = 10 + replica if replica >= 0 else -1
        asked = FetchPartition(
            partition=number,
            current_leader_epoch=self.partitions[number].leader_epoch
            if leader_epoch is None
            else leader_epoch,
            fetch_offset=offset,
            last_fetched_epoch=last_fetched_epoch,
            log_start_offset=log_start_offset,
            partition_max_bytes=1 << 20,
        )
        by_id = version >= 13
        topic = FetchTopic(partitions=[asked])
        if by_id:
            topic.topic_id = id_of(TOPIC)
        else:
            topic.topic = TOPIC
        request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=[topic])
        if version >= 11:
            request.rack_id = rack
        if version >= 15:
            request.replica_state = ReplicaState(replica_id=replica, replica_epoch=broker_epoch)
        else:
            request.replica_id = replica
        context = self.context(version)
        return Waiting(self, context, fetch.handle(self.broker, context, request))

    def delete_records(self, offset: int, timeout_ms: int = 1_500) -> "Waiting":
        """Delete what lies below an offset."""
        wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
        return self.delete_all([wanted], timeout_ms)

    def delete_all(
        self, wanted: list[DeleteRecordsPartition], timeout_ms: int = 1_500
    ) -> "Waiting":
        """Delete in several partitions, or several times in one."""
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=TOPIC, partitions=wanted)], timeout_ms=timeout_ms
        )
        context = self.context(2)
        return Waiting(self, context, delete_records.handle(self.broker, context, request))

    def list_offset(
        self, timestamp: int, *, replica: int = -1, version: int = 9
    ) -> ListOffsetsPartitionResponse:
        """Ask for one offset."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=replica, topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])]
        )
        answer = list_offsets.handle(self.broker, self.context(version), request)
        assert isinstance(answer, ListOffsetsResponse)
        return answer.topics[0].partitions[0]

    def pass_time(self, ms: int) -> None:
        """Let time pass and tick."""
        self.now_ms += ms
        self.broker.tick(self.now_ms, 0)

    def flush(self) -> None:
        """Carry out the flush that is due."""
        order = self.flushing.begin(iter([1]))
        assert order is not None
        for pending in order.targets:
            pending.run()
        self.broker.replicas.flushed(self.flushing.completed(1), self.now_ms)

    # -- the controller --------------------------------------------------------------------------

    @property
    def asked(self) -> list[AlterPartitionRequest]:
        """What the controller was asked and has not answered."""
        requests = [request for _, request in self.controller.asked]
        assert all(isinstance(each, AlterPartitionRequest) for each in requests)
        return requests

    def isrs_asked(self) -> list[dict[int, list[tuple[int, int]]]]:
        """Per request the wanted ISRs by partition: members with their epochs."""
        return [
            {
                each.partition_index: [
                    (member.broker_id, member.broker_epoch) for member in each.new_isr_with_epochs
                ]
                for topic in request.topics
                for each in topic.partitions
            }
            for request in self.asked
        ]

    def answer(
        self, error: ErrorCode = ErrorCode.NONE, *, top_level: ErrorCode = ErrorCode.NONE
    ) -> None:
        """Answer the oldest request: its ISRs are committed, or refused."""
        tag, request = self.controller.asked.pop(0)
        assert isinstance(request, AlterPartitionRequest)
        if top_level is not ErrorCode.NONE:
            refusal = AlterPartitionResponse(error_code=top_level)
            self.broker.controller_answered(tag, refusal, self.now_ms)
            return
        topics = [
            ResponseTopicData(
                topic_id=topic.topic_id,
                partitions=[
                    ResponsePartitionData(
                        partition_index=each.partition_index,
                        error_code=error,
                        leader_id=1,
                        leader_epoch=each.leader_epoch,
                        isr=[member.broker_id for member in each.new_isr_with_epochs],
                        partition_epoch=each.partition_epoch + 1,
                    )
                    if error is ErrorCode.NONE
                    else ResponsePartitionData(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        self.broker.controller_answered(tag, AlterPartitionResponse(topics=topics), self.now_ms)


class Waiting:
    """A request and its answer, now or later."""

    def __init__(self, leading: Leading, context: RequestContext, answer: object) -> None:
        self._leading = leading
        self._reply_to = context.reply_to
        self._answer = None if answer is PARKED else answer

    @property
    def answer(self) -> Message | None:
        """The answer, None while there is none."""
        self._leading.broker.fetch_purgatory.run_woken(self._leading.now_ms)
        if self._answer is None:
            for reply_to, response in self._leading.broker.completions:
                if reply_to == self._reply_to:
                    self._answer = response
        assert self._answer is None or isinstance(self._answer, Message), self._answer
        return self._answer

    @property
    def is_parked(self) -> bool:
        return self.answer is None

    @property
    def produced(self) -> PartitionProduceResponse:
        assert isinstance(self.answer, ProduceResponse), self.answer
        return self.answer.responses[0].partition_responses[0]

    @property
    def fetched(self) -> PartitionData:
        assert isinstance(self.answer, FetchResponse), self.answer
        assert self.answer.error_code == ErrorCode.NONE, self.answer
        return self.answer.responses[0].partitions[0]

    @property
    def deleted(self) -> DeleteRecordsPartitionResult:
        return self.all_deleted[0]

    @property
    def all_deleted(self) -> list[DeleteRecordsPartitionResult]:
        assert isinstance(self.answer, DeleteRecordsResponse), self.answer
        return self.answer.topics[0].partitions


def _with_config(image: MetadataImage, config: Mapping[str, str]) -> MetadataImage:
    return replace(image, configs={(2, TOPIC): dict(config)})
