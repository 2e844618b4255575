"""AlterPartitionReassignments, API key 45, versions 0-1.

Behaviour:   assigns other replicas to partitions: new ones are added first, and the ISR must have
             them before old ones are removed; without new ones, old ones are removed at once; null
             cancels a reassignment (KIP-455)
Versions:    v1 may require the current number of replicas (KIP-860)
Left out:    nothing
"""

from collections.abc import Sequence

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.partition_changes import Election, Elections, PartitionChange
from kraft_wire.controller.placement import read_assignment
from kraft_wire.controller.refusal import Refusal, check_room
from kraft_wire.metadata.image import PartitionImage, TopicImage
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: AlterPartitionReassignmentsRequest
) -> ControllerResult:
    """Begin reassignments, change them, or take them back.

    Errors per partition, first match wins: UNKNOWN_TOPIC_OR_PARTITION,
    NO_REASSIGNMENT_IN_PROGRESS or INVALID_REPLICA_ASSIGNMENT (nothing to take back, or only by an
    unclean election), INVALID_REPLICA_ASSIGNMENT (replicas), INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION (too many records).
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    if not request.topics:
        return ControllerResult(AlterPartitionReassignmentsResponse())  # as 4.3.1: message ""
    may_change = request.allow_replication_factor_change
    response = AlterPartitionReassignmentsResponse(
        error_message=None, allow_replication_factor_change=may_change
    )
    records: list[VersionedRecord] = []
    for asked in request.topics:
        answer = ReassignableTopicResponse(name=asked.name)
        for each in asked.partitions:
            told = ReassignablePartitionResponse(
                partition_index=each.partition_index, error_message=None
            )
            try:
                record = _record(controller, asked.name, each, may_change=may_change)
                check_room(len(records) + 1)
                records += [] if record is None else [record]
            except Refusal as refusal:
                told.error_code, told.error_message = refusal.error, refusal.message
            answer.partitions.append(told)
        response.responses.append(answer)
    assert len(response.responses) == len(request.topics)
    return ControllerResult(response, records)


def refuse(
    request: AlterPartitionReassignmentsRequest, error: ErrorCode, message: str | None
) -> AlterPartitionReassignmentsResponse:
    """Return the answer that refuses the request as a whole, and each partition of it."""
    assert error is not ErrorCode.NONE
    return AlterPartitionReassignmentsResponse(
        error_code=error,
        error_message=message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index,
                        error_code=error,
                        error_message=message,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _record(
    controller: Controller, name: str, asked: ReassignablePartition, *, may_change: bool
) -> VersionedRecord | None:
    """Return the record for one partition's new replicas, None if they are unchanged."""
    topic = controller.image.topic(name)
    if topic is None:
        words = f"Unable to find a topic named {name}."
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        words = f"Unable to find partition {name}:{asked.partition_index}."
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
    assert partition.replicas, partition
    if asked.replicas is None:
        return _taken_back(controller, topic, partition)
    target = read_assignment(controller.image.brokers, asked.replicas, None)
    if not may_change:
        _check_count(partition, target)
    return _reassigned(controller, topic, partition, target)


def _reassigned(
    controller: Controller, topic: TopicImage, partition: PartitionImage, target: Sequence[int]
) -> VersionedRecord | None:
    """Return the first step: the new replicas first, then the replicas to remove."""
    elections = Elections.of(controller.image, topic, controller.settings)
    change = PartitionChange(elections, partition, election=Election.ONLINE)
    removing = sorted(each for each in partition.replicas if each not in target)
    adding = sorted(each for each in target if each not in partition.replicas)
    change.replicas = (*target, *removing)
    change.removing_replicas = tuple(removing) or partition.removing_replicas
    change.adding_replicas = tuple(adding) or partition.adding_replicas
    assert set(partition.replicas) <= set(change.replicas), partition
    return change.record()


def _taken_back(
    controller: Controller, topic: TopicImage, partition: PartitionImage
) -> VersionedRecord | None:
    """Return the record that cancels a reassignment: it removes the added replicas."""
    if not partition.removing_replicas and not partition.adding_replicas:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
    elections = Elections.of(controller.image, topic, controller.settings)
    added = partition.adding_replicas
    replicas = tuple(each for each in partition.replicas if each not in added)
    isr = tuple(each for each in partition.isr if each not in added)
    if not replicas:
        words = "Invalid replica assignment: addingReplicas contains all replicas."
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, words)
    if not isr and not elections.is_unclean_allowed:
        words = (
            f"Unable to revert partition assignment for {topic.name}:{partition.partition} because "
            "it would require an unclean leader election."
        )
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, words)
    change = PartitionChange(elections, partition)
    change.replicas, change.isr = replicas, isr or replicas[:1]
    change.removing_replicas = change.adding_replicas = ()
    assert change.isr, partition
    return change.record()


def _check_count(partition: PartitionImage, target: Sequence[int]) -> None:
    """Refuse a change of the number of replicas, counted after a reassignment in progress."""
    before = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
    assert target, partition
    if len(before) != len(target):
        words = f"The replication factor is changed from {len(before)} to {len(target)}"
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, words)
