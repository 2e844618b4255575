"""AddOffsetsToTxn: the partition of a group's offsets joins a transaction."""

from __future__ import annotations

import pytest

from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.transactions.coordinating import Coordinating, Markers


@pytest.mark.parametrize("version", range(5))
def test_the_offsets_partition_of_the_group_is_added(node: Coordinating, version: int) -> None:
    producer = node.producer()
    producer.init()
    for group in ("g", ""):
        assert producer.add_offsets(group, version) == E.NONE
        number = node.node.broker.groups.partition_of(group)
        metadata = node.entry("tid").metadata
        assert TopicPartition("__consumer_offsets", number) in metadata.partitions
        assert metadata.client_version == 0


@pytest.mark.parametrize("version", range(5))
def test_errors_in_order(node: Coordinating, markers: Markers, version: int) -> None:
    producer = node.producer()
    producer.init()
    producer.add(0)
    assert node.producer("").add_offsets("g", version) == E.INVALID_REQUEST
    assert node.producer("absent").add_offsets("g", version) == E.INVALID_PRODUCER_ID_MAPPING
    producer.epoch += 1
    fenced = E.PRODUCER_FENCED if version >= 2 else E.INVALID_PRODUCER_EPOCH
    assert producer.add_offsets("g", version) == fenced
    producer.id += 1
    assert producer.add_offsets("g", version) == E.INVALID_PRODUCER_ID_MAPPING
    producer.id, producer.epoch = producer.id - 1, producer.epoch - 1
    markers.keeps_back = True
    assert producer.commit() == E.NONE
    assert producer.add_offsets("g", version) == E.CONCURRENT_TRANSACTIONS
