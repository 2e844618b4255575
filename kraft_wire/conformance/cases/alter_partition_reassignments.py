"""AlterPartitionReassignments, API key 45: replicas move to other brokers (KIP-455)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode

_SOURCE: Final = (
    "org.apache.kafka.controller.ReplicationControlManager, alterPartitionReassignments"
)
_CODE: Final = "responses[0].partitions[0].error_code"
_NO_BROKER: Final = 9_999_999
_COUNTS_SINCE: Final = 1


def _alter(
    broker: Subject,
    version: int,
    topic: str,
    replicas: list[int] | None,
    *,
    partition: int = 0,
    may_change_factor: bool = True,
) -> AlterPartitionReassignmentsResponse:
    wanted = [ReassignablePartition(partition_index=partition, replicas=replicas)]
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=10_000,
        topics=[ReassignableTopic(name=topic, partitions=wanted)],
        allow_replication_factor_change=may_change_factor,
    )
    answer = broker.ask(request, version, AlterPartitionReassignmentsResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    return answer


def _own(broker: Subject) -> int:
    return max(broker.target.node_id, 0)


@case("AlterPartitionReassignments", _SOURCE)
def where_it_is(broker: Subject, version: int) -> None:
    """A reassignment to the current replicas changes nothing.

    Reassign a partition to its only replica.
    """
    answer = _alter(broker, version, broker.topic().name, [_own(broker)])
    expect.error(answer, _CODE, ErrorCode.NONE)


@case("AlterPartitionReassignments", "KIP-455")
def nothing_to_cancel(broker: Subject, version: int) -> None:
    """Cancelling a reassignment that does not exist is NO_REASSIGNMENT_IN_PROGRESS.

    Cancel the reassignment of a partition.
    """
    answer = _alter(broker, version, broker.topic().name, None)
    expect.error(answer, _CODE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)


@case("AlterPartitionReassignments", _SOURCE)
def unknown_broker(broker: Subject, version: int) -> None:
    """A broker that does not exist is INVALID_REPLICA_ASSIGNMENT.

    Reassign a partition to a broker that does not exist.
    """
    answer = _alter(broker, version, broker.topic().name, [_NO_BROKER])
    expect.error(answer, _CODE, ErrorCode.INVALID_REPLICA_ASSIGNMENT)


@case("AlterPartitionReassignments", _SOURCE)
def wrong_lists(broker: Subject, version: int) -> None:
    """An empty list, a broker named twice and a negative id are INVALID_REPLICA_ASSIGNMENT.

    Reassign a partition to each of these.
    """
    topic = broker.topic()
    for replicas in ([], [_own(broker)] * 2, [-1]):
        answer = _alter(broker, version, topic.name, list(replicas))
        expect.error(answer, _CODE, ErrorCode.INVALID_REPLICA_ASSIGNMENT)


@case("AlterPartitionReassignments", _SOURCE)
def unknown_partitions(broker: Subject, version: int) -> None:
    """Partitions that do not exist are UNKNOWN_TOPIC_OR_PARTITION.

    Reassign a partition that a topic does not have, and one of a topic that does not exist.
    """
    for name, partition in ((broker.topic().name, 4), (broker.name(), 0)):
        answer = _alter(broker, version, name, [_own(broker)], partition=partition)
        expect.error(answer, _CODE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@case("AlterPartitionReassignments", "KIP-860", since=_COUNTS_SINCE)
def other_number_of_replicas(broker: Subject, version: int) -> None:
    """A list of another length is refused if the request forbids that.

    Reassign a partition to two brokers, with the number of replicas fixed.
    """
    answer = _alter(
        broker,
        version,
        broker.topic().name,
        [_own(broker), _NO_BROKER],
        may_change_factor=False,
    )
    found = expect.at(answer, _CODE)
    expect.true(found != ErrorCode.NONE, "an error", found, _CODE)
    expect.equal(answer, "allow_replication_factor_change", False)


@case("AlterPartitionReassignments", _SOURCE)
def nothing_to_reassign(broker: Subject, version: int) -> None:
    """A request without topics succeeds without results.

    Reassign nothing.
    """
    request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[])
    answer = broker.ask(request, version, AlterPartitionReassignmentsResponse)
    expect.error(answer, "error_code", ErrorCode.NONE)
    expect.equal(answer, "responses", [])
