"""CreatePartitions: new partitions only, and each error before those that come after it."""

import pytest

from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import CreatableTopic
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.controller.cluster import OneNodeCluster
from tests.controller.plain_requests import create


@pytest.fixture
def cluster() -> OneNodeCluster:
    """Brokers 1 and 2; the topic `t` has one partition with two replicas."""
    made = OneNodeCluster(brokers=2)
    assert create(made, CreatableTopic(name="t", num_partitions=1, replication_factor=2)) == [0]
    return made


def grow(
    cluster: OneNodeCluster, *topics: CreatePartitionsTopic, validate_only: bool = False
) -> list[tuple[str, int]]:
    request = CreatePartitionsRequest(topics=list(topics), validate_only=validate_only)
    response = cluster.ask(request, 3)
    assert isinstance(response, CreatePartitionsResponse)
    return [(each.name, each.error_code) for each in response.results]


def to(count: int, *assignments: list[int], name: str = "t") -> CreatePartitionsTopic:
    chosen = [CreatePartitionsAssignment(broker_ids=each) for each in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=chosen or None)


def replicas(cluster: OneNodeCluster) -> list[tuple[int, ...]]:
    partitions = cluster.loader.image.topics_by_name["t"].partitions
    return [each.replicas for each in partitions.values()]


def test_new_partitions_have_as_many_replicas_as_the_first(cluster: OneNodeCluster) -> None:
    first = replicas(cluster)[0]
    assert grow(cluster, to(3)) == [("t", E.NONE)]
    assert replicas(cluster)[0] == first
    assert [sorted(each) for each in replicas(cluster)] == [[1, 2]] * 3


def test_assignment_names_the_new_partitions_alone(cluster: OneNodeCluster) -> None:
    assert grow(cluster, to(3, [2, 1], [1, 2])) == [("t", E.NONE)]
    assert replicas(cluster)[1:] == [(2, 1), (1, 2)]


def test_validation_changes_nothing(cluster: OneNodeCluster) -> None:
    assert grow(cluster, to(2), validate_only=True) == [("t", E.NONE)]
    assert grow(cluster, to(1), validate_only=True) == [("t", E.INVALID_PARTITIONS)]
    assert len(replicas(cluster)) == 1


@pytest.mark.parametrize(
    ("topics", "errors"),
    [
        ([to(0, name="x"), to(0, name="x")], [("x", E.INVALID_REQUEST)]),
        ([to(0, name="x")], [("x", E.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([to(1, [9])], [("t", E.INVALID_PARTITIONS)]),
        ([to(0)], [("t", E.INVALID_PARTITIONS)]),
        ([to(20_000)], [("t", E.POLICY_VIOLATION)]),
        ([to(2, [9, 1])], [("t", E.INVALID_REPLICA_ASSIGNMENT)]),
        ([to(2, [1])], [("t", E.INVALID_REPLICA_ASSIGNMENT)]),
        ([to(2, [1, 1])], [("t", E.INVALID_REPLICA_ASSIGNMENT)]),
        ([to(3, [1, 2])], [("t", E.INVALID_REPLICA_ASSIGNMENT)]),
    ],
)
def test_first_error_in_kafka_s_order_is_answered(
    cluster: OneNodeCluster, topics: list[CreatePartitionsTopic], errors: list[tuple[str, int]]
) -> None:
    assert grow(cluster, *topics) == errors
    assert len(replicas(cluster)) == 1


def test_topic_that_is_refused_leaves_the_others_theirs(cluster: OneNodeCluster) -> None:
    assert grow(cluster, to(2, name="x"), to(2)) == [
        ("x", E.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", E.NONE),
    ]
    assert len(replicas(cluster)) == 2


@pytest.mark.parametrize(
    ("state", "asked", "error", "words"),
    [
        (
            {"fenced": 1},
            to(2),
            E.INVALID_REPLICATION_FACTOR,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
        (
            {"in_controlled_shutdown": 1},
            to(2),
            E.INVALID_REPLICATION_FACTOR,
            "All brokers are currently fenced, or have all their log directories cordoned.",
        ),
        (
            {"fenced": 1},
            to(2, [2, 1]),
            E.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition 1 are fenced "
            "or in controlled shutdown.",
        ),
    ],
)
def test_partition_that_nobody_could_lead_is_not_made(
    cluster: OneNodeCluster,
    state: dict[str, int],
    asked: CreatePartitionsTopic,
    error: E,
    words: str,
) -> None:
    """ReplicationControlManager.createPartitions of 4.3.1, with all brokers out of service."""
    for broker in list(cluster.loader.image.brokers.values()):
        change = BrokerRegistrationChangeRecord(broker_id=broker.broker_id)
        change.broker_epoch = broker.broker_epoch
        for name, value in state.items():
            setattr(change, name, value)
        cluster.commit([VersionedRecord(change, 1)])
    response = cluster.ask(CreatePartitionsRequest(topics=[asked]), 3)
    assert isinstance(response, CreatePartitionsResponse)
    (answer,) = response.results
    assert (answer.error_code, answer.error_message) == (error, words)
    assert len(replicas(cluster)) == 1


def test_chosen_replicas_out_of_service_are_noticed_partition_by_partition(
    cluster: OneNodeCluster,
) -> None:
    """`ReplicationControlManager.createPartitions`: before the next assignment is looked at."""
    for number in (3, 4):
        cluster.add_broker(number, fenced=True)
    request = CreatePartitionsRequest(topics=[to(3, [3, 4], [9, 1])])
    response = cluster.ask(request, 3)
    assert isinstance(response, CreatePartitionsResponse)
    assert response.results[0].error_message == (
        "All brokers specified in the manual partition assignment for partition 1 are fenced or in "
        "controlled shutdown."
    )
