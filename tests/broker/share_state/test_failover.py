"""Share coordinators on three brokers: writers on one of them, while coordinators lose power.

Whole nodes over simulated disks. What was acknowledged is read back from whichever broker
coordinates then, and an old leader's epoch writes nothing after a newer one has read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.coordinator_keys import state_partition
from kraft_wire.model import LeaderEpoch, Offset
from kraft_wire.wire.generated.error_code import ErrorCode as E
from tests.broker.share_state.sharing import STATE_TOPIC, batch
from tests.node.test_replicated_partitions import Cluster

PARTITIONS = 6
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": str(PARTITIONS),
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
ROUNDS = 6
WRITES = 4


class ShareCluster(Cluster):
    """Three brokers, and the share partitions of many groups of one topic."""

    def __init__(self) -> None:
        super().__init__(**SETTINGS)
        self.create("t", 1)
        topic_id = self.images()[0].topics_by_name["t"].topic_id
        self.keys = [SharePartitionKey(f"g{number}", topic_id, 0) for number in range(12)]

    def call(
        self, node_id: int, name: str, argument: Any
    ) -> Mapping[SharePartitionKey, PersisterResult]:
        """Have a broker's persister make calls; return their results."""
        found: list[Mapping[SharePartitionKey, PersisterResult]] = []

        def begin(node: Any) -> None:
            persister = node.broker.share_persister
            then: Callable[..., None] = lambda results, _: found.append(results)  # noqa: E731  # typed here
            getattr(persister, name)(argument, ClockReading(*self.clocks), then)
            node.tick(*self.clocks)

        self._do(node_id, begin)
        self.drain(node_id)
        self.until(lambda: bool(found), 90_000)
        return found[0]

    def coordinator_of(self, key: SharePartitionKey) -> int:
        leader: int = self.view(STATE_TOPIC, state_partition(key, PARTITIONS)).leader
        return leader


@pytest.fixture
def cluster() -> ShareCluster:
    return ShareCluster()


def test_no_acknowledged_state_is_lost_when_coordinators_die(cluster: ShareCluster) -> None:
    """932-COORD-09, 932-COORD-16, 932-COORD-17: from a broker that lives, to all coordinators."""
    ok = dict.fromkeys(cluster.keys, PersisterResult(E.NONE))
    start = InitialShareState(1, Offset(0))
    assert cluster.call(1, "initialize", dict.fromkeys(cluster.keys, start)) == ok
    assert {cluster.coordinator_of(key) for key in cluster.keys} == {1, 2, 3}
    written = 0
    for number in range(ROUNDS):
        victim = 2 + number % 2
        writer = 5 - victim if number > 2 else 1
        epoch = LeaderEpoch(number)
        read = cluster.call(writer, "read", dict.fromkeys(cluster.keys, epoch))
        for key, result in read.items():
            assert result.error is E.NONE, (key, result)
            assert result.state is not None
            expected = [batch(0, written - 1, 2, 1)] if written else []
            assert list(result.state.batches) == expected, key
        for offset in range(written, written + WRITES):
            if offset == written + WRITES - 1:
                cluster.kill(victim)
            write = ShareStateWrite(1, epoch, Offset(0), offset, [batch(offset, offset, 2, 1)])
            assert cluster.call(writer, "write", dict.fromkeys(cluster.keys, write)) == ok
        written += WRITES
        old = ShareStateWrite(1, LeaderEpoch(number - 1), Offset(0), 0, [batch(0, 99, 4, 3)])
        if number > 1:
            refused = cluster.call(writer, "write", dict.fromkeys(cluster.keys, old))
            assert {each.error for each in refused.values()} == {E.FENCED_LEADER_EPOCH}
        cluster.start(victim)
        for partition in range(PARTITIONS):
            cluster.await_isr(STATE_TOPIC, partition)
    for partition in range(PARTITIONS):
        cluster.await_same_logs(STATE_TOPIC, partition)
