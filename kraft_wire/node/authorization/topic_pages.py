"""The guard of DescribeTopicPartitions: its pages have only topics that may be described."""

from typing import Final, cast

from kraft_wire.apis.rights import ResourceType
from kraft_wire.node.authorization.asker import NO_OPERATIONS, Asked, Passed, Verdict
from kraft_wire.node.authorization.splitting import finishing, split
from kraft_wire.wire.generated.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["describe_topic_partitions"]

_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def describe_topic_partitions(asked: Asked) -> Verdict:
    """Serve only topics that may be described; an invalid cursor is refused first."""
    request = cast("DescribeTopicPartitionsRequest", asked.request)
    cursor = request.cursor
    start = "" if cursor is None else cursor.topic_name
    is_of_all = not request.topics
    names = [each.name for each in request.topics]
    if cursor is not None and (
        cursor.partition_index < 0 or (names and cursor.topic_name not in names)
    ):
        return Passed(request)
    if is_of_all:
        names = [topic.name for topic in asked.image.topics()]
    names = sorted(name for name in dict.fromkeys(names) if name >= start)
    (describe,) = asked.needs
    served, hidden = split(asked, describe, names, lambda name: name, is_silent=is_of_all)
    answers = [] if is_of_all else [_refused(name) for name in hidden]

    def change(answer: DescribeTopicPartitionsResponse) -> Message:
        for each in answer.topics:
            assert each.name is not None, each
            each.topic_authorized_operations = asked.asker.operations(ResourceType.TOPIC, each.name)
        answer.topics += answers
        return answer

    if not served:
        return change(DescribeTopicPartitionsResponse())
    request.topics = [TopicRequest(name=name) for name in served]
    if cursor is not None and cursor.topic_name not in served:
        request.cursor = None  # the topics before it are left out already
    return Passed(request, finishing(DescribeTopicPartitionsResponse, change))


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=_REFUSED, name=name, topic_authorized_operations=NO_OPERATIONS
    )
