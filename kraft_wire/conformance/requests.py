"""Requests that many cases send: one topic, one partition, by name or by id as the version asks."""

import struct
from collections.abc import Sequence
from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.subject import Subject, Topic
from kraft_wire.wire.compression.codecs import Compression
from kraft_wire.wire.crc32c import crc32c
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartition,
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
)
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record

__all__ = [
    "CONSUMER",
    "EARLIEST",
    "EARLIEST_LOCAL",
    "LATEST",
    "MAX_TIMESTAMP",
    "TIMESTAMP_MS",
    "batch",
    "checksummed",
    "deleted_below",
    "fetch",
    "fetch_partition",
    "fetched",
    "list_offsets",
    "produce",
    "produce_partition",
    "with_byte",
    "written",
]

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4

CONSUMER: Final = -1
"""The replica id of a consumer."""

TIMESTAMP_MS: Final = 1_700_000_000_000
"""The time of the first record of `batch`; each further record is a second later."""

_PRODUCE_BY_ID: Final = 13
_FETCH_BY_ID: Final = 13
_WAIT_MS: Final = 5_000
_CRC_AT: Final = 17
_CHECKED_FROM: Final = 21


def batch(
    *values: bytes,
    key: bytes | None = None,
    compression: Compression = Compression.NONE,
    producer: tuple[int, int] = (-1, -1),
    base_sequence: int = -1,
    is_transactional: bool = False,
    first_ms: int = TIMESTAMP_MS,
) -> bytes:
    """Return one batch with a record for each value, each a second after the one before."""
    records = [
        Record(key, value, timestamp=first_ms + 1000 * index) for index, value in enumerate(values)
    ]
    producer_id, producer_epoch = producer
    return bytes(
        build_batch(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=is_transactional,
        )
    )


def checksummed(records: bytearray) -> bytes:
    """Return a batch that was changed, with the checksum of what it is now."""
    struct.pack_into(">I", records, _CRC_AT, crc32c(bytes(records[_CHECKED_FROM:])))
    return bytes(records)


def with_byte(records: bytes, at: int, value: int) -> bytes:
    """Return a batch with another byte at a position, and the checksum of the result."""
    changed = bytearray(records)
    changed[at] = value
    return checksummed(changed)


def produce(
    topic: Topic,
    version: int,
    records: bytes | None,
    *,
    acks: int = -1,
    partition: int = 0,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Return a produce of one partition."""
    data = TopicProduceData(partition_data=[PartitionProduceData(index=partition, records=records)])
    if version >= _PRODUCE_BY_ID:
        data.topic_id = topic.topic_id
    else:
        data.name = topic.name
    return ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=_WAIT_MS, topic_data=[data]
    )


def produce_partition(field: str) -> str:
    """Return the path of a field of the first partition of a ProduceResponse."""
    return f"responses[0].partition_responses[0].{field}"


def written(broker: Subject, topic: Topic, *batches: bytes, partition: int = 0) -> list[int]:
    """Produce batches one by one, and return their base offsets.

    Errors: Mismatch if one is refused.
    """
    offsets = []
    for each in batches:
        _, last = broker.target.versions.get(ProduceRequest.API_KEY, (0, -1))
        version = min(last, ProduceRequest.MAX_VERSION)
        answer = broker.prepare(produce(topic, version, each, partition=partition), ProduceResponse)
        expect.error(answer, produce_partition("error_code"), ErrorCode.NONE)
        offsets.append(answer.responses[0].partition_responses[0].base_offset)
    return offsets


def deleted_below(broker: Subject, topic: Topic, offset: int) -> None:
    """Delete the records of partition 0 below an offset. Errors: Mismatch if it is refused."""
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [DeleteRecordsTopic(name=topic.name, partitions=[wanted])]
    request = DeleteRecordsRequest(topics=topics, timeout_ms=_WAIT_MS)
    answer = broker.prepare(request, DeleteRecordsResponse)
    expect.error(answer, "topics[0].partitions[0].error_code", ErrorCode.NONE)


def fetch(
    topic: Topic,
    version: int,
    offset: int = 0,
    *,
    partitions: Sequence[int] = (0,),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    isolation_level: int = 0,
    session: tuple[int, int] = (0, -1),
) -> FetchRequest:
    """Return a consumer's fetch of partitions of one topic, by default outside a session."""
    found = FetchTopic(
        partitions=[
            FetchPartition(
                partition=each,
                current_leader_epoch=current_leader_epoch,
                fetch_offset=offset,
                last_fetched_epoch=last_fetched_epoch,
                partition_max_bytes=partition_max_bytes,
            )
            for each in partitions
        ]
    )
    if version >= _FETCH_BY_ID:
        found.topic_id = topic.topic_id
    else:
        found.topic = topic.name
    return FetchRequest(
        replica_id=CONSUMER,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=[found] if partitions else [],
        forgotten_topics_data=[],
    )


def fetch_partition(field: str) -> str:
    """Return the path of a field of the first partition of a FetchResponse."""
    return f"responses[0].partitions[0].{field}"


def fetched(answer: FetchResponse) -> PartitionData:
    """Return the one partition that a FetchResponse names."""
    return answer.responses[0].partitions[0]


def list_offsets(
    topic: Topic,
    timestamp: int,
    *,
    partition: int = 0,
    current_leader_epoch: int = -1,
    isolation_level: int = 0,
) -> ListOffsetsRequest:
    """Return a consumer's question for one offset."""
    wanted = ListOffsetsPartition(
        partition_index=partition, current_leader_epoch=current_leader_epoch, timestamp=timestamp
    )
    topics = [ListOffsetsTopic(name=topic.name, partitions=[wanted])]
    return ListOffsetsRequest(
        replica_id=CONSUMER, isolation_level=isolation_level, topics=topics, timeout_ms=_WAIT_MS
    )
