"""CreatePartitions, API key 37: topics grow, and never shrink."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_CODE: Final = "results[0].error_code"
_SOURCE: Final = "org.apache.kafka.controller.ReplicationControlManager, createPartitions"


def _grow(
    broker: Subject,
    version: int,
    name: str,
    partitions: int,
    assignments: list[CreatePartitionsAssignment] | None = None,
    *,
    validate_only: bool = False,
) -> CreatePartitionsResponse:
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=assignments)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=5000, validate_only=validate_only)
    return broker.ask(request, version, CreatePartitionsResponse)


@case("CreatePartitions", "KIP-195")
def more_partitions(broker: Subject, version: int) -> None:
    """A topic gets more partitions.

    Increase a topic from one to three partitions.
    """
    answer = _grow(broker, version, broker.topic().name, 3)
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("CreatePartitions", _SOURCE)
def same_number(broker: Subject, version: int) -> None:
    """The number of partitions that a topic has is refused with INVALID_PARTITIONS.

    Change a topic from two to two partitions.
    """
    answer = _grow(broker, version, broker.topic(2).name, 2)
    expect.error(answer, _CODE, ErrorCode.INVALID_PARTITIONS)


@case("CreatePartitions", _SOURCE)
def fewer_partitions(broker: Subject, version: int) -> None:
    """Fewer partitions are refused with INVALID_PARTITIONS.

    Change a topic from two partitions to one.
    """
    answer = _grow(broker, version, broker.topic(2).name, 1)
    expect.error(answer, _CODE, ErrorCode.INVALID_PARTITIONS)


@case("CreatePartitions", _SOURCE)
def unknown_topic(broker: Subject, version: int) -> None:
    """An unknown topic gets UNKNOWN_TOPIC_OR_PARTITION.

    Add partitions to a topic that does not exist.
    """
    answer = _grow(broker, version, broker.name("absent"), 3)
    expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("CreatePartitions", _SOURCE)
def assignment_of_another_size(broker: Subject, version: int) -> None:
    """An assignment of another length than the new partitions is refused.

    Add two partitions to a topic with one assignment: INVALID_REPLICA_ASSIGNMENT.
    """
    topic = broker.topic()
    assignments = [CreatePartitionsAssignment(broker_ids=[max(broker.target.node_id, 0)])]
    answer = _grow(broker, version, topic.name, 3, assignments)
    expect.error(answer, _CODE, ErrorCode.INVALID_REPLICA_ASSIGNMENT)


@case("CreatePartitions", "KIP-195")
def validation_only(broker: Subject, version: int) -> None:
    """validate_only checks the request and creates nothing.

    Validate an increase from one to two, then make it.
    """
    name = broker.topic().name
    for validate_only in (True, False):
        answer = _grow(broker, version, name, 2, validate_only=validate_only)
        expect.error(answer, _CODE, ErrorCode.NONE)
