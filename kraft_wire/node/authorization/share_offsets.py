"""Guards of requests about the start offsets of share groups: group errors come before topics'."""

from typing import cast

from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.model import ZERO_UUID
from kraft_wire.node.authorization.asker import Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import finishing, split
from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kraft_wire.wire.generated.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kraft_wire.wire.generated.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = [
    "alter_share_group_offsets",
    "delete_share_group_offsets",
    "describe_share_group_offsets",
]

_GROUP = Refusal.of(ErrorCode.GROUP_AUTHORIZATION_FAILED)
_TOPIC = Refusal.of(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def alter_share_group_offsets(asked: Asked) -> Verdict:
    """AlterShareGroupOffsets: the group, then topic by topic; an error of all has no topics."""
    request = cast("AlterShareGroupOffsetsRequest", asked.request)
    read_group, read_topic = asked.needs
    if not asked.asker.meets(read_group, request.group_id):
        return AlterShareGroupOffsetsResponse(error_code=_GROUP.error, error_message=_GROUP.message)
    request.topics, hidden = split(asked, read_topic, request.topics, lambda each: each.topic_name)
    refused = [_not_altered(asked, topic) for topic in hidden if topic.partitions]

    def change(answer: AlterShareGroupOffsetsResponse) -> Message:
        if answer.error_code == ErrorCode.NONE:
            answer.responses = refused + answer.responses
        return answer

    return Passed(request, finishing(AlterShareGroupOffsetsResponse, change) if hidden else None)


def _not_altered(
    asked: Asked, topic: AlterShareGroupOffsetsRequestTopic
) -> AlterShareGroupOffsetsResponseTopic:
    """Refuse a topic; as in Kafka, its id is shown if it exists."""
    known = asked.image.topic(topic.topic_name)
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID if known is None else known.topic_id,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=each.partition_index,
                error_code=_TOPIC.error,
                error_message=_TOPIC.message,
            )
            for each in topic.partitions
        ],
    )


def delete_share_group_offsets(asked: Asked) -> Verdict:
    """DeleteShareGroupOffsets: the group, then topic by topic; an error of all has no topics."""
    request = cast("DeleteShareGroupOffsetsRequest", asked.request)
    delete, read = asked.needs
    if not asked.asker.meets(delete, request.group_id):
        return DeleteShareGroupOffsetsResponse(
            error_code=_GROUP.error, error_message=_GROUP.message
        )
    request.topics, hidden = split(asked, read, request.topics, lambda each: each.topic_name)
    refused = [
        DeleteShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name, error_code=_TOPIC.error, error_message=_TOPIC.message
        )
        for topic in hidden
    ]

    def change(answer: DeleteShareGroupOffsetsResponse) -> Message:
        if answer.error_code == ErrorCode.NONE:
            answer.responses = refused + answer.responses
        return answer

    return Passed(request, finishing(DeleteShareGroupOffsetsResponse, change) if hidden else None)


def describe_share_group_offsets(asked: Asked) -> Verdict:
    """DescribeShareGroupOffsets: group by group; hidden topics are refused, or left out if all."""
    request = cast("DescribeShareGroupOffsetsRequest", asked.request)
    describe, topic = asked.needs
    order = [group.group_id for group in request.groups]
    served, hidden = split(asked, describe, request.groups, lambda each: each.group_id)
    refused = {
        group.group_id: DescribeShareGroupOffsetsResponseGroup(
            group_id=group.group_id, error_code=_GROUP.error
        )
        for group in hidden
    }
    topics: list[list[DescribeShareGroupOffsetsResponseTopic] | None] = []
    for group in served:
        if group.topics is None:
            topics.append(None)
        else:
            group.topics, left = split(asked, topic, group.topics, lambda each: each.topic_name)
            topics.append([_hidden_topic(each) for each in left])
    request.groups = served

    def change(answer: DescribeShareGroupOffsetsResponse) -> Message:
        for group, left in zip(answer.groups, topics, strict=True):
            if left is None:
                group.topics = [
                    each for each in group.topics if asked.asker.meets(topic, each.topic_name)
                ]
            elif group.error_code == ErrorCode.NONE:
                group.topics = [*group.topics, *left]
        described = iter(answer.groups)
        answer.groups = [refused[each] if each in refused else next(described) for each in order]
        return answer

    if not served and hidden:
        return change(DescribeShareGroupOffsetsResponse())
    return Passed(request, finishing(DescribeShareGroupOffsetsResponse, change))


def _hidden_topic(
    topic: DescribeShareGroupOffsetsRequestTopic,
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=number,
                start_offset=-1,
                lag=-1,
                error_code=_TOPIC.error,
                error_message=_TOPIC.message,
            )
            for number in topic.partitions
        ],
    )
