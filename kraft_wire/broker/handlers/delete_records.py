"""DeleteRecords, API key 21, versions 0-2.

Behaviour:   moves a partition's log start offset up to the given one; -1 means the high watermark ·
             an offset below the log start changes nothing and is no error · the low watermark in
             the answer is the log start offset afterwards · internal topics are refused
Versions:    v2 flexible (KIP-482)
Left out:    nothing; with one replica there is no low watermark to wait for, so TimeoutMs is unused
"""

from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata_cache import is_internal
from kraft_wire.broker.partition import Partition
from kraft_wire.model import Offset, StorageError
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["API_KEY", "VERSIONS", "handle"]

API_KEY: Final = 21
VERSIONS: Final = (0, 2)

_UP_TO_HIGH_WATERMARK: Final = -1
_NO_LOW_WATERMARK: Final = -1


def handle(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Hide the records below an offset (KIP-107).

    Errors per partition, first match wins: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION
    (internal topic), KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION (compacted and
    never deleted), OFFSET_OUT_OF_RANGE.
    """
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    _delete(broker, topic.name, wanted.partition_index, wanted.offset)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(broker: Broker, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    partition = broker.partition(topic, index)
    error = _refusal(broker, topic, index, partition)
    if error is ErrorCode.NONE:
        assert partition is not None
        error = _advance(partition, offset)
    if error is not ErrorCode.NONE:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=error
        )
    assert partition is not None
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=partition.log_start_offset
    )


def _refusal(broker: Broker, topic: str, index: int, partition: Partition | None) -> ErrorCode:
    known = broker.image.topic(topic)
    if known is None or index not in known.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if is_internal(topic):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if partition is not None and partition.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition is None or not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.log.config.is_compacted and not partition.log.config.is_deleted:
        return ErrorCode.POLICY_VIOLATION
    return ErrorCode.NONE


def _advance(partition: Partition, offset: int) -> ErrorCode:
    wanted = partition.high_watermark if offset == _UP_TO_HIGH_WATERMARK else Offset(offset)
    if not 0 <= wanted <= partition.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    try:
        partition.log.advance_log_start_offset(wanted)
    except StorageError:
        partition.offline = True
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE
