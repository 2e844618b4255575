"""Requests that move partitions between brokers, with the allowed errors of their answers.

A controller's answer depends on the partition: a reassignment can only be cancelled while it is in
progress. `MoveWatch` compares the answer with the committed metadata before and after it.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from kraft_wire.sim.judge.judge import Judge
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import newest_leader
from kraft_wire.sim.stage import Stage
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.elect_leaders import ElectLeadersRequest, TopicPartitions
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message

__all__ = ["MoveWatch", "drawn_move"]

_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)
_ELECTED: Final = (
    ErrorCode.NONE,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
)
_CANCELLED: Final = (
    ErrorCode.NONE,
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
)
_ASSIGNED: Final = (ErrorCode.NONE, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
_Moves = tuple[tuple[int, ...], tuple[int, ...]]
"""Replicas that are added and removed."""


def drawn_move(
    random: Random, name: str, brokers: range, *, is_there: bool
) -> tuple[Message, tuple[ErrorCode, ...]]:
    """Elect the preferred leader of a partition, or give it other replicas, or stop that."""
    if random.random() < 0.3:
        partitions = [TopicPartitions(topic=name, partitions=[0])]
        request: Message = ElectLeadersRequest(
            election_type=0, topic_partitions=partitions, timeout_ms=1_000
        )
        return request, _ELECTED if is_there else _UNKNOWN
    count = random.randrange(1, 4)
    replicas = random.sample(brokers, min(count, len(brokers))) or None
    if random.random() < 0.3:
        replicas = None
    moved = ReassignablePartition(partition_index=0, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=name, partitions=[moved])], timeout_ms=1_000
    )
    allowed = _CANCELLED if replicas is None else _ASSIGNED
    return request, allowed if is_there else _UNKNOWN


class MoveWatch:
    """Stores which replicas of a partition were about to change when a request left."""

    def __init__(self, stage: Stage, judge: Judge) -> None:
        self._stage = stage
        self._judge = judge
        self._before: _Moves | None = None

    def asked(self, request: Message) -> None:
        """Store the reassignment in progress, if any, that a request cancels."""
        self._before = self._moves(request)

    def answered(self, node_id: int, request: Message, error: ErrorCode) -> None:
        """S47: a reassignment in progress can be cancelled; without one the cancellation fails."""
        before, after = self._before, self._moves(request)
        if before is None or after is None:
            return
        was_moving, is_moving = any(before), any(after)
        is_wrong = (
            (error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS and was_moving and before == after)
            or (error is ErrorCode.NONE and was_moving and before == after)
            or (error is ErrorCode.NONE and not was_moving and not is_moving)
        )
        if is_wrong:
            facts = ("a cancellation", error.name, "before", before, "after", after)
            raise Violation("S47 AnswerIsRight", node_id, *facts)

    def _moves(self, request: Message) -> _Moves | None:
        """Return the committed state; None if the controller also has uncommitted changes."""
        if not isinstance(request, AlterPartitionReassignmentsRequest):
            return None
        topic = request.topics[0]
        leader = newest_leader(self._stage.machines.values())
        if topic.partitions[0].replicas is not None or leader is None:
            return None
        if self._judge.watches[leader.id].log.end_offset != self._judge.ledger.committed_end:
            return None
        now: dict[Any, Any] = self._judge.twin.now
        value = now.get(("partition", now.get(("topic", topic.name)), 0))
        if value is None:
            return None
        return tuple(value["adding_replicas"]), tuple(value["removing_replicas"])
