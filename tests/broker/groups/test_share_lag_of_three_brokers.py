"""Lag of a share group whose partitions are led by three brokers, the coordinator among them."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.wire.generated.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.find_coordinator import FindCoordinatorRequest
from tests.broker.groups.test_describe_share_group_offsets import describing
from tests.broker.share_state.sharing import STATE_TOPIC
from tests.node.quorum import Answer
from tests.node.test_replicated_partitions import Cluster, Producer

PARTITIONS = 6
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
}
START = 2
"""Where every share partition begins."""


class LagCluster(Cluster):
    """A topic whose partition number N has N + 2 records, and a group that begins at 2."""

    def __init__(self) -> None:
        super().__init__(**SETTINGS)
        self.create("t", PARTITIONS)
        for number in range(PARTITIONS):
            producer = Producer(self, number)
            for _ in range(number + START):
                producer.send()
        self.coordinator = self.find_coordinator()
        parts = [
            AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=START)
            for number in range(PARTITIONS)
        ]
        topic = AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=parts)
        request = AlterShareGroupOffsetsRequest(group_id="group", topics=[topic])
        response = self.settled_later(request, self.coordinator)
        while response.error_code == E.COORDINATOR_LOAD_IN_PROGRESS:
            self.advance(100)
            response = self.settled_later(request, self.coordinator)
        (altered,) = response.responses
        assert {each.error_code for each in altered.partitions} == {E.NONE}

    def settled_later(self, request: Any, node_id: int) -> Any:
        """Ask, and wait for the answer for as long as it takes."""
        answer = self.ask(node_id, request, listener="PLAINTEXT")
        self.until(lambda: answer.response is not None, 120_000)
        return answer.response

    def find_coordinator(self) -> int:
        """The broker that coordinates the group."""
        while True:
            request = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
            (found,) = self.settled_later(request, 1).coordinators
            if found.error_code == E.NONE:
                return int(found.node_id)
            self.advance(500)

    def other_broker(self) -> int:
        """A broker that coordinates neither the group nor its share partitions."""
        coordinators = {self.coordinator, self.view(STATE_TOPIC).leader}
        return min(self.members.keys() - coordinators)

    def led_by(self, node_id: int) -> set[int]:
        """The partitions of the topic that a broker leads."""
        return {n for n in range(PARTITIONS) if self.view("t", n).leader == node_id}

    def describe(self) -> Answer:
        return self.ask(self.coordinator, describing(None), listener="PLAINTEXT")

    def leave(self, answer: Answer) -> None:
        """Have the client of a request that is not answered yet close its connection."""
        (asked,) = [key for key, each in self._asked.items() if each is answer]
        self._do(asked[0], lambda node: node.connection_closed(asked[1]))
        self.drain(asked[0])

    def lags(self, answer: Answer) -> dict[int, tuple[int, int, int]]:
        """Error, start offset and lag by partition, once they are answered."""
        self.until(lambda: answer.response is not None, 120_000)
        (group,) = answer.response.groups
        (topic,) = group.topics
        return {
            each.partition_index: (each.error_code, each.start_offset, each.lag)
            for each in topic.partitions
        }


@pytest.fixture
def cluster() -> LagCluster:
    return LagCluster()


LAGS = {number: (int(E.NONE), START, number) for number in range(PARTITIONS)}


def test_the_lag_is_known_wherever_a_partition_is_led(cluster: LagCluster) -> None:
    """932-ADMIN-04: each leader is asked for its high watermark."""
    assert {cluster.view("t", number).leader for number in range(PARTITIONS)} == {1, 2, 3}
    answer = cluster.describe()
    assert cluster.lags(answer) == LAGS
    victim = cluster.other_broker()
    led = cluster.led_by(victim)
    cluster.kill(victim)
    began_ms = cluster.now_ms
    lost = cluster.describe()
    assert cluster.lags(lost) == LAGS | dict.fromkeys(led, (int(E.NETWORK_EXCEPTION), 0, -1))
    assert 0.8 * 60_000 <= cluster.now_ms - began_ms <= 1.2 * 60_000
    assert cluster.led_by(victim) == set()
    assert cluster.lags(cluster.describe()) == LAGS


def test_a_leader_that_comes_back_in_time_answers(cluster: LagCluster) -> None:
    """932-ADMIN-04: the same broker is asked again, and may not lead any more."""
    victim = cluster.other_broker()
    led = cluster.led_by(victim)
    cluster.kill(victim)
    answer = cluster.describe()
    cluster.advance(12_000)
    assert cluster.led_by(victim) == set()
    assert answer.response is None
    cluster.start(victim)
    moved = (int(E.NOT_LEADER_OR_FOLLOWER), 0, -1)
    assert cluster.lags(answer) == LAGS | dict.fromkeys(led, moved)


def test_a_client_that_leaves_ends_its_request(cluster: LagCluster) -> None:
    """What its leaders answer then is for nobody, and others are answered."""
    victim = cluster.other_broker()
    cluster.kill(victim)
    left, stays = cluster.describe(), cluster.describe()
    cluster.advance(1_000)
    cluster.leave(left)
    assert len(cluster.lags(stays)) == PARTITIONS
    assert left.response is None
