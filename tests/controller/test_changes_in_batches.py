"""Requests of brokers make a change in several batches where one is too small for it.

In 4.3.1, ControllerResult is `of` for exactly the six of these requests that may write many
records, and `atomicOf` for all others: ReplicationControlManager (AlterPartition, ElectLeaders,
BrokerHeartbeat, UnregisterBroker, AssignReplicasToDirs), ClusterControlManager (registerBroker).
"""

from collections.abc import Callable

import pytest

from kraft_wire.controller import requests
from kraft_wire.wire.generated.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kraft_wire.wire.generated.elect_leaders import ElectLeadersRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.unregister_broker import UnregisterBrokerRequest
from tests.controller.broker_cluster import BrokerCluster, directory
from tests.controller.test_assign_replicas_to_dirs import assign

SESSION_MS = 60_000
"""More than a broker's session lasts without a heartbeat."""


def _isr(cluster: BrokerCluster, leader: int, topic: str, *isr: int) -> None:
    """Let a leader ask for the ISR of both partitions of a topic."""
    members = [BrokerState(broker_id=each, broker_epoch=cluster.epochs[each]) for each in isr]
    partitions = [
        PartitionData(
            partition_index=number,
            leader_epoch=cluster.partition(topic, number).leader_epoch,
            new_isr_with_epochs=members,
            partition_epoch=cluster.partition(topic, number).partition_epoch,
        )
        for number in (0, 1)
    ]
    topic_id = cluster.loader.image.topics_by_name[topic].topic_id
    cluster.request(
        AlterPartitionRequest(
            broker_id=leader,
            broker_epoch=cluster.epochs[leader],
            topics=[TopicData(topic_id=topic_id, partitions=partitions)],
        )
    )


def test_requests_of_brokers_may_take_more_than_one_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = BrokerCluster()
    cluster.register(2, log_dirs=[directory(2, 0), directory(2, 1)])
    cluster.register(3)
    for broker_id in (2, 3):
        cluster.heartbeat(broker_id)
    cluster.create("t", [2, 3], [2, 3])
    cluster.create("v", [3, 2], [3, 2])
    monkeypatch.setattr(requests, "BATCH_RECORDS_MAX", 1)

    def written(act: Callable[[], object]) -> int:
        since = len(cluster.committed)
        act()
        return len(cluster.written(since))

    assert written(lambda: assign(cluster, directory(2, 1), "t", 0, 1)) == 2
    assert written(lambda: _isr(cluster, 2, "t", 2)) == 2
    assert written(lambda: cluster.heartbeat(3, want_shut_down=True)) == 3
    assert [cluster.partition("v", number).leader for number in (0, 1)] == [2, 2]
    cluster.now_ms += SESSION_MS
    assert cluster.register(3, 2).error_code == E.NONE
    cluster.heartbeat(3)
    assert written(lambda: _isr(cluster, 2, "t", 2, 3)) == 2
    assert written(lambda: _isr(cluster, 2, "v", 2, 3)) == 2
    elect = ElectLeadersRequest(election_type=0, topic_partitions=None)
    assert written(lambda: cluster.request(elect)) == 2
    assert [cluster.partition("v", number).leader for number in (0, 1)] == [3, 3]
    cluster.now_ms += SESSION_MS
    assert written(lambda: cluster.register(3, 3)) == 5, "it leaves four ISRs"
    unregister = UnregisterBrokerRequest(broker_id=2)
    assert written(lambda: cluster.request(unregister)) == 5
