"""A cluster of four brokers whose partitions are reassigned, and what is listed meanwhile."""

from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from tests.controller.broker_cluster import BrokerCluster


def reassign(
    cluster: BrokerCluster,
    replicas: list[int] | None,
    topic: str = "t",
    number: int = 0,
    *,
    keeps_count: bool = False,
) -> E:
    """Ask for other replicas of a partition; the partition's error."""
    asked = ReassignablePartition(partition_index=number, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[asked])],
        allow_replication_factor_change=not keeps_count,
    )
    answer = cluster.request(request)
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    assert (answer.error_code, answer.error_message) == (E.NONE, None)
    assert answer.allow_replication_factor_change is not keeps_count
    told = answer.responses[0].partitions[0]
    assert (answer.responses[0].name, told.partition_index) == (topic, number)
    is_silent = told.error_code in (E.NONE, E.NO_REASSIGNMENT_IN_PROGRESS)
    assert (told.error_message is None) is is_silent
    return E(told.error_code)


def ongoing(
    cluster: BrokerCluster, asked: list[tuple[str, list[int]]] | None = None
) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    """Replicas, those that come, and those that go, by partition."""
    request = ListPartitionReassignmentsRequest(topics=None)
    if asked is not None:
        request.topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=numbers)
            for name, numbers in asked
        ]
    answer = cluster.request(request)
    assert isinstance(answer, ListPartitionReassignmentsResponse)
    assert (answer.error_code, answer.error_message) == (E.NONE, None)
    return {
        (topic.name, each.partition_index): (
            each.replicas,
            each.adding_replicas,
            each.removing_replicas,
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def cluster_of_four() -> BrokerCluster:
    """Brokers 2 to 5; 2 and 3 have t-0 and t-1."""
    cluster = BrokerCluster([2, 3, 4, 5])
    cluster.create("t", [2, 3], [3, 2])
    return cluster
