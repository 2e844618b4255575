"""Broker 1 leads partitions of transactional producers; the test is the transaction coordinator.

Broker 2 leads `__transaction_state`. `questions` is what the broker asks of it, `answer` what it
answers. `__consumer_offsets` has one partition, led by broker 1.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kraft_wire.broker.handlers import (
    fetch,
    list_offsets,
    offset_commit,
    offset_fetch,
    produce,
    txn_offset_commit,
    write_txn_markers,
)
from kraft_wire.metadata.image import MetadataImage, PartitionImage
from kraft_wire.model import FileSlice
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kraft_wire.wire.records.record_batch import HEADER_BYTES, RecordBatch
from tests.broker.replication.leading import TOPIC, Leading, Waiting, batch
from tests.broker.small_broker import id_of, image_of, partition_image, publish

COORDINATOR = 2
GROUP = "group"
PRODUCER = 10
TRANSACTIONAL_ID = "writer"
OFFSETS = "__consumer_offsets"
STATE = "__transaction_state"
_CLIENT_ID = "AddPartitionsManager-client-1"


class Transactional(Leading):
    """The broker, and the coordinator's part of the conversation."""

    def __init__(self, *partitions: PartitionImage, **more: Any) -> None:
        self.offsets_image: PartitionImage | None = partition_image(0)
        super().__init__(*(partitions or (partition_image(0), partition_image(1))), **more)

    def image(self) -> MetadataImage:
        topics: dict[str, Iterable[PartitionImage]] = {
            TOPIC: self.partitions.values(),
            STATE: [partition_image(0, leader=COORDINATOR, replicas=(COORDINATOR,))],
        }
        if self.offsets_image is not None:
            topics[OFFSETS] = [self.offsets_image]
        return image_of(topics, self.brokers.values())

    def publish(self) -> None:
        image = self.image()
        image = MetadataImage(
            offset=image.offset,
            brokers=image.brokers,
            topics_by_name=image.topics_by_name,
            topic_names=image.topic_names,
            configs={(2, TOPIC): dict(self.config)},
        )
        publish(self.broker, image, self.now_ms)

    # -- producers -------------------------------------------------------------------------------

    def send(
        self,
        *numbers: int,
        version: int = 12,
        transactional_id: str | None = TRANSACTIONAL_ID,
        epoch: int = 0,
        sequence: int = 0,
        count: int = 1,
        producer_id: int = PRODUCER,
        acks: int = -1,
        is_transactional: bool = True,
    ) -> Waiting:
        """Produce one batch to each of the partitions."""
        batches = {
            number: batch(
                count,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=is_transactional,
            )
            for number in (numbers or (0,))
        }
        return self.send_batches(
            batches, version=version, transactional_id=transactional_id, acks=acks
        )

    def send_batches(
        self,
        batches: Mapping[int, bytearray],
        *,
        version: int = 12,
        transactional_id: str | None = TRANSACTIONAL_ID,
        acks: int = -1,
        topic: str = TOPIC,
    ) -> Waiting:
        data = [
            PartitionProduceData(index=number, records=memoryview(records))
            for number, records in batches.items()
        ]
        named = TopicProduceData(name=topic, partition_data=data)
        if version >= 13:
            named = TopicProduceData(topic_id=id_of(topic), partition_data=data)
        request = ProduceRequest(
            transactional_id=transactional_id, acks=acks, timeout_ms=1_500, topic_data=[named]
        )
        context = self.context(version)
        return Waiting(self, context, produce.handle(self.broker, context, request))

    def begin(self, *numbers: int, **more: Any) -> None:
        """Have a producer open its transaction on partitions, confirmed by the coordinator."""
        sent = self.send(*numbers, **more)
        self.answer()
        assert errors_of(sent) == [ErrorCode.NONE] * len(numbers or (0,))

    # -- the coordinator -------------------------------------------------------------------------

    def questions(self) -> list[AddPartitionsToTxnTransaction]:
        """What the broker asks in its next request, which is then in flight."""
        asked = []
        for broker_id, requests in self._destinations().items():
            request = requests.request(self.broker_epoch, self.now_ms)
            if request is not None:
                assert isinstance(request, AddPartitionsToTxnRequest)
                assert broker_id == COORDINATOR
                decoded, _ = AddPartitionsToTxnRequest.decode(request.encode(5), 5)
                asked += decoded.transactions
        return asked

    def answer(
        self,
        error: int = ErrorCode.NONE,
        *,
        by_partition: Mapping[int, ErrorCode] | None = None,
        top_level: int = ErrorCode.NONE,
    ) -> list[AddPartitionsToTxnTransaction]:
        """Answer what is asked now; return it."""
        asked = self.questions()
        assert asked, "nothing is asked"
        self.respond(asked, error, by_partition or {}, top_level)
        return asked

    def respond(
        self,
        asked: list[AddPartitionsToTxnTransaction],
        error: int = ErrorCode.NONE,
        by_partition: Mapping[int, ErrorCode] | None = None,
        top_level: int = ErrorCode.NONE,
    ) -> None:
        """Answer a request that is in flight."""
        results = [
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id,
                topic_results=[
                    AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            AddPartitionsToTxnPartitionResult(
                                partition_index=number,
                                partition_error_code=(by_partition or {}).get(number, error),
                            )
                            for number in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in asked
        ]
        response = AddPartitionsToTxnResponse(error_code=top_level, results_by_transaction=results)
        decoded, _ = AddPartitionsToTxnResponse.decode(response.encode(5), 5)
        self.requests.answered(decoded, self.now_ms, 0)

    @property
    def requests(self) -> Any:
        """The questions to the coordinator, as the node carries them."""
        return self._destinations()[COORDINATOR]

    def _destinations(self) -> Mapping[int, Any]:
        clients = self.broker.inter_broker_clients
        found = [each for each in clients if each.client_id == _CLIENT_ID]
        return found[0].destinations() if found else {}

    def mark(
        self,
        *numbers: int,
        is_commit: bool = True,
        epoch: int = 0,
        producer_id: int = PRODUCER,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        topic: str = TOPIC,
    ) -> Waiting:
        """End a transaction on partitions, as the coordinator does."""
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=is_commit,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(numbers or (0,)))],
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        return self.write_markers(marker)

    def write_markers(self, *markers: WritableTxnMarker, version: int = 2) -> Waiting:
        request = WriteTxnMarkersRequest(markers=list(markers))
        decoded, _ = WriteTxnMarkersRequest.decode(request.encode(version), version)
        context = self.context(version)
        return Waiting(self, context, write_txn_markers.handle(self.broker, context, decoded))

    # -- consumers -------------------------------------------------------------------------------

    def read(
        self,
        offset: int = 0,
        *,
        isolation_level: int = 1,
        max_wait_ms: int = 0,
        max_bytes: int = 1 << 20,
        version: int = 12,
    ) -> Waiting:
        """Fetch from partition 0 as a consumer, READ_COMMITTED unless said otherwise."""
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            isolation_level=isolation_level,
            topics=[FetchTopic(topic=TOPIC, partitions=[asked])],
        )
        context = self.context(version)
        return Waiting(self, context, fetch.handle(self.broker, context, request))

    def offset_of(
        self, timestamp: int, *, isolation_level: int = 1
    ) -> ListOffsetsPartitionResponse:
        """Look up an offset of partition 0 as a consumer."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])],
        )
        answer = list_offsets.handle(self.broker, self.context(9), request)
        return answer.topics[0].partitions[0]

    # -- groups ----------------------------------------------------------------------------------

    def commit_offset(
        self,
        offset: int,
        *,
        version: int = 5,
        epoch: int = 0,
        number: int = 0,
        producer_id: int = PRODUCER,
        topic: str = TOPIC,
        metadata: str = "",
        group_id: str = GROUP,
        **fields: Any,
    ) -> Waiting:
        """Commit an offset inside the producer's transaction."""
        partition = TxnOffsetCommitRequestPartition(
            partition_index=number, committed_offset=offset, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            transactional_id=TRANSACTIONAL_ID,
            group_id=group_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
            **fields,
        )
        decoded, _ = TxnOffsetCommitRequest.decode(request.encode(version), version)
        context = self.context(version)
        return Waiting(self, context, txn_offset_commit.handle(self.broker, context, decoded))


def errors_of(waiting: Waiting) -> list[ErrorCode]:
    """The error of each partition of an answer."""
    return [ErrorCode(each.error_code) for each in produced(waiting)]


def produced(waiting: Waiting) -> list[PartitionProduceResponse]:
    """The partitions of a Produce response."""
    answer = waiting.answer
    assert isinstance(answer, ProduceResponse), answer
    return [each for topic in answer.responses for each in topic.partition_responses]


def marked(waiting: Waiting) -> list[tuple[int, str, int, ErrorCode]]:
    """Producer id, topic, partition and error of each result of a WriteTxnMarkers response."""
    answer = waiting.answer
    assert isinstance(answer, WriteTxnMarkersResponse), answer
    decoded, _ = WriteTxnMarkersResponse.decode(answer.encode(2), 2)
    return [
        (marker.producer_id, topic.name, each.partition_index, ErrorCode(each.error_code))
        for marker in decoded.markers
        for topic in marker.topics
        for each in topic.partitions
    ]


def offset_error(waiting: Waiting) -> ErrorCode:
    """The error of the one partition of a TxnOffsetCommit response."""
    answer = waiting.answer
    assert isinstance(answer, TxnOffsetCommitResponse), answer
    ((partition,),) = [topic.partitions for topic in answer.topics]
    return ErrorCode(partition.error_code)


def fetched_offsets(
    broker: Transactional, *numbers: int, require_stable: bool = False
) -> dict[int, tuple[int, ErrorCode]]:
    """Offset and error by partition that a consumer of the group sees; all where none is named."""
    topics = None
    if numbers:
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(numbers))]
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
    request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
    answer = offset_fetch.handle(broker.broker, broker.context(9), request)
    (found,) = answer.groups
    assert found.error_code == ErrorCode.NONE, found
    return {
        each.partition_index: (each.committed_offset, ErrorCode(each.error_code))
        for topic in found.topics
        for each in topic.partitions
    }


def commit_plain(broker: Transactional, offset: int, number: int = 0) -> Waiting:
    """Commit an offset outside of transactions."""
    partition = OffsetCommitRequestPartition(
        partition_index=number, committed_offset=offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )
    context = broker.context(9)
    return Waiting(broker, context, offset_commit.handle(broker.broker, context, request))


def batches_in(data: PartitionData) -> list[RecordBatch]:
    """The whole batches that a consumer was sent; the last one may be cut."""
    records = data.records
    view = memoryview((records.read() if isinstance(records, FileSlice) else records) or b"")
    found: list[RecordBatch] = []
    while len(view) >= HEADER_BYTES and len(view) >= RecordBatch(view).size_bytes:
        found.append(RecordBatch(view))
        view = view[found[-1].size_bytes :]
    return found


def offsets_in(data: PartitionData) -> list[int]:
    """The base offset of each whole batch that a consumer was sent."""
    return [each.base_offset for each in batches_in(data)]


def aborted_in(data: PartitionData) -> list[tuple[int, int]] | None:
    """Producer id and first offset of each aborted transaction that a consumer was told."""
    if data.aborted_transactions is None:
        return None
    return [(each.producer_id, each.first_offset) for each in data.aborted_transactions]
