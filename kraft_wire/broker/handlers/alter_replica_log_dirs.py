"""AlterReplicaLogDirs, API key 34, versions 1-2.

Behaviour:   begins to move replicas of this broker to other log directories; the response does not
             wait for the moves, which DescribeLogDirs shows · another directory replaces the target
             of a present move, the replica's own directory cancels it · for a partition without a
             replica here the directory is kept, and a replica that is created later goes there ·
             of a partition that is named twice the last directory counts · a directory is named as
             DescribeLogDirs names it
Versions:    v2 flexible (KIP-482)
Left out:    nothing
"""

from collections.abc import Mapping

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_cache import no_replica_error
from kraft_wire.model import StorageError, TopicPartition
from kraft_wire.settings.cordoning import is_cordoned
from kraft_wire.wire.generated.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]

_NOT_AVAILABLE = ErrorCode.REPLICA_NOT_AVAILABLE
_NAME_LENGTH_MAX = 255
_COPY_SUFFIX_LENGTH = len(".-future") + 32
"""Characters after the partition in the name of a copy's directory, with an id in hexadecimal."""


def handle(
    broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin to move replicas to other log directories (KIP-113).

    Errors per partition, first match wins: INVALID_TOPIC_EXCEPTION (the name of the copy's
    directory is too long), LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR (the directory has failed),
    INVALID_REPLICA_ASSIGNMENT (it is cordoned), KAFKA_STORAGE_ERROR (the replica is offline),
    UNKNOWN_TOPIC_OR_PARTITION, REPLICA_NOT_AVAILABLE (other brokers have the replicas),
    KAFKA_STORAGE_ERROR (another directory has failed, or the copy cannot be created).
    """
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for name, path in _wanted(request).items():
        error = _alter(broker, context, name, path)
        topics.setdefault(name.topic, []).append(
            AlterReplicaLogDirPartitionResult(partition_index=name.partition, error_code=error)
        )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ]
    )


def _wanted(request: AlterReplicaLogDirsRequest) -> Mapping[TopicPartition, str]:
    """Return the directory for each partition."""
    return {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }


def _alter(broker: Broker, context: RequestContext, name: TopicPartition, path: str) -> ErrorCode:
    """Take one partition of a request."""
    moves = broker.moves
    error = _directory_error(broker, name, path)
    if error is not ErrorCode.NONE:
        return error
    partition = broker.partition(*name)
    if partition is None:
        moves.copies.prefer(name, path)
        is_elsewhere = no_replica_error(broker.image, *name) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        # As in Kafka not the newer code for "no replica here", which old clients do not know.
        return _NOT_AVAILABLE if is_elsewhere else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if moves.target_of(name) == path:
        return ErrorCode.NONE
    moves.cancel(name, context.now_ms)
    if moves.copies.directory_of(name) == path:
        return ErrorCode.NONE
    if not all(moves.copies.directories().values()):
        return ErrorCode.KAFKA_STORAGE_ERROR  # it may have a copy, too
    try:
        moves.begin(partition, path, context.now_ms, context.wall_ms)
    except StorageError:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE


def _directory_error(broker: Broker, name: TopicPartition, path: str) -> ErrorCode:
    """Return why no replica of this name can go to a directory, NONE if it can."""
    if len(str(name)) + _COPY_SUFFIX_LENGTH > _NAME_LENGTH_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    is_online = broker.moves.copies.directories().get(path)
    if is_online is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not is_online:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if is_cordoned(broker.settings.source, path):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return ErrorCode.NONE
