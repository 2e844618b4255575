"""Stories of what transactions do to partitions and groups, told to any broker.

Like `stories`: what a story yields must be the same on every broker. Producer ids are left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from kraft_wire.wire.generated.describe_producers import DescribeProducersRequest, TopicRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
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
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch, parse_batches
from tests.broker.transactions.coordinating import Producer
from tests.broker.transactions.stories import Story, done

STRANGER = 8_000_000
"""A producer id that no block has reached."""


class Partition:
    """Partition 0 of a topic, as clients and coordinators ask about it."""

    def __init__(self, door: Any, topic: str) -> None:
        self.door = door
        self.topic = topic
        door.create_topic(topic)
        while self.offset(-2, 0)[0] is E.NOT_LEADER_OR_FOLLOWER:
            time.sleep(0.02)

    def produce(
        self,
        producer: Producer,
        sequence: int = 0,
        *,
        version: int = 12,
        is_transactional: bool = True,
        epoch: int | None = None,
        count: int = 1,
        **attributes: Any,
    ) -> tuple[E, int, str | None]:
        """Produce a batch of a producer; its error, offset and message."""
        records = build_batch(
            [Record(b"k", b"v", timestamp=1_000) for _ in range(count)],
            producer_id=producer.id,
            producer_epoch=producer.epoch if epoch is None else epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
            **attributes,
        )
        data = PartitionProduceData(index=0, records=memoryview(records))
        request = ProduceRequest(
            transactional_id=producer.name,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )
        ((answer,),) = [
            each.partition_responses for each in self.door.send(request, version).response.responses
        ]
        return E(answer.error_code), answer.base_offset, answer.error_message

    def mark(
        self,
        *,
        producer_id: int = STRANGER,
        epoch: int = 0,
        is_commit: bool = True,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        topic: str | None = None,
        version: int = 2,
    ) -> E:
        """Write a marker as an operator does."""
        named = WritableTxnMarkerTopic(name=topic or self.topic, partition_indexes=[0])
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=epoch,
            transaction_result=is_commit,
            topics=[named],
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        response = self.door.send(WriteTxnMarkersRequest(markers=[marker]), version).response
        ((answer,),) = [each.partitions for each in response.markers[0].topics]
        return E(answer.error_code)

    def fetch(
        self, offset: int = 0, *, isolation_level: int = 1, max_bytes: int = 1 << 20
    ) -> tuple[Any, ...]:
        """Fetch as a consumer: bounds, batches, and first offsets of aborted transactions."""
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_bytes=1 << 20,
            isolation_level=isolation_level,
            topics=[FetchTopic(topic=self.topic, partitions=[asked])],
        )
        ((data,),) = [each.partitions for each in self.door.send(request, 12).response.responses]
        batches = [
            (
                *(each.base_offset, each.attributes, each.producer_epoch, each.base_sequence),
                *(each.size_bytes, [_plain(each, record) for record in each.records()]),
            )
            for each in _whole(bytes(data.records or b""))
        ]
        aborted = data.aborted_transactions
        return (
            E(data.error_code),
            data.high_watermark,
            data.last_stable_offset,
            batches,
            None if aborted is None else [each.first_offset for each in aborted],
        )

    def offset(self, timestamp: int, isolation_level: int) -> tuple[E, int]:
        """Look an offset up as a consumer."""
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[ListOffsetsTopic(name=self.topic, partitions=[asked])],
        )
        ((found,),) = [each.partitions for each in self.door.send(request, 9).response.topics]
        return E(found.error_code), found.offset

    def producers(self) -> list[tuple[int, ...]]:
        """The producers that the partition remembers, without ids and times."""
        topic = TopicRequest(name=self.topic, partition_indexes=[0])
        request = DescribeProducersRequest(topics=[topic])
        ((found,),) = [each.partitions for each in self.door.send(request, 0).response.topics]
        return sorted(
            (
                each.producer_epoch,
                each.last_sequence,
                each.current_txn_start_offset,
                min(each.coordinator_epoch, 0),
            )
            for each in found.active_producers
        )

    def state(self) -> tuple[Any, ...]:
        """Everything that can be asked."""
        return (
            *(self.fetch(isolation_level=level) for level in (0, 1)),
            *(self.offset(timestamp, level) for timestamp in (-1, -2, 500) for level in (0, 1)),
            self.producers(),
        )


def _plain(batch: RecordBatch, record: Record) -> tuple[Any, ...]:
    """A record without what differs: the coordinator's epoch in the value of a marker."""
    value = bytes(record.value or b"")
    return record.offset, record.key, value[:2] if batch.is_control else value, record.headers


def _whole(data: bytes) -> list[Any]:
    """The whole batches of a fetch."""
    size = 0
    while len(data) >= size + 12:
        length = int.from_bytes(data[size + 8 : size + 12], "big") + 12
        if len(data) < size + length:
            break
        size += length
    return parse_batches(memoryview(bytearray(data[:size])))


def verified_batches(door: Any, name: str) -> Iterator[Any]:
    partition, producer = Partition(door, name), Producer(door, name)
    yield producer.init()
    for version in (3, 10, 11):
        yield partition.produce(producer, version=version)
    yield done(lambda: producer.add(0, topic=name))
    yield partition.produce(producer, version=11), partition.produce(producer, 1, version=3)
    yield partition.produce(producer, 1, version=11), partition.produce(producer, 5, version=11)
    yield partition.produce(producer, 2, is_transactional=False)
    yield partition.produce(producer, 2, epoch=producer.epoch + 1)
    yield partition.state()
    yield producer.commit(4)
    yield done(lambda: producer.commit(4))
    yield partition.state()
    yield partition.produce(producer, 2, version=11), partition.produce(producer, 2, version=10)
    yield done(lambda: producer.add(0, topic=name))
    yield partition.produce(producer, 2, version=11)
    yield producer.abort(4)
    yield done(lambda: producer.abort(4))
    yield partition.state()
    stranger = Producer(door, name + "-absent")
    stranger.id, stranger.epoch = STRANGER, 0
    yield partition.produce(stranger, version=11), partition.produce(stranger)


def implicitly_added(door: Any, name: str) -> Iterator[Any]:
    partition, producer = Partition(door, name), Producer(door, name)
    yield producer.init()
    yield (
        partition.produce(producer, 3),
        partition.produce(producer),
        partition.produce(producer, 1),
    )
    yield partition.state()
    for is_commit in (False, True, False):
        yield producer.end(commit=is_commit)
        yield done(lambda: partition.produce(producer)[0]), partition.produce(producer, 1)
        yield partition.produce(producer, 1), partition.produce(producer, 7)
        yield partition.produce(producer, 0, epoch=producer.epoch - 1)
    yield producer.commit()
    yield done(lambda: partition.produce(producer)[0])
    for offset in range(partition.fetch(isolation_level=0)[1] + 1):
        yield partition.fetch(offset), partition.fetch(offset, max_bytes=1)
    fencing = Producer(door, name)
    yield fencing.init(), done(fencing.init)
    yield done(lambda: partition.produce(producer, 1)[0])


def markers_by_hand(door: Any, name: str) -> Iterator[Any]:
    partition = Partition(door, name)
    for epoch in (3, 2, 3, 4):
        for transaction_version in (0, 1, 2, 7, -1):
            yield partition.mark(epoch=epoch, transaction_version=transaction_version)
    for coordinator_epoch in (5, 4, 5, 6):
        yield partition.mark(epoch=9, coordinator_epoch=coordinator_epoch, version=1)
    yield partition.mark(topic="absent")
    yield partition.state()
    producer = Producer(door, name)
    yield producer.init(), partition.produce(producer)
    for epoch, transaction_version in ((0, 2), (0, 0), (0, 2), (1, 2), (1, 2), (0, 0)):
        yield partition.mark(
            producer_id=producer.id,
            epoch=epoch,
            transaction_version=transaction_version,
            is_commit=False,
        )
    yield partition.state()
    yield partition.produce(producer, 1)


def refused_batches(door: Any, name: str) -> Iterator[Any]:
    partition, producer = Partition(door, name), Producer(door, name)
    yield producer.init()
    yield partition.produce(producer, is_control=True)
    yield partition.produce(producer, -1)
    yield partition.produce(producer, 0)
    producer.name = None  # type: ignore[assignment]  # a request without transactional id
    yield partition.produce(producer, 1)
    yield partition.produce(producer, 1, is_transactional=False)
    yield partition.state()


class Group:
    """Offsets of one partition of a topic that a group commits."""

    def __init__(self, door: Any, topic: str) -> None:
        self.door = door
        self.topic = topic
        self.group_id = topic

    def commit(self, producer: Producer, offset: int, version: int = 5, **fields: Any) -> E:
        """Commit inside a transaction."""
        fields.setdefault("group_id", self.group_id)
        topic = fields.pop("topic", self.topic)
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=producer.name,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
            **fields,
        )
        ((answer,),) = [
            each.partitions for each in self.door.send(request, version).response.topics
        ]
        return E(answer.error_code)

    def commit_plain(self, offset: int) -> E:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=-1,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=[partition])],
        )
        ((answer,),) = [each.partitions for each in self.door.send(request, 9).response.topics]
        return E(answer.error_code)

    def delete(self) -> int:
        partition = OffsetDeleteRequestPartition(partition_index=0)
        topic = OffsetDeleteRequestTopic(name=self.topic, partitions=[partition])
        request = OffsetDeleteRequest(group_id=self.group_id, topics=[topic])
        return int(self.door.send(request, 0).response.error_code)

    def committed(self) -> tuple[Any, ...]:
        """What a consumer of the group is told, in each way that it can ask."""
        return tuple(
            self._fetched(require_stable=require_stable, is_all=is_all)
            for require_stable in (False, True)
            for is_all in (False, True)
        )

    def _fetched(self, *, require_stable: bool, is_all: bool) -> list[tuple[int, E]]:
        topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
        group = OffsetFetchRequestGroup(group_id=self.group_id, topics=None if is_all else topics)
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
        (found,) = self.door.send(request, 9).response.groups
        assert found.error_code == E.NONE
        return [
            (each.committed_offset, E(each.error_code))
            for topic in found.topics
            for each in topic.partitions
        ]


def offsets_in_transactions(door: Any, name: str) -> Iterator[Any]:
    Partition(door, name)
    group, producer = Group(door, name), Producer(door, name)
    yield producer.init()
    for version in (0, 3, 4):
        yield group.commit(producer, 5, version)
    yield group.commit(producer, 5, topic="absent"), group.commit(producer, 5, group_id="")
    yield done(lambda: producer.add_offsets(name))
    yield group.commit(producer, 5, 4), group.commit(producer, 6, 0), group.committed()
    yield group.commit_plain(3), group.committed()
    yield producer.commit(), done(lambda: group.commit(producer, 7)), group.committed()
    yield producer.abort(), done(lambda: group.commit(producer, 8)), group.committed()
    yield producer.commit(), done(lambda: group.commit(producer, 9)), group.committed()
    yield group.delete(), group.committed()
    yield producer.commit(), done(lambda: group.commit(producer, 10)), group.committed()
    former = Producer(door, name)
    former.id, former.epoch = producer.id, producer.epoch - 1
    yield group.commit(former, 1)
    for generation_id in (0, -1, -2):
        for member_id in ("", "m"):
            yield group.commit(producer, 11, generation_id=generation_id, member_id=member_id)
            yield group.commit(
                producer,
                11,
                generation_id=generation_id,
                member_id=member_id,
                group_id=f"{name}-{generation_id}-{member_id}",
            )


STORIES: tuple[Story, ...] = (
    verified_batches,
    implicitly_added,
    markers_by_hand,
    refused_batches,
    offsets_in_transactions,
)
