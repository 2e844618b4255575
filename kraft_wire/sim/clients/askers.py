"""Clients that ask leaders where records are: by time, at the ends of the log, by leader epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kraft_wire.sim.clients.broker_client import BrokerClient
from kraft_wire.sim.clients.context import ClientContext
from kraft_wire.sim.judge.offset_answers import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    OffsetAnswers,
    Place,
)
from kraft_wire.sim.judge.reduced_batches import facts_of
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

if TYPE_CHECKING:
    from kraft_wire.sim.judge.partition_truth import PartitionTruth

__all__ = ["OffsetQueryClient", "earliest_request"]

_OUTDATED: Final = 0.05
"""How often the leader epoch before the known one is sent."""
_KINDS: Final = (LATEST, EARLIEST, EARLIEST, MAX_TIMESTAMP, "time", "time", "epoch", "epoch")


class OffsetQueryClient(BrokerClient):
    """Sends one query after another about the partitions of a topic."""

    def __init__(self, context: ClientContext, number: int, topic: str) -> None:
        super().__init__(context, number, topic)
        self._answers = OffsetAnswers(context.judge)

    def step(self) -> None:
        if self.is_done or self.topic_id is None:
            return
        number = self.random.choice(list(self.leaders))
        node_id, epoch = self.leaders[number]
        if epoch and self.random.random() < _OUTDATED:
            epoch -= 1
        truth = self.context.truth.partitions[self.topic_id, number]
        kind = self.random.choice(_KINDS)
        before = self._answers.place(node_id, truth)
        if kind == "epoch":
            self._ask_for_epoch(node_id, epoch, truth, before)
            return
        asked = self._drawn_time(truth) if isinstance(kind, str) else kind
        place = ListOffsetsPartition(
            partition_index=number, current_leader_epoch=epoch, timestamp=asked
        )
        topic = ListOffsetsTopic(name=self.topic, partitions=[place])
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])

        def answered(response: Message | None) -> None:
            if isinstance(response, ListOffsetsResponse):
                found = response.topics[0].partitions[0]
                self._answers.answered_in_epoch(truth, before, epoch, found.error_code)
                if self._is_right(found.error_code, "list offsets"):
                    answer = (found.timestamp, found.offset, found.leader_epoch)
                    self._answers.listed(truth, before, asked, answer)
                    self.later(self.think_us)
                    return
            self.again()

        self.ask(node_id, request, answered)

    def _drawn_time(self, truth: PartitionTruth) -> int:
        """Return a time of some committed record, or one beside it."""
        if not truth.batches:
            return 0
        facts = facts_of(self.random.choice(truth.batches))
        return max(0, facts.max_timestamp + self.random.choice((-1, 0, 0, 1)))

    def _ask_for_epoch(
        self, node_id: int, epoch: int, truth: PartitionTruth, before: Place
    ) -> None:
        asked = self.random.randrange(truth.leader_epoch + 2)
        place = OffsetForLeaderPartition(
            partition=truth.number, current_leader_epoch=epoch, leader_epoch=asked
        )
        topic = OffsetForLeaderTopic(topic=self.topic, partitions=[place])
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])

        def answered(response: Message | None) -> None:
            if isinstance(response, OffsetForLeaderEpochResponse):
                found = response.topics[0].partitions[0]
                self._answers.answered_in_epoch(truth, before, epoch, found.error_code)
                if self._is_right(found.error_code, "offset for epoch"):
                    answer = (found.leader_epoch, found.end_offset)
                    self._answers.epoch_ended(truth, before, asked, answer)
                    self.later(self.think_us)
                    return
            self.again()

        self.ask(node_id, request, answered)

    def _is_right(self, error_code: int, name: str) -> bool:
        error = ErrorCode(error_code)
        self.context.history.counts[f"{name} {error.name}"] += 1
        return error is ErrorCode.NONE


def earliest_request(topic: str, number: int, epoch: int) -> ListOffsetsRequest:
    """Return the request for the log start offset of one partition."""
    place = ListOffsetsPartition(
        partition_index=number, current_leader_epoch=epoch, timestamp=EARLIEST
    )
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[place])]
    )
