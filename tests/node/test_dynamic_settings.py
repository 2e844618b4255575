"""Settings that change while a node runs take effect on it, and end when they are taken away."""

from __future__ import annotations

import pytest

from kraft_wire.model import TopicPartition
from kraft_wire.node.limits import ServerLimits
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from tests.broker.groups.node_door import NodeDoor

SET, DELETE = 0, 1
BROKER = 4
COMPACTED = TopicPartition("compacted", 0)


def alter(door: NodeDoor, name: str, key: str, value: str | None) -> None:
    """Set a key of a broker, or of all of them, or take it away."""
    change = AlterableConfig(
        name=key, config_operation=DELETE if value is None else SET, value=value
    )
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=[change])
    answer = door.send(IncrementalAlterConfigsRequest(resources=[resource]), 1).response
    assert answer.responses[0].error_code == 0, answer


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("max.connections", "connections_max"),
        ("max.connections.per.ip", "connections_per_ip_max"),
        ("max.connection.creation.rate", "connections_per_second_max"),
    ],
)
def test_host_hears_of_changed_limits_the_brokers_own_above_those_of_all(
    key: str, field: str
) -> None:
    door = NodeDoor(SimFileSystem(), **{key: "90"})
    for name, value in (("", "80"), ("1", "70"), ("", "60"), ("1", None), ("", None)):
        alter(door, name, key, value)
    assert [getattr(limits, field) for limits in door.limits] == [80, 70, 60, 90]


def test_changed_limits_hold_after_a_restart() -> None:
    fs = SimFileSystem()
    first = NodeDoor(fs)
    alter(first, "", "max.connections", "5")
    first.stop()
    (limits,) = NodeDoor(fs, now_ms=first.now_ms).limits
    assert limits == ServerLimits(connections_max=5)


def test_settings_of_other_concerns_do_not_change_the_limits() -> None:
    door = NodeDoor(SimFileSystem())
    alter(door, "", "log.retention.ms", "3600000")
    assert door.limits == []


def produce(door: NodeDoor) -> None:
    records = bytes(build_batch([Record(b"k", b"v", timestamp=door.wall_ms)]))
    partition = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name=COMPACTED.topic, partition_data=[partition])
    answer = door.send(ProduceRequest(acks=-1, timeout_ms=1, topic_data=[topic]), 9).response
    assert answer.responses[0].partition_responses[0].error_code == 0, answer


def test_log_cleaner_backoff_ms_is_obeyed_at_once_in_both_directions() -> None:
    door = NodeDoor(SimFileSystem(), **{"log.cleaner.backoff.ms": "600000"})
    configs = {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0"}
    topic = CreatableTopic(
        name=COMPACTED.topic,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=name, value=text) for name, text in configs.items()],
    )
    assert door.send(CreateTopicsRequest(topics=[topic], timeout_ms=1), 7).response is not None
    cleaned = door.node.broker.logs.log_directories[0].cleaner_offsets  # type: ignore[attr-defined]  # the node's own store
    for _ in range(3):
        produce(door)
        door.advance(10)
    door.advance(100_000)
    assert COMPACTED not in cleaned, "the file's ten minutes are not over"
    alter(door, "", "log.cleaner.backoff.ms", "2000")
    door.advance(2_000)
    first = cleaned[COMPACTED]
    assert first > 0
    alter(door, "", "log.cleaner.backoff.ms", "600000")
    for _ in range(3):
        produce(door)
        door.advance(10)
    door.advance(100_000)
    assert cleaned[COMPACTED] == first
