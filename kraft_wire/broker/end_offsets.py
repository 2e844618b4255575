"""The end offsets of partitions, asked of their leaders with ListOffsets (KIP-1226).

Each broker gets one request at a time, with the partitions that wait for it. A request without a
response is repeated up to five times, to the same broker, with pauses of about 2, 4, 8, 16 and
30 s. An answer is final, also one with an error: clients ask again. This broker's own partitions
are asked in the same way, through a request to itself.

Kafka's `NetworkPartitionMetadataClient`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from kraft_wire.broker.deadlines import Deadlines
from kraft_wire.broker.inter_broker import InterBrokerClient
from kraft_wire.frozen import slotted
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import RandomSource, TopicPartition
from kraft_wire.wire.error_names import error_of
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraft_wire.wire.message import Message

__all__ = ["EndOffset", "EndOffsets", "EndOffsetsCallback"]

_CONSUMER: Final = -1
_LATEST: Final = -1
_REQUEST_TIMEOUT_MS: Final = 30_000
_RETRIES_MAX: Final = 5
_PAUSE_MS: Final = 1_000
"""Doubled for each retry."""
_PAUSE_MAX_MS: Final = 30_000
_JITTER_PERCENT: Final = 20
_PARTITIONS_MAX: Final = 1_000
"""Bound on the partitions of one request."""
_WAITING_MAX: Final = 100_000
"""Bound on the partitions that wait for one broker; further ones fail at once."""


class EndOffset(NamedTuple):
    """The high watermark of a partition, -1 with an error."""

    offset: int
    error: ErrorCode = ErrorCode.NONE


EndOffsetsCallback: TypeAlias = Callable[[Mapping[TopicPartition, EndOffset]], None]
"""Called once, with the result of each partition; it may come before the call returns."""


@slotted(eq=False)
class _Question:
    """A partition that somebody asks about."""

    partition: TopicPartition
    answered: Callable[[TopicPartition, EndOffset], None]
    retries: int = 0

    def fail(self, error: ErrorCode) -> None:
        self.answered(self.partition, EndOffset(-1, error))


class EndOffsets:
    """The questions to all brokers."""

    def __init__(self, image: Callable[[], MetadataImage], random_source: RandomSource) -> None:
        """`image` returns the newest metadata, which name the leaders."""
        self._image = image
        self._random_source = random_source
        self._leaders: dict[int, _Leader] = {}

    def client(self) -> InterBrokerClient:
        """Return the client that sends the questions."""
        name = "network-partition-metadata-client"
        return InterBrokerClient(name, _REQUEST_TIMEOUT_MS, lambda: self._leaders)

    def ask(self, partitions: Iterable[TopicPartition], then: EndOffsetsCallback) -> None:
        """Ask for the ends of partitions; `then` gets them when the last one is known."""
        asked = dict.fromkeys(partitions)
        ends: dict[TopicPartition, EndOffset] = {}
        if not asked:
            then(ends)
            return

        def answered(partition: TopicPartition, end: EndOffset) -> None:
            ends[partition] = end
            if len(ends) == len(asked):
                then(ends)

        for partition in asked:
            self._route(_Question(partition, answered))

    def _route(self, question: _Question) -> None:
        image = self._image()
        topic = image.topic(question.partition.topic)
        view = None if topic is None else topic.partitions.get(question.partition.partition)
        if view is None or view.leader not in image.brokers:
            question.fail(ErrorCode.LEADER_NOT_AVAILABLE)
            return
        leader = self._leaders.get(view.leader)
        if leader is None:
            leader = self._leaders[view.leader] = _Leader(self._random_source)
        leader.add(question)


class _Leader:
    """The questions to one broker: a `BrokerRequests`."""

    __slots__ = ("_in_flight", "_queue", "_random_source", "_resting")

    def __init__(self, random_source: RandomSource) -> None:
        self._random_source = random_source
        self._queue: deque[_Question] = deque()
        self._resting: Deadlines[_Question] = Deadlines(lambda question: True)
        self._in_flight: list[_Question] = []

    def add(self, question: _Question) -> None:
        """Queue a question."""
        waiting = len(self._queue) + len(self._resting) + len(self._in_flight)
        if waiting < _WAITING_MAX:
            self._queue.append(question)
        else:
            question.fail(ErrorCode.NETWORK_EXCEPTION)

    def request(self, broker_epoch: int, now_ms: int) -> Message | None:
        """Return a request with the oldest questions."""
        if self._in_flight:
            return None
        self._queue.extend(self._resting.due(now_ms))
        if not self._queue:
            return None
        count = min(len(self._queue), _PARTITIONS_MAX)
        self._in_flight = [self._queue.popleft() for _ in range(count)]
        return _request(dict.fromkeys(each.partition for each in self._in_flight))

    def answered(self, response: Message, now_ms: int, wall_ms: int) -> None:
        """Hand back the results, partition by partition."""
        assert isinstance(response, ListOffsetsResponse), response
        ends = {
            TopicPartition(topic.name, each.partition_index): EndOffset(
                each.offset, error_of(each.error_code)
            )
            for topic in response.topics
            for each in topic.partitions
        }
        missing = EndOffset(-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        in_flight, self._in_flight = self._in_flight, []
        for each in in_flight:
            each.answered(each.partition, ends.get(each.partition, missing))

    def failed(self, now_ms: int, wall_ms: int) -> None:
        """Repeat the questions in flight after a pause, unless they were repeated enough."""
        in_flight, self._in_flight = self._in_flight, []
        percent = 100 - _JITTER_PERCENT + self._random_source.below(2 * _JITTER_PERCENT + 1)
        for each in in_flight:
            if each.retries < _RETRIES_MAX:
                each.retries += 1
                due_ms = now_ms + _pause_ms(each.retries, percent)
                self._resting.add(due_ms, each, len(self._resting) + 1)
            else:
                each.fail(ErrorCode.NETWORK_EXCEPTION)

    def deadline_ms(self) -> int | None:
        """Return the end of the nearest pause; what is queued is sent at once."""
        return None if self._in_flight else self._resting.next_ms()


def _pause_ms(retries: int, percent: int) -> int:
    pause_ms = min(_PAUSE_MS << retries, _PAUSE_MAX_MS)
    return min(pause_ms * percent // 100, _PAUSE_MAX_MS)


def _request(partitions: Iterable[TopicPartition]) -> ListOffsetsRequest:
    topics: dict[str, ListOffsetsTopic] = {}
    for name, number in partitions:
        topic = topics.setdefault(name, ListOffsetsTopic(name=name))
        topic.partitions.append(ListOffsetsPartition(partition_index=number, timestamp=_LATEST))
    return ListOffsetsRequest(replica_id=_CONSUMER, topics=list(topics.values()))
