"""Groups are counted by kind and state, under the names that Kafka's own metrics have.

Offsets and lags are those of groups of every kind: a group's protocol does not change its lag.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from kraft_wire.broker.broker import Broker
from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import TransactionalWrite
from kraft_wire.broker.groups.offsets.commit import commit_offsets
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.partition import Partition
from kraft_wire.node.metrics.group_metrics import group_metrics
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest
from kraft_wire.wire.message import Message
from tests.broker.groups import test_consumer_group_heartbeat as consuming
from tests.broker.groups import test_streams_group_heartbeat as streaming
from tests.broker.groups.harness import Harness
from tests.broker.groups.requests import commit_topic
from tests.broker.groups.test_share_group_heartbeat import leaving, send, sharing


def counted(harness: Harness) -> dict[str, dict[object, float]]:
    """The families that count groups, by what is behind Kafka's common part of their names."""
    broker = SimpleNamespace(groups_in_use=harness.groups, partition=lambda *_: None)
    families = group_metrics(cast(Broker, broker))
    prefix = "kafka_server_group_coordinator_metrics_"
    return {
        each.name.removeprefix(prefix): dict(each.values)
        for each in families
        if each.name.startswith(prefix)
    }


def test_groups_are_counted_by_kind_and_state() -> None:
    harness = sharing("member")
    values = counted(harness)
    assert values["group_count"] == {"classic": 0, "consumer": 0, "share": 1, "streams": 0}
    assert values["share_group_count"] == {"stable": 1}
    assert values["consumer_group_count"] == {}
    send(harness, leaving())
    assert counted(harness)["share_group_count"] == {"empty": 1}


def shown(harness: Harness, **partitions: SimpleNamespace) -> list[Mapping[Any, float]]:
    """Committed offsets and lags; partition 0 of a topic is on this broker if it is given."""

    def partition(topic: str, number: int) -> Partition | None:
        return cast(Partition, partitions.get(topic)) if number == 0 else None

    broker = SimpleNamespace(groups_in_use=harness.groups, partition=partition)
    found: dict[str, Any] = {each.name: each.values for each in group_metrics(cast(Broker, broker))}
    return [found[f"kafka_consumergroup_{name}"] for name in ("current_offset", "lag")]


def led(**changes: object) -> SimpleNamespace:
    """A partition with committed records below 10, and two more that are not committed yet."""
    fields = {"is_leader": True, "offline": False, "high_watermark": 10, "log_end_offset": 12}
    return SimpleNamespace(**(fields | changes))


def test_groups_of_every_kind_have_offsets_and_lag() -> None:
    harness = consuming.with_topic()
    harness.create_topic("source", 2)
    joining: dict[str, tuple[Message, int]] = {
        "consumer": (consuming.joining(group_id="consumer"), 1),
        "streams": (streaming.joining(group_id="streams"), 0),
    }
    epochs = {
        group_id: harness.send(request, version).response.member_epoch
        for group_id, (request, version) in joining.items()
    }
    assert set(epochs.values()) != {0}
    for offset, group_id in enumerate(("classic", *joining), 3):
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=epochs.get(group_id, -1),
            member_id="member" if group_id in epochs else "",
            topics=[commit_topic("topic", offset), commit_topic("topic", 1, partition=1)],
        )
        answer = harness.send(request, 9).response
        assert [each.partitions[0].error_code for each in answer.topics] == [0, 0]
    offsets, lags = shown(harness, topic=led())
    groups = {"classic": 3, "consumer": 4, "streams": 5}
    assert {key[0]: offset for key, offset in offsets.items() if key[2] == "0"} == groups
    assert {key: 1 for key in offsets if key[2] == "1"} == {
        (group_id, "topic", "1"): 1 for group_id in groups
    }
    assert lags == {(group_id, "topic", "0"): 10 - offset for group_id, offset in groups.items()}


def test_lag_is_shown_by_the_leader_of_a_partition_alone_and_is_never_negative() -> None:
    harness = consuming.with_topic()
    request = OffsetCommitRequest(group_id="g", topics=[commit_topic("topic", 4)])
    assert harness.send(request, 9).response.topics[0].partitions[0].error_code == 0
    place = ("g", "topic", "0")
    assert shown(harness, topic=led(is_leader=False)) == [{place: 4}, {}]
    assert shown(harness, topic=led(offline=True)) == [{place: 4}, {}]
    assert shown(harness, topic=led(high_watermark=3)) == [{place: 4}, {place: 0}]
    assert shown(harness) == [{place: 4}, {}]


def test_an_offset_of_an_open_transaction_is_not_committed_yet() -> None:
    """KIP-98: it is neither shown nor counted for the lag, beside one that is committed."""
    harness = consuming.with_topic()
    plain = OffsetCommitRequest(group_id="g", topics=[commit_topic("topic", 4)])
    assert harness.send(plain, 9).response.topics[0].partitions[0].error_code == 0
    shard = harness.groups.shard_of("g")
    assert isinstance(shard, GroupShard)
    at = ClockReading(harness.now_ms, harness.wall_ms)
    opened = OffsetCommitRequest(group_id="g", topics=[commit_topic("topic", 9, partition=1)])
    commit_offsets(shard, opened, opened.topics, 9, at, TransactionalWrite(1, 0, None))
    place = ("g", "topic", "0")
    assert shown(harness, topic=led()) == [{place: 4}, {place: 6}]
