"""Throttles of replication decide as Apache Kafka's own ReplicationQuotaManager."""

from __future__ import annotations

import json

import pytest

from kraft_wire.node.node import Node
from kraft_wire.node.quotas.replication_quota import ReplicationQuota
from kraft_wire.node.quotas.windows import Windows
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.create_topics import CreatableTopic, CreateTopicsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.groups.node_door import NodeDoor
from tests.node.quotas.record_answers import RECORDED_THROTTLES, judged
from tests.node.quotas.throttle_stories import is_question, ours, throttle_story

ANSWERS: dict[str, list[str]] = json.loads(RECORDED_THROTTLES.read_text(encoding="utf-8"))
BROKER, TOPIC = 4, 2


def compare(lines: list[str], answers: list[str]) -> None:
    """Fail with the first question that is answered in another way."""
    asked = [line for line in lines if is_question(line)]
    for line, expected, answer in zip(asked, answers, ours(lines), strict=True):
        assert answer == expected, line


@pytest.mark.parametrize("seed", ANSWERS)
def test_stories_have_the_answers_that_apaches_manager_gave(seed: str) -> None:
    """SEC-QUOTA-20: whether the rate is exceeded, and which partitions count."""
    compare(list(throttle_story(int(seed))), ANSWERS[seed])


@pytest.mark.java
def test_new_stories_have_the_answers_of_apaches_manager() -> None:
    """SEC-QUOTA-20: 600 stories, told to both now."""
    lines = [line for seed in range(1_000, 1_600) for line in throttle_story(seed)]
    compare(lines, judged(lines, "ReplicationThrottle"))


def test_stories_have_both_answers_often() -> None:
    answers = [each for row in ANSWERS.values() for each in row]
    assert min(answers.count("true"), answers.count("false")) > 300


def alter(door: NodeDoor, kind: int, name: str, **values: str | None) -> None:
    """Set or remove settings; `__` stands for a dot."""
    changes = [
        AlterableConfig(
            name=key.replace("__", "."), config_operation=int(value is None), value=value
        )
        for key, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
    answer = door.send(IncrementalAlterConfigsRequest(resources=[resource]), 1).response
    assert answer.responses[0].error_code == 0, answer


def throttles(node: Node) -> tuple[bool, bool]:
    """Whether the broker throttles as leader, and as follower."""
    broker = node.broker
    return broker.leader_throttle is not None, broker.follower_throttle is not None


def test_lists_of_topics_and_rates_of_the_broker_act_while_it_runs() -> None:
    """SEC-QUOTA-20: its own rate above that of all; without a list nothing is measured."""
    fs = SimFileSystem()
    door = NodeDoor(fs)
    topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1)
    door.send(CreateTopicsRequest(topics=[topic], timeout_ms=1), 7)
    alter(door, BROKER, "", leader__replication__throttled__rate="1000")
    assert throttles(door.node) == (False, False)
    alter(door, TOPIC, "t", leader__replication__throttled__replicas="0:1,1:2,2:1")
    assert throttles(door.node) == (True, False)
    throttle = door.node.broker.leader_throttle
    assert throttle is not None
    assert [throttle.is_throttled("t", each) for each in range(3)] == [True, False, True]
    throttle.record(5_000, door.now_ms)
    assert throttle.is_exceeded(door.now_ms)
    alter(door, BROKER, "1", leader__replication__throttled__rate="9000")
    assert not throttle.is_exceeded(door.now_ms)
    alter(door, BROKER, "1", leader__replication__throttled__rate=None)
    assert throttle.is_exceeded(door.now_ms)
    alter(door, TOPIC, "t", follower__replication__throttled__replicas="*")
    assert throttles(door.node) == (True, True)
    door.stop()
    door = NodeDoor(fs, now_ms=door.now_ms)
    assert throttles(door.node) == (True, True), "settings outlive a restart"
    alter(door, TOPIC, "t", leader__replication__throttled__replicas=None)
    assert throttles(door.node) == (False, True)
    door.send(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1), 5)
    assert throttles(door.node) == (False, False)


def test_numbers_that_are_no_ints_name_no_replica() -> None:
    quota = ReplicationQuota("leader", 7, Windows(11, 1_000))
    long = "9" * 5_000
    quota.throttle("t", f"1:7,{long}:7,2:{long},3:{'0' * 5_000}7,{'0' * 5_000}4:7,5:8")
    assert [number for number in range(-1, 9) if quota.is_throttled("t", number)] == [1, 3, 4]
