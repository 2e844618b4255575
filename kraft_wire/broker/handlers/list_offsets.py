"""ListOffsets, API key 2, versions 1-11.

Behaviour:   returns the first record whose time is at or after the timestamp; offset -1 if there is
             none below the end that the isolation level allows, for replicas below the log end · a
             new leader that does not know its predecessor's high watermark returns
             OFFSET_NOT_AVAILABLE · special timestamps: -1 latest, -2 earliest, -3 record with the
             largest time, -4 earliest on the local disk, -5 end of tiered storage, -6 start of the
             records that are not uploaded yet
Versions:    v4 leader epochs (KIP-320) · v5 OFFSET_NOT_AVAILABLE (KIP-207) · v7 -3 (KIP-734) ·
             v8 -4 (KIP-405) · v9 -5 (KIP-1005) · v10 timeout · v11 -6 (KIP-1023)
Left out:    tiered storage: -5 and -6 are answered as by a broker without it
"""

from typing import Final, NamedTuple

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_cache import no_replica_error
from kraft_wire.broker.partition import Partition
from kraft_wire.model import Offset, StorageError
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

__all__ = ["handle"]

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL = -1, -2, -3, -4
_LATEST_TIERED, _EARLIEST_PENDING_UPLOAD = -5, -6
_FIRST_VERSION: Final = {
    _LATEST: 1,
    _EARLIEST: 1,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
_FIRST_EPOCH_VERSION: Final = 4
_FIRST_NOT_AVAILABLE_VERSION: Final = 5
_ISOLATION_LEVELS: Final = (0, 1)
_READ_COMMITTED: Final = 1
_CONSUMER: Final = -1
_DEBUGGING: Final = -2
"""The replica id of a client that may ask any replica, not only the leader."""


class _Found(NamedTuple):
    """An answer for one partition; -1 is "nothing"."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


_NOTHING: Final = _Found()


def handle(
    broker: Broker, context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse:
    """Look up offsets by time.

    Errors per partition, first match wins: UNKNOWN_SERVER_ERROR (no such isolation level),
    INVALID_REQUEST (named twice), UNSUPPORTED_VERSION (special timestamp of a later version),
    UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH,
    NOT_LEADER_OR_FOLLOWER, OFFSET_NOT_AVAILABLE (below version 5 LEADER_NOT_AVAILABLE).
    """
    if request.isolation_level not in _ISOLATION_LEVELS:
        return _refused(request)
    asked: dict[str, dict[int, ListOffsetsPartition | None]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            partitions = asked.setdefault(topic.name, {})
            index = partition.partition_index
            partitions[index] = None if index in partitions else partition
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=name,
                partitions=[
                    _answer(broker, context, request, name, index, partition)
                    for index, partition in partitions.items()
                ],
            )
            for name, partitions in asked.items()
        ]
    )


def _refused(request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Refuse all partitions, in order: as in Kafka an unknown value fails the request."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(partition_index=each.partition_index, error_code=error)
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=topics)


def _answer(
    broker: Broker,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    index: int,
    asked: ListOffsetsPartition | None,
) -> ListOffsetsPartitionResponse:
    """Answer for one partition; `asked` is None for one that is named twice."""
    found: _Found | None = _NOTHING
    error = ErrorCode.INVALID_REQUEST
    if asked is not None:
        partition = broker.partition(topic, index)
        error = _error(broker, context, request, topic, partition, asked)
        if partition is not None and error is ErrorCode.NONE:
            try:
                found = _find(broker, request, partition, asked.timestamp)
            except StorageError as failure:
                partition.failed(failure)
                error = ErrorCode.KAFKA_STORAGE_ERROR
    if found is None:
        found, error = _NOTHING, _not_available(context.api_version)
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=error,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if context.api_version >= _FIRST_EPOCH_VERSION else -1,
    )


def _error(
    broker: Broker,
    context: RequestContext,
    request: ListOffsetsRequest,
    topic: str,
    partition: Partition | None,
    asked: ListOffsetsPartition,
) -> ErrorCode:
    first_version = _FIRST_VERSION.get(asked.timestamp, 1 if asked.timestamp >= 0 else None)
    if first_version is None or context.api_version < first_version:
        return ErrorCode.UNSUPPORTED_VERSION
    if partition is None:
        return no_replica_error(broker.image, topic, asked.partition_index)
    if partition.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    fenced = partition.check_leader_epoch(asked.current_leader_epoch)
    if fenced is not ErrorCode.NONE:
        return fenced
    if partition.is_leader or request.replica_id == _DEBUGGING:
        return ErrorCode.NONE
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


def _not_available(version: int) -> ErrorCode:
    if version < _FIRST_NOT_AVAILABLE_VERSION:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.OFFSET_NOT_AVAILABLE


def _find(
    broker: Broker, request: ListOffsetsRequest, partition: Partition, timestamp: int
) -> _Found | None:
    """Return the offset, None if the leader cannot know it yet (KIP-207)."""
    bound = _readable_end(request, partition)
    log = partition.log
    nothing = None if _is_behind(request, partition) else _NOTHING
    match timestamp:
        case -1:
            if nothing is None:
                return None
            return _Found(offset=bound, leader_epoch=partition.leader_epoch)
        case -2 | -4:
            start = log.log_start_offset
            return _Found(offset=start, leader_epoch=partition.leader_epoch_at(start))
        case -5 | -6:
            return _NOTHING
        case -3:
            newest = broker.logs.offset_of_max_timestamp(log, upper_bound=log.log_end_offset)
        case _:
            newest = broker.logs.offset_for_timestamp(log, timestamp, upper_bound=bound)
    if newest is None or newest.offset >= bound:
        return nothing
    return _Found(newest.timestamp, newest.offset, newest.leader_epoch)


def _is_behind(request: ListOffsetsRequest, partition: Partition) -> bool:
    """Whether a client would get a smaller offset than it may have read from an earlier leader."""
    if request.replica_id != _CONSUMER or partition.leadership is None:
        return False
    return partition.high_watermark < partition.leadership.epoch_start_offset


def _readable_end(request: ListOffsetsRequest, partition: Partition) -> Offset:
    """Return the exclusive end of the records that the requester may read."""
    if request.replica_id != _CONSUMER:
        return partition.log_end_offset
    if request.isolation_level == _READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark
