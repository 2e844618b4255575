"""Hanging transactions: found by what partitions and coordinators know, ended by an operator."""

from __future__ import annotations

from typing import Any

from kraft_wire.wire.generated.describe_producers import DescribeProducersRequest, TopicRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.broker.transactions.coordinating import TOPIC, Coordinating


def produce(node: Coordinating, name: str, producer_id: int, epoch: int) -> E:
    """Append a transactional batch as a client does that adds its partitions itself."""
    batch = build_batch(
        [Record(None, b"v", timestamp=node.wall_ms)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        is_transactional=True,
    )
    data = PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=1_000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
    )
    (topic,) = node.send(request, 11).response.responses
    return E(topic.partition_responses[0].error_code)


def producers(node: Coordinating) -> Any:
    request = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0])])
    (topic,) = node.send(request, 0).response.topics
    (partition,) = topic.partitions
    assert partition.error_code == E.NONE
    return partition.active_producers


def test_a_hanging_transaction_is_found_and_aborted() -> None:
    """TXN-ADMIN-03, TXN-ADMIN-04: data that no coordinator knows of, where nothing is verified."""
    node = Coordinating(transaction_partition_verification_enable="false")
    good = node.producer()
    assert good.init() == E.NONE
    assert good.add(0) == [E.NONE]
    assert produce(node, "tid", good.id, good.epoch) == E.NONE
    hanging = good.id + 500
    assert produce(node, "late", hanging, 3) == E.NONE
    node.advance(20_000)
    entries = {each.producer_id: each for each in producers(node)}
    assert all(each.current_txn_start_offset >= 0 for each in entries.values())
    known = node.listed(producer_id_filters=list(entries)).transaction_states
    assert [each.producer_id for each in known] == [good.id]
    entry = entries[hanging]
    assert entry.coordinator_epoch == -1
    marker = WritableTxnMarker(
        producer_id=hanging,
        producer_epoch=entry.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
        coordinator_epoch=max(entry.coordinator_epoch, 0),
    )
    (result,) = node.send(WriteTxnMarkersRequest(markers=[marker]), 2).response.markers
    assert result.topics[0].partitions[0].error_code == E.NONE
    offsets = {each.producer_id: each.current_txn_start_offset for each in producers(node)}
    assert offsets == {good.id: 0, hanging: -1}
    assert good.commit(version=4) == E.NONE
    assert node.states("tid")[-1] == "CompleteCommit"
    partition = node.node.broker.partition(TOPIC, 0)
    assert partition is not None
    assert partition.last_stable_offset == partition.high_watermark == 4
