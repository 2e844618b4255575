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


@case("CreatePartitions", _SOURCE)
def topics_on_their_own(broker: Subject, version: int) -> None:
    """Topics of one request succeed and fail on their own.

    Add a partition to a topic, and to one that does not exist.
    """
    present, absent = broker.topic().name, broker.name("absent")
    topics = [
        CreatePartitionsTopic(name=each, count=2, assignments=None) for each in (absent, present)
    ]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=10_000)
    answer = broker.ask(request, version, CreatePartitionsResponse)
    codes = {each.name: each.error_code for each in answer.results}
    wanted = {present: 0, absent: int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
    expect.true(codes == wanted, str(wanted), codes, "results")


@case("CreatePartitions", _SOURCE)
def topic_named_twice(broker: Subject, version: int) -> None:
    """A topic that is named twice is refused with INVALID_REQUEST.

    Add partitions to a topic twice in one request.
    """
    name = broker.topic().name
    topics = [CreatePartitionsTopic(name=name, count=each, assignments=None) for each in (2, 3)]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=10_000)
    answer = broker.ask(request, version, CreatePartitionsResponse)
    codes = {each.error_code for each in answer.results}
    expect.true(codes == {int(ErrorCode.INVALID_REQUEST)}, "INVALID_REQUEST", codes, "results")


@case("CreatePartitions", _SOURCE)
def assignment_to_an_unknown_broker(broker: Subject, version: int) -> None:
    """A replica on a broker that does not exist: INVALID_REPLICA_ASSIGNMENT.

    Add a partition on the broker 123456.
    """
    topic = CreatePartitionsTopic(
        name=broker.topic().name,
        count=2,
        assignments=[CreatePartitionsAssignment(broker_ids=[123_456])],
    )
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000)
    answer = broker.ask(request, version, CreatePartitionsResponse)
    expect.error(answer, "results[0].error_code", ErrorCode.INVALID_REPLICA_ASSIGNMENT)


@case("CreatePartitions", _SOURCE)
def more_assignments_than_partitions(broker: Subject, version: int) -> None:
    """More assignments than new partitions are refused with INVALID_REPLICA_ASSIGNMENT.

    Add one partition to a topic with two assignments.
    """
    here = CreatePartitionsAssignment(broker_ids=[max(broker.target.node_id, 0)])
    answer = _grow(broker, version, broker.topic().name, 2, [here, here])
    expect.error(answer, _CODE, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
