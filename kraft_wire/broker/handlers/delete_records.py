"""DeleteRecords, API key 21, versions 0-2.

Behaviour:   moves a partition's log start offset up to the given one; -1 means the high watermark ·
             an offset below the log start has no effect and is not an error · the response waits
             until every live replica has moved its log start, and has the smallest one, the low
             watermark · internal topics are refused · a repeated partition has one result, for the
             last offset
Versions:    v2 flexible (KIP-482)
Left out:    nothing
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import PARKED, Parked, RequestContext
from kraft_wire.broker.metadata.metadata_cache import is_internal
from kraft_wire.broker.partition import Partition
from kraft_wire.broker.purgatory import DelayedOperation
from kraft_wire.model import Offset, StorageError, TopicPartition
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]

_UP_TO_HIGH_WATERMARK: Final = -1
_NO_LOW_WATERMARK: Final = -1
_STORAGE_ERROR: Final = ErrorCode.KAFKA_STORAGE_ERROR

_Waiting = dict[TopicPartition, tuple[Offset, DeleteRecordsPartitionResult]]
"""Per partition the low watermark that its answer waits for."""


def handle(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | Parked:
    """Hide the records below an offset (KIP-107).

    Errors per partition, first match wins: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION
    (internal topic), KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION (compacted and
    never deleted), OFFSET_OUT_OF_RANGE; while it waits also REQUEST_TIMED_OUT.
    """
    waiting: _Waiting = {}
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=name,
                partitions=[
                    _delete(broker, name, index, offset, waiting)
                    for index, offset in offsets.items()
                ],
            )
            for name, offsets in _merged(request.topics).items()
        ]
    )
    _answer_failed(broker, waiting)
    if not waiting:
        return response
    deadline_ms = context.now_ms + max(0, request.timeout_ms)
    _park(broker, context, response, waiting, deadline_ms)
    return PARKED


def _merged(topics: Sequence[DeleteRecordsTopic]) -> dict[str, dict[int, int]]:
    """Return the offset for each partition of each topic, as Kafka's tables have them.

    The last offset counts. A topic without partitions is not answered.
    """
    found: dict[str, dict[int, int]] = {}
    for topic in topics:
        for wanted in topic.partitions:
            found.setdefault(topic.name, {})[wanted.partition_index] = wanted.offset
    return found


def _answer_failed(broker: Broker, waiting: _Waiting) -> None:
    """Answer the partitions that a later one of the request took offline with its directory.

    The purgatory would wait for them until the deadline: their failure is over.
    """
    for name, (_, answer) in list(waiting.items()):
        if broker.partitions[name].offline:
            answer.error_code, answer.low_watermark = _STORAGE_ERROR, _NO_LOW_WATERMARK
            del waiting[name]


def _park(
    broker: Broker,
    context: RequestContext,
    response: DeleteRecordsResponse,
    waiting: _Waiting,
    deadline_ms: int,
) -> None:
    """Hold the answer back until the replicas have followed."""

    def finish(errors: dict[TopicPartition, ErrorCode]) -> None:
        for name, (_, answer) in waiting.items():
            answer.error_code = errors.get(name, ErrorCode.NONE)
            partition = broker.partitions.get(name)
            if name not in errors and partition is not None:
                answer.low_watermark = partition.low_watermark()
            elif answer.error_code != ErrorCode.REQUEST_TIMED_OUT:
                answer.low_watermark = _NO_LOW_WATERMARK
        broker.complete(context.reply_to, response)

    required = {name: offset for name, (offset, _) in waiting.items()}
    broker.delete_records_purgatory.park(
        DelayedOperation(context.reply_to, deadline_ms, required, _outcome, finish)
    )


def _outcome(partition: Partition, offset: Offset) -> ErrorCode | None:
    if partition.offline:
        return _STORAGE_ERROR
    if not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE if partition.low_watermark() >= offset else None


def _delete(
    broker: Broker, topic: str, index: int, offset: int, waiting: _Waiting
) -> DeleteRecordsPartitionResult:
    partition = broker.partition(topic, index)
    answer = DeleteRecordsPartitionResult(partition_index=index, low_watermark=_NO_LOW_WATERMARK)
    answer.error_code = _refusal(broker, topic, index, partition)
    if answer.error_code != ErrorCode.NONE:
        return answer
    assert partition is not None
    wanted = partition.high_watermark if offset == _UP_TO_HIGH_WATERMARK else Offset(offset)
    answer.error_code = _advance(partition, wanted)
    if answer.error_code == ErrorCode.NONE:
        answer.low_watermark = partition.low_watermark()
        if answer.low_watermark < wanted:
            waiting[partition.topic_partition] = (wanted, answer)
    return answer


def _refusal(broker: Broker, topic: str, index: int, partition: Partition | None) -> ErrorCode:
    known = broker.image.topic(topic)
    if known is None or index not in known.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if is_internal(topic):
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if partition is not None and partition.offline:
        return _STORAGE_ERROR
    if partition is None or not partition.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if partition.log.config.is_compacted and not partition.log.config.is_deleted:
        return ErrorCode.POLICY_VIOLATION
    return ErrorCode.NONE


def _advance(partition: Partition, wanted: Offset) -> ErrorCode:
    if not 0 <= wanted <= partition.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    try:
        partition.log.advance_log_start_offset(wanted)
    except StorageError as error:
        partition.failed(error)
        return _STORAGE_ERROR
    return ErrorCode.NONE
