"""ListPartitionReassignments, API key 46: the reassignments under way (KIP-455)."""

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


@case("ListPartitionReassignments", "KIP-455")
def partition_that_stays(broker: Subject, version: int) -> None:
    """Partitions without a reassignment, and those that do not exist, are not listed.

    Ask for a topic's partition, one that it does not have, and one of an unknown topic.
    """
    names = ((broker.topic().name, 0), (broker.topic().name, 5), (broker.name(), 0))
    for name, partition in names:
        topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[partition])]
        request = ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=topics)
        answer = broker.ask(request, version, ListPartitionReassignmentsResponse)
        expect.error(answer, "error_code", ErrorCode.NONE)
        expect.equal(answer, "topics", [])
