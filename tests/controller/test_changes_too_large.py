"""Requests with more changes than one atomic change of the metadata may have: 10,000 records."""

import pytest

from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER
from kraft_wire.wire.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kraft_wire.wire.generated.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from kraft_wire.wire.generated.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kraft_wire.wire.generated.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.controller.cluster import OneNodeCluster

MOST = 10_000
WORDS = "Excessively large number of changes per request."


def test_users_beyond_one_change_keep_what_they_have() -> None:
    cluster = OneNodeCluster()
    upsertions = [
        ScramCredentialUpsertion(
            name=f"user-{number}",
            mechanism=1,
            iterations=4096,
            salt=b"salt",
            salted_password=b"password",
        )
        for number in range(MOST + 1)
    ]
    answer = cluster.ask(AlterUserScramCredentialsRequest(upsertions=upsertions), 0)
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    codes = [(each.error_code, each.error_message) for each in answer.results]
    assert codes == [(E.NONE, None)] * MOST + [(E.POLICY_VIOLATION, WORDS)]
    assert {user for user, _ in cluster.loader.image.scram} == {
        f"user-{number}" for number in range(MOST)
    }


@pytest.fixture(scope="module")
def full() -> OneNodeCluster:
    """Two topics of 5,000 partitions and one more, on broker 1 of 2."""
    cluster = OneNodeCluster({AUTHORIZER_KEY: STANDARD_AUTHORIZER}, brokers=2)
    for name, partitions in (("a", 5_000), ("b", 5_000), ("c", 1)):
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        answer = cluster.ask(CreateTopicsRequest(topics=[topic]), 7)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == E.NONE
    return cluster


def test_partitions_beyond_one_change_are_not_added_but_those_that_fit_are(
    full: OneNodeCluster,
) -> None:
    """The partitions of all topics of a request count together."""
    grown = [
        CreatePartitionsTopic(name=name, count=count, assignments=None)
        for name, count in (("a", 5_000 + MOST - 1), ("b", 5_002), ("c", 2))
    ]
    request = CreatePartitionsRequest(topics=grown, validate_only=True)
    answer = full.ask(request, 3)
    assert isinstance(answer, CreatePartitionsResponse)
    assert [each.error_code for each in answer.results] == [E.NONE, E.POLICY_VIOLATION, E.NONE]


def test_partitions_beyond_one_change_are_not_reassigned(full: OneNodeCluster) -> None:
    moved = [
        ReassignableTopic(
            name=name,
            partitions=[
                ReassignablePartition(partition_index=number, replicas=[2 if leader == 1 else 1])
                for number, leader in leaders
            ],
        )
        for name, leaders in (
            (name, [(view.partition, view.leader) for view in topic.partitions.values()])
            for name, topic in sorted(full.loader.image.topics_by_name.items())
        )
    ]
    answer = full.ask(AlterPartitionReassignmentsRequest(topics=moved), 1)
    assert isinstance(answer, AlterPartitionReassignmentsResponse)
    codes = [each.error_code for topic in answer.responses for each in topic.partitions]
    assert codes == [E.NONE] * MOST + [E.POLICY_VIOLATION]


def test_topics_beyond_one_change_are_not_deleted() -> None:
    cluster = OneNodeCluster()
    for start in range(0, MOST + 1, 4_000):
        topics = [
            CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1)
            for number in range(start, min(start + 4_000, MOST + 1))
        ]
        cluster.ask(CreateTopicsRequest(topics=topics), 7)
    names = sorted(cluster.loader.image.topics_by_name)
    assert len(names) == MOST + 1
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])
    answer = cluster.ask(request, 6)
    assert isinstance(answer, DeleteTopicsResponse)
    codes = [each.error_code for each in answer.responses]
    assert codes.count(E.NONE) == MOST
    assert codes.count(E.POLICY_VIOLATION) == 1
    assert len(cluster.loader.image.topics_by_name) == 1
