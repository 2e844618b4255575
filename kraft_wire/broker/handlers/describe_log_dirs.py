"""DescribeLogDirs, API key 35, versions 1-5.

Behaviour:   returns every log directory with its free space and the requested partitions in it; a
             null topic list requests all · a failed directory has KAFKA_STORAGE_ERROR and no
             partitions · the metadata log is not listed
Versions:    v3 top-level error · v4 total and usable bytes (KIP-827) · v5 cordoned (KIP-1066)
Left out:    future replicas (KIP-113): IsFutureKey is always false
"""

from collections.abc import Iterable, Mapping

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.ports import LogDirectoryUsage
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]


def handle(
    broker: Broker, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Describe the log directories (KIP-113). Error per directory: KAFKA_STORAGE_ERROR."""
    wanted = None if request.topics is None else _wanted(request.topics)
    return DescribeLogDirsResponse(
        results=[_describe(directory, wanted) for directory in broker.logs.usage()]
    )


def _wanted(topics: Iterable[DescribableLogDirTopic]) -> Mapping[TopicPartition, None]:
    return {
        TopicPartition(topic.topic, index): None for topic in topics for index in topic.partitions
    }


def _describe(
    directory: LogDirectoryUsage, wanted: Mapping[TopicPartition, None] | None
) -> DescribeLogDirsResult:
    if directory.is_offline:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path
        )
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=_topics(directory, wanted),
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
    )


def _topics(
    directory: LogDirectoryUsage, wanted: Mapping[TopicPartition, None] | None
) -> list[DescribeLogDirsTopic]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for name, size_bytes in sorted(directory.partition_bytes.items()):
        if wanted is None or name in wanted:
            topics.setdefault(name.topic, []).append(
                DescribeLogDirsPartition(partition_index=name.partition, partition_size=size_bytes)
            )
    return [DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()]
