"""DescribeLogDirs, API key 35, versions 1-5.

Behaviour:   returns every log directory with its free space and the requested partitions in it; a
             null topic list requests all · a failed directory has KAFKA_STORAGE_ERROR and no
             partitions · the metadata log is not listed · the copy of a replica that moves between
             directories is one more partition, with IsFutureKey and the number of records that it
             lacks · OffsetLag is -1 for a replica that is offline · IsCordoned is false while
             metadata.version has no cordoned directories
Versions:    v3 top-level error · v4 total and usable bytes (KIP-827) · v5 cordoned (KIP-1066)
Left out:    nothing
"""

from collections.abc import Iterable, Mapping

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.ports import LogDirectoryUsage
from kraft_wire.metadata.features import CORDONED_FROM
from kraft_wire.model import Offset, TopicPartition
from kraft_wire.settings.cordoning import is_cordoned
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

_UNKNOWN = -1


def handle(
    broker: Broker, context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Describe the log directories (KIP-113). Error per directory: KAFKA_STORAGE_ERROR."""
    wanted = None if request.topics is None else _wanted(request.topics)
    return DescribeLogDirsResponse(
        results=[_describe(broker, directory, wanted) for directory in broker.logs.usage()]
    )


def _wanted(topics: Iterable[DescribableLogDirTopic]) -> Mapping[TopicPartition, None]:
    return {
        TopicPartition(topic.topic, index): None for topic in topics for index in topic.partitions
    }


def _describe(
    broker: Broker, directory: LogDirectoryUsage, wanted: Mapping[TopicPartition, None] | None
) -> DescribeLogDirsResult:
    if directory.is_offline:
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path
        )
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=_topics(broker, directory, wanted),
        total_bytes=directory.total_bytes,
        usable_bytes=directory.usable_bytes,
        is_cordoned=(
            broker.image.metadata_version >= CORDONED_FROM
            and is_cordoned(broker.settings.source, directory.path)
        ),
    )


def _topics(
    broker: Broker, directory: LogDirectoryUsage, wanted: Mapping[TopicPartition, None] | None
) -> list[DescribeLogDirsTopic]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    found = [
        *((name, size_bytes, None) for name, size_bytes in directory.partition_bytes.items()),
        *((name, size_bytes, end) for name, (size_bytes, end) in directory.copies.items()),
    ]
    for name, size_bytes, copy_end in sorted(found, key=lambda each: each[0]):
        if wanted is None or name in wanted:
            topics.setdefault(name.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=name.partition,
                    partition_size=size_bytes,
                    offset_lag=_offset_lag(broker, name, copy_end),
                    is_future_key=copy_end is not None,
                )
            )
    return [DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()]


def _offset_lag(broker: Broker, name: TopicPartition, copy_end: Offset | None) -> int:
    """Return how many offsets a replica's log, or its copy, is behind."""
    partition = broker.partition(*name)
    if partition is None or partition.offline:
        return _UNKNOWN
    if copy_end is not None:
        return partition.log_end_offset - copy_end
    return max(partition.high_watermark - partition.log_end_offset, 0)
