"""Drawn requests about records: Produce, Fetch, ListOffsets, epochs, deletions, producers."""

from collections.abc import Sequence

from kraft_wire.conformance.drawn.scene import Scene
from kraft_wire.conformance.requests import TIMESTAMP_MS, batch, fetch, produce
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraft_wire.wire.generated.describe_producers import DescribeProducersRequest, TopicRequest
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraft_wire.wire.generated.produce import ProduceRequest

__all__ = [
    "delete_records",
    "describe_producers",
    "fetch_records",
    "init_producer_id",
    "list_offsets",
    "offset_for_leader_epoch",
    "produce_records",
]

_TIMEOUT_MS = 5_000
_SIZES = (0, 1, 70, 200, 1 << 20)
_CRC_AT = 17
_PRODUCERS = ((-1, 0), (1 << 40, -1), (1 << 40, 3), (-1, -1))
"""Producer ids and epochs that no producer has."""


def produce_records(scene: Scene, version: int) -> ProduceRequest:
    """Draw a produce of one partition: plain, idempotent, compressed, or damaged."""
    acks, partition = scene.pick(-1, -1, 1, 1, 2, -2), scene.partition()
    return produce(scene.topic(), version, _records(scene), acks=acks, partition=partition)


def _records(scene: Scene) -> bytes | None:
    kind = scene.random.randrange(12)
    if kind == 0:
        return scene.pick(b"", b"\0" * 61)
    values = [b"v" * scene.pick(1, 10, 100) for _ in range(scene.pick(1, 1, 2, 3))]
    compression = scene.pick(Compression.NONE, Compression.GZIP, Compression.LZ4)
    key = scene.pick(None, b"k")
    if kind > 4:
        return batch(*values, key=key, compression=compression)
    sequence = scene.next_sequence if scene.chance(70) else scene.pick(0, 1, 5, 100)
    producer_id, epoch = scene.producer
    drawn = batch(
        *values,
        key=key,
        compression=compression,
        producer=(producer_id, scene.pick(epoch, epoch, epoch, epoch + 1)),
        base_sequence=sequence,
    )
    if sequence == scene.next_sequence:
        scene.next_sequence += len(values)
    if kind == 1:
        return drawn[:_CRC_AT] + bytes([drawn[_CRC_AT] ^ 1]) + drawn[_CRC_AT + 1 :]
    return drawn


def fetch_records(scene: Scene, version: int) -> FetchRequest:
    """Draw a fetch of partitions of one topic."""
    request = fetch(
        scene.topic(),
        version,
        scene.offset(),
        partitions=_once(scene.partitions()),
        min_bytes=0,
        max_bytes=scene.pick(*_SIZES),
        partition_max_bytes=scene.pick(*_SIZES),
        current_leader_epoch=scene.epoch(),
        last_fetched_epoch=scene.epoch() if scene.chance(20) else -1,
        isolation_level=scene.pick(0, 1),
    )
    scene.with_oddity(request)
    request.session_id, request.replica_id = 0, -1  # a session's id is drawn by the broker
    return request


def _once(partitions: Sequence[int]) -> Sequence[int]:
    return list(dict.fromkeys(partitions))


def list_offsets(scene: Scene, version: int) -> ListOffsetsRequest:
    """Draw a question for offsets: first, last, or of a time.

    Not the largest time's (-3): 4.3.1 names a record that DeleteRecords has removed.
    """
    times = (-1, -2, -4, -5, 0, TIMESTAMP_MS, TIMESTAMP_MS + 1000, TIMESTAMP_MS * 2)
    wanted = [
        ListOffsetsPartition(
            partition_index=each,
            timestamp=scene.pick(*times),
            current_leader_epoch=scene.epoch() if version >= 4 else -1,
        )
        for each in scene.partitions()
    ]
    topic = ListOffsetsTopic(name=scene.topic().name, partitions=wanted)
    request = ListOffsetsRequest(replica_id=-1, topics=[topic])
    if version >= 2:
        request.isolation_level = scene.pick(0, 1)
    if version >= 10:
        request.timeout_ms = _TIMEOUT_MS
    scene.with_oddity(request)
    request.replica_id = -1
    return request


def offset_for_leader_epoch(scene: Scene, version: int) -> OffsetForLeaderEpochRequest:
    """Draw a question for the end of an epoch."""
    wanted = [
        OffsetForLeaderPartition(
            partition=each, current_leader_epoch=scene.epoch(), leader_epoch=scene.epoch()
        )
        for each in scene.partitions()
    ]
    topic = OffsetForLeaderTopic(topic=scene.topic().name, partitions=wanted)
    request = OffsetForLeaderEpochRequest(topics=[topic])
    if version >= 3:
        request.replica_id = scene.pick(-1, -2)
    return request


def delete_records(scene: Scene, version: int) -> DeleteRecordsRequest:
    """Draw a deletion of the first few records."""
    wanted = [
        DeleteRecordsPartition(partition_index=each, offset=scene.pick(-2, -1, 0, 1, 2, 50))
        for each in _once(scene.partitions())
    ]
    topic = DeleteRecordsTopic(name=scene.topic().name, partitions=wanted)
    return DeleteRecordsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS)


def describe_producers(scene: Scene, version: int) -> DescribeProducersRequest:
    """Draw a question for the producers of partitions."""
    topic = TopicRequest(name=scene.topic().name, partition_indexes=scene.partitions())
    return DescribeProducersRequest(topics=[topic])


def init_producer_id(scene: Scene, version: int) -> InitProducerIdRequest:
    """Draw a request for a producer id without transactions."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=scene.pick(0, 1))
    if version >= 3 and scene.chance(30):
        request.producer_id, request.producer_epoch = scene.pick(*_PRODUCERS)
    return request
