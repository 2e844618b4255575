"""The questions to a leader that no fetch answers: the bounds of its logs, and ends of epochs.

All partitions with the same kind of question share a request: ListOffsets for an end or a start,
OffsetForLeaderEpoch for the end of an epoch (KIP-101). One request is in flight at a time.

Not here: the answers' meaning (`following`), and when to ask (`fetcher`).
"""

from collections.abc import Iterator
from typing import Final

from kraft_wire.broker.replication.fetch_session_handler import PartitionKey
from kraft_wire.broker.replication.following import FollowedPartition, Next
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kraft_wire.wire.generated.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraft_wire.wire.message import Message

__all__ = ["LeaderQuestions"]

_TIMESTAMPS: Final = {Next.LOCATE_END: -1, Next.LOCATE_START: -2}


class LeaderQuestions:
    """The partitions of one leader that have a question, and those that wait for an answer."""

    __slots__ = ("_asked", "_open", "_replica_id")

    def __init__(self, replica_id: int) -> None:
        self._replica_id = replica_id
        self._open: dict[PartitionKey, tuple[FollowedPartition, Next]] = {}
        self._asked: dict[tuple[str, int], tuple[FollowedPartition, Next]] = {}
        """By topic and partition, those of the request in flight."""

    def __contains__(self, key: PartitionKey) -> bool:
        """Whether a partition has a question."""
        return key in self._open

    def __bool__(self) -> bool:
        """Whether any partition has a question."""
        return bool(self._open)

    def ask(self, followed: FollowedPartition, question: Next) -> None:
        """Note a question: LOCATE_END, LOCATE_START or TRACE."""
        assert question in _TIMESTAMPS or question is Next.TRACE, question
        self._open[followed.key] = (followed, question)

    def drop(self, key: PartitionKey) -> None:
        """Remove the question of a partition."""
        self._open.pop(key, None)

    def request(self) -> Message:
        """Return the next request: that for the first question, and all of its kind."""
        assert self._open, "there is no question"
        traces = next(iter(self._open.values()))[1] is Next.TRACE
        asked = [each for each in self._open.values() if (each[1] is Next.TRACE) == traces]
        self._asked = {
            (followed.partition.topic, followed.partition.partition): (followed, question)
            for followed, question in asked
        }
        return self._epochs_request() if traces else self._offsets_request()

    def _offsets_request(self) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsTopic] = {}
        for (name, index), (followed, question) in self._asked.items():
            topics.setdefault(name, ListOffsetsTopic(name=name)).partitions.append(
                ListOffsetsPartition(
                    partition_index=index,
                    current_leader_epoch=followed.leader_epoch,
                    timestamp=_TIMESTAMPS[question],
                )
            )
        return ListOffsetsRequest(replica_id=self._replica_id, topics=list(topics.values()))

    def _epochs_request(self) -> OffsetForLeaderEpochRequest:
        topics: dict[str, OffsetForLeaderTopic] = {}
        for (name, index), (followed, _) in self._asked.items():
            topics.setdefault(name, OffsetForLeaderTopic(topic=name)).partitions.append(
                OffsetForLeaderPartition(
                    partition=index,
                    current_leader_epoch=followed.leader_epoch,
                    leader_epoch=followed.asked_epoch,
                )
            )
        return OffsetForLeaderEpochRequest(
            replica_id=self._replica_id, topics=list(topics.values())
        )

    def take(self, response: Message) -> Iterator[tuple[FollowedPartition, Next]]:
        """Give each asked partition the answer; yield it with its next step.

        Partitions rest whose answer is an error or missing. The answer to a question that was
        removed or replaced in between is ignored.
        """
        asked, self._asked = self._asked, {}
        for name, error, epoch, offset in _answers(response):
            if name not in asked:
                continue
            followed, question = asked.pop(name)
            if self._open.get(followed.key) == (followed, question):
                yield followed, _step(followed, question, error, epoch, offset)
        for followed, question in asked.values():
            if self._open.get(followed.key) == (followed, question):
                yield followed, Next.REST


def _answers(response: Message) -> Iterator[tuple[tuple[str, int], int, int, int]]:
    """Return topic and partition, error, epoch and offset of each answer; -1 for no epoch."""
    if isinstance(response, ListOffsetsResponse):
        for topic in response.topics:
            for each in topic.partitions:
                yield (topic.name, each.partition_index), each.error_code, -1, each.offset
        return
    assert isinstance(response, OffsetForLeaderEpochResponse), response
    for result in response.topics:
        for end in result.partitions:
            name = result.topic, end.partition
            yield name, end.error_code, end.leader_epoch, end.end_offset


def _step(followed: FollowedPartition, question: Next, error: int, epoch: int, offset: int) -> Next:
    if error != ErrorCode.NONE:
        return Next.REST
    if question is Next.TRACE:
        return followed.traced(epoch, offset)
    if question is Next.LOCATE_END:
        return followed.located_end(offset)
    return followed.located_start(offset)
