"""Drawn requests of one transactional producer: its transactions, and those of fenced ones."""

from kraft_wire.conformance.drawn.scene import Scene
from kraft_wire.conformance.requests import batch
from kraft_wire.wire.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.end_txn import EndTxnRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

__all__ = [
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "end_txn",
    "init_transactional_id",
    "produce_in_transaction",
    "txn_offset_commit",
]

_TIMEOUT_MS = 60_000
_BATCHED_FROM = 4
_RECOVERS_FROM = 3
_BY_ID = 13
_MEMBERS_FROM = 3


def init_transactional_id(scene: Scene, version: int) -> InitProducerIdRequest:
    """Draw a start of the producer, or its recovery with the id and epoch that it has (KIP-360)."""
    request = InitProducerIdRequest(
        transactional_id=scene.transactional_id, transaction_timeout_ms=_TIMEOUT_MS
    )
    if version >= _RECOVERS_FROM and scene.chance(40):
        request.producer_id, request.producer_epoch = scene.transaction_owner()
    return request


def add_partitions_to_txn(scene: Scene, version: int) -> AddPartitionsToTxnRequest:
    """Draw an addition as clients send it, or a brokers' question of version 4 and later."""
    producer_id, epoch = scene.transaction_owner()
    topics = [AddPartitionsToTxnTopic(name=scene.topic().name, partitions=scene.partitions())]
    if version < _BATCHED_FROM:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=scene.transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=scene.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        verify_only=scene.pick(False, True),
        topics=topics,
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def produce_in_transaction(scene: Scene, version: int) -> ProduceRequest:
    """Draw a transactional batch for the first partition; newer versions add it (KIP-890)."""
    topic = scene.topics[0]
    producer_id, epoch = scene.transaction_owner()
    sequence = scene.transaction_sequence if scene.chance(85) else scene.pick(0, 1, 7)
    records = batch(
        b"v" * scene.pick(1, 10),
        producer=(producer_id, epoch),
        base_sequence=sequence,
        is_transactional=True,
    )
    data = TopicProduceData(partition_data=[PartitionProduceData(index=0, records=records)])
    if version >= _BY_ID:
        data.topic_id = topic.topic_id
    else:
        data.name = topic.name
    return ProduceRequest(
        transactional_id=scene.transactional_id, acks=-1, timeout_ms=5_000, topic_data=[data]
    )


def add_offsets_to_txn(scene: Scene, version: int) -> AddOffsetsToTxnRequest:
    """Draw an addition of the group's offsets."""
    producer_id, epoch = scene.transaction_owner()
    return AddOffsetsToTxnRequest(
        transactional_id=scene.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=scene.group_id,
    )


def txn_offset_commit(scene: Scene, version: int) -> TxnOffsetCommitRequest:
    """Draw a commit of the group's offsets in the transaction."""
    producer_id, epoch = scene.transaction_owner()
    wanted = TxnOffsetCommitRequestTopic(
        name=scene.topic().name,
        partitions=[
            TxnOffsetCommitRequestPartition(
                partition_index=each,
                committed_offset=scene.offset(),
                committed_metadata=scene.pick("", "m", None),
            )
            for each in scene.partitions()
        ],
    )
    request = TxnOffsetCommitRequest(
        transactional_id=scene.transactional_id,
        group_id=scene.group_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[wanted],
    )
    if version >= _MEMBERS_FROM and scene.chance(20):
        request.generation_id = scene.pick(-1, 0, 1)
        request.member_id = scene.pick("", "nobody")
    return request


def end_txn(scene: Scene, version: int) -> EndTxnRequest:
    """Draw a commit or an abort."""
    producer_id, epoch = scene.transaction_owner()
    return EndTxnRequest(
        transactional_id=scene.transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=scene.pick(True, False),
    )
