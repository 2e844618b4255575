"""Guards of requests that name topics, and are refused topic by topic."""

from typing import Final, cast

from kraft_wire.node.authorization.asker import Asked, Verdict
from kraft_wire.node.authorization.splitting import split, with_refused
from kraft_wire.settings.topic_names import topic_name_problem
from kraft_wire.wire.generated.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kraft_wire.wire.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
    TopicResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

__all__ = ["delete_records", "describe_producers", "list_offsets", "offset_for_leader_epoch"]

_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def list_offsets(asked: Asked) -> Verdict:
    """ListOffsets: a replica id gives no right."""
    request = cast("ListOffsetsRequest", asked.request)
    (describe,) = asked.needs
    request.topics, refused = split(asked, describe, request.topics, lambda topic: topic.name)
    answers = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(
                    partition_index=each.partition_index, error_code=_REFUSED
                )
                for each in topic.partitions
            ],
        )
        for topic in refused
    ]
    return with_refused(request, ListOffsetsResponse, "topics", answers, request.topics)


def offset_for_leader_epoch(asked: Asked) -> Verdict:
    """OffsetForLeaderEpoch: brokers may ask for all topics."""
    request = cast("OffsetForLeaderEpochRequest", asked.request)
    (need,) = asked.needs
    request.topics, refused = split(asked, need, request.topics, lambda topic: topic.topic)
    answers = [
        OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=[
                EpochEndOffset(partition=each.partition, error_code=_REFUSED)
                for each in topic.partitions
            ],
        )
        for topic in refused
    ]
    return with_refused(request, OffsetForLeaderEpochResponse, "topics", answers, request.topics)


def delete_records(asked: Asked) -> Verdict:
    """DeleteRecords."""
    request = cast("DeleteRecordsRequest", asked.request)
    (delete,) = asked.needs
    request.topics, refused = split(asked, delete, request.topics, lambda topic: topic.name)
    answers = [
        DeleteRecordsTopicResult(
            name=topic.name,
            partitions=[
                DeleteRecordsPartitionResult(
                    partition_index=each.partition_index, low_watermark=-1, error_code=_REFUSED
                )
                for each in topic.partitions
            ],
        )
        for topic in refused
    ]
    return with_refused(request, DeleteRecordsResponse, "topics", answers, request.topics)


def describe_producers(asked: Asked) -> Verdict:
    """DescribeProducers: an invalid name is refused first."""
    request = cast("DescribeProducersRequest", asked.request)
    (read,) = asked.needs

    def valid_name(topic: TopicRequest) -> str | None:
        return topic.name if topic_name_problem(topic.name) is None else None

    request.topics, refused = split(asked, read, request.topics, valid_name)
    answers = [
        TopicResponse(
            name=topic.name,
            partitions=[
                PartitionResponse(
                    partition_index=index,
                    error_code=_REFUSED,
                    error_message=_REFUSED.message,
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in refused
    ]
    return with_refused(request, DescribeProducersResponse, "topics", answers, request.topics)
