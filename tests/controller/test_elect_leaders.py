"""ElectLeaders: preferred leaders come back, and unclean ones lead where people say so."""

import pytest

from kraft_wire.metadata.image import NO_LEADER
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from tests.controller.broker_cluster import BrokerCluster

PREFERRED, UNCLEAN = 0, 1


def elect(
    cluster: BrokerCluster,
    kind: int,
    asked: list[tuple[str, list[int]]] | None,
    version: int = 2,
) -> dict[tuple[str, int], E]:
    """Ask for elections; the errors by topic and partition."""
    request = ElectLeadersRequest(election_type=kind, topic_partitions=None)
    if asked is not None:
        request.topic_partitions = [TopicPartitions(topic=t, partitions=each) for t, each in asked]
    answer = cluster.request(request, version)
    assert isinstance(answer, ElectLeadersResponse)
    assert answer.error_code == E.NONE
    for result in (
        each for topic in answer.replica_election_results for each in topic.partition_result
    ):
        assert (result.error_message is None) is (result.error_code == E.NONE)
    return {
        (topic.topic, each.partition_id): E(each.error_code)
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }


def cluster_of_two() -> BrokerCluster:
    """Of t-0, which 3 leads, 2 is the preferred leader and in the ISR; u is led as it should be."""
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    cluster.create("u", [3, 2])
    moved = PartitionChangeRecord(
        topic_id=cluster.loader.image.topics_by_name["t"].topic_id, partition_id=0, leader=3
    )
    cluster.commit([VersionedRecord(moved, 2)])
    return cluster


@pytest.mark.parametrize("version", [0, 1, 2])
def test_first_replica_leads_again_where_it_is_in_the_isr(version: int) -> None:
    cluster = cluster_of_two()
    asked = [("t", [0, 9]), ("u", [0]), ("v", [0])]
    assert elect(cluster, PREFERRED, asked, version) == {
        ("t", 0): E.NONE,
        ("t", 9): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("u", 0): E.ELECTION_NOT_NEEDED,
        ("v", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (cluster.partition().leader, cluster.partition().leader_epoch) == (2, 2)


def test_all_partitions_are_elected_for_and_only_those_in_need_are_answered() -> None:
    cluster = cluster_of_two()
    assert elect(cluster, PREFERRED, None) == {("t", 0): E.NONE}
    assert elect(cluster, PREFERRED, None) == {}


def test_first_replica_that_cannot_lead_is_said_to_be_missing() -> None:
    cluster = cluster_of_two()
    cluster.pass_time(10_000, alive=[3])
    since = len(cluster.committed)
    assert elect(cluster, PREFERRED, [("t", [0])]) == {("t", 0): E.PREFERRED_LEADER_NOT_AVAILABLE}
    assert cluster.written(since) == []


def test_unclean_election_is_for_partitions_that_nobody_leads() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    assert elect(cluster, UNCLEAN, [("t", [0])]) == {("t", 0): E.ELECTION_NOT_NEEDED}
    assert elect(cluster, UNCLEAN, None) == {}, "KIP-460: of all, those in need are answered"
    cluster.pass_time(10_000, alive=[2])
    cluster.pass_time(10_000)
    assert cluster.partition().leader == NO_LEADER
    assert elect(cluster, UNCLEAN, [("t", [0])]) == {("t", 0): E.ELIGIBLE_LEADERS_NOT_AVAILABLE}
    cluster.heartbeat(3)
    assert cluster.partition().leader == NO_LEADER, "it is in no ISR"
    assert elect(cluster, UNCLEAN, None) == {("t", 0): E.NONE}
    partition = cluster.partition()
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (3, (3,), 1)


def test_more_elections_than_a_batch_holds_are_refused_all_together() -> None:
    cluster = BrokerCluster([2, 3])
    moved = []
    for name in ("t", "u"):
        cluster.create(name, *[[2, 3]] * 5_001)
        topic_id = cluster.loader.image.topics_by_name[name].topic_id
        moved += [
            PartitionChangeRecord(topic_id=topic_id, partition_id=number, leader=3)
            for number in range(5_001)
        ]
    cluster.commit([VersionedRecord(each, 2) for each in moved])
    since = len(cluster.committed)
    request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None)
    answer = cluster.request(request)
    assert isinstance(answer, ElectLeadersResponse)
    assert (answer.error_code, answer.replica_election_results) == (E.POLICY_VIOLATION, [])
    assert cluster.written(since) == []
    assert len(elect(cluster, PREFERRED, [("t", list(range(5_001)))])) == 5_001


@pytest.mark.parametrize("kind", [-1, 2, 127])
def test_election_of_an_unknown_kind_is_refused_for_every_partition(kind: int) -> None:
    cluster = cluster_of_two()
    asked = [TopicPartitions(topic="t", partitions=[0, 1])]
    answer = cluster.request(ElectLeadersRequest(election_type=kind, topic_partitions=asked))
    assert isinstance(answer, ElectLeadersResponse)
    assert answer.error_code == E.INVALID_REQUEST
    results = answer.replica_election_results[0].partition_result
    assert [each.error_code for each in results] == [E.INVALID_REQUEST] * 2
