"""Groups are counted by kind and state, under the names that Kafka's own metrics have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from kraft_wire.broker.broker import Broker
from kraft_wire.node.metrics.group_metrics import group_metrics
from tests.broker.groups.harness import Harness
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
