"""AlterPartition: which ISR a leader may have, in the order in which Kafka says no."""

import pytest

from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import ONE_UUID, Uuid
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from tests.controller.broker_cluster import BrokerCluster, directory


def alter(
    cluster: BrokerCluster, leader: int, isr: list[int], *, version: int = 3, **fields: object
) -> ResponsePartitionData:
    """Ask for an ISR of t-0 as its leader would, but for what is given."""
    partition = cluster.partition()
    data = PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=partition.leader_recovery_state,
    )
    if version < 3:
        data.new_isr = isr
    else:
        data.new_isr_with_epochs = [
            BrokerState(broker_id=each, broker_epoch=cluster.epochs.get(each, -1)) for each in isr
        ]
    topic_id = cluster.loader.image.topics_by_name["t"].topic_id
    for name, value in fields.items():
        if name == "topic_id":
            assert isinstance(value, bytes)
            topic_id = Uuid(value)
        else:
            setattr(data, name, value)
    request = AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=cluster.epochs[leader],
        topics=[TopicData(topic_id=topic_id, partitions=[data])],
    )
    answer = cluster.request(request, version)
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error_code == E.NONE
    (topic,) = answer.topics
    assert topic.topic_id == topic_id
    (told,) = topic.partitions
    return told


def cluster_of_three() -> BrokerCluster:
    """Brokers 2 to 4 have t-0, which 2 leads; 5 is fenced, 6 about to stop."""
    cluster = BrokerCluster([2, 3, 4, 5, 6])
    cluster.create("u", [6])
    cluster.create("t", [2, 3, 4, 5, 6])
    cluster.heartbeat(5, want_fence=True)
    cluster.heartbeat(6, want_shut_down=True)
    assert cluster.partition().isr == (2, 3, 4)
    return cluster


@pytest.mark.parametrize("version", [2, 3])
def test_isr_that_a_leader_asks_for_is_recorded_and_told(version: int) -> None:
    cluster = cluster_of_three()
    for isr in ([2, 4], [2, 4, 3]):
        before = cluster.partition()
        told = alter(cluster, 2, isr, version=version)
        assert cluster.partition().isr == tuple(isr)
        assert told == ResponsePartitionData(
            partition_index=0,
            leader_id=2,
            leader_epoch=before.leader_epoch,
            isr=isr,
            leader_recovery_state=0,
            partition_epoch=before.partition_epoch + 1,
        )
        record = cluster.committed[-1]
        assert isinstance(record.record, PartitionChangeRecord)
        assert (record.record.isr, record.record.leader, record.version) == (isr, -2, 2)


def test_isr_that_is_the_present_one_is_told_and_not_recorded() -> None:
    cluster = cluster_of_three()
    since = len(cluster.committed)
    assert alter(cluster, 2, [2, 3, 4]).error_code == E.NONE
    assert cluster.written(since) == []


WRONG_EPOCH = [BrokerState(broker_id=2), BrokerState(broker_id=3, broker_epoch=1)]


@pytest.mark.parametrize(
    ("leader", "isr", "fields", "error"),
    [
        (2, [2], {"topic_id": b"?" * 16}, E.UNKNOWN_TOPIC_ID),
        (2, [2], {"topic_id": bytes(16)}, E.UNKNOWN_TOPIC_ID),
        (2, [2], {"partition_index": 1}, E.UNKNOWN_TOPIC_OR_PARTITION),
        (3, [9], {"leader_epoch": 1, "partition_epoch": 0}, E.NOT_CONTROLLER),
        (3, [9], {"leader_epoch": -1, "partition_epoch": 99}, E.NOT_CONTROLLER),
        (3, [9], {"leader_epoch": -1, "partition_epoch": 0}, E.FENCED_LEADER_EPOCH),
        (3, [3], {"partition_epoch": 0}, E.INVALID_REQUEST),
        (2, [9], {"partition_epoch": 0}, E.INVALID_UPDATE_VERSION),
        (2, [], {}, E.INVALID_REQUEST),
        (2, [3, 4], {}, E.INVALID_REQUEST),
        (2, [2, 2], {}, E.INVALID_REQUEST),
        (2, [2, 9], {}, E.INVALID_REQUEST),
        (2, [2, -1], {}, E.INVALID_REQUEST),
        (2, [2, 5], {"leader_recovery_state": 1}, E.INVALID_REQUEST),
        (2, [2], {"leader_recovery_state": 1}, E.INVALID_REQUEST),
        (2, [2], {"leader_recovery_state": 7}, E.INVALID_REQUEST),
        (2, [2, 5], {}, E.INELIGIBLE_REPLICA),
        (2, [2, 6], {}, E.INELIGIBLE_REPLICA),
        (2, [2], {"new_isr_with_epochs": WRONG_EPOCH}, E.INELIGIBLE_REPLICA),
    ],
)
def test_isr_that_may_not_be_is_refused_and_not_recorded(
    leader: int, isr: list[int], fields: dict[str, object], error: E
) -> None:
    cluster = cluster_of_three()
    since = len(cluster.committed)
    told = alter(cluster, leader, isr, **fields)
    index = fields.get("partition_index", 0)
    assert told == ResponsePartitionData(partition_index=index, error_code=error)  # type: ignore[arg-type]  # an int of the table
    assert cluster.written(since) == []


def test_broker_of_a_former_life_changes_nothing() -> None:
    cluster = cluster_of_three()
    topics = [TopicData(topic_id=ONE_UUID)]
    epoch = cluster.epochs[2] - 1
    request = AlterPartitionRequest(broker_id=2, broker_epoch=epoch, topics=topics)
    answer = AlterPartitionResponse(error_code=E.STALE_BROKER_EPOCH)
    assert cluster.request(request) == answer
    assert cluster.request(AlterPartitionRequest(broker_id=9, topics=topics)) == answer


def test_replica_that_was_unfenced_again_under_a_new_epoch_is_named_by_it() -> None:
    cluster = cluster_of_three()
    former = cluster.epochs[3]
    cluster.pass_time(10_000, alive=[2, 4])
    cluster.register(3, 2)
    cluster.heartbeat(3)
    assert cluster.partition().isr == (2, 4)
    current, cluster.epochs[3] = cluster.epochs[3], former
    assert alter(cluster, 2, [2, 4, 3]).error_code == E.INELIGIBLE_REPLICA
    cluster.epochs[3] = current
    assert alter(cluster, 2, [2, 4, 3]).error_code == E.NONE


def test_leader_that_recovered_from_an_unclean_election_says_so() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    cluster.configure("t", "unclean.leader.election.enable", "true")
    cluster.pass_time(10_000, alive=[2])
    cluster.heartbeat(3)
    cluster.pass_time(10_000, alive=[3])
    cluster.heartbeat(2)
    assert (cluster.partition().leader, cluster.partition().leader_recovery_state) == (3, 1)
    assert alter(cluster, 3, [3, 2]).error_code == E.INVALID_REQUEST, "alone while it recovers"
    assert alter(cluster, 3, [3]).leader_recovery_state == 1
    assert alter(cluster, 3, [3], leader_recovery_state=0).leader_recovery_state == 0
    assert alter(cluster, 3, [3, 2]).error_code == E.NONE


def test_isr_that_completes_a_reassignment_ends_it_and_may_elect() -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2])
    begun = PartitionChangeRecord(
        topic_id=cluster.loader.image.topics_by_name["t"].topic_id,
        partition_id=0,
        replicas=[3, 2],
        adding_replicas=[3],
        removing_replicas=[2],
        directories=[directory(3), directory(2)],
    )
    cluster.commit([VersionedRecord(begun, 2)])
    assert alter(cluster, 2, [2, 3]).error_code == E.NEW_LEADER_ELECTED
    after = cluster.partition()
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((3,), (3,), 3, 1)
    assert (after.adding_replicas, after.removing_replicas) == ((), ())
    assert after.directories == (directory(3),)


def test_smaller_isr_keeps_who_left_eligible_where_that_is_kept() -> None:
    cluster = BrokerCluster([2, 3], keeps_elr=True)
    cluster.create("t", [2, 3])
    cluster.configure("t", "min.insync.replicas", "2")
    alter(cluster, 2, [2])
    assert cluster.partition().eligible_leader_replicas == (3,)
    alter(cluster, 2, [2, 3])
    assert cluster.partition().eligible_leader_replicas == ()
