"""AlterPartition: the leader's requests for ISR changes, all partitions in one, one at a time.

KIP-497, API key 56. A change waits while a request is in flight, and leaves with the next one. A
change without a decision is requested again: another controller is active, the broker's epoch was
old, or no response came. Changes that newer metadata have replaced are dropped before that.

Not here: the effect of a change on the partition (`leadership`).
"""

from collections.abc import Callable
from typing import Final

from kraft_wire.broker.partition import Partition
from kraft_wire.broker.ports import AskController
from kraft_wire.broker.replication.leadership import IsrChange
from kraft_wire.frozen import slotted
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["IsrChanges"]

_AGAIN_AFTER_MS: Final = 50
_ANSWER_WITHIN_MS: Final = 120_000
"""Longer than the sender of the request retries; an answer may also never arrive."""


@slotted(eq=False)
class _Request:
    """A request in flight."""

    changes: dict[tuple[Uuid, int], tuple[Partition, IsrChange]]
    """By topic id and partition."""
    until_ms: int


class IsrChanges:
    """The changes that wait, and those that were asked for."""

    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        ask: AskController,
        changed: Callable[[Partition, tuple[int, ...], int], None],
    ) -> None:
        """`ask` carries a request to the controller.

        `changed` is called for each answer that ends a change or leaves it to the metadata, with
        the previous ISR and the time.
        """
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._ask = ask
        self._changed = changed
        self._waiting: dict[tuple[Uuid, int], tuple[Partition, IsrChange]] = {}
        self._under_way: _Request | None = None
        self._not_before_ms = 0

    def submit(self, partition: Partition, change: IsrChange) -> None:
        """Ask for a change with the next request."""
        self._waiting[partition.topic_id, partition.partition] = (partition, change)

    def send(self, now_ms: int) -> None:
        """Send the waiting changes, unless an answer is pending or the last request failed."""
        if self._under_way is not None and self._under_way.until_ms <= now_ms:
            self._take_back(self._under_way, now_ms)
        if self._under_way is not None or now_ms < self._not_before_ms:
            return
        changes, self._waiting = self._waiting, {}
        changes = {key: each for key, each in changes.items() if _is_wanted(*each)}
        if not changes:
            return
        request = _Request(changes, now_ms + _ANSWER_WITHIN_MS)
        self._under_way = request
        message = _message(self._node_id, self._broker_epoch(), changes)
        self._ask(message, lambda response, then: self._answered(request, response, then))

    def deadline_ms(self) -> int | None:
        """Return when `send` is needed next."""
        if self._under_way is not None:
            return self._under_way.until_ms
        return self._not_before_ms if self._waiting else None

    def _answered(self, request: _Request, response: Message, now_ms: int) -> None:
        if self._under_way is not request:
            return
        assert isinstance(response, AlterPartitionResponse), response
        if response.error_code != ErrorCode.NONE:
            self._take_back(request, now_ms)
            return
        self._under_way = None
        for topic in response.topics:
            for answer in topic.partitions:
                self._take(request, (topic.topic_id, answer.partition_index), answer, now_ms)
        if request.changes:  # not in the answer
            self._take_back(request, now_ms)
        self.send(now_ms)

    def _take(
        self,
        request: _Request,
        key: tuple[Uuid, int],
        answer: ResponsePartitionData,
        now_ms: int,
    ) -> None:
        partition, change = request.changes.pop(key, (None, None))
        if partition is None or change is None:
            return  # not requested
        leadership = partition.leadership
        if leadership is None or leadership.change is not change:
            return  # overtaken
        before = leadership.isr
        if leadership.answered(change, answer):
            self._wait_again({key: (partition, change)}, now_ms)
        else:
            self._changed(partition, before, now_ms)

    def _take_back(self, request: _Request, now_ms: int) -> None:
        self._under_way = None
        self._wait_again(request.changes, now_ms)

    def _wait_again(
        self, changes: dict[tuple[Uuid, int], tuple[Partition, IsrChange]], now_ms: int
    ) -> None:
        self._not_before_ms = now_ms + _AGAIN_AFTER_MS
        for key, each in changes.items():
            self._waiting.setdefault(key, each)


def _is_wanted(partition: Partition, change: IsrChange) -> bool:
    leadership = partition.leadership
    return leadership is not None and leadership.change is change


def _message(
    node_id: int, broker_epoch: int, changes: dict[tuple[Uuid, int], tuple[Partition, IsrChange]]
) -> AlterPartitionRequest:
    """Put changes into one request, topic by topic."""
    topics: dict[Uuid, TopicData] = {}
    for (topic_id, number), (_, change) in changes.items():
        topic = topics.setdefault(topic_id, TopicData(topic_id=topic_id, partitions=[]))
        topic.partitions.append(
            PartitionData(
                partition_index=number,
                leader_epoch=change.leader_epoch,
                new_isr_with_epochs=change.members,
                partition_epoch=change.partition_epoch,
            )
        )
    return AlterPartitionRequest(
        broker_id=node_id, broker_epoch=broker_epoch, topics=list(topics.values())
    )
