"""Requests that move partitions between brokers, with the allowed errors of their answers.

A controller's answer depends on the partition: a reassignment can only be cancelled while it is in
progress, and a preferred leader is elected unless it leads or may not. `MoveWatch` compares the
answer with the committed metadata before and after it, also for replicas that a client chose.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple

from kraft_wire.sim.judge.judge import Judge
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import newest_leader
from kraft_wire.sim.stage import Stage
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.create_topics import CreateTopicsRequest
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


class _Placement(NamedTuple):
    """Where a partition is, by the committed metadata."""

    adding: tuple[int, ...]
    removing: tuple[int, ...]
    replicas: tuple[int, ...]
    leader: int
    epoch: int

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)


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
    """Stores how a partition was when a request to move or elect its leader left."""

    def __init__(self, stage: Stage, judge: Judge) -> None:
        self._stage = stage
        self._judge = judge
        self._before: _Placement | None = None

    def asked(self, request: Message) -> None:
        """Store the replicas and the leader that a request is about."""
        self._before = self._placement(request)

    def answered(self, node_id: int, request: Message, error: ErrorCode) -> None:
        """S47: chosen replicas are used, a cancelled move ends, an election makes a leader."""
        if error is ErrorCode.NONE:
            for name, number, replicas in _chosen_replicas(request):
                found = self._replicas(name, number)
                # As in 4.3.1, all present ones chosen again leave a removal in progress.
                if found and found != [each for each in replicas if each in found]:
                    what = f"{name}-{number} has the replicas"
                    raise Violation("S47 AnswerIsRight", node_id, what, found, "not", replicas)
        before, after = self._before, self._placement(request)
        if before is None or after is None:
            return
        is_election = isinstance(request, ElectLeadersRequest)
        is_wrong = _is_wrong_election if is_election else _is_wrong_cancellation
        if is_wrong(before, after, error):
            what = "an election" if is_election else "a cancellation"
            facts = (what, error.name, "before", before, "after", after)
            raise Violation("S47 AnswerIsRight", node_id, *facts)

    def _replicas(self, name: str, number: int) -> list[int]:
        """Return where a partition is or moves to; empty if it is gone."""
        now: dict[Any, Any] = self._judge.twin.now
        value = now.get(("partition", now.get(("topic", name)), number))
        if value is None:
            return []
        return [each for each in value["replicas"] if each not in value["removing_replicas"]]

    def _placement(self, request: Message) -> _Placement | None:
        """Return the committed state; None if the controller also has uncommitted changes."""
        match request:
            case ElectLeadersRequest(topic_partitions=[one]):
                name = one.topic
            case AlterPartitionReassignmentsRequest(topics=[one]):
                if one.partitions[0].replicas is not None:
                    return None  # no cancellation
                name = one.name
            case _:
                return None
        leader = newest_leader(self._stage.machines.values())
        if leader is None:
            return None
        if self._judge.watches[leader.id].log.end_offset != self._judge.ledger.committed_end:
            return None
        now: dict[Any, Any] = self._judge.twin.now
        value = now.get(("partition", now.get(("topic", name)), 0))
        if value is None:
            return None
        return _Placement(
            adding=tuple(value["adding_replicas"]),
            removing=tuple(value["removing_replicas"]),
            replicas=tuple(value["replicas"]),
            leader=value["leader"],
            epoch=value["partition_epoch"],
        )


def _chosen_replicas(request: Message) -> Iterator[tuple[str, int, list[int]]]:
    """Yield topic, number and replicas of the partitions that a request places itself."""
    match request:
        case CreateTopicsRequest(validate_only=False):
            for topic in request.topics:
                for chosen in topic.assignments:
                    yield topic.name, chosen.partition_index, list(chosen.broker_ids)
        case AlterPartitionReassignmentsRequest():
            for moved in request.topics:
                for each in moved.partitions:
                    if each.replicas is not None:
                        yield moved.name, each.partition_index, list(each.replicas)


def _is_wrong_cancellation(before: _Placement, after: _Placement, error: ErrorCode) -> bool:
    was_moving, is_moving = before.is_moving, after.is_moving
    is_same = (before.adding, before.removing) == (after.adding, after.removing)
    return (
        (error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS and was_moving and is_same)
        or (error is ErrorCode.NONE and was_moving and is_same)
        or (error is ErrorCode.NONE and not was_moving and not is_moving)
    )


def _is_wrong_election(before: _Placement, after: _Placement, error: ErrorCode) -> bool:
    """Return whether the partition shows otherwise, if nothing changed it meanwhile."""
    if before.epoch != after.epoch:
        return False
    is_led = before.leader == before.replicas[0]
    return error is ErrorCode.NONE or (error is ErrorCode.ELECTION_NOT_NEEDED) != is_led
