"""AssignReplicasToDirs: brokers of several log directories say where their replicas lie."""

import pytest

from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from tests.controller.broker_cluster import BrokerCluster, directory

FIRST, SECOND, FAILED = directory(2, 0), directory(2, 1), directory(2, 9)


def cluster_of_two() -> BrokerCluster:
    """Broker 2 has two directories, 3 one; they have the two partitions of t."""
    cluster = BrokerCluster()
    cluster.register(2, log_dirs=[FIRST, SECOND])
    cluster.register(3)
    for broker_id in (2, 3):
        cluster.heartbeat(broker_id)
    cluster.create("t", [2, 3], [2, 3])
    cluster.create("u", [3])
    return cluster


def assign(cluster: BrokerCluster, where: Uuid, topic: str | Uuid, *partitions: int) -> list[E]:
    """Let broker 2 say that partitions of a topic are in a directory; the answer's errors."""
    topics = cluster.loader.image.topics_by_name
    topic_id = topics[topic].topic_id if isinstance(topic, str) else topic
    asked = TopicData(
        topic_id=topic_id, partitions=[PartitionData(partition_index=each) for each in partitions]
    )
    request = AssignReplicasToDirsRequest(
        broker_id=2,
        broker_epoch=cluster.epochs[2],
        directories=[DirectoryData(id=where, topics=[asked])],
    )
    answer = cluster.request(request)
    assert isinstance(answer, AssignReplicasToDirsResponse)
    assert answer.error_code == E.NONE
    assert [each.id for each in answer.directories] == [where]
    assert [each.topic_id for each in answer.directories[0].topics] == [topic_id]
    told = answer.directories[0].topics[0].partitions
    assert [each.partition_index for each in told] == list(partitions)
    return [E(each.error_code) for each in told]


def test_directory_of_a_replica_is_recorded_once() -> None:
    cluster = cluster_of_two()
    since = len(cluster.committed)
    assert assign(cluster, SECOND, "t", 1, 0) == [E.NONE, E.NONE]
    for number in (0, 1):
        assert cluster.partition("t", number).directories == (SECOND, directory(3))
        assert cluster.partition("t", number).leader_epoch == 0
    assert [type(each) for each in cluster.written(since)] == [PartitionChangeRecord] * 2
    assert assign(cluster, SECOND, "t", 1, 0) == [E.NONE, E.NONE]
    assert len(cluster.written(since)) == 2


@pytest.mark.parametrize("where", [FIRST, SECOND, FAILED], ids=["first", "second", "failed"])
def test_what_the_broker_has_no_replica_of_is_refused_one_by_one(where: Uuid) -> None:
    """KIP-858: also in a directory that has failed, whose replicas leave their ISRs."""
    cluster = cluster_of_two()
    assert assign(cluster, where, Uuid(b"?" * 16), 0, 1) == [E.UNKNOWN_TOPIC_ID] * 2
    assert assign(cluster, where, "t", 0, 7, -1) == [
        E.NONE,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert assign(cluster, where, "u", 0) == [E.NOT_LEADER_OR_FOLLOWER]


def test_replica_in_a_directory_that_failed_leaves_the_isr_under_one_new_leader_epoch() -> None:
    cluster = cluster_of_two()
    assert assign(cluster, FAILED, "t", 0) == [E.NONE]
    partition = cluster.partition("t", 0)
    assert partition.directories == (FAILED, directory(3))
    assert (partition.leader, partition.isr, partition.leader_epoch) == (3, (3,), 1)
    assert cluster.partition("t", 1).leader == 2


def test_broker_of_a_former_life_and_one_that_never_was_assign_nothing() -> None:
    cluster = cluster_of_two()
    stale = AssignReplicasToDirsResponse(error_code=E.STALE_BROKER_EPOCH)
    for broker_id, broker_epoch in ((2, cluster.epochs[2] + 1), (9, 0)):
        request = AssignReplicasToDirsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        assert cluster.request(request) == stale


def test_broker_that_named_no_directories_has_all_of_them() -> None:
    """Registrations before version 2 have none (KIP-858)."""
    cluster = BrokerCluster()
    for broker_id in (2, 3):
        cluster.add_broker(broker_id, log_dirs=())
        cluster.epochs[broker_id] = cluster.loader.image.brokers[broker_id].broker_epoch
    cluster.create("t", [2, 3])
    assert assign(cluster, FAILED, "t", 0) == [E.NONE]
    partition = cluster.partition("t", 0)
    assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2, 3), 0)


def test_partition_without_a_leader_elects_the_replica_whose_directory_is_named() -> None:
    """Broker 2, alone in the ISR, comes back with another directory, and names it later.

    In 4.3.1 (`ReplicationControlManager.handleAssignReplicasToDirs`) the partition has no leader
    until the broker is fenced and unfenced again.
    """
    cluster = cluster_of_two()
    assert assign(cluster, FIRST, "t", 0, 1) == [E.NONE, E.NONE]
    cluster.pass_time(20_000, alive=[2])
    cluster.pass_time(20_000)
    assert cluster.partition("t", 0).isr == (2,)
    cluster.register(2, incarnation=2, log_dirs=[SECOND])
    cluster.heartbeat(2)
    partition = cluster.partition("t", 0)
    assert (partition.leader, partition.directories) == (-1, (FIRST, directory(3)))
    assert assign(cluster, FAILED, "t", 0) == [E.NONE]
    assert cluster.partition("t", 0).leader == -1
    assert assign(cluster, SECOND, "t", 0, 1) == [E.NONE, E.NONE]
    for number in (0, 1):
        partition = cluster.partition("t", number)
        assert (partition.leader, partition.isr) == (2, (2,))
        assert partition.directories == (SECOND, directory(3))


def test_directories_are_not_recorded_below_3_7_iv2() -> None:
    """handleAssignReplicasToDirs of 4.3.1: UNSUPPORTED_VERSION, before the broker is looked at."""
    cluster = cluster_of_two()
    record = FeatureLevelRecord(name="metadata.version", feature_level=16)
    cluster.commit([VersionedRecord(record)])
    since = len(cluster.committed)
    for broker_epoch in (cluster.epochs[2], -5):
        asked = AssignReplicasToDirsRequest(broker_id=2, broker_epoch=broker_epoch)
        answer = cluster.request(asked)
        assert isinstance(answer, AssignReplicasToDirsResponse)
        assert (answer.error_code, answer.directories) == (E.UNSUPPORTED_VERSION, [])
    assert cluster.written(since) == []
