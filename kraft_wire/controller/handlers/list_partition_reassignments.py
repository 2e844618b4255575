"""ListPartitionReassignments, API key 46, version 0.

Behaviour:   lists reassigned partitions with their added and removed replicas; null requests all;
             the response omits topics and partitions that do not exist or are not reassigned
             (KIP-455)
Versions:    v0
Left out:    nothing
"""

from collections.abc import Iterable

from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.metadata.image import PartitionImage
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

__all__ = ["handle", "refuse"]


def handle(
    controller: Controller, context: ControllerContext, request: ListPartitionReassignmentsRequest
) -> ControllerResult:
    """List reassignments, topics in name order where all are asked for. No errors."""
    assert context.api_version == 0, context.api_version
    image = controller.image
    if request.topics is None:
        asked: list[tuple[str, Iterable[int]]] = [
            (topic.name, topic.partitions) for topic in image.topics()
        ]
    else:
        asked = [(each.name, each.partition_indexes) for each in request.topics]
    response = ListPartitionReassignmentsResponse(error_message=None)
    for name, numbers in asked:
        topic = image.topic(name)
        known = {} if topic is None else topic.partitions
        ongoing = [
            _described(known[number])
            for number in numbers
            if number in known and _is_reassigned(known[number])
        ]
        if ongoing:
            response.topics.append(OngoingTopicReassignment(name=name, partitions=ongoing))
    assert len(response.topics) <= len(asked)
    return ControllerResult(response)


def refuse(
    request: ListPartitionReassignmentsRequest, error: ErrorCode, message: str | None
) -> ListPartitionReassignmentsResponse:
    """Return the answer that refuses the request; as in Kafka, it lists named partitions, empty."""
    assert error is not ErrorCode.NONE
    topics = [
        OngoingTopicReassignment(
            name=each.name,
            partitions=[
                OngoingPartitionReassignment(partition_index=number)
                for number in each.partition_indexes
            ],
        )
        for each in request.topics or ()
    ]
    return ListPartitionReassignmentsResponse(
        error_code=error, error_message=message, topics=topics
    )


def _is_reassigned(partition: PartitionImage) -> bool:
    return bool(partition.removing_replicas or partition.adding_replicas)


def _described(partition: PartitionImage) -> OngoingPartitionReassignment:
    assert _is_reassigned(partition), partition
    return OngoingPartitionReassignment(
        partition_index=partition.partition,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )
