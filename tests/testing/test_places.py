"""Which parts of a message name partitions or topics, and how long a rule is waited for."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kraft_wire.testing.faults import control_port
from kraft_wire.testing.faults.partitions import places
from kraft_wire.wire.generated.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from kraft_wire.wire.generated.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kraft_wire.wire.message import Message


def named(message: Message, version: int) -> list[tuple[str | None, int | None]]:
    return [(each.topic, each.partition) for each in places(message, version, lambda _: None)]


def test_topic_without_partitions_is_a_place_and_a_broker_is_none() -> None:
    brokers = cast(Any, [MetadataResponseBroker(node_id=1, host="h", port=9)])
    partitions = [MetadataResponsePartition(partition_index=at) for at in (0, 2)]
    topics = [
        MetadataResponseTopic(name="a", partitions=partitions),
        MetadataResponseTopic(name="b"),
    ]
    answer = MetadataResponse(brokers=brokers, topics=cast(Any, topics))
    assert named(answer, 9) == [("a", 0), ("a", 2), ("b", None)]
    cluster = DescribeClusterResponse(brokers=cast(Any, [DescribeClusterBroker(broker_id=1)]))
    assert named(cluster, 1) == []


@pytest.mark.parametrize(("fires", "seconds", "bound_s"), [(False, "0.1", 0.1), (True, "60", 0.0)])
def test_rules_are_waited_for_no_longer_than_asked(
    fires: bool, seconds: str, bound_s: float
) -> None:
    rule = cast(Any, SimpleNamespace(fired=fires))
    began_s = time.monotonic()
    asyncio.run(asyncio.wait_for(control_port._wait([rule], seconds), 30))
    assert time.monotonic() - began_s >= bound_s


def test_wait_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_port, "_WAIT_SECONDS_MAX", 0.05)
    rule = cast(Any, SimpleNamespace(fired=False))
    asyncio.run(asyncio.wait_for(control_port._wait([rule], "1e9"), 30))
