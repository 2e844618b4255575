"""DescribeTopicPartitions, API key 75, version 0.

Behaviour:   returns topics in name order, from the cursor on; an empty list means all · returns at
             most ResponsePartitionLimit partitions, capped by `max.request.partition.size.limit`;
             NextCursor names the next one · requested topics that do not exist are listed with
             their error · with a cursor, the topic list must contain its topic
Versions:    v0 (KIP-966)
Left out:    nothing
"""

from collections.abc import Iterator
from typing import Final

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.context import RequestContext
from kraft_wire.broker.metadata.metadata_cache import (
    TOPIC_OPERATIONS,
    current_leader,
    is_internal,
    offline_replicas,
)
from kraft_wire.metadata.image import PartitionImage, TopicImage
from kraft_wire.settings.topic_names import topic_name_problem
from kraft_wire.wire.generated.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle"]

_NO_LEADER: Final = -1


def handle(
    broker: Broker, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe topics page by page (KIP-966).

    Errors of the whole, carried by every topic: INVALID_REQUEST (cursor outside the list, negative
    partition). Per topic: INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION. As in Kafka, a
    partition without a leader has no error.
    """
    names = _names(broker, request)
    if _is_invalid(request, names):
        return _refused(request)
    limit = min(broker.settings.max_request_partition_size_limit, request.response_partition_limit)
    page = _Page(broker, context.listener, max(limit, 1))
    first = request.cursor.partition_index if request.cursor is not None else 0
    skips_unknown = not request.topics
    for name in names:
        starts_at_cursor = request.cursor is not None and name == request.cursor.topic_name
        if not page.add(name, first if starts_at_cursor else 0, skips_unknown=skips_unknown):
            break
    return page.response


def _names(broker: Broker, request: DescribeTopicPartitionsRequest) -> list[str]:
    """Return the topics to describe in name order, each once, from the cursor on."""
    start = "" if request.cursor is None else request.cursor.topic_name
    if request.topics:
        asked = dict.fromkeys(topic.name for topic in request.topics)
    else:
        asked = dict.fromkeys(topic.name for topic in broker.image.topics())
    return sorted(name for name in asked if name >= start)


def _is_invalid(request: DescribeTopicPartitionsRequest, names: list[str]) -> bool:
    cursor = request.cursor
    if cursor is None:
        return False
    is_listed = not request.topics or cursor.topic_name in names
    return not is_listed or cursor.partition_index < 0


def _refused(request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST, name=topic.name
            )
            for topic in request.topics
        ]
    )


class _Page:
    """An answer that is being filled up to its limit of partitions."""

    def __init__(self, broker: Broker, listener: str, limit: int) -> None:
        assert limit > 0, limit
        self._broker = broker
        self._listener = listener
        self._left = limit
        self.response = DescribeTopicPartitionsResponse()

    def add(self, name: str, first: int, *, skips_unknown: bool) -> bool:
        """Add a topic's partitions from `first` on; false once the page is full."""
        if self._left == 0:
            self.response.next_cursor = ResponseCursor(topic_name=name)
            return False
        topic = self._broker.image.topic(name)
        if topic is None:
            if not skips_unknown:
                self.response.topics.append(_unknown_topic(name))
            return True
        end = min(len(topic.partitions), first + self._left)
        described = list(self._partitions(topic, first, end))
        self.response.topics.append(_topic(topic, described))
        if end < len(topic.partitions):
            self.response.next_cursor = ResponseCursor(topic_name=name, partition_index=end)
            return False
        self._left -= len(described)
        return True

    def _partitions(
        self, topic: TopicImage, first: int, end: int
    ) -> Iterator[DescribeTopicPartitionsResponsePartition]:
        for index in range(first, end):
            yield self._partition(topic, topic.partitions[index])

    def _partition(
        self, topic: TopicImage, view: PartitionImage
    ) -> DescribeTopicPartitionsResponsePartition:
        image = self._broker.image
        leader = current_leader(image, topic.name, view.partition, self._listener)
        return DescribeTopicPartitionsResponsePartition(
            partition_index=view.partition,
            leader_id=_NO_LEADER if leader.host is None else view.leader,
            leader_epoch=view.leader_epoch,
            replica_nodes=list(view.replicas),
            isr_nodes=list(view.isr),
            # Non-obvious 13: never null: the Java Admin does not look.
            eligible_leader_replicas=list(view.eligible_leader_replicas),
            last_known_elr=list(view.last_known_elr),
            offline_replicas=offline_replicas(image, view, self._listener),
        )


def _topic(
    topic: TopicImage, partitions: list[DescribeTopicPartitionsResponsePartition]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=partitions,
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _unknown_topic(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_invalid = topic_name_problem(name) is not None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_TOPIC_EXCEPTION
        if is_invalid
        else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
